"""Verdicts on the paper's claims, on made-up runs whose means and spreads are known beforehand."""

import json
from dataclasses import dataclass, replace

import pytest
from scipy import stats
from typer.testing import CliRunner

from liespline import Lift
from liespline.lab.cli import app
from liespline.lab.data import DataError
from liespline.lab.paper import verdicts as rule
from liespline.lab.paper.claims import claims_of
from liespline.lab.paper.results_page import write_results_page
from liespline.lab.paper.seed_averages import Study, read_runs
from liespline.lab.report.page import settings_section
from liespline.lab.settings import ConfigError
from liespline.lab.tasks import find_task
from liespline.lab.tasks.networks import Signature

# Scores by the sweep's own names for its runs, made so that every claim of the paper holds.
PCAM = {"dense-1-1": 0.80, "dense-4-4": 0.82, "dense-8-8": 0.84, "dense-12-12": 0.86, "dense-16-16": 0.85}
COARSE = {"8-4": 0.83, "12-4": 0.845, "12-8": 0.855, "16-4": 0.85, "16-8": 0.86, "16-12": 0.87}
PCAM |= {f"dense-{name}": value for name, value in COARSE.items()}
PCAM |= {f"atrous-{name}": value + 0.01 for name, value in COARSE.items()}
PCAM |= {f"local-{n_h}-{n_k}": COARSE[f"{n_h}-4"] + 0.01 for n_h in (8, 12, 16) for n_k in (3, 5)}
PCAM |= {"unturned-1-1": 0.77, "unturned-12-12": 0.855}
CELEBA = {f"plain-{i}": value for i, value in enumerate((0.70, 0.72, 0.74, 0.73, 0.71), 1)}
CELEBA |= {f"{name}-zoom": value + 0.005 for name, value in CELEBA.items()}
for n, base in enumerate((0.75, 0.76, 0.77, 0.78), 2):
    CELEBA |= {f"dense-{n}-{n}": base, f"local-{n}-3": base + 0.01, f"local-{n}-1": base - 0.01}
SCORES = {"pcam": PCAM, "celeba": CELEBA}


@dataclass(frozen=True)
class Case:
    """A claim, by task and number, and what becomes of it."""

    task: str
    number: int
    words: str
    compared: tuple[str, ...]
    """How the names of the networks in it begin: others would only make the tests slow."""
    refuted: dict[str, float]
    tied: dict[str, float]
    """For averages: what all other pairs win is what one loses."""
    needed: tuple[str, ...]
    """Networks that it cannot do without."""

    @property
    def scores(self):
        return {name: value for name, value in SCORES[self.task].items() if name.startswith(self.compared)}


SAME, LADDER = ("dense-4-4", "dense-8-8", "dense-12-12"), ("dense-1-1", "dense-4-4", "dense-8-8", "dense-12-12")
SINGLE, ALONE = tuple(f"local-{n}-1" for n in range(2, 6)), tuple(f"plain-{i}" for i in range(1, 6))
CASES = [
    Case("pcam", 0, "up to 12", LADDER, {"dense-8-8": 0.815}, {"dense-8-8": 0.82}, ("dense-8-8",)),
    Case(
        "pcam", 1, "Beyond 12", ("dense-12-12", "dense-16-16"),
        {"dense-16-16": 0.87}, {"dense-16-16": 0.86}, ("dense-16-16",),
    ),
    Case("pcam", 2, "fixed N_k", ("dense-",), {"dense-4-4": 0.99}, {"dense-4-4": 0.82 + 0.11 / 3}, SAME),
    Case("pcam", 3, "Atrous", ("dense-", "atrous-"), {"atrous-8-4": 0.70}, {"atrous-8-4": 0.78}, ("atrous-",)),
    Case("pcam", 4, "Local", ("dense-", "local-"), {"local-8-3": 0.70}, {"local-8-3": 0.78}, ("local-",)),
    Case(
        "pcam", 5, "crucial for 2-D", ("dense-1-1", "unturned-1-1"),
        {"unturned-1-1": 0.81}, {"unturned-1-1": 0.80}, ("unturned-1-1",),
    ),
    Case(
        "pcam", 6, "hardly affect", ("dense-12-12", "unturned-12-12"),
        {"unturned-12-12": 0.83}, {"unturned-12-12": 0.85}, ("dense-12-12",),
    ),
    Case(
        "pcam", 7, "beats 2-D with them", ("dense-1-1", "unturned-12-12"),
        {"unturned-12-12": 0.79}, {"unturned-12-12": 0.80}, ("dense-1-1",),
    ),
    Case("celeba", 0, "single scale", ("plain-",), {"plain-4": 0.75}, {"plain-4": 0.74}, ("plain-5",)),
    Case(
        "celeba", 1, "local N_k = 3, four", ("local-4-3", "local-5-3", *ALONE),
        {"plain-3": 0.80}, {"plain-3": 0.78}, ("plain-1",),
    ),
    Case(
        "celeba", 2, "local N_k = 1, four", ("local-4-1", "local-5-1", *ALONE),
        {"plain-3": 0.80}, {"plain-3": 0.76}, ("local-4-1",),
    ),
    Case(
        "celeba", 3, "dense, four", ("dense-4-4", "dense-5-5", *ALONE),
        {"dense-5-5": 0.70}, {"dense-5-5": 0.74}, ("dense-5-5",),
    ),
    Case(
        "celeba", 4, "receptive field", ("local-5-3", "plain-5"),
        {"plain-5": 0.80}, {"plain-5": 0.79}, ("local-5-3",),
    ),
    Case("celeba", 5, "beats dense", ("dense-", "local-"), {"local-2-3": 0.60}, {"local-2-3": 0.72}, ("dense-",)),
    Case("celeba", 6, "beats N_k = 1", ("local-",), {"local-2-3": 0.60}, {"local-2-3": 0.68}, SINGLE),
    Case(
        "celeba", 7, "Zoom in training", ("plain-",),
        {"plain-1-zoom": 0.60}, {"plain-1-zoom": 0.68}, tuple(f"{name}-zoom" for name in ALONE),
    ),
    Case(
        "celeba", 8, "does not reach", ("local-5-3", "plain-"),
        {"plain-3-zoom": 0.80}, {"plain-3-zoom": 0.79}, ("plain-1-zoom",),
    ),
]  # fmt: skip
every_claim = pytest.mark.parametrize("case", CASES, ids=[f"{case.task}-{case.number}" for case in CASES])


