"""A run killed at any moment goes on and ends with the weights it would have had."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from liespline.lab.tasks import find_task
from liespline.lab.training import start as training

KILLER = Path(__file__).parent / "killer.py"


@pytest.fixture(scope="module")
def endings(tmp_path_factory):
    """How each run ended, by the moment at which it was killed."""
    root = tmp_path_factory.mktemp("kills")
    done = subprocess.run([sys.executable, str(KILLER), str(root)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def killed(endings):
    return {name: end for name, end in endings.items() if name not in ("never", "planted: written in place")}


def test_every_attempt_was_killed_and_resumed(endings):
    assert len(killed(endings)) == 6
    for name, end in killed(endings).items():
        assert end["killed"], name
        assert end["resumed"] == 0, name


def test_weights_and_optimiser_end_bit_identical(endings):
    for name, end in killed(endings).items():
        assert end["model"] == endings["never"]["model"], name
        assert end["state"] == endings["never"]["state"], name


def test_no_epoch_is_lost_or_counted_twice(endings):
    for name, end in killed(endings).items():
        assert end["epochs"] == [0, 1, 2, 3], name
        assert end["losses"] == endings["never"]["losses"], name


def test_a_checkpoint_written_in_place_would_be_lost(endings):
    """The planted fault: without the rename, a kill during the write leaves half a file, and no way on."""
    planted = endings["planted: written in place"]
    assert planted["killed"]
    assert planted["resumed"] != 0


@pytest.mark.parametrize("how", [KeyboardInterrupt(), SystemExit(143)])
def test_a_run_that_is_stopped_says_how_to_go_on(how, tmp_path, monkeypatch, capsys):
    def stopped(*args, **more):
        raise how

    monkeypatch.setattr(training, "train", stopped)
    config = find_task("digits").defaults.updated({"n_h": 2, "widths": (2, 2, 3)}, {"accelerator": "cpu"})
    folder = tmp_path / ("a long name " * 8)  # that must not be broken into lines
    with pytest.raises(type(how)):
        training.begin(config, folder, progress=False)
    said = capsys.readouterr().err.strip()
    assert shlex.split(said.removeprefix("Stopped. Go on with: ")) == ["liespline", "train", "--resume", str(folder)]
    assert training.Run.open(folder)[1] == config
