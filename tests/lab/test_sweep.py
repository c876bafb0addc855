"""Sweeps: every run once, whatever happens in between."""

import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from liespline.lab.runs.folder import Run, check_same_settings
from liespline.lab.screen import ended_in_order
from liespline.lab.settings import ConfigError
from liespline.lab.sweep import plan as planning
from liespline.lab.sweep import processes_engine as module
from liespline.lab.sweep.plan import MAY_DIFFER, plan, sweep
from liespline.lab.sweep.study import Study
from truth.shell import fails, succeeds

TWO = Study(
    task="digits",
    recipe={"group": "so2", "elements": 2, "widths": (2, 2, 2), "epochs": 1, "batch_size": 128, "accelerator": "cpu"},
    networks={"good": {}, "bad": {}},
)


@pytest.fixture
def planned(tmp_path):
    return plan(TWO, tmp_path, 1, {})


def test_finished_runs_are_skipped_and_failed_ones_named(planned):
    said = []
    planned[1].run.path.parents[1].mkdir()
    planned[1].run.path.parent.write_text("a file where the second run's folder should go")
    assert sweep(planned, lambda name, what: said.append((name, what)), 2) == ["bad seed 0"]
    assert ("good seed 0", "done") in said
    assert any(name == "bad seed 0" and "cannot be created" in what for name, what in said)
    good = planned[0].run
    before = good.results_file.stat().st_mtime_ns, good.model_file.read_bytes()
    said.clear()
    assert sweep(planned[:1], lambda name, what: said.append((name, what)), 1) == []
    assert said == [("good seed 0", "done before")]
    assert (good.results_file.stat().st_mtime_ns, good.model_file.read_bytes()) == before
    # Killed between its results and its report, a run still lacks the report; without its network it cannot have one.
    report = good.report_file.read_bytes()
    good.report_file.unlink()
    assert sweep(planned[:1], lambda name, what: said.append((name, what)), 1) == []
    assert (good.results_file.stat().st_mtime_ns, good.model_file.read_bytes()) == before
    assert good.report_file.read_bytes() == report
    good.report_file.unlink()
    good.model_file.unlink()
    said.clear()
    assert sweep(planned[:1], lambda name, what: said.append((name, what)), 1) == []
    assert said == [("good seed 0", "done before")]


def test_a_sweep_that_goes_on_keeps_its_settings(planned, tmp_path):
    for entry in planned:
        Run.create(entry.run.path, entry.config)
    assert len(plan(TWO, tmp_path, 2, {"workers": 1, "logger": "mlflow"})) == 4, "seeds may be added"
    good = planned[0]
    for changes in ({"epochs": 9}, {"patience": 9}, {"batch_size": 9}):
        with pytest.raises(ConfigError, match=r"good.seed-0: was begun with .*, not 9; choose another folder"):
            check_same_settings(good.run.path, good.config.updated(**changes), MAY_DIFFER)
    good.run.config_file.write_text(good.config.updated(lr=0.7).to_yaml())
    with pytest.raises(ConfigError, match=r"was begun with lr = 0.7"):
        plan(TWO, tmp_path, 1, {})


@pytest.fixture
def interruptible():
    """Ctrl-C arrives, also where the tests run in the background or under nohup, which begin with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_sweep_that_is_stopped_stops_its_runs_and_begins_no_other(planned, monkeypatch, number, error):
    """Ctrl-C at a terminal, and a cluster's notice that the time is over."""
    said, (begun, other) = [], (entry.run.path / "pid" for entry in planned)
    wait = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()}.'); time.sleep(20)"
    monkeypatch.setattr(planning, "preflight", lambda session: ())
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-c", wait.replace("[1]", "[3] + '/pid'")))
    before, main = signal.getsignal(signal.SIGTERM), threading.main_thread().ident

    def stop():
        while not (begun.exists() and begun.read_text().endswith(".")):
            time.sleep(0.01)
        signal.pthread_kill(main, number)

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(error), ended_in_order():
        sweep(planned, lambda name, what: said.append((name, what)), 1)
    thread.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text().rstrip(".")), 0)
    assert not other.exists()
    assert said == [("good seed 0", "begins"), ("good seed 0", "stopped; start again to resume it")]
    assert signal.getsignal(signal.SIGTERM) is before


