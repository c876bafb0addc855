"""Killed work goes on and ends as it would have; full disks and locked folders end it clearly, and lose nothing."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from liespline.lab.data import files
from liespline.lab.runs.folder import Run
from liespline.lab.sweep.plan import Planned, sweep
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
