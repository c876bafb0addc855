"""Tables and pictures of studies, from lines made up for them."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, recall_score

from liespline.lab.evaluation.elements import ROTATIONS
from liespline.lab.sweep.study import Row
from made_up_lines import line, network, study
from studies import pictures, tables
from studies.figures.style import THEMES
from studies.networks import CHANGE, JITTERED, MARK, load


def cells(lines):
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in lines if row.startswith("|")]


def run(name, seed, accuracy, **changed):
    """A run with an AUC, uneven classes, and images that were transformed."""
    moves = {"axis": "angle", "labels": ["0°", "90°"], "accuracy": [accuracy - 0.05, accuracy - 0.1]}
    moves |= {"mean_accuracy": accuracy, "change": 0.05, "images": 9, "upright": accuracy}
    moves |= {"scores": {"accuracy": accuracy - 0.1, "auc": 0.5}}
    results = {"confusion": [[200, 40], [20, 40]], "transformed": moves} | changed.pop("results", {})
    valid = {"auc": {"best": 0.9, "epoch": 5, "last_5": 0.7}, "accuracy": {"best": 0.8, "epoch": 3}}
    scores = {"accuracy": accuracy, "balanced_accuracy": accuracy, "auc": accuracy + 0.01}
    return line(name, seed, scores, results=results, training={"valid": valid}, **changed)


def test_networks_have_mean_deviation_and_students_interval():
    found = study([run("ours", 1, 0.92), run("ours", 0, 0.9), run("plain", 0, 0.7)]).networks
    head, _, ours, alone = cells(tables.networks_table(list(found.values())))
    low, high = stats.t.interval(0.95, 1, 91, stats.sem([90, 92]))
    assert ours[head.index("accuracy")] == f"91.00 ± 1.41 [{low:.2f}, {high:.2f}]"
    assert ours[head.index("validation AUC, last 5 epochs")].startswith("70.00 ± 0.00")
    for measure, value in (("accuracy, transformed", 81), ("accuracy, cropped", 86), ("accuracy, upright", 91)):
        assert ours[head.index(measure)].startswith(f"{value}.00 ± 1.41")
    assert (ours[head.index("parameters")], ours[head.index("seeds")], ours[-1]) == ("12,345", "2", "1.0")
    # one seed: over images, the transformed ones fewer, the AUC with a fifth of them in the second class
    for measure, share, count in (("", 0.7, 300), (", cropped", 0.65, 9), (", transformed", 0.6, 9)):
        width = stats.norm.ppf(0.975) * math.sqrt(share * (1 - share) / count)
        assert (
            alone[head.index("accuracy" + measure)]
            == f"{100 * share:.2f} [{100 * (share - width):.2f}, {100 * (share + width):.2f}]"
        )
    area, m, n = 0.71, 60, 240
    q = (1 - area) / (2 - area) + area / (1 + area)
    width = stats.norm.ppf(0.975) * math.sqrt(area * (1 - area) * (1 + ((m + n) / 2 - 1) * q) / (m * n))
    assert alone[head.index("AUC")] == f"71.00 [{100 * (area - width):.2f}, {100 * (area + width):.2f}]"
    assert alone[head.index("validation AUC, last 5 epochs")] == "70.00", "of how many images is written nowhere"
    assert found["plain"].values[CHANGE] == [0.05]


def test_differences_have_welchs_interval_and_only_pairs_with_runs():
    ours, plain = [0.9, 0.92, 0.93], [0.8, 0.84]
    found = {"ours": network("ours", ours), "plain": network("plain", plain)}
    rows = [Row("ours", "plain"), Row("ours", "plain", "again"), Row("ours", "absent"), Row("ours", None)]
    welch = stats.ttest_ind(ours, plain, equal_var=False).confidence_interval(0.95)
    bounds = f"[{100 * welch.low:+.2f}, {100 * welch.high:+.2f}]".replace("-", "−")
    assert tables.differences_table(rows, found)[-1] == f"| ours − plain | +9.67 {bounds} |"
    assert tables.differences_table(rows[2:], found) == []


def test_minutes_are_those_of_the_machine_that_most_runs_were_on():
    slow = {"environment": {"machine": "a slow one"}, "results": {"seconds": 6000.0}}
    runs = [run("a", 0, 0.9), run("a", 1, 0.9, **slow), run("b", 0, 0.8, **slow), run("c", 0, 0.7), run("c", 1, 0.7)]
    found = study(runs).networks
    assert {name: one.minutes for name, one in found.items()} == {"a": "1.0", "b": "–", "c": "1.0"}


def test_what_was_run_with_uncommitted_changes_says_so_in_every_table():
    changed = {"environment": {"uncommitted": True}}
    runs = [run("ours", 0, 0.9), run("ours", 1, 0.9, **changed), run("plain", 0, 0.8), run("plain", 1, 0.8)]
    found = study(runs).networks
    assert [row[0] for row in cells(tables.networks_table(list(found.values())))[2:]] == [f"ours{MARK}", "plain"]
    assert tables.differences_table([Row("ours", "plain")], found)[-1].startswith(f"| ours − plain{MARK} |")
    assert [row[0] for row in cells(tables.runs_table(runs))[2:]] == ["ours", f"ours{MARK}", "plain", "plain"]
    rows = [(Row("ours", "plain", "digits", error=True, published="9.5"), "made_up", found, "feedbeef")]
    assert cells(tables.records_table(rows, short=True))[2] == [
        "digits",
        f"10.00 ± 0.00 (ours){MARK}",
        "20.00 ± 0.00",
        "9.5",
    ]
    made = cells(tables.records_table(rows, short=False))[2][-1]
    assert made == "`made_up`, 2 seeds; GPU; 1234567, feedbee", "of changes, the commit that has them"
    assert len(tables.records_table([(Row("ours", None, "x", short=False), "n", found, "")], short=True)) == 2


def test_a_network_with_grid_jitter_says_that_it_was_augmented():
    jittered = network("ours", [0.9], config={"training": {"grid_jitter": 1.0}})
    found = {"ours": jittered, "plain": network("plain", [0.8])}
    shown = cells(tables.records_table([(Row("ours", "plain", "volumes"), "made_up", found, "")], short=True))[2]
    assert shown == ["volumes", f"90.00 (ours){JITTERED}", "80.00", "–"]


def test_every_run_has_its_scores_and_one_that_was_stopped_its_best():
    stopped = run("b", 0, 0.5, finished=False, results={"scores": {}})
    found = tables.runs_table([run("a", 10, 0.8), stopped])
    truth, said = np.repeat([0, 0, 1, 1], [200, 40, 20, 40]), np.repeat([0, 1, 0, 1], [200, 40, 20, 40])
    assert found[0] == "All: epochs: 12; machine: Linux, GPU; commit: 1234567."
    head, _, done, half = cells(found)
    shown = dict(zip(head, done, strict=True))
    assert shown["balanced"] == f"{balanced_accuracy_score(truth, said):.2%}"
    assert shown["sensitivity"] == f"{recall_score(truth, said):.2%}"
    assert shown["majority class"] == "80.00%"
    assert (shown["seed"], shown["training"]) == ("10", "60 s")
    assert (shown["transformed"], shown["output change"]) == ("80.00%", "5.0%")
    assert dict(zip(head, half, strict=True))["accuracy"] == "80.00%"
    assert "stopped" in half[head.index("scored on")]


def test_a_file_holds_several_studies(tmp_path):
    file = tmp_path / "two.jsonl"
    file.write_text('{"study":"a","about":"A."}\n{"study":"b","about":"B."}\n{"study":"b","network":"n","seed":1}\n')
    found = load(file)
    assert [len(found[name].lines) for name in "ab"] == [0, 1]


def test_pictures_show_what_the_lines_say():
    runs = []
    for name, share in (("o-100", 1.0), ("o-10", 0.1)):
        config = {"training": {"augment": "rotate", "train_fraction": share}}
        runs += [run(name, seed, 0.9 + 0.02 * seed, config=config) for seed in (0, 1)]
    runs[1]["results"]["transformed"] |= {"labels": ["0°", "45°", "45°, mirrored"], "accuracy": [0.5, 0.3, 0.1]}
    found = study(runs).networks
    assert np.allclose(pictures.transformed(found["o-100"]), [(0, (0.85 + 0.5) / 2), (45, 0.3), (90, 0.8)])
    lines = pictures.lines_of(list(found.values()), "train_fraction")
    assert {group: [one.name for one in line] for group, line in lines.items()} == {"so2": ["o-10", "o-100"]}
    assert pictures.lines_of(list(found.values()), "parameters") == {}
    panels = pictures.draw_record(found, THEMES[0]).axes
    assert [panel.axison for panel in panels] == [True, True, True, False], "no empty panel is shown"
    bars = panels[1].containers[1].lines[0]
    assert (bars.get_xdata()[0], bars.get_ydata()[0]) == pytest.approx((1, 92)), "minutes and AUC of o-100"
    assert {one.get_linestyle() for one in panels[0].get_lines()} == {"-", "--"}
    for one in runs:
        one["results"]["transformed"]["axis"] = ROTATIONS
    points = pictures.draw_record(study(runs).networks, THEMES[0]).axes[0].get_lines()
    assert {one.get_linestyle() for one in points} == {"None"}, "rotations about other axes are no line"
