"""A stranger's afternoon, from a folder of mixed files to a table of answers, by the commands of the README alone."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image

CLASSES = {"round": 1.0, "long": 2.5, "thin": 5.0}


def cell(rng: np.random.Generator, ratio: float, side: int) -> np.ndarray:
    """A bright spot of some shape at any angle, on grey."""
    x, y = np.meshgrid(*[np.linspace(-3, 3, side)] * 2)
    angle = rng.uniform(0, np.pi)
    u, v = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    spot = np.exp(-((u / ratio**0.5) ** 2) - (v * ratio**0.5) ** 2) + 0.05 * rng.standard_normal(x.shape)
    return (60 + 180 * spot).clip(0, 255)


# What lies in such folders: grey, colour, transparent, 16 bits, three formats; and images are of many sizes.
KINDS = (("L", "png"), ("RGB", "jpg"), ("L", "tif"), ("RGB", "png"), ("I;16", "png"), ("RGBA", "png"))


def draw(root: Path, per_class: int, seed: int) -> Path:
    """A folder per class."""
    rng = np.random.default_rng(seed)
    for name, ratio in CLASSES.items():
        (root / name).mkdir(parents=True)
        for i in range(per_class):
            pixels, (mode, suffix) = cell(rng, ratio, int(rng.integers(24, 40))), KINDS[i % 6]
            deep, flat = (pixels * 257).astype(np.uint16), Image.fromarray(pixels.astype(np.uint8))
            image = Image.fromarray(deep) if mode == "I;16" else flat.convert(mode)
            image.save(root / name / f"{i:03}.{suffix}")
    return root


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """600 images, another 60 of a colleague's, and a few to be sorted."""
    root = tmp_path_factory.mktemp("desk")
    draw(root / "cells", 200, seed=0)
    (root / "cells" / "round" / "Thumbs.db").write_bytes(b"not an image")
    draw(root / "external", 20, seed=1)
    (root / "unsorted").mkdir()
    for file in sorted((root / "external").rglob("*.png"))[::5]:
        shutil.copy(file, root / "unsorted" / f"{file.parent.name}-{file.name}")
    return root


# Words that a person without Python or machine learning would have to look up, and signs of something left unfinished.
UNEXPLAINED = re.compile(r"Traceback|Warning|warn\(|File \"|Error\b.*Error|NoneType|tensor\(|\bnan\b|0x[0-9a-f]{6}")


@pytest.fixture
def typed(desk, liespline, monkeypatch):
    """Type a command at the desk; what it printed."""
    monkeypatch.chdir(desk)

    def run(line, fails=False):
        status, said = liespline(*line.split())
        assert status == (2 if fails else 0), said
        assert not UNEXPLAINED.search(said), said
        return " ".join(said.split())

    return run


def test_a_strangers_afternoon(desk, typed):
    # The first try says what is missing, and with that it works.
    said = typed("data check images cells", fails=True)
    assert "--size" in said
    assert len(said) < 1000, "one line for hundreds of files"
    said = typed("data check images cells --size 24")
    assert re.search(
        r"train: 420 of 3×24×24, uint16, values 0.\d+ to 1, classes long 140, round 140, thin 140", said
    ), said
    assert "Thumbs.db" in said
    said = typed(
        "train images --data cells --size 24 --elements 4 --parameters 3000 --epochs 6 --batch-size 16 "
        "--out run --quiet"
    )
    assert "report: run/report.html" in said
    for words in ("accuracy", "balanced accuracy", "sensitivity, thin", "the same 90 images"):
        assert words in said

    # The folder moves to another disk and a few images are lost on the way: the run does not go on as if nothing had.
    shutil.copytree("cells", "moved")
    lost = sorted((desk / "moved" / "thin").iterdir())[:2]
    for file in lost:
        file.unlink()
    said = typed("train --resume run --data moved --epochs 7 --quiet", fails=True)
    assert "2 removed" in said
    assert all(f"thin/{file.name}" in said for file in lost)
    for file in lost:
        shutil.copy(desk / "cells" / "thin" / file.name, file)
    typed("train --resume run --data moved --epochs 7 --quiet")
    assert len((desk / "run" / "metrics.jsonl").read_text().splitlines()) == 7

    # A colleague's images, all of them.
    assert "--split all" in typed("evaluate run --data external", fails=True)
    said = typed("evaluate run --data external --split all")
    assert "the same 60 images" in said
    assert "there in training" not in said

    # Predictions for a spreadsheet.
    typed("predict run unsorted --out predicted.csv --quiet")
    rows = list(csv.DictReader((desk / "predicted.csv").read_text().splitlines()))
    assert len(rows) == len(list((desk / "unsorted").iterdir()))
    assert {"image", "class", "confidence", "p(long)", "p(round)", "p(thin)"} == rows[0].keys()
    right = sum(Path(row["image"]).name.startswith(row["class"]) for row in rows)
    assert right > len(rows) / 2, "better than guessing one of three"

    # For another program, and for a reader.
    typed("export run --onnx cells.onnx")
    session = onnxruntime.InferenceSession("cells.onnx")
    assert session.run(None, {"images": np.zeros((2, 3, 24, 24), np.float32)})[0].shape == (2, 3)
    page = (desk / "run" / "report.html").read_text()
    for words in ("balanced accuracy", "sensitivity, thin", "majority-class accuracy", "intervals"):
        assert words in page
