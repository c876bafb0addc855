"""Segmentation from the command to the files, with every number computed again by nibabel, Pillow and numpy."""

import contextlib
import io
import json
import sys
import tracemalloc
from unittest import mock

import nibabel
import numpy as np
import pytest
import tifffile
import torch
from PIL import Image
from rich.console import ConsoleDimensions

from liespline.lab import load
from liespline.lab.cli import commands
from liespline.lab.screen import Screen

TINY = ("--widths", "2,3", "--kernel-size", 3, "--accelerator", "cpu", "--quiet", "--lr", 0.03, "--batch", 8)
PLAIN = ("--group", "none", *TINY)
# Axes in another order than right, forward, up, one of them backwards, and an origin.
TURN = np.array([[0, 0, 1.0], [-1.0, 0, 0], [0, 1.0, 0]])


def command(*arguments):
    """The command as from a shell: its status, and what it wrote to both streams."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["liespline", *map(str, arguments)]),
        mock.patch.object(Screen, "size", ConsoleDimensions(1000, 50)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            commands.main()
        except SystemExit as stop:
            status = stop.code or 0
    return status, out.getvalue(), err.getvalue()


def trained(folder, out, *more):
    status, _, said = command("train", "segment", "--data", folder, "--out", out, *more)
    assert status == 0, said
    return out


def evaluated(run, split="valid", *more):
    status, out, said = command("evaluate", run, "--split", split, "--json", *more)
    assert status == 0, said
    return json.loads(out)


def epochs_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def picked(run):
    """The row of the epoch with the best score; of equal ones, that of the lowest loss."""
    rows = [row for row in epochs_of(run) if "valid_dice" in row]
    return max(rows, key=lambda row: (row["valid_dice"], -row["valid_loss"]))


def names_of(run, split):
    return sorted(json.loads((run / "data.json").read_text())["splits"][split])


def dice(pairs, values, ignored=()):
    """The mean Dice of all values but the first over the voxels of all pairs of a found and a true mask."""
    found, true = (np.concatenate([np.asarray(part).ravel() for part in parts]) for parts in zip(*pairs, strict=True))
    known = ~np.isin(true, ignored)
    found, true = found[known], true[known]
    assert set(np.unique(found)) <= set(values), "no other values than those of the training masks"
    each = [2 * ((found == v) & (true == v)).sum() / ((found == v).sum() + (true == v).sum()) for v in values[1:]]
    return float(np.mean(each))


def predicted(run, files, out, *more):
    status, said, errors = command("predict", run, *files, "--out", out, "--json", *more)
    assert status == 0, errors
    return [row["mask"] for row in json.loads(said)], errors


# ---- volumes ----


def volume(root, name, shape, spacing, draw, units="mm", codes=(2, 1)):
    """A bright and a brighter block in noise, with their mask of 0, 4 and 9."""
    mask = np.zeros(shape, np.int16)
    for value in (4, 9):
        low = [int(draw.integers(0, n // 2)) for n in shape]
        mask[tuple(slice(at, at + max(3, n // 3)) for at, n in zip(low, shape, strict=True))] = value
    values = 100.0 * mask + draw.normal(2000, 60, shape)
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = TURN * spacing, (11, -7, 3)
    for part, array in (("images", values.astype(np.int16)), ("labels", mask)):
        (root / part).mkdir(parents=True, exist_ok=True)
        image = nibabel.Nifti1Image(array, affine)
        image.set_sform(affine, codes[0])
        image.set_qform(affine, codes[1])
        image.header.set_xyzt_units(units)
        nibabel.save(image, root / part / f"{name}.nii.gz")


@pytest.fixture(scope="module")
def brain(tmp_path_factory):
    """Twelve volumes of several sizes, a little larger than a patch of 8, and of two kinds of voxels."""
    root, draw = tmp_path_factory.mktemp("brain") / "set", np.random.default_rng(3)
    for i in (7, 2, 11, 0, 5, 9, 3, 10, 1, 8, 4, 6):
        shape = (17 + i % 3, 11 + i % 4, 9 + i % 2)
        volume(root, f"v{i}", shape, (0.9, 1.1, 1.8) if i % 2 else (1.2, 1.0, 2.3), draw)
    return root


def check_volumes(run, root, out):
    """Training, `evaluate` and the files that `predict` writes say the same of the validation volumes."""
    row, found = picked(run), evaluated(run)
    names = names_of(run, "valid")
    masks, _ = predicted(run, [root / "images" / f"{name}.nii.gz" for name in names], out)
    pairs = [
        (nibabel.load(mask).dataobj, nibabel.load(root / "labels" / f"{name}.nii.gz").dataobj)
        for mask, name in zip(masks, names, strict=True)
    ]
    by_nibabel = dice(pairs, (0, 4, 9))
    assert 0.1 < by_nibabel < 0.999, "a score that could be anything"
    assert found["scores"]["dice"] == pytest.approx(by_nibabel, abs=1e-6)
    assert row["valid_dice"] == pytest.approx(by_nibabel, abs=1e-6)
    assert row["valid_loss"] == pytest.approx(found["scores"]["loss"], abs=1e-5)
    each = [dice([pair], (0, 4, 9)) for pair in pairs]
    assert found["scores"]["dice_per_image"] == pytest.approx(np.mean(each), abs=1e-6)
    for number, value in ((1, 4), (2, 9)):
        answer, true = (np.concatenate([np.asarray(part).ravel() == value for part in side]) for side in zip(*pairs))
        assert found["scores"][f"IoU, {value}"] == pytest.approx((answer & true).sum() / (answer | true).sum(), abs=1e-6)
        assert found["scores"][f"sensitivity, {value}"] == pytest.approx((answer & true).sum() / true.sum(), abs=1e-6)
        assert sum(found["confusion"][number]) == true.sum(), "voxels of the stored masks"


@pytest.fixture(scope="module")
def coarse(brain, tmp_path_factory):
    """Trained on cubes of 2.2 mm, with a moving average of the weights."""
    more = ("--spacing", 2.2, "--patch", 8, "--epochs", 3, "--ema", 0.8)
    return trained(brain, tmp_path_factory.mktemp("runs") / "coarse", *PLAIN, *more)


def test_volumes_with_another_spacing(coarse, brain, tmp_path):
    check_volumes(coarse, brain, tmp_path)


def test_volumes_of_their_own_spacing_in_tiles(brain, tmp_path, monkeypatch):
    """Cubes as large as the usual voxel; tiles of 16 samples, so that volumes are cut where they are scored."""
    monkeypatch.setitem(__import__("liespline.lab.runs.trained").lab.runs.trained.TILE, 3, 16)
    run = trained(brain, tmp_path / "run", *PLAIN, "--patch", 8, "--epochs", 2)
    check_volumes(run, brain, tmp_path / "out")
