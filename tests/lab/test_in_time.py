"""experiments/in_time.py: the most wanted runs first, none that cannot end in time, and what is begun goes on."""

import sys
import time
from pathlib import Path

import pytest
import yaml

from liespline.lab.runs.folder import Run
from liespline.lab.settings import Config

LIST = """
rotmnist so2-16 0 1     # decides
vessel-28 so3-24 1 1
modelnet10-34 plain 0 1

rotmnist plain 2 500    # too long
"""


@pytest.fixture
def script(experiment):
    return experiment("in_time")


@pytest.fixture
def lanes(script, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for name in ("mnist", "modelnet10.npz"):
        (data / name).touch()
    return script.Lanes(script.wanted(LIST.splitlines()), data, tmp_path / "runs", 5)


def test_data_are_where_a_set_has_them(script):
    sets = {
        "pcam-disc": "pcam",
        "scaled-fashion-mirrored": "fashion",
        "scaled-digits": "mnist",
        "affine-digits": "mnist",
    }
    sets |= {"rotmnist-small": "mnist", "modelnet10-spun": "modelnet10.npz", "adrenal-64": "adrenal-64.npz"}
    assert {chosen: script.Wanted(chosen, "", 0, 0).data(Path()).name for chosen in sets} == sets


def test_in_the_order_of_the_list_as_soon_as_data_are_there(lanes):
    done = []

    def do(run):
        done.append(f"{run.chosen} {run.network} {run.seed}")
        (lanes.data / "vessel-28.npz").touch()  # comes while another one is under way

    lanes.work(do)
    assert done == ["rotmnist so2-16 0", "vessel-28 so3-24 1", "modelnet10-34 plain 0"]
    assert [run.seconds for run in lanes.left] == [500], "it would not have ended in time"


def stand_in(monkeypatch, script, code):
    monkeypatch.setattr(script, "command", lambda run: [sys.executable, "-c", code.format(run.path)])


def test_a_run_is_that_of_the_set_and_ends(script, lanes, monkeypatch, capsys):
    stand_in(monkeypatch, script, "from pathlib import Path; Path(r'{}', 'results.json').write_text('{{}}')")
    lanes.do(lanes.left[1])
    study = lanes.out / "records-vessel-28"
    run = Run(study / "runs" / "so3-24" / "seed-1")
    config = Config.load(run.config_file)
    assert (config.seed, config.network.group, config.training.epochs) == (1, "so3", 72)
    assert yaml.safe_load((study / "study.yaml").read_text())["seeds"] == 2
    assert "vessel-28 so3-24 seed 1: done" in capsys.readouterr().out
    lanes.do(lanes.left[1])
    assert capsys.readouterr().out == "", "done before"


def test_when_the_time_is_over_a_run_is_stopped_and_left_to_go_on(script, lanes, monkeypatch, capsys):
    stand_in(monkeypatch, script, "import time; time.sleep(60)")
    lanes.end, start = time.monotonic() + 0.5, time.monotonic()
    lanes.do(lanes.left[0])
    assert time.monotonic() - start < 30
    assert "rotmnist so2-16 seed 0: stopped" in capsys.readouterr().out
    assert (lanes.out / "records-rotmnist/runs/so2-16/seed-0/config.yaml").is_file()


@pytest.mark.parametrize(("then", "ended"), [("(p / 'ended').touch(); sys.exit()", True), ("None", False)])
def test_a_run_has_time_to_end_before_it_is_killed(script, lanes, monkeypatch, then, ended):
    code = f"""
import signal, sys, time; from pathlib import Path; p = Path(r'{{}}')
def told(*_):
    {then}
signal.signal(signal.SIGTERM, told); (p / 'begun').touch()
while True: time.sleep(0.1)
"""
    stand_in(monkeypatch, script, code)
    monkeypatch.setattr(script, "PATIENCE", 20 if ended else 0.5)
    lanes.end = time.monotonic() + 3
    lanes.do(lanes.left[0])
    folder = lanes.out / "records-rotmnist/runs/so2-16/seed-0"
    assert (folder / "begun").is_file()
    assert (folder / "ended").is_file() == ended


def test_what_goes_wrong_is_said(script, lanes, monkeypatch, capsys):
    stand_in(monkeypatch, script, "raise SystemExit('no such data')")
    lanes.do(lanes.left[0])
    assert "rotmnist so2-16 seed 0: no such data" in capsys.readouterr().out
