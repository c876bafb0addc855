"""`predict` takes what training took: any size, folders, colours and grey, volumes; and answers with everything."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from lab.small_runs import new_run
from liespline.lab import load
from liespline.lab.networks import Signature
from liespline.lab.runs.trained import Trained
from liespline.lab.tasks import find_task

RNG = np.random.default_rng(0)


def answers(text):
    return json.JSONDecoder().raw_decode(text[text.index("[") :])[0]


def test_an_image_smaller_than_the_windows_and_a_file_that_is_not_there(tmp_path, liespline, tiny_run):
    Image.fromarray(RNG.integers(0, 256, (3, 3), np.uint8)).save(tmp_path / "small.png")
    status, text = liespline("predict", tiny_run.path, tmp_path / "small.png", "--any-size", "--json")
    assert status == 0, "padded by the network"
    assert sum(answers(text)[0]["probabilities"].values()) == pytest.approx(1, abs=1e-6)
    status, text = liespline("predict", tiny_run.path, tmp_path / "nothing here")
    assert (status, "does not exist" in text) == (2, True)
    status, text = liespline("predict", tiny_run.path, tmp_path / "small.png", "--any-size")
    assert (status, "p(across)" in text) == (0, True)
    Image.fromarray(np.zeros((20, 20), np.uint8)).save(tmp_path / "sound.bmp")
    status, text = liespline("predict", tiny_run.path, tmp_path / "sound.bmp")
    assert (status, "expected PNG, JPEG or TIFF" in text) == (2, True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_loaded_network_in_another_precision(tiny_run, dtype):
    known = load(tiny_run.path)
    images = torch.rand(2, 1, *known.signature.space)
    found = load(tiny_run.path).to(dtype)(images.to(dtype))
    assert found.dtype == dtype
    exact = known.double()(images.double())
    assert (found - exact).abs().max() <= (1e-12 if dtype == torch.float64 else 0.1) * exact.abs().max()


def test_volumes(tmp_path, liespline):
    """In the middle of the box that training put them in: numpy.pad says which voxels those are."""
    arrays = {}
    for split, count in (("train", 12), ("val", 4), ("test", 5)):
        arrays[f"{split}_images"] = RNG.integers(0, 256, (count, 9, 9, 9), np.uint8)
        arrays[f"{split}_labels"] = np.arange(count, dtype=np.uint8)[:, None] % 2
    np.savez_compressed(tmp_path / "v.npz", **arrays)
    config = find_task("volumes").defaults.updated(
        group="none", elements=1, basis=1, kernel="dense", widths=(2, 3), epochs=1, accelerator="cpu", size=11,
        data=str(tmp_path / "v.npz"),
    )  # fmt: skip
    run = new_run(config, tmp_path / "run")
    trained = load(run.path)
    lowest = arrays["test_images"].min((1, 2, 3), keepdims=True)
    seen = np.pad(arrays["test_images"] - lowest, [(0, 0), *[(1, 1)] * 3]) + lowest
    known = trained(torch.from_numpy(seen)[:, None]).double().softmax(-1)
    np.save(tmp_path / "one.npy", arrays["test_images"][3])
    np.save(tmp_path / "some.npy", arrays["test_images"])
    files = [tmp_path / name for name in ("v.npz", "one.npy", "some.npy")]
    status, text = liespline("predict", run.path, *files, "--json")
    assert status == 0, text
    rows = {row["image"].removeprefix(f"{tmp_path}/"): list(row["probabilities"].values()) for row in answers(text)}
    assert len(rows) == 12 + 4 + 5 + 1 + 5
    for row in range(5):
        for name in (f"v.npz test_images row {row}", f"some.npy row {row}"):
            assert rows[name] == pytest.approx(known[row].tolist(), abs=1e-6)
    assert rows["one.npy row 0"] == pytest.approx(known[3].tolist(), abs=1e-6)
    Image.fromarray(arrays["test_images"][0, 0]).save(tmp_path / "flat.png")
    status, text = liespline("predict", run.path, tmp_path / "flat.png")
    assert status == 2
    assert "Traceback" not in text


def test_whole_patches_are_cropped_as_in_training():
    patch = RNG.integers(0, 256, (96, 96, 3), np.uint8)
    signature = Signature(3, (88, 88), ("normal", "tumour"), whole=(96, 96))
    trained = Trained(torch.nn.Linear(1, 1), find_task("pcam").defaults, signature)
    assert np.array_equal(trained.prepared(patch), patch[4:92, 4:92])
    assert np.array_equal(trained.prepared(patch[:90, :92]), patch[:90, :92]), "none of these"
