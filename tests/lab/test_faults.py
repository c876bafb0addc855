"""Work killed at any moment goes on and ends as it would have; `reliability/kills.py` does many more."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
