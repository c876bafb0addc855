"""The networks that come with liespline: there, small, described, and good at what they are for, without a network."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import liespline as ls
from liespline.lab.cli import app

ZOO = Path(ls.__file__).parent / "zoo"
NAMES = sorted(file.parent.name for file in ZOO.glob("*/model.safetensors"))
COLOURS = {"nuclei-histology": ((225, 180, 205), (95, 60, 135)), "nuclei-fluorescence": ((10,), (110,))}
"""Of what lies around nuclei, and of nuclei."""


def nuclei(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Twelve ellipses as large as nuclei of the training images, in their colours, blurred and with noise."""
    draw, (y, x) = np.random.default_rng(1), np.mgrid[:128, :160]
    shade = np.zeros((128, 160))
    for row in range(3):
        for column in range(4):
            angle = draw.uniform(0, np.pi)
            v, u = y - 22 - 40 * row, x - 22 - 38 * column
            a, b = np.cos(angle) * u + np.sin(angle) * v, np.cos(angle) * v - np.sin(angle) * u
            shade = np.maximum(shade, 0.5 - 0.5 * np.tanh(3 * ((a / 11) ** 2 + (b / 8) ** 2 - 1)))
    around, inside = map(np.array, COLOURS[name])
    image = around + shade[..., None] * (inside - around) + draw.normal(0, 3, (128, 160, len(around)))
    return image.clip(0, 255).astype(np.uint8), shade > 0.5


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # importing it fails


def test_there_are_the_networks_that_the_docs_name() -> None:
    assert set(NAMES) == set(COLOURS)
    page = (Path(__file__).parents[2] / "docs" / "guide" / "hub.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"| `zoo:{name}` " in page
        dice = ls.load(f"zoo:{name}").results["scores"]["dice"]
        assert f"{100 * dice:.1f} %" in page


@pytest.mark.parametrize("name", NAMES)
def test_a_network_of_the_zoo_is_small_and_described(name: str) -> None:
    assert sum(file.stat().st_size for file in (ZOO / name).iterdir()) < 500_000
    card = (ZOO / name / "README.md").read_text(encoding="utf-8")
    for words in ("CC0", "95 % interval", "`liespline train segment --data ", "Grid(SO2(), 8 elements", f"zoo:{name}"):
        assert words in card
    assert ls.load(f"zoo:{name}").results["split"] == "test"


@pytest.mark.parametrize("name", NAMES)
def test_it_finds_nuclei_and_rotates_with_them(name: str) -> None:
    image, mask = nuclei(name)
    network, x = ls.load(f"zoo:{name}"), torch.from_numpy(image).permute(2, 0, 1)[None]
    found = network.probabilities(x)
    predicted = found[0].argmax(0).numpy() == 1
    assert 2 * (predicted & mask).sum() / (predicted.sum() + mask.sum()) > 0.8
    turned = network.probabilities(torch.rot90(x, 1, (2, 3)))
    torch.testing.assert_close(turned, torch.rot90(found, 1, (2, 3)), atol=1e-4, rtol=0)


def test_the_command_takes_its_name(tmp_path: Path) -> None:
    image, mask = nuclei("nuclei-histology")
    Image.fromarray(image).save(tmp_path / "slide.png")
    words = ["predict", "zoo:nuclei-histology", str(tmp_path / "slide.png"), "--out", str(tmp_path / "masks")]
    app(words, standalone_mode=False)
    predicted = np.asarray(Image.open(next((tmp_path / "masks").glob("slide*"))))
    assert (predicted == mask).mean() > 0.85
