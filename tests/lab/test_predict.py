"""`predict` takes what training took: any size, folders, colours and grey, volumes; and answers with everything."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from liespline.lab import load
from liespline.lab.networks import Signature
from liespline.lab.runs.trained import Trained
from liespline.lab.tasks import find_task
from truth.shell import fails, succeeds

RNG = np.random.default_rng(0)


def answers(text):
    return json.JSONDecoder().raw_decode(text[text.index("[") :])[0]


def test_an_image_smaller_than_the_windows_and_a_file_that_is_not_there(tmp_path, tiny_run):
    Image.fromarray(RNG.integers(0, 256, (3, 3), np.uint8)).save(tmp_path / "small.png")
    text = succeeds("predict", tiny_run.path, tmp_path / "small.png", "--any-size", "--json")
    assert sum(answers(text)[0]["probabilities"].values()) == pytest.approx(1, abs=1e-6)
    assert "does not exist" in fails("predict", tiny_run.path, tmp_path / "nothing here")
    assert "p(across)" in succeeds("predict", tiny_run.path, tmp_path / "small.png", "--any-size")
    Image.fromarray(np.zeros((20, 20), np.uint8)).save(tmp_path / "sound.bmp")
    assert "expected PNG, JPEG or TIFF" in fails("predict", tiny_run.path, tmp_path / "sound.bmp")


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_loaded_network_in_another_precision(tiny_run, dtype):
    known = load(tiny_run.path)
    images = torch.rand(2, 1, *known.signature.space)
    found = load(tiny_run.path).to(dtype)(images.to(dtype))
    assert found.dtype == dtype
    exact = known.double()(images.double())
    assert (found - exact).abs().max() <= (1e-12 if dtype == torch.float64 else 0.1) * exact.abs().max()


def test_whole_patches_are_cropped_as_in_training():
    patch = RNG.integers(0, 256, (96, 96, 3), np.uint8)
    signature = Signature(3, (88, 88), ("normal", "tumour"), whole=(96, 96))
    trained = Trained(torch.nn.Linear(1, 1), find_task("pcam").defaults, signature)
    assert np.array_equal(trained.prepared(patch), patch[4:92, 4:92])
    assert np.array_equal(trained.prepared(patch[:90, :92]), patch[:90, :92]), "none of these"
