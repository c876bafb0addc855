"""Single cases of a segmentation against the definitions, voxel by voxel; and what `predict` does beside the mask."""

import csv
import itertools
import math

import nibabel
import numpy as np
import pytest
import tifffile
import torch
from PIL import Image

from lab.data_files import discs, nifti
from lab.small_runs import new_run
from liespline import SO2, uniform
from liespline.lab.data.samples import IGNORE
from liespline.lab.evaluation.cases import largest_components, rows_of_case, surface_distances
from liespline.lab.evaluation.tta import FlipAverage
from liespline.lab.runs.trained import load
from liespline.lab.tasks import find_task
from liespline.models import unet
from truth.shell import command, fails, succeeds

DRAW = np.random.default_rng(0)


def surface(mask):
    """Samples with a neighbour outside, one by one."""
    steps = [tuple(sign * (i == axis) for i in range(mask.ndim)) for axis in range(mask.ndim) for sign in (-1, 1)]
    there = {tuple(place) for place in np.argwhere(mask)}
    return [p for p in there if any(tuple(map(sum, zip(p, step, strict=True))) not in there for step in steps)]


def by_definition(found, true, spacing):
    apart = []
    for ours, others in itertools.permutations((surface(found), surface(true))):
        apart.append([min(math.dist(np.multiply(a, spacing), np.multiply(b, spacing)) for b in others) for a in ours])
    return max(np.percentile(own, 95) for own in apart), np.mean(apart[0] + apart[1])


@pytest.mark.parametrize(
    ("space", "spacing"), [((9, 12), (1.0, 1.0)), ((7, 8, 6), (1.0, 1.0, 1.0)), ((7, 8, 6), (0.7, 2.5, 1.2))]
)
def test_surfaces_are_as_far_apart_as_the_definition_says(space, spacing):
    for density in (0.03, 0.3, 0.8):
        found, true = (DRAW.random(space) < density for _ in range(2))
        assert surface_distances(found, true, spacing) == pytest.approx(by_definition(found, true, spacing), rel=1e-12)
    cube = np.zeros(space, bool)
    cube[1:5, 1:5] = True
    assert surface_distances(cube, cube, spacing) == (0, 0)
    moved = np.roll(cube, 1, 0)
    furthest, mean = surface_distances(cube, moved, spacing)
    assert furthest == pytest.approx(spacing[0])
    assert 0 < mean < spacing[0]
    assert all(math.isnan(x) for x in surface_distances(cube, np.zeros_like(cube), spacing))


def test_rows_of_a_case_leave_out_what_is_to_be_ignored():
    found, true = DRAW.integers(0, 3, (2, 8, 9, 7))
    ignored = DRAW.random(true.shape) < 0.3
    rows = list(rows_of_case("a", found, np.where(ignored, IGNORE, true), ("background", "x", "y", "never"), (1, 2, 3)))
    assert [(row["image"], row["class"]) for row in rows] == [("a", "x"), ("a", "y"), ("a", "never")]
    for number, row in enumerate(rows[:2], 1):
        ours, theirs = found[~ignored] == number, true[~ignored] == number
        assert row["Dice"] == pytest.approx(2 * (ours & theirs).sum() / (ours.sum() + theirs.sum()))
        assert row["sensitivity"] == pytest.approx((ours & theirs).sum() / theirs.sum())
        known = by_definition((found == number) & ~ignored, (true == number) & ~ignored, (1, 2, 3))
        assert (row["HD95 (mm)"], row["mean surface distance (mm)"]) == pytest.approx(known)
    assert all(math.isnan(value) for value in list(rows[2].values())[2:])


def test_the_largest_component_of_each_class_is_kept():
    mask = np.array([[1, 1, 0, 2, 0], [1, 0, 2, 0, 0], [0, 0, 2, 2, 1], [3, 0, 0, 0, 1]], np.uint8)
    kept = [[1, 1, 0, 0, 0], [1, 0, 2, 0, 0], [0, 0, 2, 2, 0], [3, 0, 0, 0, 0]]
    assert np.array_equal(largest_components(mask), kept), "face to face"
    assert np.array_equal(largest_components(np.zeros((3, 3), np.uint8)), np.zeros((3, 3)))


