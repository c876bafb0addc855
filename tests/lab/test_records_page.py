"""The page and the pictures of a sweep of records, against numbers that were made up for them."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
import yaml
from scipy import stats

from lab.made_up_runs import write
from liespline.lab.evaluation.moves import ROTATIONS
from liespline.lab.paper.intervals import area_over_images
from liespline.lab.sweep.records import SETS
from liespline.lab.sweep.records_page import CHANGE, scored_runs, write_records_page
from liespline.lab.sweep.study import write_study
from studies.figures import records as figure
from studies.figures.style import THEMES


def made_up_study(folder):
    """Two seeds of two networks, whose numbers are known."""
    write_study(folder, "records", "pcam", 2, {"epochs": 6, "data": "/somewhere", "compile": False})
    configs = SETS["pcam"].configs({})
    for name, base in (("o2-12-100", 0.9), ("plain-100", 0.8), ("o2-12-10", 0.85), ("plain-10", 0.7)):
        for seed in (0, 1):
            score = base + 0.02 * seed
            at = [score - 0.05, score - 0.1]
            moves = {"axis": "angle", "labels": ["0°", "90°"], "accuracy": at, "mean_accuracy": score}
            moves |= {"change": 0.05, "images": 9, "upright": score, "scores": {"accuracy": score - 0.1, "auc": 0.5}}
            epochs = [{"valid_auc": v, "valid_accuracy": v} for v in (0.1, 0.5, 0.6, 0.7, 0.8, 0.9)]
            scores = {"accuracy": score, "balanced_accuracy": score, "auc": score + 0.01}
            config = configs[name].updated(seed=seed)
            more = {"moves": moves, "seconds": 60.0, "confusion": [[200, 40], [20, 40]]}
            write(folder / "runs" / name / f"seed-{seed}", config, scores, epochs, **more)


def test_the_table_has_mean_deviation_interval_and_difference(tmp_path):
    made_up_study(tmp_path)
    text = write_records_page(tmp_path).read_text()
    assert "/somewhere" not in text + (tmp_path / "study.yaml").read_text()
    assert yaml.safe_load((tmp_path / "study.yaml").read_text())["about"] == SETS["pcam"].about
    assert "`liespline sweep records --set pcam --seeds 2 --data DATA --epochs 6 --no-compile`" in text
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    head, ours = rows[0], next(row for row in rows if row[0] == "o2-12-100")
    assert [row[0] for row in rows[2:6]] == ["o2-12-100", "plain-100", "o2-12-10", "plain-10"], "as in the set"
    low, high = stats.t.interval(0.95, 1, 91, stats.sem([90, 92]))
    assert ours[head.index("accuracy")] == f"91.00 ± 1.41 [{low:.2f}, {high:.2f}]"
    assert ours[head.index("validation AUC, last 5 epochs")].startswith("70.00 ± 0.00")
    assert ours[head.index("accuracy, moved")].startswith("81.00 ± 1.41")
    assert ours[head.index("accuracy, cut")].startswith("86.00 ± 1.41")
    assert ours[head.index("accuracy, as they lie")].startswith("91.00 ± 1.41")
    assert scored_runs(tmp_path)["plain-10"].values[CHANGE] == [0.05, 0.05]
    welch = stats.ttest_ind([90, 92], [80, 82], equal_var=False).confidence_interval(0.95)
    difference = next(row for row in rows if row[0] == "o2-12-100 − plain-100")
    assert difference[1] == f"+10.00 [{welch.low:+.2f}, {welch.high:+.2f}]".replace("-", "−")
    (tmp_path / "runs" / "plain-10" / "seed-1" / "results.json").unlink()
    text = write_records_page(tmp_path).read_text()
    assert "Not counted: 1 runs that are not finished." in text
    alone = next(line for line in text.splitlines() if line.startswith("| plain-10 |")).split("|")[1:-1]
    images = json.loads((tmp_path / "runs/plain-10/seed-0/results.json").read_text())["images"]
    for measure, share, count in (("accuracy", 0.7, images), ("accuracy, cut", 0.65, 9), ("accuracy, moved", 0.6, 9)):
        width = stats.norm.ppf(0.975) * math.sqrt(share * (1 - share) / count)
        said = f"{100 * share:.2f} [{100 * (share - width):.2f}, {100 * (share + width):.2f}]"
        assert alone[head.index(measure)].strip() == said, "over as many images as were moved"
    width = stats.norm.ppf(0.975) * area_over_images(0.71, images, second=60 / 300).error
    assert alone[head.index("AUC")].strip() == f"71.00 [{100 * (0.71 - width):.2f}, {100 * (0.71 + width):.2f}]"


def test_the_picture_shows_what_the_runs_say(tmp_path):
    made_up_study(tmp_path)
    networks = {network.name: network for network in figure.prepare(tmp_path)}
    ours = networks["o2-12-100"]
    assert ours.value == pytest.approx(0.92)
    assert ours.spread == pytest.approx(0.02 / math.sqrt(2))
    assert np.allclose(ours.moved, [(0, 0.86), (90, 0.81)])
    assert ours.learning[-1] == pytest.approx((6 / 60, 0.9))
    assert len(ours.learning) == 6
    lines = figure.lines_of(list(networks.values()), "share")
    assert {group: [n.share for n in line] for group, line in lines.items()} == {"o2": [0.1, 1.0], "none": [0.1, 1.0]}
    assert figure.lines_of(list(networks.values()), "weights") == {}
    panels = figure.draw(list(networks.values()), THEMES[0]).axes
    assert [panel.axison for panel in panels] == [True, True, True, False], "no empty panel is shown"
    assert panels[2].get_xlabel() == "share of the labels, %"
    low, high = panels[0].get_ylim()
    assert high - low > 15, "from 65 to 86"
    level = figure.draw([replace(ours, moved=[(0, 0.998), (90, 0.996)])], THEMES[0]).axes[0].get_ylim()
    assert level[1] - level[0] == pytest.approx(2), "one image of 500 is no valley"
    shutil.copytree(tmp_path / "runs" / "plain-10", tmp_path / "runs" / "plain-25")
    assert [one.name for one in figure.prepare(tmp_path)][2:] == ["plain-10", "plain-25", "plain-100"], "by size"


def test_seeds_that_were_moved_otherwise_meet_where_they_were_moved_alike(tmp_path):
    made_up_study(tmp_path)
    file = tmp_path / "runs" / "o2-12-100" / "seed-1" / "results.json"
    results = json.loads(file.read_text())
    results["moves"] |= {"axis": ROTATIONS, "labels": ["0°", "45°", "45°, mirrored"], "accuracy": [0.5, 0.3, 0.1]}
    file.write_text(json.dumps(results))
    ours = next(network for network in figure.prepare(tmp_path) if network.name == "o2-12-100")
    assert np.allclose(ours.moved, [(0, (0.85 + 0.5) / 2), (45, 0.3), (90, 0.8)])
    panels = figure.draw([replace(ours, axis=ROTATIONS), replace(ours, name="other")], THEMES[0]).axes
    points, line = panels[0].get_lines()
    assert (points.get_linestyle(), points.get_marker()) == ("None", "o"), "rotations about other axes are no line"
    assert (line.get_linestyle(), line.get_marker()) == ("--", "None")


def test_minutes_are_those_of_one_machine(tmp_path):
    """Three of eight runs were on a slow machine, among them both of one network."""
    made_up_study(tmp_path)
    for name, seed in (("o2-12-100", 1), ("plain-100", 0), ("plain-100", 1)):
        run = tmp_path / "runs" / name / f"seed-{seed}"
        (run / "environment.json").write_text(json.dumps({"machine": "a slow one", "commit": "abc"}))
        slow = [json.loads(row) | {"seconds": 600.0} for row in (run / "metrics.jsonl").read_text().splitlines()]
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in slow))
        results = json.loads((run / "results.json").read_text()) | {"seconds": 6000.0}
        (run / "results.json").write_text(json.dumps(results))
    text = write_records_page(tmp_path).read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    minutes = {row[0]: (row[2], row[-1]) for row in rows[2:6]}
    assert minutes == dict.fromkeys(("o2-12-10", "plain-10", "o2-12-100"), ("2", "1.0")) | {"plain-100": ("2", "–")}
    networks = {network.name: network for network in figure.prepare(tmp_path)}
    assert networks["o2-12-100"].learning[-1] == pytest.approx((6 / 60, 0.9))
    assert networks["plain-100"].learning == []
    panel = figure.draw(list(networks.values()), THEMES[0]).axes[1]
    assert panel.get_ylim()[0] == pytest.approx(100 * (0.9 - 0.3) - 1), "the last points, where networks differ"
    assert panel.get_title(loc="left") == "AUC, validation images, %"
