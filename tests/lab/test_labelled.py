"""Labels from a table, from the table to the report: classes with groups, tags, numbers, points, folds."""

import csv
import json

import numpy as np
import pytest
import torch
from PIL import Image

from lab.small_runs import new_run
from liespline.lab.data import DataError
from liespline.lab.evaluation.external import score_file
from liespline.lab.tasks import find_task
from liespline.lab.tasks.images import load_points
from liespline.lab.tasks.objectives import Numbers
from truth.shell import fails, succeeds

DRAW = np.random.default_rng(0)


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    """Sixty images of one bright blob: its size and brightness, four images of each patient."""
    root = tmp_path_factory.mktemp("blobs")
    (root / "scans").mkdir()
    y, x = np.mgrid[:24, :24]
    rows = []
    for i in range(60):
        size, light = DRAW.uniform(2, 6), DRAW.uniform(80, 220)
        cy, cx = DRAW.uniform(8, 16, 2)
        image = light * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / (2 * size**2)) + DRAW.normal(0, 3, (24, 24))
        Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(root / "scans" / f"{i:02}.png")
        rows.append(
            {"file": f"scans/{i:02}.png", "size": size, "light": light, "row": cy, "column": cx, "group": i // 4}
        )
    return root, rows


def table(blobs, name, columns, **made):
    root, rows = blobs
    path = root / f"{name}.csv"
    with open(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, ["file", *columns])
        writer.writeheader()
        writer.writerows({"file": row["file"], **{c: made[c](row) for c in columns}} for row in rows)
    return path


def settings(blobs, labels, task="images", **changes):
    small = {"accelerator": "cpu", "data": str(blobs[0]), "labels": str(labels), "epochs": 6, "batch_size": 8}
    if task == "images":
        small |= {"elements": 4, "widths": (6, 8, 8), "kernel": "local", "basis": 3}
    return find_task(task).defaults.updated(**small | changes)


@pytest.fixture(scope="module")
def by_patient(blobs):
    made = {"label": lambda r: "large" if r["size"] > 4 else "small", "group": lambda r: r["group"]}
    return table(blobs, "classes", list(made), **made)


def test_numbers_are_learned_in_their_own_units(blobs, tmp_path):
    labels = table(blobs, "light", ["light"], light=lambda r: f"{r['light']:.3f}")
    run = new_run(settings(blobs, labels, epochs=12), tmp_path / "run")
    assert run.read_results("scores")["scores"]["r2"] > 0.8
    assert "R²" in run.report_file.read_text()


def test_each_number_counts_by_its_own_spread():
    output, target = torch.randn(5, 2), torch.randn(5, 2)
    apart = (output - target).abs() / torch.tensor([2.0, 0.5])
    expected = torch.where(apart < 1, apart**2 / 2, apart - 0.5).mean()
    assert torch.allclose(Numbers(("a", "b"), [(0.0, 2.0), (1.0, 0.5)]).loss(output, target), expected)


def test_an_external_table_is_scored_whole(blobs, by_patient, tmp_path):
    run = new_run(settings(blobs, by_patient, epochs=4), tmp_path / "run")
    results, remarks = score_file(run.path, blobs[0], "all", by_patient)
    assert results["images"] == 60
    assert "were trained on" in remarks[-1]
    swapped = table(blobs, "swapped", ["label"], label=lambda r: "small" if r["size"] > 4 else "large")
    said = succeeds("evaluate", run.path, "--data", blobs[0], "--labels", swapped, "--split", "all", "--json")
    found = json.JSONDecoder().raw_decode(said[said.index("{") :])[0]["scores"]["accuracy"]
    assert results["scores"]["accuracy"] > 0.6
    assert found == pytest.approx(1 - results["scores"]["accuracy"]), "what was right is wrong by the other table"


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"spot_row": lambda r: 1.5, "place": lambda r: 2.5}, "a point is two, such as eye_row and eye_column"),
        ({"spot_row": lambda r: 99.5, "spot_column": lambda r: 2.5}, "has a point outside the image of 24×24"),
    ],
)
def test_points_that_are_none(blobs, columns, says):
    labels = table(blobs, "bad", list(columns), **columns)
    with pytest.raises(DataError, match=says):
        load_points(blobs[0], labels, "all")


def test_folds_make_one_report(blobs, by_patient, tmp_path, liespline):
    runs = tmp_path / "runs"
    arguments = ["train", "images", "--data", blobs[0], "--labels", by_patient, "--folds", 3, "--out", runs]
    small = "--epochs 1 --elements 2 --set widths=2,2 --kernel dense --quiet --accelerator cpu".split()
    succeeds(*arguments, *small)
    each = [json.loads((runs / f"fold-{number}" / "results.json").read_text()) for number in (1, 2, 3)]
    accuracy, found = [one["scores"]["accuracy"] for one in each], json.loads((runs / "results.json").read_text())
    assert found["scores"]["accuracy"] == pytest.approx(np.mean(accuracy))
    assert found["deviation"]["accuracy"] == pytest.approx(np.std(accuracy, ddof=1))
    assert "Standard deviation" in (runs / "report.html").read_text()
    before = (runs / "fold-1" / "results.json").stat().st_mtime_ns
    assert liespline(*arguments, *small)[0] == 0
    assert (runs / "fold-1" / "results.json").stat().st_mtime_ns == before
    said = fails("train", "--resume", runs)
    assert f"such as {runs / 'fold-1'}" in "".join(said.split("\n"))
    said = fails("evaluate", runs)
    assert "tested on images of their own" in " ".join(said.split())
    for other, says in ((("--lr", 0.3), "not 0.3; choose another folder"), (("--folds", 4), "folds = 3, not 4")):
        said = fails(*arguments, *small, *other)
        assert says in " ".join(said.split())
    (blobs[0] / "elsewhere").mkdir(exist_ok=True)
    fails(*(blobs[0] / "elsewhere" if part == blobs[0] else part for part in arguments), *small)
    assert json.loads((runs / "results.json").read_text()) == found
    assert liespline(*arguments, *small, "--epochs", 2)[0] == 0
    assert len((runs / "fold-3" / "metrics.jsonl").read_text().splitlines()) == 2, "longer goes on"
