"""What the command says of equivariance, computed again from the files by SciPy and plain loops; and what fools it not.

Images are not square, names unsorted, classes uneven, the last batch not full.
"""

import itertools
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage
from torch import nn

from liespline.lab.runs.model_file import read_weights, save_weights
from liespline.lab.runs.trained import load
from truth.conftest import write_pair, write_table
from truth.road import Array, liespline

ANGLES = (0, 22.5, 30, 45, 60, 67.5, 90, 112.5, 120, 135, 150, 157.5, 180)
GROUPS = {
    "four": ("--group", "so2", "--elements", 4, "--set", "widths=3,4,5"),
    "eight": ("--group", "so2", "--elements", 8, "--set", "widths=3,4,5"),
    "plain": ("--group", "none", "--set", "widths=6,8,10"),
}
SMALL = tuple("--epochs 4 --batch-size 8 --accelerator cpu --lr 0.02 --seed 1 --quiet".split())


def drawing(draw: np.random.Generator, kind: int, size: tuple[int, int] = (22, 19)) -> Array:
    """A bar, a hook or a disc on noise."""
    y, x = np.mgrid[: size[0], : size[1]].astype(float)
    y, x = y - (size[0] - 1) / 2 + draw.uniform(-1, 1), x - (size[1] - 1) / 2 + draw.uniform(-1, 1)
    bar = (np.abs(x) < 2) & (np.abs(y) < 7)
    shape = (bar, bar | ((np.abs(y - 5) < 2) & (x > 0) & (x < 7)), y**2 + x**2 < 20)[kind]
    light = ndimage.gaussian_filter(shape * draw.uniform(100, 200), 0.7) + draw.normal(0, 4, y.shape)
    return (40 + light).clip(0, 255).astype(np.uint8)


