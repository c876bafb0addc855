"""Plant faults in a copy of the core, one at a time, and see whether the tests catch them.

    python reliability/mutations.py --jobs 1
    python reliability/mutations.py --only "SO(3)"

The tests nearest to a fault come first; what they let pass faces all tests of the core.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from queue import SimpleQueue

from planted import EXPLAINED, FAULTS, Fault
from record import Findings

ROOT = Path(__file__).parent.parent
ENOUGH = 0.95
LONGEST = 900  # seconds; tests that do not end would not be let pass either
NEAREST = {
    "groups": ["test_groups", "test_rotations", "test_semidirect", "test_check_group", "test_singular"],
    "grids": ["test_grids"],
    "splines.py": ["test_splines", "test_fit"],
    "functional": ["test_semidirect", "test_planted_faults", "test_layers", "test_singular"],
    "nn": ["test_errors_layers", "test_norm_pool", "test_layers", "test_initial", "test_compatibility"],
    "paths": ["test_paths", "test_layers"],
    "export.py": ["test_export", "test_export_networks"],
    "models": ["test_models", "lab/test_classifier"],
    "testing.py": ["test_check_group", "test_equivariance"],
}
APART = ("test_docs_site", "test_figures", "test_explore", "test_snippets", "test_properties")  # docs; and slow to fail


def tree(folder: Path) -> Path:
    """Lay out the last commit: faults are planted there and never here."""
    archive = subprocess.run(
        ["git", "archive", "HEAD", "src", "tests", "pyproject.toml"], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def passes(copy: Path, names: list[str]) -> bool:
    """Say whether the tests of these names pass in a copy."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    files = [f"tests/{name}.py" for name in names]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1, 2):  # 2: a fault may well break an import, and so the collection
        raise RuntimeError(f"pytest ended with {done.returncode}: {(done.stdout + done.stderr).decode()}")
    return done.returncode == 0


def everything(copy: Path) -> list[str]:
    """All tests of the core, those drawn at random last: looking for a smallest example takes them long."""
    names = sorted(path.stem for path in (copy / "tests").glob("test_*.py"))
    drawn = [name for name in names if name.startswith("test_properties")]
    return [*(name for name in names if not name.startswith(APART)), "lab/test_classifier", *drawn]


def caught_by(fault: Fault, copy: Path) -> str | None:
    """Plant the fault, and return which tests fail: the nearest, all, or none."""
    path = copy / "src" / "liespline" / fault.file
    right = path.read_text()
    path.write_text(right.replace(fault.old, fault.new))
    nearest = NEAREST[fault.file.split("/")[0]]
    try:
        if not passes(copy, nearest):
            return "nearest tests"
        rest = [name for name in everything(copy) if name not in nearest]
        return None if passes(copy, rest) else "other tests"
    finally:
        path.write_text(right)


def stale(copy: Path) -> list[str]:
    """Faults whose text does not stand exactly once where it should, since the code has changed."""
    texts = {file: (copy / "src" / "liespline" / file).read_text() for file in {fault.file for fault in FAULTS}}
    return [
        f"{f.file}: {f.old!r} stands there {texts[f.file].count(f.old)} times"
        for f in FAULTS
        if texts[f.file].count(f.old) != 1
    ]


def main() -> None:
    """Try all faults and write down how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="faults whose file or description contains this; nothing is written")
    arguments = parser.parse_args()
    chosen = [fault for fault in FAULTS if arguments.only in fault.file or arguments.only in fault.what]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        first = tree(Path(folder, "0"))
        if problems := stale(first):
            sys.exit("faults to be written anew:\n  " + "\n  ".join(problems))
        if not arguments.only and not passes(first, everything(first)):
            sys.exit("the tests fail without any fault, so they say nothing about faults")
        free: SimpleQueue[Path] = SimpleQueue()
        free.put(first)
        for job in range(1, arguments.jobs):
            free.put(Path(shutil.copytree(first, Path(folder, str(job)))))

        def attempt(fault: Fault) -> bool:
            copy, began = free.get(), time.monotonic()
            by = caught_by(fault, copy)
            free.put(copy)
            outcome = f"caught by {by}" if by else "SURVIVED"
            print(f"{outcome:26} {time.monotonic() - began:4.0f} s  {fault.file}: {fault.what}", flush=True)
            return by is not None

        with ThreadPoolExecutor(arguments.jobs) as pool:
            caught = list(pool.map(attempt, chosen))
    survivors = [fault for fault, found in zip(chosen, caught, strict=True) if not found]
    print(f"{sum(caught)} of {len(chosen)} faults caught")
    if not arguments.only:
        listed = "; ".join(f"{f.file}: {f.what} ({EXPLAINED.get(f.what, 'a test is missing')})" for f in survivors)
        Findings(
            "faults planted in the core, one at a time",
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
