"""Full disks, folders that cannot be written to, folders another process works in: a clear end, nothing lost."""

import errno
import os
import resource
import sys
from contextlib import contextmanager

import pytest

from liespline.lab.cli import commands as cli
from liespline.lab.data import files
from liespline.lab.runs.folder import Run
from liespline.lab.sweep.plan import Planned, sweep
from liespline.lab.training.trainer import TensorBoardLogger

SMALL = "--elements 2 --set widths=2,2,3 --epochs 2 --batch-size 256 --accelerator cpu --quiet".split()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The weights of a run on a disk with room."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["liespline", "train", "digits", "--out", str(folder), *SMALL])
        with pytest.raises(SystemExit):
            cli.main()
    return Run(folder).model_file.read_bytes()


def full_disk_at(monkeypatch, name):
    real = os.replace

    def replace(part, path):
        if os.path.basename(path) == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(part, path)

    monkeypatch.setattr(files.os, "replace", replace)


@pytest.mark.parametrize("name", ["config.yaml", "last.ckpt", "report.html"])
def test_a_disk_full_at_any_file_loses_nothing(liespline, monkeypatch, tmp_path, undisturbed, name):
    run = Run(tmp_path / "run")
    begin = ["train", "digits", "--out", run.path, *SMALL]
    with monkeypatch.context() as patch:
        full_disk_at(patch, name)
        status, text = liespline(*begin)
    assert status == 2
    assert "Traceback" not in text
    assert f"{name}: cannot be written (No space left on device)" in text
    assert str(run.path) in text
    assert not list(run.path.rglob("*.part"))
    status, text = liespline(*(["train", "--resume", run.path] if run.config_file.exists() else begin))
    assert status == 0, text
    assert run.model_file.read_bytes() == undisturbed
    assert [row["epoch"] for row in run.read_metrics()] == [0, 1]


@contextmanager
def largest_file(size):
    """The kernel refuses to let any file of this process grow beyond the size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_kernel_refuses_a_checkpoint(liespline, tmp_path):
    with largest_file(8000):
        status, text = liespline("train", "digits", "--out", tmp_path / "run", *SMALL)
    assert status == 2
    assert "Traceback" not in text
    assert f"{tmp_path / 'run'}" in text
    assert "File too large" in text


def test_a_logger_that_cannot_write(liespline, monkeypatch, tmp_path):
    def log_metrics(self, metrics, step=None):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(TensorBoardLogger, "log_metrics", log_metrics)
    status, text = liespline("train", "digits", "--out", tmp_path / "run", *SMALL)
    assert status == 2
    assert f"{tmp_path / 'run'}: No space left on device" in text


def commands_that_write(out, run):
    return {
        "train": ["train", "digits", "--out", out, *SMALL],
        "export": ["export", run, "--onnx", out / "net.onnx"],
    }


@pytest.mark.parametrize("command", ["train", "export"])
def test_folders_that_cannot_be_made(liespline, tmp_path, tiny_run, command):
    (tmp_path / "file").write_text("no folder")
    status, text = liespline(*commands_that_write(tmp_path / "file" / "out", tiny_run.path)[command])
    assert status == 2
    assert "Traceback" not in text
    assert str(tmp_path / "file") in text
    assert (tmp_path / "file").read_text() == "no folder"


def test_read_only_folders(liespline, monkeypatch, tmp_path, tiny_run):
    def read_only(path, mode="r", *more, **options):
        if str(path).startswith(str(tmp_path)) and set(mode) & set("wa+"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return open(path, mode, *more, **options)

    monkeypatch.setattr(files, "open", read_only, raising=False)
    status, text = liespline(*commands_that_write(tmp_path / "out", tiny_run.path)["train"])
    assert status == 2
    assert "Traceback" not in text
    assert "Read-only file system" in text
    assert str(tmp_path / "out") in text


def test_a_folder_that_another_process_works_in(liespline, tmp_path, tiny_run):
    with files.lock(tmp_path / "lock", wait=False):
        status, text = liespline(*commands_that_write(tmp_path, tiny_run.path)["train"])
    assert status == 2
    assert f"{tmp_path}: process {os.getpid()} is working there" in text


def test_a_sweep_leaves_a_run_that_another_process_works_on(tmp_path, tiny_run):
    _, config = Run.open(tiny_run.path)
    entry = Planned("one seed 0", config, Run(tmp_path / "one" / "seed-0"))
    said = []
    with entry.run.locked():
        assert sweep([entry], lambda name, what: said.append(what), 1) == ["one seed 0"]
    assert said == [
        f"left out: {entry.run.path}: process {os.getpid()} is working there; wait for it or choose another folder"
    ]
    assert not entry.run.config_file.exists()
