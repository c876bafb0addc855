"""Tables with rows in another order than the files say the same, also when they are sorted again after training."""

import csv
import json
import shutil

import numpy as np
import pytest

from truth.road import NEAR, answered, ended


@pytest.mark.parametrize("kind", ["classes", "numbers", "tags"])
def test_a_table_that_is_sorted_again_says_the_same(kind, request):
    road = request.getfixturevalue(kind)
    table = road.run.parent / "table.csv"
    with open(table, newline="") as stream:
        head, *rows = csv.reader(stream)
    before, again = table.rename(table.with_name("before.csv")), table.with_name("again.csv")
    try:
        for place, named in ((table, ()), (again, ("--labels", again))):
            with open(place, "w", newline="") as stream:
                csv.writer(stream).writerows([[*row[1:], row[0]] for row in (head, *sorted(rows))])
            for split in ("train", "valid", "test"):
                found = road.evaluated(split, *named)
                assert found["images"] == len(road.split(split))
                assert found["scores"] == pytest.approx(road.wanted(split), abs=NEAR, rel=NEAR)
            place.unlink()
    finally:
        before.replace(table)


def test_a_run_does_not_go_on_with_another_table(classes, tmp_path):
    """The images are the same: what the table says of them is not."""
    run = shutil.copytree(classes.run, tmp_path / "run")
    before = (run / "config.yaml").read_text()
    text = (classes.run.parent / "table.csv").read_text()
    other = tmp_path / "other.csv"
    other.write_text(text.replace("\n10,", "\nX,").replace("\n9,", "\n10,").replace("\nX,", "\n9,"))
    assert "now in another class" in ended(2, "train", "--resume", run, "--labels", other, "--quiet")[1]
    assert (run / "config.yaml").read_text() == before


def test_no_group_is_in_two_splits(classes):
    held = [{classes.parts[name] for name in classes.split(split)} for split in ("train", "valid", "test")]
    assert [len(groups) for groups in held] == [12, 2, 2]
    assert len(set.union(*held)) == 16


def test_splits_are_those_of_the_table(numbers):
    for split in ("train", "valid", "test"):
        assert sorted(numbers.split(split)) == sorted(name for name, own in numbers.parts.items() if own == split)


@pytest.mark.parametrize("kind", ["numbers", "tags"])
def test_predict_names_every_value(kind, request):
    road = request.getfixturevalue(kind)
    data = road.run.parent / "data"
    names = sorted(road.truth)
    outputs = road.outputs(names).astype(float)
    values = outputs if kind == "numbers" else 1 / (1 + np.exp(-outputs))
    rows = answered(road.run, data)
    assert len(rows) == len(names)
    for name, value in zip(names, values, strict=True):
        row = rows[str(data / name)]
        assert [float(row[one]) for one in road.classes()] == pytest.approx(value, abs=NEAR, rel=NEAR)


def test_points_are_found_where_the_table_says(points):
    for split, said in (("test", points.results()), ("valid", points.evaluated("valid"))):
        names = points.split(split)
        assert said["scores"]["success"] == pytest.approx(points.hits(names).mean())
        entropy = balanced_entropy(points.outputs(names), points.targets(names))
        assert said["scores"]["loss"] == pytest.approx(entropy, abs=1e-4)


def balanced_entropy(maps, truth) -> float:
    """Of maps (N, L, H, W) against Gaussians of σ = 1.5 at points (N, L, 2), both halves of a map counting the same."""
    y, x = np.mgrid[: maps.shape[2], : maps.shape[3]]
    apart = (y - truth[..., 0, None, None]) ** 2 + (x - truth[..., 1, None, None]) ** 2
    target = np.exp(-apart / (2 * 1.5**2))
    share = target.mean((-2, -1), keepdims=True)
    weight = target / (2 * share) + (1 - target) / (2 * (1 - share))
    z = maps.astype(float)
    return float((weight * (np.logaddexp(0, z) - target * z)).mean())


def test_the_order_of_the_points_is_that_of_the_table(points):
    assert json.loads((points.run / "data.json").read_text())["classes"] == ["nose", "eye"]
