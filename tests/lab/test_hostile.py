"""Hostile files are refused in words, in bounded time and memory; `reliability/corpus.py` tries hundreds more."""

import json
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import pytest

from lab.hostile import all_cases
from lab.hostile_damage import DAMAGES
from lab.hostile_files import KINDS

TESTS = Path(__file__).parents[1]
# One of each kind of attack, spread over all kinds of files.
CHOSEN = [case for case in all_cases() if case.crafted][::5] + [case for case in all_cases() if not case.crafted][::19]
SCRIPT = """
import json, sys
from pathlib import Path
from lab.hostile import Case, judge
cases = [Case(*entry) for entry in json.load(sys.stdin)]
print(json.dumps([judge(case, Path(sys.argv[1]), 7) for case in cases]))
"""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    asked = json.dumps([[case.kind, case.how, case.crafted] for case in CHOSEN])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path_factory.mktemp("hostile"))],
        input=asked, capture_output=True, text=True, timeout=300, env=os.environ | {"PYTHONPATH": str(TESTS)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(zip(CHOSEN, json.loads(done.stdout), strict=True))


def test_hostile_files_are_refused(verdicts):
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


PLANTED = """
import sys, pickle, time
from pathlib import Path
from lab import hostile
from lab.hostile_files import KINDS, Kind
def slow(folder): time.sleep(99)
def greedy(folder): return len(bytearray(4 << 30))
def gullible(folder): return len(pickle.loads((folder / "last.ckpt").read_bytes()).name)
def careless(folder): return "taken"
hostile.SECONDS = 3
for reader in (slow, greedy, gullible, careless):
    KINDS["checkpoint"] = Kind(KINDS["checkpoint"].make, "last.ckpt", reader)
    print(hostile.judge(hostile.Case("checkpoint", "pickle"), Path(sys.argv[1]), 0)[0])
"""


def test_readers_that_are_at_fault_are_noticed(tmp_path):
    """Planted: one that hangs, one that takes all memory, one that unpickles, one that takes anything."""
    done = subprocess.run(
        [sys.executable, "-c", PLANTED, str(tmp_path)],
        capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": str(TESTS)},
    )  # fmt: skip
    assert done.stdout.split() == ["HANG", "CRASH", "WRONG", "WRONG"], done.stderr
