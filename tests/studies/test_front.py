"""The table of the front page, the lines above it and the verdicts, from lines made up for them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from torch import tensor

from liespline.lab.evaluation.evaluate import pack
from liespline.lab.sweep.study import Row
from made_up_lines import line, study
from studies import front, report
from studies.front import Front
from studies.networks import Results

ROOT = Path(report.__file__).parents[1]
ROW = Front(
    "so2-16", "plain", words="digits", timed="plain-equal-time", escnn="escnn-c16", error=True, published="0.59",
    reader="escnn",
)  # fmt: skip


def kept(name, seed, right, **changed):
    """A run on ten thousand images of which these shares are classified correctly, the first ones."""
    true = np.zeros(10_000, int)
    said = (np.arange(10_000) >= round(10_000 * right)).astype(int)
    packed = pack(["one name"], true=tensor(true), predicted=tensor(said))
    results = {"images": 10_000, "per_image": packed} | changed.pop("results", {})
    return line(name, seed, {"accuracy": right}, results=results, **changed)


def made(*runs):
    return front.Shown(ROW, study(runs), "studies/made_up.py")


def cells(text):
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.split("\n") if row.startswith("|")]


def test_each_network_is_in_the_column_that_its_row_says():
    each = {"so2-16": 0.99, "plain": 0.97, "plain-equal-time": 0.98, "escnn-c16": 0.985, "other": 0.5}
    shown = made(*(kept(name, seed, right) for seed in (0, 1) for name, right in each.items()))
    head, _, row = cells(front.table_of([shown]))
    assert head == list(front.HEAD)
    assert row[0] == "digits (n = 10,000, 2 seeds): [`studies/made_up.py`](docs/studies.md#made_up)"
    assert [cell[-1] for cell in row[1:5]] == ["9", "§", "§", "3"], "plain networks are splines on the trivial group"
    assert [cell.split(" ± ")[0] for cell in row[1:5]] == ["1.00", "3.00", "2.00", "1.50"]
    assert row[5:8] == ["0.59 (≠)", "12,345", "1.0 / 1.0 on a CPU"]
    assert row[8].startswith("+2.00 [+1."), "points of accuracy, paired"
    assert row[8].endswith(", p = 0.001")


def test_ordinary_convolutions_have_no_mark():
    row = replace(ROW, ordinary=True)
    shown = front.Shown(row, study([kept("so2-16", 0, 0.99), kept("plain", 0, 0.97)]), "x")
    assert "§" not in front.table_of([shown])


def test_what_was_not_run_is_a_dash_and_what_is_unpaired_says_so():
    alone = cells(front.table_of([made(kept("so2-16", 0, 0.99))]))[2]
    assert alone[2:5] == ["–"] * 3
    assert alone[8] == "–"
    runs = [line("so2-16", 0, {"accuracy": 0.9}), line("plain", 0, {"accuracy": 0.9})]
    assert cells(front.table_of([made(*runs)]))[2][8].startswith("unpaired: +0.00 [−")
    assert front.shown([(ROW, study([kept("plain", 0, 0.9)]), "x"), (Row("so2-16", "plain"), study(runs), "x")]) == []


def test_jitter_pooling_and_validation_images_are_said_of_the_configuration():
    config = {"training": {"grid_jitter": 1.0}, "network": {"kernel": "pointwise"}}
    shown = made(line("so2-16", 0, {"accuracy": 0.9}, config=config, results={"split": "valid"}))
    text = front.table_of([shown])
    assert " ‡ ¶ |" in text
    assert "augmentation" in text.split("\n\n")[1]
    assert "(validation images, n = 300, 1 seed)" in text


@pytest.mark.parametrize(("plain", "word"), [(0.95, "ahead"), (0.99, "undecided"), (0.995, "behind")])
def test_verdicts_follow_the_interval(plain, word):
    shown = made(*(kept(name, seed, right) for seed in (0, 1) for name, right in (("so2-16", 0.99), ("plain", plain))))
    assert cells(front.verdicts([shown]))[2][2] == word


def test_the_line_for_users_of_escnn_and_of_tissue_wait_for_their_runs():
    ours, theirs = kept("so2-16", 0, 0.99), kept("escnn-c16", 0, 0.985)
    assert "until that study has run" in front.answers([made(ours)], "f")
    assert "digits: 1.00 ± 0.19 beside 1.50 ± 0.23 in 1.0 beside 1.0 minutes" in front.answers(
        [made(ours, theirs)], "f"
    )
    changed = {"results": {"transformed": {"changed_predictions": 0.04, "images": 9}}}
    row = Front("so2-16", "plain", words="tissue", reader="pathologist")
    shown = [front.Shown(row, study([kept(name, 0, 0.9, **changed) for name in ("so2-16", "plain")]), "x")]
    assert "Predictions that change when a patch is rotated: 4.0 %, plain 4.0 %" in front.answers(shown, "f")


def test_rows_of_the_front_page_end_at_a_study_file_and_at_lines_of_results():
    rows = report.front_rows()
    assert len(rows) >= 5
    for one in rows:
        file, _, name = one.word.partition(":")
        assert (ROOT / file).is_file()
        assert not name or f"{name} = " in (ROOT / file).read_text()
        results = (ROOT / "studies" / "results" / Path(file).name).with_suffix(".jsonl").read_text()
        lines = [json.loads(text) for text in results.splitlines()]
        networks = {line.get("network") for line in lines if line["study"] == one.results.name}
        assert one.row.ours in networks
        assert {one.row.timed, one.row.escnn} - {""} <= set(report.studies()[one.results.name].networks)
        assert one.results.name not in report.CAVEATS, "what does not stand is no row of the front page"
    assert {"behind", "ahead"} <= set(re.findall(r"\| (ahead|behind|undecided) \|", front.verdicts(rows)))
    assert isinstance(rows[0].results, Results)
