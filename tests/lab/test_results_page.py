"""The page of results: what may be averaged, what it says, and what it refuses to read."""

import json

import pytest
from scipy import stats

from lab.made_up_runs import write, write_runs
from liespline import Lift
from liespline.lab.data import DataError
from liespline.lab.paper import verdicts as rule
from liespline.lab.paper.results_page import write_results_page
from liespline.lab.paper.seed_averages import read_runs
from liespline.lab.report.page import settings_section
from liespline.lab.settings import ConfigError
from liespline.lab.tasks import find_task
from liespline.lab.tasks.networks import Signature
from liespline.models.kernels import KERNELS
from studies.figures import draw_results
from studies.figures.results import series_of


def test_runs_that_must_not_be_mixed(tmp_path):
    """Other epochs, splits, images or presets are studies of their own; a seed done twice counts once."""
    config = find_task("pcam").defaults
    others = {
        "same": (config, {}),
        "again": (config, {}),
        "machine": (config.updated(workers=4, compile=True, seed=1, data="elsewhere"), {}),
        "longer": (config.updated(epochs=7), {}),
        "released": (config.updated(preset="released"), {}),
        "valid": (config, {"split": "valid"}),
        "drawn": (config, {"synthetic": True}),
        "fewer": (config, {"images": 5}),
    }
    for number, (name, (settings, changed)) in enumerate(others.items()):
        write(tmp_path / name, settings, {"accuracy": 0.5 + number / 100, "auc": 0.9}, **changed)
    collection = read_runs(tmp_path)
    assert len(collection.studies) == 6
    (first,) = (average for average in collection.averages if average.runs > 1)
    assert first.runs == 3
    assert first.scores["accuracy"] == pytest.approx([0.505, 0.52])  # seed 0 twice, then seed 1
    page = write_results_page(collection, tmp_path).read_text()
    for heading in ("300 validation images", "300 synthetic test images", "preset released: 300 test images"):
        assert page.count(f": {heading}" if heading[0] == "3" else heading) == 1
    assert "epochs 7 (default 100)" in page
    assert "picked the best epoch" in page
    assert "not the official data" in page


def test_runs_on_other_data_are_another_study(tmp_path):
    config = find_task("images").defaults
    for seed, (data, accuracy) in enumerate([("aaaa", 0.9), ("aaaa", 0.8), ("bbbb", 0.5), (None, 0.1)]):
        more = {} if data is None else {"data": data}
        write(tmp_path / str(seed), config.updated(seed=seed), {"accuracy": accuracy}, **more)
    collection = read_runs(tmp_path)
    means = {
        study.data: average.mean() for study, networks in collection.studies.items() for average in networks.values()
    }
    assert means == pytest.approx({"aaaa": 0.85, "bbbb": 0.5, None: 0.1})
    page = write_results_page(collection, tmp_path).read_text()
    assert "images: 300 test images, data aaaa" in page
    assert "images: 300 test images, data bbbb" in page


def test_the_command_writes_the_page_and_the_pictures(tmp_path):
    write_runs(tmp_path / "runs", "pcam", {"dense-1-1": 0.8, "unturned-12-12": 0.9})
    unfinished = tmp_path / "runs" / "begun"
    unfinished.mkdir()
    (unfinished / "config.yaml").write_text(find_task("pcam").defaults.to_yaml())
    marked = tmp_path / "runs" / "dense-1-1" / "seed-0"
    (marked / "environment.json").write_text(json.dumps({"machine": "a | b\n<script>", "commit": "1234567890abcdef"}))
    row = {"seconds": 1.0, "images_per_second": 4321.0, "memory_mib": 1.0, "valid_accuracy": 0.5}
    (marked / "metrics.jsonl").write_text("".join(json.dumps({"epoch": i, **row}) + "\n" for i in range(12)))
    list(draw_results(tmp_path / "runs", tmp_path / "out"))
    write_results_page(read_runs(tmp_path / "runs"), tmp_path / "out")
    names = {f"results-{theme}.{kind}" for theme in ("light", "dark") for kind in ("svg", "png")}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names | {"results.md"}
    page = (tmp_path / "out" / "results.md").read_text()
    assert "| 2-D | 3 | 80.00 ± 0.10 | 9 | 4,321 |  | not synthetic, test split |" in page
    assert "1 run not finished." in page
    assert "<script>" not in page
    assert "Commit: 1234567890ab." in page
    assert rule.RULE in page
    half = 100 * stats.t.ppf(0.975, 4) * 0.001 * (2 / 3) ** 0.5
    line = f"| holds | 3 | **+10.00 [+{10 - half:.2f}, +{10 + half:.2f}]** |"
    assert f"SE(2) (12, 12) without quarter turns beats 2-D with them {line}" in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows[:4]}) == 1  # a machine's name breaks no table


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kind_of_kernel_has_a_line(tmp_path, kernel):
    config = find_task("images").defaults.updated(kernel=kernel, n_h=8, n_k=None)
    write(tmp_path / "run", config, {"accuracy": 0.5})
    (line,) = series_of(read_runs(tmp_path).averages)
    assert line.name.startswith(kernel)


@pytest.mark.parametrize("value", [float("nan"), -0.1, 84.0])
def test_scores_that_are_none(tmp_path, value):
    write(tmp_path / "run", find_task("pcam").defaults, {"accuracy": value})
    with pytest.raises(DataError, match=r"results.json: accuracy is .*; expected a share from 0 to 1"):
        read_runs(tmp_path)


def test_names_that_are_none(tmp_path):
    write(tmp_path / "a" / "run", find_task("pcam").defaults, {"accuracy": 0.5}, split="tset")
    with pytest.raises(ConfigError, match=r"results.json: split 'tset' is unknown.*Did you mean 'test'"):
        read_runs(tmp_path / "a")
    strange = find_task("pcam").defaults.updated(augment="$\\frac$")
    write(tmp_path / "b" / "run", strange, {"accuracy": 0.5})
    with pytest.raises(ConfigError, match=r"config.yaml: augment .* is unknown; choose one of rot90"):
        read_runs(tmp_path / "b")


@pytest.mark.filterwarnings("ignore:.*energy falls outside")
def test_the_preset_reaches_the_network_and_the_report():
    config = find_task("celeba").defaults.updated(n_h=2, preset="released")
    network = find_task("celeba").make(config, Signature(3, (128, 128), ("nose",)))
    (first, *_) = (layer for layer in network.modules() if isinstance(layer, Lift))
    assert first.grid.elements[:, 0].tolist() == pytest.approx([1, 1.6])
    assert "preset: released" in settings_section(config.to_yaml(), "{}").body
