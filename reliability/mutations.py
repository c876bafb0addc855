"""Plant faults in a copy of the core, the models and the lab, one at a time, and see whether the tests catch them.

    python reliability/mutations.py --jobs 1
    python reliability/mutations.py --only "SO(3)"

The tests nearest to a fault come first; what they let pass faces all tests of the core.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from io import BytesIO
from pathlib import Path
from queue import SimpleQueue

import planted
import planted_data
import planted_engine
import planted_lab
import planted_measure
import planted_more
import planted_norms
import planted_recipe
import planted_records
import planted_stacks
import planted_truth
from fault import Fault
from nearest import LAB, NEAREST
from table import Findings

ROOT = Path(__file__).parent.parent
PARTS = (
    planted, planted_engine, planted_lab, planted_data, planted_recipe, planted_records, planted_truth, planted_more,
    planted_measure, planted_norms, planted_stacks,
)  # fmt: skip
FAULTS = [fault for part in PARTS for fault in part.FAULTS]
ENOUGH = 0.95
LONGEST = 900  # seconds; tests that do not end would not be let pass either


class Copy:
    """The last commit in a folder of its own, where faults are planted, and a process that runs its tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sound: set[tuple[str, ...]] = set()
        paths = ["src", "studies", "tests", "docs/guide", "pyproject.toml"]
        if (ROOT / ".git").exists():
            archive = subprocess.run(["git", "archive", "HEAD", *paths], cwd=ROOT, capture_output=True, check=True)
            with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
                files.extractall(folder, filter="data")
        else:  # a checkout that was sent to another machine
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-r", "--parents", *paths, folder], cwd=ROOT, check=True)

    @property
    def path(self) -> str:
        """PYTHONPATH of what runs here: the library of this copy first."""
        return os.pathsep.join([str(self.folder / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])

    @cached_property
    def worker(self) -> subprocess.Popen[str]:
        """The process that runs tests."""
        changes = {"OMP_NUM_THREADS": "1", "PYTHONPATH": self.path, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, Path(__file__).with_name("worker.py")]
        return subprocess.Popen(
            command, cwd=self.folder, env=os.environ | changes, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def passes(self, names: Sequence[str], seconds: int = LONGEST, more: Sequence[str] = ()) -> bool:
        """Say whether the tests of these names pass, in this time, with more options of pytest."""
        assert self.worker.stdin is not None
        assert self.worker.stdout is not None
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "plugin", "--hypothesis-profile=unshrunk", *more]
        print(json.dumps([seconds, *options, *map(_path, names)]), file=self.worker.stdin, flush=True)
        status = int(self.worker.stdout.readline())
        # 1 is a test that fails, 2 a module that does not import, below 0 a crash or the end of its time.
        if status > 2:
            raise RuntimeError(f"pytest ended with {status} on {names}")
        return status == 0

    def source(self, file: str) -> Path:
        """Where a file of the library lies in this copy."""
        return self.folder / "src" / "liespline" / file

    def everything(self) -> list[str]:
        """All tests of the core, those drawn at random last: they find what they find, but take longer."""
        names = [f"core/{path.stem}" for path in (self.folder / "tests" / "core").glob("test_*.py")]
        return sorted(names, key=lambda name: (name.startswith("core/test_properties"), name))

    def caught_by(self, fault: Fault) -> str | None:
        """Plant the fault, and return which tests fail: the nearest, others, or none."""
        if fault.test and self._fails([fault.test], fault):
            return "its own test"
        nearest = next(names for start, names in NEAREST.items() if fault.file.startswith(start))
        if self._fails(nearest, fault):
            return "nearest tests"
        others = LAB if fault.file.startswith("lab/") else self.everything()
        return "other tests" if self._fails([name for name in others if name not in nearest], fault) else None

    def _fails(self, names: list[str], fault: Fault) -> bool:
        """Say whether tests that pass without the fault fail with it."""
        if tuple(names) not in self.sound:
            if not self.passes(names):
                raise RuntimeError(f"without any fault these tests fail, so they say nothing about faults: {names}")
            self.sound.add(tuple(names))
        path = self.source(fault.file)
        right = path.read_text()
        path.write_text(fault.planted(right))
        try:
            return not self.passes(names)
        finally:
            path.write_text(right)


def _path(name: str) -> str:
    """Where the tests of a module, or one of them, are."""
    module, _, test = name.partition("::")
    return f"tests/{module}.py" + (f"::{test}" if test else "")


def stale(copy: Copy) -> list[str]:
    """Why faults cannot be planted where they should be, since the code has changed."""
    problems = []
    for fault in FAULTS:
        try:
            fault.planted(copy.source(fault.file).read_text())
        except (OSError, ValueError) as error:
            problems.append(str(error))
    return problems


def main() -> None:
    """Try all faults and write down how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--only", default="", help="faults whose place or description contains this; nothing is written"
    )
    arguments = parser.parse_args()
    chosen = [fault for fault in FAULTS if arguments.only in fault.place or arguments.only in fault.what]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copies = [Copy(Path(folder, str(job))) for job in range(arguments.jobs)]
        if problems := stale(copies[0]):
            sys.exit("faults to be written anew:\n  " + "\n  ".join(problems))
        free: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            free.put(copy)

        def attempt(fault: Fault) -> bool:
            copy, began = free.get(), time.monotonic()
            try:
                by = copy.caught_by(fault)
            finally:  # or the others would wait for it for ever
                free.put(copy)
            outcome = f"caught by {by}" if by else "SURVIVED"
            print(f"{outcome:26} {time.monotonic() - began:4.0f} s  {fault.place}: {fault.what}", flush=True)
            return by is not None

        with ThreadPoolExecutor(arguments.jobs) as pool:
            caught = list(pool.map(attempt, chosen))
    survivors = [fault for fault, found in zip(chosen, caught, strict=True) if not found]
    print(f"{sum(caught)} of {len(chosen)} faults caught")
    if not arguments.only:
        listed = "; ".join(f"{f.place}: {f.what}" for f in survivors)
        Findings(
            "faults planted in the core, the models and the lab, one at a time",
            "make mutations",
            cases=len(chosen),
            faults=len(chosen),
            wrong_acceptances=len(survivors),
            remarks=f"{sum(caught) / len(chosen):.0%} caught" + (f"; survivors: {listed}" if listed else ""),
            seconds=round(time.monotonic() - started, 1),
        ).write("mutations")
    sys.exit(sum(caught) < ENOUGH * len(chosen))


if __name__ == "__main__":
    main()
