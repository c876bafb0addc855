"""Work that is killed ends as it would have; training that is no longer finite says so."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from liespline.lab.data import DataError, files
from liespline.lab.runs.checkpoint import SafeCheckpoints
from liespline.lab.runs.folder import Run
from liespline.lab.session import Session
from liespline.lab.settings import Config, Network, Training
from liespline.lab.sweep.plan import Planned, sweep
from liespline.lab.training import train as engine
from liespline.lab.training import trainer
from liespline.lab.training.learner import Batches
from liespline.lab.training.trainer import TensorBoardLogger
from truth.shell import command, fails, largest_file, read_only, succeeds

SCRIPT = Path(__file__).parent / "killed_work.py"
KILLS = {"training": 8, "sweep": 1, "decode": 1}
SEED = 4


@pytest.fixture(scope="module")
def tallies(tmp_path_factory):
    plan = [f"{name}={kills}" for name, kills in KILLS.items()] + ["planted=1"]
    command = [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("kills")), str(SEED), *plan]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("work", KILLS)
def test_killed_work_ends_as_it_would_have(tallies, work):
    tally = tallies[work]
    assert tally["kills"] == KILLS[work]
    assert [tally[kind] for kind in ("crashes", "hangs", "broken", "lost")] == [[], [], [], []]


def test_files_written_in_place_would_be_noticed(tallies):
    """The planted fault: a kill leaves half a file under its final name, from which the next start cannot resume."""
    assert tallies["planted"]["crashes"]


SMALL = "--elements 2 --set widths=2,2,3 --epochs 2 --batch-size 256 --accelerator cpu --quiet".split()
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def training(out):
    return ["train", "digits", "--out", out, *SMALL]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The weights of a run on a disk with room."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    command(*training(folder))
    return Run(folder).model_file.read_bytes()


@pytest.mark.parametrize("name", ["config.yaml", "last.ckpt", "report.html"])
def test_a_disk_full_at_any_file_loses_nothing(monkeypatch, tmp_path, undisturbed, name):
    real, run = os.replace, Run(tmp_path / "run")

    def replace(part, path):
        if os.path.basename(path) == name:
            raise FULL
        real(part, path)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", replace)
        assert f"{run.path}" in (text := fails(*training(run.path)))
    assert f"{name}: cannot be written (No space left on device)" in text
    assert not list(run.path.rglob("*.part"))
    succeeds(*(["train", "--resume", run.path] if run.config_file.exists() else training(run.path)))
    assert run.model_file.read_bytes() == undisturbed
    assert [row["epoch"] for row in run.read_metrics()] == [0, 1]


def test_the_kernel_refuses_a_checkpoint(tmp_path):
    with largest_file(8000):
        text = fails(*training(tmp_path / "run"))
    assert f"{tmp_path / 'run'}" in text
    assert "File too large" in text


def test_a_logger_that_cannot_write(monkeypatch, tmp_path):
    def log_metrics(self, metrics, step=None):
        raise FULL

    monkeypatch.setattr(TensorBoardLogger, "log_metrics", log_metrics)
    assert f"{tmp_path / 'run'}: No space left on device" in fails(*training(tmp_path / "run"))


def test_folders_that_cannot_be_made(tmp_path, tiny_run):
    (tmp_path / "file").write_text("no folder")
    out = tmp_path / "file" / "out"
    for arguments in (training(out), ["export", tiny_run.path, "--onnx", out / "net.onnx"]):
        assert str(tmp_path / "file") in fails(*arguments)
    assert (tmp_path / "file").read_text() == "no folder"


def test_read_only_folders(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "open", read_only(tmp_path), raising=False)
    assert "Read-only file system" in (text := fails(*training(tmp_path / "out")))
    assert str(tmp_path / "out") in text


def test_a_folder_that_another_process_works_in(tmp_path, tiny_run):
    with files.lock(tmp_path / "lock", wait=False):
        assert f"{tmp_path}: process {os.getpid()} is working there" in fails(*training(tmp_path))
    entry = Planned("one seed 0", Run.open(tiny_run.path)[1], Run(tmp_path / "one" / "seed-0"))
    said = []
    with entry.run.locked():
        assert sweep([entry], lambda name, what: said.append(what), 1) == ["one seed 0"]
    assert said == [
        f"left out: {entry.run.path}: process {os.getpid()} is working there; wait for it or choose another folder"
    ]
    assert not entry.run.config_file.exists()


CONFIG = Config(
    task="digits",
    network=Network(group="so2", elements=2, widths=(2, 2, 4)),
    training=Training(epochs=3, batch_size=128, accelerator="cpu", optimiser="sgd", lr=0.01),
)
STEPS = 8  # in an epoch


def stopped(folder, config=CONFIG):
    """Train until it stops; the run and what it said."""
    run = Run.create(folder, config)
    with pytest.raises(DataError) as error:
        engine.train(Session(config, run), progress=False)
    return run, str(error.value)


def spoil(monkeypatch, step, factor):
    """Let the images of a step be so many times as large."""
    real = Batches.on_after_batch_transfer

    def batch(self, batch, dataloader_idx):
        images, targets = real(self, batch, dataloader_idx)
        here = self.trainer.training and self.trainer.global_step + 1 == step
        return images * factor if here else images, targets

    monkeypatch.setattr(Batches, "on_after_batch_transfer", batch)


@pytest.mark.parametrize("step", [STEPS + 1, 2 * STEPS - 1, 2 * STEPS])
def test_the_first_step_without_a_finite_loss_is_named_and_nothing_of_it_is_kept(tmp_path, monkeypatch, step):
    spoil(monkeypatch, step, float("nan"))
    run, said = stopped(tmp_path / "run")
    assert f"the loss of step {step} is not finite. " in said
    assert "lower --lr" in said
    state = SafeCheckpoints().load_checkpoint(run.last_checkpoint)
    assert state["global_step"] == STEPS
    assert all(value.isfinite().all() for value in state["state_dict"].values())
    assert [row["epoch"] for row in run.read_metrics()] == [0]


def test_a_long_epoch_is_looked_at_before_it_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "LOOK_EVERY", 3)
    spoil(monkeypatch, 2, float("inf"))
    begun, real = [], Batches.on_after_batch_transfer
    monkeypatch.setattr(Batches, "on_after_batch_transfer", lambda *given: (begun.append(1), real(*given))[1])
    run, said = stopped(tmp_path / "run")
    assert "the loss of step 2 is not finite" in said
    assert len(begun) == 3
    assert not run.last_checkpoint.exists()


def test_a_statistic_that_no_loss_shows_reaches_no_checkpoint(tmp_path, monkeypatch):
    """Squares overflow in a batch norm: its output is finite, the running variance is not."""
    spoil(monkeypatch, STEPS - 2, 1e25)
    run, said = stopped(tmp_path / "run")
    assert f"after step {STEPS} or shortly before, " in said
    assert "running_var is not finite" in said
    assert not run.last_checkpoint.exists()


def test_a_bad_last_step_reaches_no_checkpoint(tmp_path, monkeypatch):
    """The loss of the epoch's last step is finite, its gradient is not: no later loss would show it in time."""
    real = engine.Learner.training_step

    def training_step(self, batch, batch_idx):
        loss = real(self, batch, batch_idx)
        last = self.global_step + 1 == 2 * STEPS
        return loss + (self.network[-1].bias.sum() - self.network[-1].bias.sum()).abs().sqrt() if last else loss

    monkeypatch.setattr(engine.Learner, "training_step", training_step)
    run, said = stopped(tmp_path / "run")
    assert f"after step {2 * STEPS} " in said
    state = SafeCheckpoints().load_checkpoint(run.last_checkpoint)
    assert state["global_step"] == STEPS
    assert torch.stack([value.isfinite().all() for value in state["state_dict"].values()]).all()
