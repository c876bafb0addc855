"""The studies, their results, and the pages that are made of them."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

from liespline.lab.evaluation.evaluate import weights_in
from liespline.lab.networks import Signature
from liespline.lab.settings import Config
from liespline.lab.sweep.plan import plan
from liespline.lab.sweep.study import find_study
from liespline.lab.tasks import find_task
from made_up_lines import line
from studies import report
from studies.networks import load
from studies.paper.tables import by_name

ROOT = Path(report.__file__).parents[1]
STUDIES = report.studies()
FILES = sorted((ROOT / "studies" / "results").glob("*.jsonl"))


@pytest.fixture(scope="module")
def made():
    """What the results say, by page: drawing seeds and images again takes a while."""
    return report.pages()


def test_every_page_is_what_the_results_say(made, monkeypatch):
    monkeypatch.setattr(report, "pages", lambda: made)
    monkeypatch.setattr(sys, "argv", ["report.py", "--check"])
    report.main()


def test_another_number_on_a_page_is_noticed(made, monkeypatch, tmp_path):
    for page, parts in made.items():
        text = page.read_text(encoding="utf-8")
        for name, content in parts.items():
            assert text.count(report.MARKED.format(name)) == 2
            wrong = text.replace(content, re.sub(r"\d", "7", content))
            assert wrong != text
            assert report.filled(wrong, parts) == text
    page, parts = ROOT / "docs" / "guide" / "evidence.md", made[ROOT / "docs" / "guide" / "evidence.md"]
    (tmp_path / page.name).write_text(page.read_text(encoding="utf-8").replace("8,000", "9,000"))
    monkeypatch.setattr(report, "ROOT", tmp_path)
    monkeypatch.setattr(report, "pages", lambda: {tmp_path / page.name: parts})
    monkeypatch.setattr(sys, "argv", ["report.py", "--check"])
    with pytest.raises(SystemExit, match=r"evidence.md: not what the results say; run python studies/report.py"):
        report.main()
    with pytest.raises(ValueError, match="twice"):
        report.filled("no marks", {"x": "y"})


def test_what_does_not_stand_says_why():
    text = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    for name, reason in report.CAVEATS.items():
        assert name in STUDIES or name == "rotmnist_copies" or name in report.stored()
        if name in report.stored():
            assert f"**Does not stand:** {reason}" in text


def test_results_of_others_are_printed(tmp_path, capsys, monkeypatch):
    file = tmp_path / "mine.jsonl"
    run = line("so2-16", 0, {"accuracy": 0.75})
    unfinished = run | {
        "seed": 1,
        "finished": False,
        "training": run["training"] | {"valid": {"accuracy": {"best": 0.5}}},
    }
    head = {"study": "made_up", "about": "Mine.", "of": "rotmnist"}
    file.write_text("\n".join(map(json.dumps, (head, run, unfinished))))
    monkeypatch.setattr(sys, "argv", ["report.py", str(file)])
    report.main()
    said = capsys.readouterr().out
    assert said.startswith("## made_up\n\nMine.\n")
    assert "Scored: test images. Machine: Linux, GPU. Commit: 1234567890ab.\nNot counted: 1 run not finished.\n" in said
    assert "| so2-16 | 12,345 | 1 | 75.00 ± " in said


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_planned_seed_by_seed_and_names_its_networks(name, tmp_path):
    found, study = find_study(str(ROOT / report.word_of(name))), STUDIES[name]
    family, _ = report.places()[name]
    assert (found.name, found.results) == (name, ROOT / "studies" / "results" / f"{family}.jsonl")
    assert found.study == study
    assert study.data
    given = "here" if find_task(study.task).data_help else None  # some bring their own
    entries = plan(study, tmp_path, 2, {"epochs": 3} | ({"data": given} if given else {}))
    assert [entry.config.seed for entry in entries] == [0] * len(study.networks) + [1] * len(study.networks)
    assert {(entry.config.training.epochs, entry.config.data) for entry in entries} == {(3, given)}
    assert [entry.run.path for entry in entries] == [
        tmp_path / "runs" / network / f"seed-{seed}" for seed in (0, 1) for network in study.networks
    ]
    assert all(re.fullmatch(r"[\w.-]+", network) for network in study.networks)
    assert {one for row in study.rows for one in (row.ours, row.other)} <= set(study.networks)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_line_is_a_run_that_can_be_repeated(file):
    for name, results in load(file).items():
        assert name.startswith(file.stem) or file.stem == "superseded"
        runs = [(one["network"], one["seed"]) for one in results.lines]
        assert len(set(runs)) == len(runs) > 0
        for one in results.lines:
            assert Config.from_dict(one["config"], name).seed == one["seed"]
            assert one["environment"]["commit"]
            assert one["finished"] == ("scores" in one["results"])
            if one["config"]["training"].get("train_on_val"):
                assert one["results"].get("checkpoint_metric") is None, "no epoch was picked"
        study = STUDIES.get(results.head.get("of", name))
        assert not study or file.stem == "superseded" or results.networks.keys() <= study.networks.keys()


def test_results_are_small():
    """A few kB per run, and about four bytes for each image whose scores are kept, beside names."""
    lines = [json.loads(line) for file in FILES for line in file.read_text().splitlines()]
    for results in (run["results"] for run in lines if "results" in run):
        single = results.pop("per_image", "")
        assert not single or len(json.dumps(single)) < 330 + 4 * results["images"], (
            "what incompressible arrays and their heads need"
        )
    assert sum(len(json.dumps(line)) for line in lines) / len(lines) < 3_000


SHAPES = {"pcam": (3, (88, 88), 2)}
LIMITS = {
    "rotmnist": 10**7, "rotmnist_small": 30_000, "pcam": 120_000, "scaled_digits": 500_000, "rotmnist_ensemble": 10**7,
    "pcam_disc_ensemble": 120_000, "pcam_disc_grids": 120_000,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LIMITS)
def test_ours_and_plain_have_equal_parameters_and_one_recipe(name):
    study = STUDIES[name]
    channels, space, classes = SHAPES.get(study.task, (1, (28, 28), 10))
    signature = Signature(channels, space, tuple(map(str, range(classes))))
    configs, task = study.configs({}), find_task(study.task)
    row = study.rows[0]
    count = [weights_in(task.make(configs[one], signature)) for one in (row.ours, row.other)]
    assert count[0] == pytest.approx(count[1], rel=0.03)
    assert max(count) <= LIMITS[name]
    assert configs[row.ours].training == configs[row.other].training
    assert configs[row.other].network.group == "none" != configs[row.ours].network.group


def test_the_papers_studies():
    runs = STUDIES["pcam_paper"].configs({})
    assert len(runs) == 25
    pairs = {(c.network.kernel, c.network.elements, c.network.basis, c.training.augment) for c in runs.values()}
    assert len(pairs) == 25
    assert ("local", 16, 3, "rot90") in pairs
    assert {p for p in pairs if p[3] == "no-rot90"} == {("dense", 1, 1, "no-rot90"), ("dense", 12, 12, "no-rot90")}
    paper, whole = STUDIES["pcam_whole"].configs({}).values()
    assert whole == paper.updated(kernel_size=7)
    celeba = STUDIES["celeba_paper"].configs({})
    grouped = [c for c in celeba.values() if c.network.group == "scale"]
    assert {(c.network.elements, c.network.basis) for c in grouped} == {(n, k) for n in range(2, 6) for k in (1, 3, n)}
    assert {c.training.augment for c in grouped} == {"none"}
    for name, scales in (("celeba_paper", [1, 1.414, 2, 2.828, 4]), ("celeba_released", [1, 1.6, 2, 2.8, 4])):
        plain = [c for c in STUDIES[name].configs({}).values() if c.network.group == "none"]
        assert sorted(round(c.network.scale, 3) for c in plain) == sorted(2 * scales)
        assert [c.training.augment for c in plain].count("zoom") == 5
        assert {c.preset for c in plain} == {name.partition("_")[2]}


def test_a_short_study_is_balanced_wherever_it_stops():
    """Fourteen networks; each but the 2-D one, when its turn comes, finds the network that the paper compares it to."""
    names = list(STUDIES["pcam_short"].networks)
    equal = ["dense-4-4", "dense-8-8", "dense-12-12", "dense-16-16"]
    beside = dict.fromkeys(["unturned-1-1", "unturned-12-12", *equal], "dense-1-1")
    beside |= {"dense-16-4": "dense-4-4", "dense-16-8": "dense-8-8", "atrous-16-4": "dense-16-4"}
    beside |= {"atrous-16-8": "dense-16-8", "local-16-3": "dense-16-4", "local-16-5": "dense-16-4"}
    assert all(names.index(other) < names.index(name) for name, other in beside.items())
    assert (len(names), set(names) - beside.keys()) == (14, {"dense-1-1", "local-12-3"})
    celeba = list(STUDIES["celeba_short"].configs({}).items())
    for start in range(0, 12, 3):  # three kernels of as many scales follow each other
        assert len({config.network.elements for _, config in celeba[start : start + 3]}) == 1
    nets = [config.network for _, config in celeba[:12]]
    assert len({(net.kernel, net.elements, net.basis) for net in nets}) == 12
    assert [name for name, _ in celeba[12:]] == ["plain-3", "plain-3-zoom", "plain-1", "plain-1-zoom"]


def test_the_papers_names_stand_for_one_network_each():
    for name in ("pcam_40", "pcam_cycle", "celeba_synthetic", "pcam_whole"):
        networks = report.stored()[name].networks
        assert len(by_name(networks)) == len(networks)


def test_a_study_does_nothing_when_it_is_imported(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in sorted({file for file, _ in report.places().values()}):
        runpy.run_path(str(ROOT / "studies" / f"{file}.py"))
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []
