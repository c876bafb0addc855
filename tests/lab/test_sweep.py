"""Sweeps: every run once, whatever happens in between."""

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from liespline.lab.cli.errors import ended_in_order
from liespline.lab.runs.folder import Run, git_commit
from liespline.lab.settings import ConfigError, Network, Training
from liespline.lab.sweep import plan as planning
from liespline.lab.sweep import processes_engine as module
from liespline.lab.sweep.plan import MAY_DIFFER, plan, sweep
from liespline.lab.sweep.study import write_study
from liespline.lab.tasks import celeba, digits, find_task
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


def test_the_papers_25_pcam_runs():
    task = find_task("pcam")
    runs = task.sets["paper"](task.defaults)
    assert len(runs) == 25
    pairs = [(c.network.kernel, c.network.n_h, c.network.n_k, c.training.augment) for c in runs.values()]
    assert len(set(pairs)) == 25
    assert ("dense", 12, 12, "no-rot90") in pairs
    assert ("local", 16, 3, "rot90") in pairs
    assert {p for p in pairs if p[3] == "no-rot90"} == {("dense", 1, 1, "no-rot90"), ("dense", 12, 12, "no-rot90")}


def test_the_short_pcam_set_is_balanced_wherever_it_stops():
    """Fourteen networks; each but the 2-D one, when its turn comes, finds the network that the paper compares it to."""
    task = find_task("pcam")
    names = list(task.sets["short"](task.defaults))
    equal, coarse = ["dense-4-4", "dense-8-8", "dense-12-12", "dense-16-16"], ["16-4", "16-8"]
    wanted = {"dense-1-1", "unturned-1-1", "unturned-12-12", "local-16-3", "local-16-5", "local-12-3", *equal}
    wanted |= {f"{kernel}-{pair}" for kernel in ("dense", "atrous") for pair in coarse}
    assert set(names) == wanted
    assert len(names) == 14
    beside = dict.fromkeys(["unturned-1-1", "unturned-12-12", *equal], "dense-1-1")
    beside |= {"dense-16-4": "dense-4-4", "dense-16-8": "dense-8-8", "atrous-16-4": "dense-16-4"}
    beside |= {"atrous-16-8": "dense-16-8", "local-16-3": "dense-16-4", "local-16-5": "dense-16-4"}
    assert all(names.index(other) < names.index(name) for name, other in beside.items())


def test_the_short_celeba_set_has_every_network_of_several_scales():
    runs = celeba.short_runs(find_task("celeba").defaults)
    scaled = {f"local-{n}-{k}" for n in range(2, 6) for k in (1, 3)} | {f"dense-{n}-{n}" for n in range(2, 6)}
    assert set(runs) == scaled | {"plain-1", "plain-1-zoom", "plain-3", "plain-3-zoom"}
    for start in range(0, 12, 3):  # three kernels of as many scales follow each other
        assert len({config.network.n_h for config in list(runs.values())[start : start + 3]}) == 1


def test_the_papers_celeba_runs():
    runs = celeba.paper_runs(find_task("celeba").defaults)
    grouped = [c for c in runs.values() if c.network.group == "scale"]
    plain = [c for c in runs.values() if c.network.group == "none"]
    assert {(c.network.n_h, c.network.n_k) for c in grouped} >= {(n, k) for n in range(2, 6) for k in (1, 3, n)}
    assert sorted({round(c.network.scale, 3) for c in plain}) == [1, 1.414, 2, 2.828, 4]
    assert [c.training.augment for c in plain].count("zoom") == 5
    assert all(c.training.augment == "none" for c in grouped)


def test_the_scripts_had_2d_networks_at_other_scales():
    entries = plan("celeba", "paper", Path("x"), 1, {"preset": "released"})
    plain = [e.config for e in entries if e.config.network.group == "none"]
    assert sorted({c.network.scale for c in plain}) == [1, 1.6, 2, 2.8, 4]
    assert {e.config.preset for e in entries} == {"released"}


def test_seeds_come_round_by_round():
    entries = plan("pcam", "paper", Path("x"), 2, {"epochs": 3, "data": "d"})
    assert len(entries) == 50
    assert [e.config.seed for e in entries] == [0] * 25 + [1] * 25
    assert {e.config.training.epochs for e in entries} == {3}
    assert len({e.run.path for e in entries}) == 50
    assert entries[0].run.path == Path("x/runs/dense-1-1/seed-0")


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
