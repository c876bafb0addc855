"""Drawings and preparations on full disks, in folders that cannot be written to or that another process works in."""

import errno
import os
import resource
from contextlib import contextmanager

import pytest

from liespline.lab.data import files
from studies.data import celeba_prepare, fetch, synthesize
from studies.data.synthetic import faces

WRITE = {
    "pcam": lambda src, out: (synthesize.main, "pcam", out, "--count", 8),
    "celeba": lambda src, out: (synthesize.main, "celeba", out, "--count", 3),
    "prepare": lambda src, out: (celeba_prepare.main, src, out),
}


@pytest.fixture(scope="module")
def some_faces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faces")
    faces.synthesize(folder, identities=6, pictures=4, seed=1)
    return folder


@contextmanager
def largest_file(size):
    """The kernel refuses to let any file of this process grow beyond the size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("what", WRITE)
def test_the_kernel_refuses_a_file(program, tmp_path, some_faces, what):
    command = WRITE[what](some_faces, tmp_path / "out")
    with largest_file(1000):
        status, text = program(*command)
    assert (status, "Traceback" in text, "File too large" in text) == (2, False, True), text
    assert str(tmp_path / "out") in text
    assert program(*command)[0] == 0, "with room again, it goes on"


@pytest.mark.parametrize("what", WRITE)
def test_folders_that_cannot_be_made(program, tmp_path, some_faces, what):
    (tmp_path / "file").write_text("no folder")
    status, text = program(*WRITE[what](some_faces, tmp_path / "file" / "out"))
    assert status == 2
    assert "Traceback" not in text
    assert str(tmp_path / "file") in text
    assert (tmp_path / "file").read_text() == "no folder"


@pytest.mark.parametrize("what", WRITE)
def test_read_only_folders(program, monkeypatch, tmp_path, some_faces, what):
    def read_only(path, mode="r", *more, **options):
        if str(path).startswith(str(tmp_path)) and set(mode) & set("wa+"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return open(path, mode, *more, **options)

    monkeypatch.setattr(files, "open", read_only, raising=False)
    status, text = program(*WRITE[what](some_faces, tmp_path / "out"))
    assert status == 2
    assert "Traceback" not in text
    assert "Read-only file system" in text
    assert str(tmp_path / "out") in text


@pytest.mark.parametrize("what", WRITE)
def test_a_folder_that_another_process_works_in(program, tmp_path, some_faces, what):
    with files.lock(tmp_path / ".lock", wait=False):
        status, text = program(*WRITE[what](some_faces, tmp_path))
    assert status == 2
    assert f"{tmp_path}: process {os.getpid()} is working there" in text


def test_a_drawing_does_not_replace_other_files(program, tmp_path):
    """Official files, or those of another seed, are never written over."""
    for task, name in (("pcam", "camelyonpatch_level_2_split_valid_y.h5"), ("celeba", "identity_CelebA.txt")):
        (tmp_path / task).mkdir()
        (tmp_path / task / name).write_text("the real one")
        status, text = program(synthesize.main, task, tmp_path / task, "--count", "8")
        assert status == 2
        assert f"{name}: is not of this drawing" in text
        assert (tmp_path / task / name).read_text() == "the real one"


@pytest.mark.parametrize(("main", "word", "right"), [(synthesize.main, "pcan", "pcam"), (fetch.main, "mnits", "mnist")])
def test_a_word_that_is_nearly_right(program, tmp_path, main, word, right):
    status, text = program(main, word, tmp_path / "out")
    assert (status, f"Did you mean '{right}'?" in text, "Traceback" in text) == (2, True, False)
    assert not list(tmp_path.iterdir())
