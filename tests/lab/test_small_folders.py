"""Folders of few or small images: the defaults fit them, and say what they do."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lab.small_runs import new_run
from liespline.lab.data import Split
from liespline.lab.networks import Signature, fitting_widths
from liespline.lab.runs.folder import Run
from liespline.lab.session import Session
from liespline.lab.settings import Network
from liespline.lab.tasks import find_task
from liespline.lab.tasks.base import remarks
from liespline.lab.training.train import preflight
from liespline.models.kit import AtLeast
from truth.shell import succeeds


@pytest.fixture
def sixty(tmp_path: Path) -> Path:
    """Thirty 20×20 images of bars and thirty of crosses, turned any way."""
    draw = np.random.default_rng(1)
    x, y = np.meshgrid(np.linspace(-1, 1, 20), np.linspace(-1, 1, 20))
    for name, cross in (("bar", False), ("cross", True)):
        (tmp_path / "sixty" / name).mkdir(parents=True)
        for i in range(30):
            angle = draw.uniform(0, np.pi)
            u, v = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
            bar = (abs(u) < 0.15) & (abs(v) < 0.7)
            shape = bar | ((abs(v) < 0.15) & (abs(u) < 0.7)) if cross else bar
            pixels = (200 * shape + draw.uniform(0, 50, shape.shape)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "sixty" / name / f"{i}.png")
    return tmp_path / "sixty"


def test_defaults_learn_from_sixty_images(sixty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = find_task("images").defaults.updated(elements=4, parameters=6000, accelerator="cpu", data=str(sixty))
    run = new_run(config, sixty.parent / "run")
    said = capsys.readouterr().out
    assert "44 for training, 8 per step: 150 steps in 30 epochs" in said
    assert "20×20 has room for 4 layers of the default 5" in said
    assert run is not None
    # One of the eight test images wrong, at most: guessing gets there once in 28 times.
    assert run.read_results("scores")["scores"]["accuracy"] >= 7 / 8
    assert Run.open(run.path)[1] == config, "what was asked for is what is kept"


def test_images_that_fill_their_corners_are_told_of_the_disc() -> None:
    """Noise all over, noise in the middle alone, and noise all over for networks to which it does not matter."""
    x, y = np.meshgrid(np.linspace(-1, 1, 24), np.linspace(-1, 1, 24))
    draw = np.random.default_rng(0)
    noise = draw.integers(0, 256, (10, 24, 24)).astype(np.uint8)
    middle = np.where(x**2 + y**2 < 0.8, noise, 30).astype(np.uint8)

    def told(images: np.ndarray, **how: object) -> bool:
        config = find_task("images").defaults.updated(**how)
        split = Split(images, np.arange(10) % 2, ("a", "b"))
        return any("--circular-mask" in note for note in remarks(config.network, config, split))

    assert told(noise)
    assert not told(middle)
    assert not told(noise, circular_mask=True)
    assert not told(noise, group="none", elements=1)
    assert not told(noise, group="scale", elements=3)
    assert not told(noise, max_angle=20)


@pytest.mark.parametrize("name", ["images", "volumes"])
def test_every_size_works_and_the_last_window_of_the_defaults_sees_no_border(name: str) -> None:
    task = find_task(name)
    config = task.defaults.updated(group="none", elements=1, kernel="dense")
    dims, largest = (2, 72) if name == "images" else (3, 34)
    for side in range(5, largest):
        signature = Signature(1, (side,) * dims, ("a", "b"))
        network = task.make(config, signature).eval()
        seen: list[int] = []
        last = next(m for m in network.modules() if isinstance(m, AtLeast))
        last.register_forward_pre_hook(lambda module, inputs, seen=seen: seen.append(min(inputs[0].shape[3:])))
        with torch.no_grad():
            assert network(torch.zeros(1, 1, *signature.space)).shape == (1, 2)
        widths = fitting_widths(task.defaults.network, config.network, signature.space)
        window = 7 if name == "images" else 5
        assert seen[0] >= window or len(widths) == 2
        if widths != config.network.widths:  # one layer more would see padding
            task.make(config.updated(widths=config.network.widths[: len(widths) + 1]), signature)
            halved = side if name == "images" else (side - 1) // 2 + 1
            for _ in range(len(widths) // 2):
                halved = (halved + 1) // 2
            assert halved < window


def test_widths_asked_for_are_kept(sixty: Path) -> None:
    assert fitting_widths(Network(widths=(4, 5, 6)), Network(widths=(4, 5, 7)), (8, 8)) == (4, 5, 7)
    task = find_task("images")
    assert fitting_widths(task.defaults.network, task.defaults.network, (24, 24)) == task.defaults.network.widths[:4]
    config = task.defaults.updated(widths=(2, 2, 2, 2, 2, 2, 2), data=str(sixty))
    assert Session(config).settled.network.widths == config.network.widths


def test_too_few_steps_are_said(sixty: Path) -> None:
    config = find_task("images").defaults.updated(batch_size=16, data=str(sixty))
    (steps, _) = preflight(Session(config))
    assert "60 steps in 30 epochs" in steps
    assert "--epochs 75 would be better" in steps


@pytest.mark.parametrize(
    ("settings", "images", "steps"),
    [((), 44, 5), (("train_on_val=true",), 52, 6), (("train_fraction=0.5",), 22, 2), (("fold=1", "folds=3"), 34, 4)],
)
def test_the_steps_that_are_said_are_taken(sixty: Path, settings: tuple[str, ...], images: int, steps: int, liespline):
    """Of the images that are trained on: a share of them, or those to validate too."""
    out, given = sixty.parent / "run", [word for one in settings for word in ("--set", one)]
    small = "--group none --set widths=2,2 --epochs 1 --batch-size 8 --accelerator cpu --quiet".split()
    said = succeeds("train", "images", "--data", sixty, "--out", out, *small, *given)
    assert f"{images} for training, 8 per step: {steps} steps in 1 epoch;" in said
    assert Run(out).read_metrics()[0]["step"] == steps
    assert "fold=1" not in settings or f"fold 1 of 3: {images} to train on, " in said
