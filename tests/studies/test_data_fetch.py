"""Fetching, preparing and drawing where servers, disks or folders fail."""

import functools
import gzip
import hashlib
import http.server
import os
import threading

import pytest

from liespline.lab.data import DataError, files
from studies.data import celeba_prepare, fetch, synthesize
from studies.data.synthetic import faces
from truth.shell import largest_file, read_only


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A served folder standing in for the official place; its files are those of the set "pcam"."""
    folder = tmp_path / "served"
    folder.mkdir()
    contents = {"a.h5.gz": gzip.compress(b"images" * 1000), "b.npz": b"numbers"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        sums = {name: hashlib.md5(content).hexdigest() for name, content in contents.items()}
        monkeypatch.setitem(fetch.FILES, "pcam", (f"http://127.0.0.1:{site.server_port}/", sums))
        yield folder
        site.shutdown()
        thread.join()


def test_files_are_fetched_once_and_unpacked(server, tmp_path):
    steps = []
    files = fetch.fetch("pcam", tmp_path / "out", lambda *step: steps.append(step))
    assert [file.name for file in files] == ["a.h5", "b.npz"]
    assert files[0].read_bytes() == b"images" * 1000
    assert steps == [("pcam", 0, 2), ("pcam", 1, 2), ("pcam", 2, 2)]
    for file in server.iterdir():
        file.unlink()
    assert fetch.fetch("pcam", tmp_path / "out") == files, "what is there is not fetched again"


def test_other_content_and_missing_files_are_refused(server, tmp_path):
    (server / "b.npz").write_bytes(b"numbers, changed on the way")
    with pytest.raises(DataError, match=r"b\.npz: could not be fetched"):
        fetch.fetch("pcam", tmp_path / "out")
    assert not (tmp_path / "out" / "b.npz").exists()
    (server / "b.npz").unlink()
    with pytest.raises(DataError, match="fetch it by hand"):
        fetch.fetch("pcam", tmp_path / "out")
    with pytest.raises(ValueError, match="'pcan' is unknown; choose one of pcam, mnist"):
        fetch.fetch("pcan", tmp_path)


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


@pytest.mark.parametrize("what", WRITE)
def test_what_cannot_be_written_ends_in_words(program, refused, monkeypatch, tmp_path, some_faces, what):
    command = WRITE[what](some_faces, tmp_path / "out")
    with largest_file(1000):
        said = refused(*command)
    assert "File too large" in said
    assert str(tmp_path / "out") in said
    assert program(*command)[0] == 0, "with room again, it goes on"
    (tmp_path / "file").write_text("no folder")
    assert str(tmp_path / "file") in refused(*WRITE[what](some_faces, tmp_path / "file" / "out"))
    assert (tmp_path / "file").read_text() == "no folder"
    monkeypatch.setattr(files, "open", read_only(tmp_path / "disk"), raising=False)
    said = refused(*WRITE[what](some_faces, tmp_path / "disk"))
    assert "Read-only file system" in said
    assert str(tmp_path / "disk") in said


@pytest.mark.parametrize("what", WRITE)
def test_a_folder_that_another_process_works_in(refused, tmp_path, some_faces, what):
    with files.lock(tmp_path / ".lock", wait=False):
        said = refused(*WRITE[what](some_faces, tmp_path))
    assert f"{tmp_path}: process {os.getpid()} is working there" in said


@pytest.mark.parametrize(
    ("task", "name"), [("pcam", "camelyonpatch_level_2_split_valid_y.h5"), ("celeba", "identity_CelebA.txt")]
)
def test_a_drawing_does_not_replace_other_files(refused, tmp_path, task, name):
    """Official files, or those of another seed, are never written over."""
    (tmp_path / name).write_text("the real one")
    assert f"{name}: is not of this drawing" in refused(synthesize.main, task, tmp_path, "--count", "8")
    assert (tmp_path / name).read_text() == "the real one"


@pytest.mark.parametrize(("main", "word", "right"), [(synthesize.main, "pcan", "pcam"), (fetch.main, "mnits", "mnist")])
def test_a_word_that_is_nearly_right(refused, tmp_path, main, word, right):
    assert f"Did you mean '{right}'?" in refused(main, word, tmp_path / "out")
    assert not list(tmp_path.iterdir())
