"""Hostile files are refused in words, in bounded time and memory; `reliability/corpus.py` tries hundreds more."""

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lab.hostile import all_cases
from lab.hostile_damage import DAMAGES
from lab.hostile_files import KINDS
from liespline.lab.runs.checkpoint import SafeCheckpoints
from liespline.lab.runs.folder import Run

TESTS = Path(__file__).parents[1]
# One of each kind of attack, spread over all kinds of files.
CHOSEN = [case for case in all_cases() if case.crafted][::4] + [case for case in all_cases() if not case.crafted][::9]
# Judges the cases, then four readers with planted faults: hanging, greedy, unpickling, taking anything.
PLACES = os.pathsep.join([str(TESTS), *sys.path[1:]])
SCRIPT = """
import json, pickle, sys, time
from pathlib import Path
from lab import hostile
from lab.hostile_files import KINDS, Kind
def slow(folder): time.sleep(99)
def greedy(folder): return len(bytearray(4 << 30))
def gullible(folder): return len(pickle.loads((folder / "last.ckpt").read_bytes()).name)
def careless(folder): return "taken"
root = Path(sys.argv[1])
cases = [hostile.Case(*entry) for entry in json.load(sys.stdin)]
found = [hostile.judge(case, root, 7) for case in cases]
hostile.SECONDS = 2
planted = []
for reader in (slow, greedy, gullible, careless):
    KINDS["checkpoint"] = Kind(KINDS["checkpoint"].make, "last.ckpt", reader)
    planted.append(hostile.judge(hostile.Case("checkpoint", "pickle"), root, 0)[0])
print(json.dumps([found, planted]))
"""


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    asked = json.dumps([[case.kind, case.how, case.crafted] for case in CHOSEN])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path_factory.mktemp("hostile"))],
        input=asked, capture_output=True, text=True, timeout=300, env=os.environ | {"PYTHONPATH": PLACES},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_readers_that_are_at_fault_are_noticed(judged):
    assert judged[1] == ["HANG", "CRASH", "WRONG", "WRONG"]


def test_hostile_files_are_refused(judged):
    verdicts = dict(zip(CHOSEN, judged[0], strict=True))
    assert len(verdicts) >= 40
    assert {case.kind for case in verdicts} == set(KINDS)
    bad = {f"{c.kind}, {c.how}": v for c, v in verdicts.items() if v[0] not in ("refused", "sound")}
    assert not bad
    assert sum(verdict == "refused" for verdict, _ in verdicts.values()) > 0.8 * len(verdicts)


def test_there_are_hundreds():
    assert len(all_cases()) >= 200


def test_the_pickle_does_carry_code(tmp_path):
    """It would run in hands that unpickle: that nothing ran elsewhere means something."""
    path = tmp_path / "file"
    path.write_text("honest")
    DAMAGES["pickle"](path, random.Random(0))
    pickle.loads(path.read_bytes())
    assert (tmp_path / "CODE-HAS-RUN").exists()


CHANGES = {
    "another network": lambda state: state["state_dict"].update({"network.0.weight": torch.zeros(7)}),
    "a layer more": lambda state: state["state_dict"].update({"network.99.weight": torch.zeros(7)}),
    "a layer less": lambda state: state["state_dict"].pop("network.0.weight"),
    "no optimiser": lambda state: state.pop("optimizer_states"),
    "no loops": lambda state: state.pop("loops"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_run_does_not_go_on_from_the_state_of_another(liespline, tmp_path, tiny_run, change):
    run = Run(tmp_path / "run")
    shutil.copytree(tiny_run.path, run.path)
    run.results_file.unlink()
    state = SafeCheckpoints().load_checkpoint(run.last_checkpoint)
    CHANGES[change](state)
    SafeCheckpoints().save_checkpoint(state, run.last_checkpoint)
    status, text = liespline("train", "--resume", run.path)
    assert status == 2
    assert "the checkpoint" in text
    assert "Traceback" not in text
