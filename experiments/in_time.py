"""Runs of several sets on one machine for a limited time, the most wanted first.

    python experiments/in_time.py wanted.txt DATA runs --seconds 1500 --jobs 8

Each line of the list is a run: its set, network and seed, and about how many seconds it takes beside the others. DATA
has the folders mnist, fashion and pcam, and the files vessel-64.npz, modelnet10.npz, …. A run begins as soon as its
data are there, if it can still end in time, and is stopped when the time is over. `liespline sweep records --set SET
--out runs/records-SET` goes on with what was begun, and pack.py packs it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from liespline.lab.sweep.one_run import PATIENCE, command, verdict
from liespline.lab.sweep.plan import begun, plan
from liespline.lab.sweep.records import RECORDS
from liespline.lab.sweep.study import write_study

FOLDERS = {"pcam": "pcam", "scaled-fashion": "fashion", "rotmnist": "mnist", "modelnet10": "modelnet10.npz"}
"""Where the data of sets whose names begin so are."""


@dataclass(frozen=True)
class Wanted:
    """One line of the list."""

    chosen: str
    network: str
    seed: int
    seconds: float

    def data(self, folder: Path) -> Path:
        """Where the images of its set are."""
        for begin, name in FOLDERS.items():
            if self.chosen.startswith(begin):
                return folder / name
        return folder / ("mnist" if self.chosen.endswith("-digits") else f"{self.chosen}.npz")


def wanted(lines: Iterable[str]) -> list[Wanted]:
    """The runs of a list, in its order; what follows a # is for people."""
    words = [line.partition("#")[0].split() for line in lines]
    return [Wanted(chosen, name, int(seed), float(seconds)) for chosen, name, seed, seconds in filter(None, words)]


class Lanes:
    """So many runs at a time, until the time is over."""

    def __init__(self, left: list[Wanted], data: Path, out: Path, seconds: float) -> None:
        self.left, self.data, self.out, self.end = left, data, out, time.monotonic() + seconds
        self.seeds = {run.chosen: 1 + max(other.seed for other in left if other.chosen == run.chosen) for run in left}
        self.lock = threading.Lock()

    def next(self) -> Wanted | None:
        """The first run whose data are there and for which there is time."""
        with self.lock:
            remaining = self.end - time.monotonic()
            for run in self.left:
                if run.seconds < remaining and run.data(self.data).exists():
                    self.left.remove(run)
                    return run
        return None

    def work(self, do: Callable[[Wanted], None]) -> None:
        """Take runs and do them; where none can begin yet, wait."""
        while any(run.seconds < self.end - time.monotonic() for run in list(self.left)):
            if (run := self.next()) is None:
                time.sleep(1)
            else:
                do(run)

    def do(self, run: Wanted) -> None:
        """Train one in a process of its own."""
        study, changes = self.out / f"{RECORDS}-{run.chosen}", {"data": str(run.data(self.data).absolute())}
        with self.lock:  # a study has one file, and each of its runs writes it
            write_study(study, RECORDS, run.chosen, self.seeds[run.chosen], changes)
        runs = plan(RECORDS, run.chosen, study, self.seeds[run.chosen], changes)
        entry = next(entry for entry in runs if entry.name == f"{run.network} seed {run.seed}")
        if entry.run.complete or not begun(entry, lambda name, what: print(name, what, flush=True)):
            return
        start = time.monotonic()
        process = subprocess.Popen(
            command(entry.run), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            _, errors = process.communicate(timeout=max(0.0, self.end - start))
            said = verdict(entry.run, process.returncode, errors) or "done"
        except subprocess.TimeoutExpired:
            stop(process)
            said = "stopped"
        print(f"{run.chosen} {entry.name}: {said}, {time.monotonic() - start:.0f} s", flush=True)


def stop(process: subprocess.Popen[str]) -> None:
    """End a run and what it began; one killed amid its work may take others with it that share the GPU by MPS."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.communicate(timeout=PATIENCE)
            return
        except subprocess.TimeoutExpired:
            continue


def main() -> None:
    """Do what can be done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wanted", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--jobs", type=int, default=8)
    asked = parser.parse_args()
    left = wanted(asked.wanted.read_text(encoding="utf-8").splitlines())
    lanes = Lanes(left, asked.data, asked.out, asked.seconds)
    threads = [threading.Thread(target=lanes.work, args=(lanes.do,)) for _ in range(asked.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run in lanes.left:
        print(f"{run.chosen} {run.network} seed {run.seed}: no time left")


if __name__ == "__main__":
    main()
