"""Fetching, from a server on this machine in place of the official ones."""

import functools
import gzip
import hashlib
import http.server
import threading

import pytest

from liespline.lab.data import DataError
from studies.data import fetch


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