STUDY = """
from liespline.lab.sweep.study import Study
from shared import NETWORKS
STUDY = Study("digits", NETWORKS, {"epochs": 1, "batch_size": 128, "widths": (2, 2, 2), "accelerator": "cpu"}, seeds=2)
ONE = Study("digits", {"so2-2": NETWORKS["so2-2"]}, STUDY.recipe, seeds=1, data="Digits.", protocol="One of them.")
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study of digits, with what it imports beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "mine.py").write_text(STUDY)
    (tmp_path / "shared.py").write_text(
        "NETWORKS = {'plain': {'group': 'none', 'elements': 1}, 'so2-2': {'elements': 2}}"
    )
    yield tmp_path / "mine.py"
    for name in ("mine", "shared"):
        sys.modules.pop(name, None)


def test_a_study_is_trained_and_each_run_becomes_a_line(study, liespline, monkeypatch):
    monkeypatch.setattr("liespline.lab.runs.folder.git_commit", lambda: "feed+changes")
    asked = ("sweep", f"{study}:ONE", "--set", "lr=0.01")
    assert "differs from commit feed: commit the changes first" in fails(*asked)
    assert not Path("runs").exists(), "nothing is trained in vain"
    assert "so2-2 seed 0: done" in succeeds(*asked, "--uncommitted")
    head, line = map(json.loads, Path("results/mine.jsonl").read_text().splitlines())
    assert head == {"study": "mine_one", "about": "Digits. One of them."}
    assert (line["study"], line["network"], line["seed"]) == ("mine_one", "so2-2", 0)
    assert (line["config"]["training"]["lr"], line["environment"]["uncommitted"]) == (0.01, True)
    results = json.loads(Path("runs/mine_one/runs/so2-2/seed-0/results.json").read_text())
    assert line["results"]["scores"]["accuracy"] == pytest.approx(results["scores"]["accuracy"])
    # the run's folder is gone: what has a line is done, and other settings are refused
    before = Path("results/mine.jsonl").read_bytes()
    said = succeeds(*asked, "--uncommitted", "--out", "elsewhere")
    assert "so2-2 seed 0: done, in" in said
    assert not Path("elsewhere").exists()
    said = fails("sweep", f"{study}:ONE", "--set", "lr=0.02", "--out", "elsewhere")
    assert "has so2-2 seed 0 with lr = 0.01, not 0.02; name another file with --results" in " ".join(said.split())
    assert Path("results/mine.jsonl").read_bytes() == before
    said = succeeds("sweep", "mine:ONE", "--set", "lr=0.02", "--results", "other.jsonl", "--out", "o", "--dry-run")
    assert said.strip() == "so2-2 seed 0: to do"
    assert "so2-2 seed 0: to do" in succeeds("sweep", study, "--dry-run"), "the other study of the file"
    # killed between the end of a run and its line
    file = Path("results/mine.jsonl")
    file.write_text(file.read_text().splitlines(keepends=True)[0])
    monkeypatch.setattr("liespline.lab.runs.folder.git_commit", lambda: None)
    said = succeeds(*asked, "--uncommitted")
    assert file.read_bytes() == before
    assert "no commit; in a copy of the source, first: git describe" in " ".join(said.split())


def test_what_is_no_study_is_named(study):
    study.with_name("broken.py").write_text("STUDY = Study()")
    for asked, words in (
        ("nowhere.py", r"nowhere.py: does not exist; expected the file that holds the study"),
        ("a-b", r"study 'a-b:STUDY': expected module:NAME or FILE.py:NAME of .*, such as studies/rotmnist.py"),
        (f"{study}:TWO", r"mine.py:TWO: is NoneType; expected a liespline.lab.sweep.study.Study"),
        ("no.such.module", r"study no.such.module:STUDY: there is no module no in .*; start in the folder that holds"),
        ("broken.py", r"study broken.py:STUDY: cannot be imported \(NameError: name 'Study' is not defined\)"),
    ):
        said = fails("sweep", asked)
        assert re.search(words, " ".join(said.split()))


def test_seeds_come_round_by_round():
    entries = plan(TWO, Path("x"), 3, {"epochs": 3})
    assert [entry.config.seed for entry in entries] == [0, 0, 1, 1, 2, 2]
    assert {entry.config.training.epochs for entry in entries} == {3}
    assert len({entry.run.path for entry in entries}) == 6
    assert entries[0].run.path == Path("x/runs/good/seed-0")


def test_a_process_that_dies_is_begun_again_once_and_one_that_says_why_is_not(tmp_path, monkeypatch):
    counts = {}
    for status in (1, 2):
        dies = f"import sys; open(sys.argv[1], 'a').write('x'); print('why', file=sys.stderr); sys.exit({status})"
        monkeypatch.setattr(module, "COMMAND", (sys.executable, "-c", dies))
        assert module.carry_out(("file",), str(tmp_path)) == "why"
        counts[status] = (tmp_path / "file").read_text()
        (tmp_path / "file").unlink()
    assert counts == {1: "xx", 2: "x"}
