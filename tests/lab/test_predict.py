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


def test_whole_patches_are_cropped_as_in_training():
    patch = RNG.integers(0, 256, (96, 96, 3), np.uint8)
    signature = Signature(3, (88, 88), ("normal", "tumour"), whole=(96, 96))
    trained = Trained(torch.nn.Linear(1, 1), find_task("pcam").defaults, signature)
    assert np.array_equal(trained.prepared(patch), patch[4:92, 4:92])
    assert np.array_equal(trained.prepared(patch[:90, :92]), patch[:90, :92]), "none of these"
