"""The validation score of the epoch that is kept is what `evaluate --split valid` says, for every kind of target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from truth.conftest import cells, write_pair, write_table
from truth.road import Road, train

KINDS = ("folders", "classes", "numbers", "tags", "points", "volumes", "masks", "scans")


def check(road: Road) -> None:
    row, found = road.rows()[road.kept_epoch()], road.evaluated("valid")["scores"]
    said = {name.removeprefix("valid_"): value for name, value in row.items() if name.startswith("valid_")}
    assert said.keys() == ({"dice", "loss"} if "dice" in found else found.keys())
    assert said == pytest.approx({name: found[name] for name in said}, abs=1e-4, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_says_what_training_said(kind, request):
    check(request.getfixturevalue(kind))


@pytest.fixture(scope="module")
def uneven(tmp_path_factory) -> Path:
    """Scans of several sizes and uneven voxels, with masks, and a shuffled table of each kind of label."""
    root, draw = tmp_path_factory.mktemp("uneven"), np.random.default_rng(12)
    rows = []
    for i, number in enumerate(draw.permutation(26)):
        spacing = (1.5, 1.0, 2.2) if i % 3 else (1.2, 1.0, 1.8)
        image, mask = cells(draw, (9 + i % 2, 12, 7), spacing)
        write_pair(root / "data", f"s{number}", image, mask, np.diag([*spacing, 1.0]))
        rows.append((f"s{number}.nii.gz", "ccbcba"[i % 6], i % 2, int(image.mean() > 70), int((mask > 0).sum())))
    rows = draw.permutation(rows).tolist()
    for kind, columns in {"classes": (1,), "tags": (2, 3), "numbers": (4,)}.items():
        names = ("file", *(f"{kind}{column}" for column in columns))
        write_table(root / f"{kind}.csv", names, [[row[0], *(row[column] for column in columns)] for row in rows])
    return root


@pytest.mark.parametrize("kind", ["classes", "tags", "numbers", "masks"])
def test_volumes_that_are_brought_to_other_voxels(kind, uneven, tmp_path):
    plain = {"group": "none", "elements": None, "spacing": 1.7, "lr": 0.03, "batch_size": 4}
    if kind == "masks":
        run = train("segment", uneven / "data", tmp_path / "run", patch=8, **plain)
    else:
        labels = {"labels": uneven / f"{kind}.csv", "label_type": kind}
        run = train("volumes", uneven / "data" / "images", tmp_path / "run", **labels, **plain)
    check(Road(run, {}, {}))
