"""Tables and pictures of studies, from lines made up for them."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, recall_score

from liespline.lab.sweep.study import Row
from made_up_lines import line, network, study
from studies import pictures, tables
from studies.figures.style import THEMES
from studies.networks import CHANGE, MARK, ahead, load


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


def half_of(variances, freedom):
    """Student's half of 95 % for a variance over seeds and one over images: Satterthwaite's degrees of freedom."""
    total = sum(variances)
    return stats.t.ppf(0.975, total**2 / (variances[0] ** 2 / freedom)) * math.sqrt(total)


def test_networks_have_the_interval_of_seeds_and_images():
    found = study([run("ours", 1, 0.92), run("ours", 0, 0.9), run("plain", 0, 0.7)]).networks
    head, _, ours, alone = cells(tables.networks_table(list(found.values())))
    for measure, mean, count in (("", 0.91, 300), (", transformed", 0.81, 9), (", cropped", 0.86, 9)):
        half = half_of([np.var([0.9, 0.92], ddof=1) / 2, mean * (1 - mean) / count], 1)
        assert ours[head.index("accuracy" + measure)] == f"{100 * mean:.2f} ± {100 * half:.2f}"
    assert ours[head.index("validation AUC, last 5 epochs")] == "70.00 ± 0.00", "of how many images is written nowhere"
    assert (ours[head.index("parameters")], ours[head.index("seeds")], ours[-1]) == ("12,345", "2", "1.0")
    # one seed: over images, the transformed ones fewer, the AUC with a fifth of them in the second class
    for measure, share, count in (("", 0.7, 300), (", cropped", 0.65, 9), (", transformed", 0.6, 9)):
        width = stats.norm.ppf(0.975) * math.sqrt(share * (1 - share) / count)
        assert alone[head.index("accuracy" + measure)] == f"{100 * share:.2f} ± {100 * width:.2f}"
    area, m, n = 0.71, 60, 240
    q = (1 - area) / (2 - area) + area / (1 + area)
    width = stats.norm.ppf(0.975) * math.sqrt(area * (1 - area) * (1 + ((m + n) / 2 - 1) * q) / (m * n))
    assert alone[head.index("AUC")] == f"71.00 ± {100 * width:.2f}"
    assert alone[head.index("validation AUC, last 5 epochs")] == "70.00"
    assert found["plain"].values[CHANGE] == [0.05]


def test_differences_without_the_images_have_both_variances_and_only_pairs_with_runs():
    ours, plain = [0.9, 0.92, 0.93], [0.8, 0.84]
    endless = {"images": 10**15}
    found = {"ours": network("ours", ours, results=endless), "plain": network("plain", plain, results=endless)}
    rows = [Row("ours", "plain"), Row("ours", "plain", "AUC"), Row("ours", "absent")]
    welch = stats.ttest_ind(ours, plain, equal_var=False).confidence_interval(0.95)
    bounds = f"[{100 * welch.low:+.2f}, {100 * welch.high:+.2f}]".replace("-", "−")
    assert tables.differences_table(rows, found)[-1] == f"| ours − plain | +9.67 {bounds} |"
    assert tables.differences_table(rows[2:], found) == []
    few = [network(name, [value, value], results={"images": 100}) for name, value in (("a", 0.9), ("b", 0.8))]
    half = stats.norm.ppf(0.975) * math.sqrt((0.9 * 0.1 + 0.8 * 0.2) / 100)
    assert ahead(*few, "accuracy").interval.half == pytest.approx(half), "equal seeds say nothing of other images"


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


def test_the_picture_shows_what_the_lines_say():
    runs = [run("so2-8", seed, 0.9 + 0.02 * seed) for seed in (0, 1)] + [run("plain", 0, 0.5)]
    found = study(runs).networks
    assert np.allclose(list(pictures.by_angle(found["so2-8"]).values()), [[0.85, 0.87], [0.8, 0.82]])
    axes = pictures.draw_angles(found, THEMES[0]).axes[0]
    drawn = [line.get_ydata().tolist() for line in axes.get_lines()]
    assert np.allclose(drawn, [[86, 81, 86], [45, 40, 45]]), "from 0° to 360°, which is 0° again"
    words = pictures.angles_words(found)
    assert "trained upright 86.0 % and 81.0 %; plain, trained upright 45.0 % and 40.0 %" in words.replace("\n", " ")
