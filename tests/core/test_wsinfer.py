"""What is written for WSInfer and QuPath: runs without liespline, at any batch size, and gives the same logits."""

import json
import subprocess
import sys

import pytest
import torch

import liespline as ls
from liespline import models
from liespline.integrations.wsinfer import write_wsinfer

USE = """
import json, sys, torch
torch.set_num_threads(1)
images = torch.load("images.pt")
torch.save(torch.jit.load("net/torchscript_model.pt")(images), "logits.pt")
assert not any(name.startswith("liespline") for name in sys.modules)
"""


@pytest.fixture(scope="module")
def network():
    made = models.resnet(3, 2, ls.uniform(ls.O2(), 8), widths=(3, 4), disc=True)
    made(torch.rand(4, 3, 24, 24))  # so that running statistics are not those of a new network
    return made.eval()


def test_the_file_gives_the_same_logits_where_liespline_is_not(network, tmp_path) -> None:
    write_wsinfer(network, tmp_path / "net", ["normal", "tumour"], 24, 0.5)
    images = torch.rand(5, 3, 24, 24)
    torch.save(images, tmp_path / "images.pt")
    subprocess.run([sys.executable, "-W", "ignore", "-c", USE], cwd=tmp_path, check=True)
    with torch.no_grad():
        torch.testing.assert_close(torch.load(tmp_path / "logits.pt"), network(images), atol=1e-4, rtol=1e-4)
    config = json.loads((tmp_path / "net" / "config.json").read_text())
    assert config["spec_version"] == "1.0"
    assert (config["patch_size_pixels"], config["spacing_um_px"], config["num_classes"]) == (24, 0.5, 2)
    assert config["class_names"] == ["normal", "tumour"]
    assert {step["name"] for step in config["transform"]} <= {"Resize", "ToTensor", "Normalize"}


@pytest.mark.parametrize(
    ("classes", "spacing", "words"),
    [
        (["a"], 0.5, "needs two or more"),
        (["a", "a"], 0.5, "each with its own name"),
        (["a", "b"], 0.0, "micrometres per pixel"),
        (["a", "b", "c"], 0.5, r"give \(2, 2\)"),
    ],
)
def test_what_wsinfer_could_not_use_is_refused(network, classes, spacing, words, tmp_path) -> None:
    with pytest.raises(ValueError, match=words):
        write_wsinfer(network, tmp_path / "net", classes, 24, spacing)
    assert not (tmp_path / "net").exists()
