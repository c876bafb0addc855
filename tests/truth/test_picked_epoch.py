"""The validation score of the epoch that is kept is what `evaluate --split valid` says, for every kind of target."""

from __future__ import annotations

import pytest

KINDS = ("folders", "classes", "numbers", "tags", "points", "volumes")


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_says_what_training_said(kind, request):
    road = request.getfixturevalue(kind)
    row, found = road.rows()[road.kept_epoch()], road.evaluated("valid")["scores"]
    assert {f"valid_{name}" for name in found} == {name for name in row if name.startswith("valid_")}
    assert {name: row[f"valid_{name}"] for name in found} == pytest.approx(found, abs=1e-4, rel=1e-4)
