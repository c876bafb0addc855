"""Small runs that several tests look at."""

import numpy as np
import pytest
import torch
from PIL import Image

from truth.shell import command

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def image_folder(tmp_path_factory):
    """Two classes of 16×16 images, stripes across and stripes along; one class has a name to be escaped."""
    root = tmp_path_factory.mktemp("images")
    draw = np.random.default_rng(0)
    for name, across in (("across", True), (HOSTILE, False)):
        (root / name).mkdir()
        for i in range(20):
            wave = 127 * (1 + np.sin(np.arange(16) * 1.4 + draw.uniform(0, 6)))
            plane = np.repeat(wave[:, None], 16, 1) if across else np.repeat(wave[None], 16, 0)
            noisy = (plane + draw.normal(0, 10, plane.shape)).clip(0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(root / name / f"{i}.png")
    return root


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory, image_folder):
    """A finished run on those images, with its report."""
    from liespline.lab.runs.folder import Run
    from liespline.lab.session import Session
    from liespline.lab.settings import Config, Network, Training
    from liespline.lab.training.train import train

    config = Config(
        task="images",
        data=str(image_folder),
        network=Network(group="so2", elements=4, widths=(3, 4, 4)),
        training=Training(epochs=3, batch_size=8, accelerator="cpu"),
    )
    run = Run.create(tmp_path_factory.mktemp("runs") / "tiny", config)
    train(Session(config, run), progress=False)
    return run


@pytest.fixture
def liespline():
    """Run the command as from a shell; its exit status and what it printed, each message on one line."""

    def run(*arguments):
        status, out, err = command(*arguments)
        return status, out + err

    return run
