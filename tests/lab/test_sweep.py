"""Sweeps: every run once, whatever happens in between."""

import os
import signal
import sys
import threading
import time
from dataclasses import replace

import pytest
import yaml

from liespline.lab.cli.errors import ended_in_order
from liespline.lab.runs.folder import Run, git_commit
from liespline.lab.settings import ConfigError, Network, Training
from liespline.lab.sweep import plan as planning
from liespline.lab.sweep import processes_engine as module
from liespline.lab.sweep.plan import MAY_DIFFER, plan, sweep
from liespline.lab.sweep.study import write_study
from liespline.lab.tasks import digits
from liespline.lab.training.start import check_same_settings

SMALL = Network(group="so2", n_h=2, widths=(2, 2, 2))


def two_runs(base):
    fast = replace(base, network=SMALL, training=Training(epochs=1, batch=128, accelerator="cpu"))
    return {"good": fast, "bad": fast}


@pytest.fixture
def planned(tmp_path, monkeypatch):
    monkeypatch.setattr(digits, "TASK", replace(digits.TASK, sets={"two": two_runs}))
    return plan("digits", "two", tmp_path, 1, {})


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


def test_a_sweep_that_goes_on_keeps_its_settings(planned, tmp_path, liespline):
    for entry in planned:
        Run.create(entry.run.path, entry.config)
    assert len(plan("digits", "two", tmp_path, 2, {"workers": 1, "data": "elsewhere"})) == 4, "seeds may be added"
    good = planned[0]
    for changes in ({"epochs": 9}, {"patience": 9}, {"batch": 9}):
        with pytest.raises(ConfigError, match=r"good.seed-0: was begun with .*, not 9; choose another folder"):
            check_same_settings(good.run.path, good.config.updated(**changes), MAY_DIFFER)
    changed = good.config.updated(lr=0.7)
    good.run.config_file.write_text(changed.to_yaml())
    status, said = liespline("sweep", "digits", "--set", "two", "--out", tmp_path)
    assert status
    assert "was begun with lr = 0.7" in " ".join(said.split())
    assert not (tmp_path / "study.yaml").exists(), "nothing is written about runs that were not done"


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
    monkeypatch.setattr(planning, "preflight", lambda config: ())
    monkeypatch.setattr(module, "command", lambda run: [sys.executable, "-c", wait, str(run.path / "pid")])
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
    assert said == [("good seed 0", "begins"), ("good seed 0", "stopped; it goes on when the sweep is started again")]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_study_says_what_was_asked_for_and_keeps_its_words(tmp_path):
    file = write_study(tmp_path / "new", "pcam", "short", 3, {"epochs": 40, "lr": 0.04, "data": None})
    told = yaml.safe_load(file.read_text())
    assert file == tmp_path / "new" / "study.yaml"
    assert told.pop("commit") == git_commit()
    assert told == {"task": "pcam", "set": "short", "seeds": 3, "settings": {"epochs": 40, "lr": 0.04}}
    file.write_text(file.read_text() + "about: |\n  Two lines\n  by hand.\n")
    write_study(tmp_path / "new", "pcam", "short", 5, {})
    again = yaml.safe_load(file.read_text())
    assert again["about"] == "Two lines\nby hand.\n"
    assert again["seeds"] == 5
    file.write_text("[")  # damaged: written anew
    assert "about" not in yaml.safe_load(write_study(tmp_path / "new", "pcam", "short", 5, {}).read_text())