def write(folder, config, scores, epochs=(), **changed):
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config.to_yaml())
    results = {"split": "test", "images": 300, "synthetic": False, "task": config.task, "weights": 9, "scores": scores}
    (folder / "results.json").write_text(json.dumps(results | changed))
    row = {"seconds": 1.0, "images_per_second": 4321.0, "memory_mib": 1.0}
    rows = [{"epoch": number, **row, **epoch} for number, epoch in enumerate(epochs)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_runs(folder, task, scores, step=0.001, seeds=3, preset="paper", **changed):
    """Runs as the sweep would leave them, of mean `scores` and, over three seeds, standard deviation `step`."""
    runs = find_task(task).sets["paper"](replace(find_task(task).defaults, preset=preset))
    for name, value in scores.items():
        for seed in range(seeds):
            score = {"success" if task == "celeba" else "accuracy": value + step * (seed - (seeds - 1) / 2)}
            write(folder / name / f"seed-{seed}", replace(runs[name], seed=seed), score, **changed)
    return folder


def verdicts(folder):
    ((study, averages),) = read_runs(folder).studies.items()
    return [rule.judge(claim, averages) for claim in claims_of(study)]


@every_claim
def test_each_verdict(tmp_path, case):
    scores = case.scores
    write_runs(tmp_path / "holds", case.task, scores)
    write_runs(tmp_path / "refuted", case.task, scores | case.refuted)
    write_runs(tmp_path / "tied", case.task, scores | case.tied)
    write_runs(tmp_path / "wide", case.task, scores, step=0.1)
    write_runs(tmp_path / "lacking", case.task, {k: v for k, v in scores.items() if not k.startswith(case.needed)})
    found = {folder.name: verdicts(folder)[case.number] for folder in tmp_path.iterdir()}
    assert case.words in found["holds"].claim.words
    assert {name: verdict.words for name, verdict in found.items()} == {
        "holds": "holds",
        "refuted": "does not hold",
        "tied": "within chance",
        "wide": "within chance",
        "lacking": "not enough runs",
    }


def test_no_claim_is_without_a_case():
    for task in SCORES:
        study = Study(task, "paper", "test", 1, False, None, None, find_task(task).defaults.training)
        assert [case.number for case in CASES if case.task == task] == list(range(len(claims_of(study))))


@every_claim
def test_one_seed_is_said_and_counts_with_its_images(tmp_path, case):
    """Ten million images leave no doubt about other images, thirty do."""
    for name, change in (("holds", {}), ("refuted", case.refuted), ("tied", case.tied)):
        write_runs(tmp_path / name, case.task, case.scores | change, seeds=1, images=10_000_000)
    write_runs(tmp_path / "few", case.task, case.scores, seeds=1, images=30)
    found = {folder.name: verdicts(folder)[case.number].words for folder in tmp_path.iterdir()}
    assert found == {
        "holds": "holds (one seed)",
        "refuted": "does not hold (one seed)",
        "tied": "within chance (one seed)",
        "few": "within chance (one seed)",
    }


@pytest.mark.parametrize("task", SCORES)
def test_swapped_signs_are_noticed(tmp_path, task, monkeypatch):
    """Planted faults: effects of the wrong sign, and claims with the two networks the wrong way round."""
    write_runs(tmp_path, task, SCORES[task])
    right = verdicts(tmp_path)
    assert {verdict.outcome for verdict in right} == {"holds"}
    signed = [verdict for verdict in right if verdict.claim.kind != "same"]
    with monkeypatch.context() as planted:
        honest = rule.combined
        planted.setattr(rule, "combined", lambda terms: honest([(-c, estimate) for c, estimate in terms]))
        wrong = verdicts(tmp_path)
        assert {verdict.outcome for verdict in wrong if verdict.claim.kind != "same"} == {"does not hold"}
    ((_, averages),) = read_runs(tmp_path).studies.items()
    for verdict in signed:
        swapped = replace(verdict.claim, pairs=[(worse, better) for better, worse in verdict.claim.pairs])
        assert rule.judge(swapped, averages).outcome == "does not hold"


def test_an_interval_is_welchs(tmp_path):
    """Two networks, three and two seeds, against SciPy's own test of unequal variances."""
    first, second = [0.86, 0.871, 0.866], [0.80, 0.83]
    runs = find_task("pcam").sets["paper"](find_task("pcam").defaults)
    for name, values in (("unturned-12-12", first), ("dense-1-1", second)):
        for seed, value in enumerate(values):
            write(tmp_path / name / str(seed), replace(runs[name], seed=seed), {"accuracy": value})
    verdict = verdicts(tmp_path)[7]
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    interval = verdict.effects["accuracy"].interval
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert verdict.seeds == (2, 3)
    assert verdict.words == "within chance"  # with one degree of freedom, not even five points are sure


def test_an_average_counts_a_shared_network_once(tmp_path):
    """Six pairs share (4, 4) three times and (8, 8) twice: coefficients 3/6, 2/6, 1/6 and six of 1/6."""
    write_runs(tmp_path, "pcam", CASES[2].scores, step=0.003)
    effect = verdicts(tmp_path)[2].effects["accuracy"]
    parts = [0.003**2 / 3 * (c / 6) ** 2 for c in (3, 2, 1, 1, 1, 1, 1, 1, 1)]
    freedom = sum(parts) ** 2 / sum(part**2 / 2 for part in parts)
    half = stats.t.ppf(0.975, freedom) * sum(parts) ** 0.5
    assert effect.value == pytest.approx(0.11 / 6)
    assert effect.interval.high - effect.value == pytest.approx(half)
    assert effect.value - effect.interval.low == pytest.approx(half)


def test_the_best_epoch_and_the_last_ten_must_agree(tmp_path):
    """If the best epoch says one thing and the last ten another, it is within chance; earlier epochs do not count."""
    runs = find_task("pcam").sets["paper"](find_task("pcam").defaults)

    def study(folder, last):
        for name, value in (("unturned-12-12", 0.9), ("dense-1-1", 0.8)):
            for seed in range(3):
                epochs = [{"valid_accuracy": 0.0}] * 2 + [{"valid_accuracy": last[name] + 0.001 * seed}] * 10
                config = replace(runs[name], seed=seed)
                write(folder / name / str(seed), config, {"accuracy": value + 0.001 * seed}, epochs)
        return verdicts(folder)[7]

    agreeing = study(tmp_path / "a", {"unturned-12-12": 0.85, "dense-1-1": 0.8})
    assert agreeing.words == "holds"
    assert agreeing.effects["last_accuracy"].value == pytest.approx(0.05)
    assert study(tmp_path / "b", {"unturned-12-12": 0.8, "dense-1-1": 0.8}).words == "within chance"
    assert study(tmp_path / "c", {"unturned-12-12": 0.7, "dense-1-1": 0.8}).words == "within chance"


def test_what_is_there_decides_or_leaves_open(tmp_path):
    """A mean over some of its pairs says how many; a claim about all is refuted by one and shown only by all."""
    some = {name: PCAM[name] for name in ("atrous-8-4", "dense-8-4", "atrous-16-8", "dense-16-8", "dense-1-1")}
    some |= {"dense-4-4": 0.79, "dense-12-12": 0.86}
    found = verdicts(write_runs(tmp_path / "some", "pcam", some))
    assert found[3].words == "holds (2 of 6 pairs)"
    assert found[0].words == "does not hold (1 of 3 pairs)"  # 4 is worse than 1, whatever 8 may be
    assert found[1].words == found[4].words == "not enough runs"
    mixed = write_runs(tmp_path / "mixed", "pcam", {"dense-1-1": 0.80}, images=30_000)
    write_runs(mixed, "pcam", {"unturned-12-12": 0.855}, seeds=1, images=30_000)
    assert verdicts(mixed)[7].words == "holds (one seed of some)"


def test_released_dense_is_local_and_no_evidence_against_itself(tmp_path):
    found = verdicts(write_runs(tmp_path, "celeba", CELEBA | {"local-3-3": 0.1}, preset="released"))
    assert found[5].words == "holds"
    assert found[5].pairs == 3
    assert found[0].words == "holds"  # of the scripts' own scales, 1.6 and 2.8 among them


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
    done = CliRunner().invoke(app, ["figures", "results", str(tmp_path / "runs"), str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
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
    network = find_task("celeba").network(config, Signature(3, (128, 128), ("nose",)))
    (first, *_) = (layer for layer in network.modules() if isinstance(layer, Lift))
    assert first.grid.elements[:, 0].tolist() == pytest.approx([1, 1.6])
    assert "preset: released" in settings_section(config.to_yaml(), "{}").body