def test_the_mean_over_reflections_is_reflected_with_its_image():
    torch.manual_seed(0)
    network, x = unet(1, 3, uniform(SO2(), 4), widths=(2, 3)).eval().double(), torch.rand(2, 1, 16, 20).double()
    averaged = FlipAverage(network, 2, maps=True)
    assert (network(x.flip(2)) - network(x).flip(2)).abs().max() > 1e-3
    for axes in ((2,), (3,), (2, 3)):
        assert (averaged(x.flip(axes)) - averaged(x).flip(axes)).abs().max() < 1e-12
    pooled = FlipAverage(
        torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.AdaptiveMaxPool2d(1)).double(), 2, False
    )
    assert (pooled(x.flip(3)) - pooled(x)).abs().max() < 1e-12


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    """A run on balls in voxels that are no cubes, and its folder."""
    root, affine = tmp_path_factory.mktemp("balls"), np.diag([1.0, 1.0, 2.5, 1.0])
    for i in range(9):
        place = np.stack(np.meshgrid(*map(np.arange, (14, 16, 8)), indexing="ij"), -1) * (1, 1, 2.5)
        mask = np.linalg.norm(place - DRAW.uniform((5, 5, 7), (9, 11, 12)), axis=-1) < 4
        (root / "images").mkdir(exist_ok=True)
        (root / "masks").mkdir(exist_ok=True)
        nifti(root / "images" / f"{i}.nii.gz", (mask + DRAW.normal(0, 0.2, mask.shape)).astype(np.float32), affine)
        nifti(root / "masks" / f"{i}.nii.gz", 3 * mask.astype(np.uint8), affine)
    small = {"group": "none", "widths": (4, 6), "epochs": 6, "patch": 8, "accelerator": "cpu", "lr": 0.02}
    config = find_task("segment").defaults.updated(data=str(root), batch_size=8, **small)
    return new_run(config, tmp_path_factory.mktemp("runs") / "balls").path, root


def table(file):
    with open(file, newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_table_of_cases_is_that_of_the_files(volumes, tmp_path):
    run, root = volumes
    names = sorted(path.name for path in (root / "images").iterdir())
    out = tmp_path / "out"
    said = succeeds("predict", run, root / "images", "--out", out, "--truth", root / "masks", "--probabilities")
    assert "9 cases" in said
    rows = table(out / "cases.csv")
    assert [row["image"] for row in rows] == [str(i) for i in range(9)]
    for row, name in zip(rows, names, strict=True):
        image, mask, true = (nibabel.load(part / name) for part in (root / "images", out, root / "masks"))
        maps = nibabel.load(out / name.replace(".nii", "_probabilities.nii"))
        found, there, shares = (np.asarray(one.dataobj) for one in (mask, true, maps))
        assert np.array_equal(maps.affine, image.affine)
        assert shares.shape == (*found.shape, 2)
        assert np.abs(shares.sum(-1) - 1).max() < 1e-5
        assert np.array_equal(3 * shares.argmax(-1), found)
        ours, theirs = found == 3, there == 3
        assert float(row["Dice"]) == pytest.approx(2 * (ours & theirs).sum() / (ours.sum() + theirs.sum()), rel=1e-5)
        known = by_definition(ours, theirs, (1.0, 1.0, 2.5))
        assert [float(row[f"{name} (mm)"]) for name in ("HD95", "mean surface distance")] == pytest.approx(
            known, rel=1e-5
        )
    succeeds("evaluate", run, "--split", "valid", "--cases", tmp_path / "valid.csv")
    by_name = {row["image"]: row for row in rows}
    for row in table(tmp_path / "valid.csv"):
        assert row == by_name[row["image"]]
    (root / "masks" / "8.nii.gz").rename(tmp_path / "8.nii.gz")
    status, _, errors = command("predict", run, root / "images", "--out", out, "--truth", root / "masks")
    (tmp_path / "8.nii.gz").rename(root / "masks" / "8.nii.gz")
    assert status == 1
    assert "has no mask of 8" in errors
    assert len(table(out / "cases.csv")) == 8


def test_masks_that_are_there_are_kept_and_options_make_them_anew(tmp_path):
    folder, out = discs(tmp_path / "discs", 10), tmp_path / "out"
    small = {"elements": 4, "widths": (2, 3), "epochs": 1, "batch_size": 8, "patch": 32, "accelerator": "cpu"}
    run = new_run(find_task("segment").defaults.updated(data=str(folder), **small), tmp_path / "run").path
    words = ("predict", run, folder / "images", "--out", out)
    succeeds(*words)
    made = {path: path.stat().st_mtime_ns for path in out.glob("*.png")}
    (out / "03.png").unlink()
    succeeds(*words)
    assert [path.name for path in made if path.stat().st_mtime_ns != made[path]] == ["03.png"]
    succeeds(*words, "--probabilities", "--largest-component", "--tta")
    trained = load(run)
    for path in made:
        mask, shares = np.asarray(Image.open(path)), tifffile.imread(path.with_name(f"{path.stem}_probabilities.tif"))
        assert np.array_equal(mask, largest_components(shares.argmax(0).astype(np.uint8)))
        image = torch.from_numpy(np.asarray(Image.open(folder / "images" / path.name)).copy())[None, None]
        assert shares.shape == (2, *image.shape[2:])
        assert np.abs(shares - trained.probabilities(image)[0].numpy()).max() > 1e-4, "an average over eight"
    for part in (1, 2):
        succeeds(*words, "--part", f"{part}/2")
    assert "are for masks" in fails("predict", volumes_of_digits(tmp_path), folder / "images", "--largest-component")


def volumes_of_digits(tmp_path):
    """A run that gives no masks."""
    config = find_task("digits").defaults.updated(widths=(2, 2, 2), elements=2, epochs=1, accelerator="cpu")
    return new_run(config, tmp_path / "digits").path
