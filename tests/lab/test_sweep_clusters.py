"""Sweeps on clusters: jobs of submitit on this machine, and the calls that a Ray cluster gets."""

import os
import sys
import types
from pathlib import Path

import pytest

from lab.test_sweep import TWO
from liespline.lab.settings import ConfigError
from liespline.lab.sweep.jobs import find_engine
from liespline.lab.sweep.plan import plan, sweep

GOOD, BAD = "good seed 0", "bad seed 0"


@pytest.fixture
def planned(tmp_path):
    """Two runs, the second of which finds a checkpoint that is none."""
    good, bad = plan(TWO, tmp_path, 1, {"workers": 0})
    bad.run.last_checkpoint.parent.mkdir(parents=True)
    bad.run.last_checkpoint.write_bytes(b"no checkpoint")
    return [good, bad]


def test_slurm_jobs_through_submitit(planned, monkeypatch):
    """Each run is a job of its own; submitit's local executor stands in for Slurm's."""
    engine = find_engine("slurm")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setattr(engine, "CLUSTER", "local")
    said = []
    assert sweep(planned, lambda name, what: said.append((name, what)), 1, "slurm") == [BAD]
    assert (GOOD, "done") in said
    assert planned[0].run.complete
    assert [what for name, what in said if name == BAD and "is not a whole checkpoint" in what]
    assert list((planned[0].run.path / "slurm").iterdir())  # what the job printed
    said.clear()
    assert sweep(planned[:1], lambda name, what: said.append((name, what)), None, "slurm") == []
    assert said == [(GOOD, "done before")]


def test_without_slurm_there_is_nothing_to_submit_to(planned, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="no sbatch on PATH"):
        sweep(planned, lambda name, what: None, None, "slurm")


class FakeRay(types.ModuleType):
    """The part of Ray that is used, with two places: it keeps what it is asked and does the work when waited for."""

    def __init__(self):
        super().__init__("ray")
        self.exceptions = types.SimpleNamespace(RayError=RuntimeError)
        self.asked, self.cancelled, self.most, self.held = [], [], 0, {}

    def is_initialized(self):
        return True

    def cluster_resources(self):
        return {"CPU": 4.0, "GPU": 2.0}

    def remote(self, work):
        def options(**needs):
            def submit(words, folder):
                number = len(self.asked)
                self.asked.append((Path(words[2]).parent.name, needs))
                self.held[number] = lambda: work(words, folder)
                self.most = max(self.most, len(self.held))
                return number

            return types.SimpleNamespace(remote=submit)

        return types.SimpleNamespace(options=options)

    def wait(self, futures, num_returns, timeout):
        ended = [future for future in futures if future == max(self.held)]  # the last one given ends first
        return ended, [future for future in futures if future not in ended]

    def get(self, future):
        return self.held.pop(future)()

    def cancel(self, future):
        self.cancelled.append(future)


@pytest.fixture
def ray(monkeypatch):
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    fake.__spec__ = types.SimpleNamespace()  # what find_spec looks at
    monkeypatch.delitem(sys.modules, "liespline.lab.sweep.ray_engine", raising=False)
    yield fake
    sys.modules.pop("liespline.lab.sweep.ray_engine", None)


def test_a_ray_cluster_gets_every_run_once_with_what_it_needs(planned, ray, monkeypatch):
    engine = find_engine("ray")
    done = {"good": None, "bad": "the machine is on fire"}
    monkeypatch.setattr(engine, "carry_out", lambda words, folder: done[Path(words[2]).parent.name])
    gpu = [entry._replace(config=entry.config.updated(accelerator="auto", devices=2, workers=3)) for entry in planned]
    said = []
    assert sweep(gpu, lambda name, what: said.append((name, what)), None, "ray") == [BAD]
    assert ray.asked == [(name, {"num_cpus": 4, "num_gpus": 2, "max_retries": 1}) for name in ("good", "bad")]
    assert ray.most == 2
    assert (BAD, "failed: the machine is on fire") in said
    assert (GOOD, "done") in said
    ray.asked.clear()
    ray.most = 0
    assert sweep(planned, lambda name, what: None, 1, "ray") == [BAD]
    assert ray.most == 1
    assert {needs["num_gpus"] for _, needs in ray.asked} == {0}  # they compute on the CPU


def test_a_sweep_that_is_stopped_takes_its_runs_back(planned, ray, monkeypatch):
    find_engine("ray")

    def stopped(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(ray, "wait", stopped)
    said = []
    with pytest.raises(KeyboardInterrupt):
        sweep(planned, lambda name, what: said.append((name, what)), None, "ray")
    assert ray.cancelled == [0, 1]
    assert [name for name, what in said if what.startswith("stopped; start again")] == [GOOD, BAD]


def test_an_engine_that_is_not_installed_says_what_to_install(planned, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"engine ray needs ray: pip install 'liespline\[cluster\]'"):
        sweep(planned, lambda name, what: None, None, "ray")
    with pytest.raises(ConfigError, match="Did you mean 'slurm'"):
        sweep(planned, lambda name, what: None, None, "slrum")