def drawings(root: Path, size: tuple[int, int]) -> Path:
    draw = np.random.default_rng(0)
    for kind, (name, count) in enumerate((("zebra", 40), ("ant", 28), ("mole", 33))):
        (root / name).mkdir()
        for i in draw.permutation(count):
            Image.fromarray(drawing(draw, kind, size)).save(root / name / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return drawings(tmp_path_factory.mktemp("folder"), (22, 19))


@pytest.fixture(scope="module")
def squares(tmp_path_factory) -> Path:
    """Images whose quarter turns carry samples onto samples."""
    return drawings(tmp_path_factory.mktemp("squares"), (21, 21))


@pytest.fixture(scope="module")
def runs(folder, squares, tmp_path_factory) -> dict[str, Path]:
    """Four orientations, eight, and a plain CNN."""
    root = tmp_path_factory.mktemp("runs")
    for name, options in GROUPS.items():
        liespline(
            "train", "images", "--data", squares if name == "four" else folder, *options, "--out", root / name, *SMALL
        )
    return {name: root / name for name in GROUPS}


def in_disc(image: Array) -> tuple[Array, float]:
    """An image (H, W) inside its largest disc, less the colour of the rim, and that colour."""
    axes = np.meshgrid(*[np.arange(n) - (n - 1) / 2 for n in image.shape], indexing="ij")
    radius, largest = np.hypot(*axes), (min(image.shape) - 1) / 2
    colour = image[(radius <= largest) & (radius > largest - 2)].mean()
    return (image - colour) * np.clip(largest + 0.5 - radius, 0, 1), colour


def rotated(image: Array, degrees: float) -> Array:
    """Counter-clockwise about the centre, by the cubic spline."""
    wide = np.pad(image, 12)  # so that no border is felt
    angle = math.radians(degrees)
    matrix = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    centre = (np.array(wide.shape) - 1) / 2
    found = ndimage.affine_transform(wide, matrix, centre - matrix @ centre, order=3, mode="constant")
    return found[12:-12, 12:-12]


def answers(run: Path, folder: Path, back: bool = False) -> Array:
    """The logits of every copy of every test image: (13, N, classes)."""
    held = json.loads((run / "data.json").read_text())["splits"]["test"]
    net = load(run)
    copies: list[list[Array]] = [[] for _ in ANGLES]
    for name in held:
        inside, colour = in_disc(np.asarray(Image.open(folder / name), np.float64) / 255)
        for outputs, angle in zip(copies, ANGLES, strict=True):
            copy = rotated(inside, 11 + angle)
            copy = rotated(copy, -11 - angle) if back else copy
            with torch.no_grad():
                outputs.append(net(torch.from_numpy(copy + colour).float()[None, None])[0].double().numpy())
    return np.array(copies)


def change(outputs: Array, chosen: Any = lambda i, j: True, centred: bool = True) -> tuple[float, float]:
    """Root mean square over pairs and the worst pair, over the standard deviation of the logits, in plain loops."""
    z = outputs - outputs.mean(-1, keepdims=True) if centred else outputs
    spread = np.mean([np.var(z[:, :, c], axis=1).mean() for c in range(z.shape[2])])
    pairs = [np.mean((z[i] - z[j]) ** 2) for i, j in itertools.combinations(range(len(z)), 2) if chosen(i, j)]
    return math.sqrt(np.mean(pairs) / spread), math.sqrt(max(pairs) / spread)


def moves_of(run: Path) -> dict[str, Any]:
    return json.loads((run / "results.json").read_text())["transformed"]


def test_the_change_is_that_of_scipy_and_plain_loops(runs, folder):
    run = runs["eight"]
    said, outputs = moves_of(run), answers(run, folder)
    assert json.loads(liespline("evaluate", run, "--json"))["transformed"] == said
    turns = (np.subtract.outer(ANGLES, ANGLES) / 45) % 1 == 0
    mean, worst = change(outputs)
    assert said["relative_output_change"] == pytest.approx(mean, rel=5e-3)
    assert said["relative_output_change_worst"] == pytest.approx(worst, rel=5e-3)
    on, between = (change(outputs, lambda i, j, there=there: turns[i, j] == there)[0] for there in (True, False))
    assert said["relative_output_change_on_grid"] == pytest.approx(on, rel=5e-3)
    assert said["relative_output_change_between_grid"] == pytest.approx(between, rel=5e-3)
    assert abs(on / between - 1) > 0.05, "or the two could be exchanged"
    predicted = outputs.argmax(2)
    pairs = itertools.combinations(range(len(ANGLES)), 2)
    assert said["changed_predictions"] == pytest.approx(
        np.mean([predicted[i] != predicted[j] for i, j in pairs]), abs=0.003
    )
    floor = change(answers(run, folder, back=True))[0]
    assert said["interpolation_floor"] == pytest.approx(floor, rel=0.1)
    assert 0 < said["interpolation_floor"] < 0.5 * said["relative_output_change"]


def test_four_orientations_are_exact_on_their_grid_and_not_between(runs, squares):
    """Which the command said to be 3e-7 in all, where the answer changes by a third."""
    said = moves_of(runs["four"])
    assert said["relative_output_change_on_grid"] < 1e-5
    assert said["relative_output_change_between_grid"] > 0.05
    assert said["relative_output_change"] == pytest.approx(change(answers(runs["four"], squares))[0], rel=5e-3)
    evaluated = json.loads(liespline("evaluate", runs["four"], "--layers", "--json"))
    assert len(evaluated["equivariance"]) == 3
    assert all(row["worst error"] < 1e-5 for row in evaluated["equivariance"])
    assert evaluated["transformed"] == said


def test_a_plain_network_is_measured(runs, folder):
    """Its error was said to be 0.00e+00."""
    said = moves_of(runs["plain"])
    assert said["relative_output_change"] == pytest.approx(change(answers(runs["plain"], folder))[0], rel=5e-3)
    assert said["relative_output_change"] > 0.3
    assert said["relative_output_change_on_grid"] is None, "it has no grid"
    layers = json.loads(liespline("evaluate", runs["plain"], "--layers", "--json"))["equivariance"]
    assert len(layers) == 3
    assert all(0.1 < row["mean error"] < row["worst error"] for row in layers)
    assert all(row["floor"] < 0.5 * row["mean error"] for row in layers)
    assert said["relative_output_change_between_grid"] == said["relative_output_change"]
    assert "0.00e+00" not in liespline("evaluate", runs["plain"], "--layers")


def test_scores_of_transformed_images_leave_out_the_unrotated_ones(runs):
    """The first of the transformations leaves images as they are."""
    said = moves_of(runs["plain"])
    assert said["labels"][0] == "0°"
    assert said["mean_accuracy"] == pytest.approx(np.mean(said["accuracy"]), abs=1e-6)
    assert said["scores"]["accuracy"] == pytest.approx(np.mean(said["accuracy"][1:]), abs=1e-6)
    assert abs(said["scores"]["accuracy"] - said["mean_accuracy"]) > 1e-4


def last_layer(run: Path, to: Path, change: Any) -> Path:
    """A copy of a run whose last weights are other ones."""
    shutil.copytree(run, to)
    file = to / "model.safetensors"
    weights, about = read_weights(file)
    names = [name for name, module in load(run).network.named_modules() if isinstance(module, nn.Linear)]
    change(weights, names[-1])
    save_weights(file, weights, about)
    return to


def test_a_constant_in_the_last_bias_changes_nothing(runs, tmp_path):
    """28.8 % were 1.1 % after adding 30 to every final bias, which changes no answer."""

    def add(weights, last):
        weights[f"{last}.bias"] += 30

    before = moves_of(runs["eight"])
    after = json.loads(liespline("evaluate", last_layer(runs["eight"], tmp_path / "run", add), "--json"))["transformed"]
    assert after["accuracy"] == before["accuracy"]
    kinds = ("", "_worst", "_on_grid", "_between_grid")
    for name in (*(f"relative_output_change{kind}" for kind in kinds), "changed_predictions", "interpolation_floor"):
        assert after[name] == pytest.approx(before[name], rel=2e-3), name


def test_a_constant_network_is_undefined(runs, tmp_path):
    def silence(weights, last):
        weights[f"{last}.weight"] *= 0

    run = last_layer(runs["four"], tmp_path / "run", silence)
    said = json.loads(liespline("evaluate", run, "--json"))["transformed"]
    assert said["relative_output_change"] is said["relative_output_change_worst"] is said["interpolation_floor"] is None
    assert "undefined" in liespline("evaluate", run)


def test_numbers_and_tags_are_measured_and_not_centred(folder, tmp_path):
    """A single number would be its own mean; the report stands without accuracies."""
    draw, rows = np.random.default_rng(1), []
    (tmp_path / "data").mkdir()
    for i in draw.permutation(30):
        image = drawing(draw, int(i) % 3)
        Image.fromarray(image).save(tmp_path / "data" / f"{i}.png")
        rows.append((f"{i}.png", round(float(image[:11].mean()) - 50, 3)))
    table, run = write_table(tmp_path / "table.csv", ("file", "light"), rows), tmp_path / "run"
    options = ("--labels", table, "--group", "so2", "--elements", 4, "--set", "widths=3,4", "--out", run)
    liespline("train", "images", "--data", tmp_path / "data", *options, *SMALL)
    said = moves_of(run)
    assert "accuracy" not in said
    assert "changed_predictions" not in said
    outputs = answers(run, tmp_path / "data")
    assert outputs.shape[2] == 1
    mean, worst = change(outputs, centred=False)
    assert said["relative_output_change"] == pytest.approx(mean, rel=5e-3)
    assert said["relative_output_change_worst"] == pytest.approx(worst, rel=5e-3)
    assert "relative output change" in (run / "report.html").read_text()
    assert "relative output change" in liespline("evaluate", run)


def mask_answers(run: Path, data: Path) -> Array:
    """The logits of five copies of every test image, brought back to where they lie: (5, points, classes)."""
    net = load(run)
    copies: list[list[Array]] = [[] for _ in range(5)]
    for name in json.loads((run / "data.json").read_text())["splits"]["test"]:
        image = np.asarray(Image.open(data / "images" / f"{name}.png"), np.float64) / 255
        axes = np.meshgrid(*[np.arange(n) - (n - 1) / 2 for n in image.shape], indexing="ij")
        inside = np.hypot(*axes) <= 0.9 * (min(image.shape) - 1) / 2
        for points, angle in zip(copies, (0, 22.5, 30, 45, 90), strict=True):
            copy = mirrored_around(image, 11 + angle)
            with torch.no_grad():
                logits = net.in_tiles(torch.from_numpy(copy).float()[None, None])[0].double().numpy()
            back = np.stack([mirrored_around(one, -11 - angle) for one in logits], -1)
            points.append(back[inside])
    return np.array([np.concatenate(points) for points in copies])


def mirrored_around(image: Array, degrees: float) -> Array:
    """Rotated, with its mirror image around it."""
    wide = np.pad(image, 20, mode="reflect")
    return rotated(wide, degrees)[20:-20, 20:-20]


def test_masks_are_measured_point_by_point(tmp_path):
    """Between copies brought back to where they lie: of a plain network more than of one of eight orientations."""
    draw = np.random.default_rng(2)
    for i in draw.permutation(14):
        y, x = np.mgrid[: 36 + i % 3, :44] - np.array([18.0, 22]).reshape(2, 1, 1)
        angle = draw.uniform(-0.2, 0.2)
        bars = np.cos(0.9 * (x * math.cos(angle) + y * math.sin(angle))) > 0
        mask = (np.hypot(y, x) < draw.uniform(9, 15)) & bars
        image = (60 + 120 * ndimage.gaussian_filter(mask * 1.0, 0.8) + draw.normal(0, 3, mask.shape)).clip(0, 255)
        write_pair(tmp_path / "data", f"{i}", image.astype(np.uint8), mask.astype(np.uint8))
    found = {}
    for group, sizes in (("so2", ("--elements", 8, "--set", "widths=2,3")), ("none", ("--set", "widths=6,8"))):
        options = ("--group", group, *sizes, "--patch", 24, "--augment", "none")
        liespline("train", "segment", "--data", tmp_path / "data", *options, *SMALL, "--out", tmp_path / group)
        found[group] = json.loads((tmp_path / group / "results.json").read_text())["rotated_masks"]
        said = json.loads(liespline("evaluate", tmp_path / group, "--json"))["rotated_masks"]
        assert said == found[group]
    turned, plain = found["so2"], found["none"]
    outputs = mask_answers(tmp_path / "so2", tmp_path / "data")
    mean, worst = change(outputs)
    assert turned["relative_output_change"] == pytest.approx(mean, rel=0.01)
    assert turned["relative_output_change_worst"] == pytest.approx(worst, rel=0.02)
    predicted = outputs.argmax(2)
    changed = [predicted[i] != predicted[j] for i, j in itertools.combinations(range(5), 2)]
    assert turned["changed_predictions"] == pytest.approx(np.mean(changed), abs=0.003)
    assert 0 < turned["relative_output_change"] < 0.8 * plain["relative_output_change"]
    assert 0 < turned["interpolation_floor"] < turned["relative_output_change"]
    assert turned["relative_output_change_on_grid"] is not None
    assert plain["relative_output_change_on_grid"] is None
    assert 0 < plain["changed_predictions"] < 1


def test_results_of_old_are_read_and_named_apart(runs, tmp_path):
    """Their change was over the norm of the output: no table shows it under the name of the new one."""
    run = tmp_path / "run"
    shutil.copytree(runs["four"], run)
    results = json.loads((run / "results.json").read_text())
    results["transformed"] = {name: value for name, value in results["transformed"].items() if "relative" not in name}
    for name in ("copies", "changed_predictions", "interpolation_floor"):
        del results["transformed"][name]
    results["transformed"]["change"] = 0.288
    (run / "results.json").write_text(json.dumps(results))
    from liespline.lab.runs.folder import Run
    from liespline.lab.screen import rows_of

    shown = dict(rows_of(Run(run).read_results("scores")))
    assert shown["change of the output (old measure: over its norm)"] == "28.8 %"
    assert not any("relative output change" in name for name in shown)
