"""Hostile files given to their readers, each in a process with bounded memory and time."""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from liespline.lab.data import DataError
from liespline.lab.settings import ConfigError

from .hostile_crafted import RUNS
from .hostile_damage import DAMAGES, NEVER_SOUND
from .hostile_data import DATA
from .hostile_files import KINDS

CRAFTED = RUNS | DATA
SECONDS, MEMORY = 20, 768 << 20


@dataclass(frozen=True)
class Case:
    """One hostile file."""

    kind: str
    how: str
    crafted: bool = False

    @property
    def must_be_refused(self) -> bool:
        """Whether nothing honest is left in it."""
        return self.crafted or self.how in NEVER_SOUND


def all_cases() -> list[Case]:
    """Every kind of file with every kind of damage, and those made by hand."""
    damaged = [Case(kind, how) for kind in KINDS for how in DAMAGES]
    return damaged + [Case(kind, how, True) for kind, made in CRAFTED.items() for how in made]


def judge(case: Case, root: Path, seed: int) -> tuple[str, str]:
    """(refused | sound | CRASH | HANG | WRONG, what was said) of one hostile file."""
    honest = root / f"honest {case.kind}"
    if not honest.exists():
        honest.mkdir(parents=True)
        KINDS[case.kind].make(honest)
    folder = root / "case"
    shutil.copytree(honest, folder, symlinks=True)
    file = folder / KINDS[case.kind].file
    if case.crafted:
        CRAFTED[case.kind][case.how](file)
    else:
        DAMAGES[case.how](file, random.Random(f"{seed} {case.kind} {case.how}"))
    try:
        return _verdict(case, folder, *_read_apart(case.kind, folder))
    finally:
        shutil.rmtree(folder)


def _verdict(case: Case, folder: Path, outcome: str, said: str, megabytes: float) -> tuple[str, str]:
    if list(folder.rglob("CODE-HAS-RUN")) or Path("CODE-HAS-RUN").exists():
        return "WRONG", "code in the file was run"
    if megabytes > MEMORY / 2**20:
        return "CRASH", f"took {megabytes:.0f} MiB; {said}"
    if outcome == "refused":
        # The message must say which file, in a line or two.
        named = any(part in said for part in (KINDS[case.kind].file.split("/")[-1], str(folder), "task '"))
        return ("refused" if named and len(said) < 25_000 else "WRONG"), said
    if outcome == "read":
        honest = _read_apart(case.kind, folder.with_name(f"honest {case.kind}"))[1]
        sound = said == honest and not case.must_be_refused
        return ("sound" if sound else "WRONG"), f"read as {said[:200]}; honest: {honest[:200]}"
    return outcome, said


def _read_apart(kind: str, folder: Path) -> tuple[str, str, float]:
    """What the reader says, in a process of its own; how, and the memory it took, in MiB."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        _in_child(kind, folder, send)
    os.close(send)
    begun, parts = time.monotonic(), []
    with os.fdopen(receive, "rb") as stream:
        os.set_blocking(stream.fileno(), False)
        while time.monotonic() - begun < SECONDS:
            part = stream.read()
            if part == b"":
                break
            parts.append(part or b"")
            time.sleep(0.002)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "HANG", f"{SECONDS} s were not enough", 0.0
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) or not any(parts):
        return "CRASH", f"ended by {status}", 0.0
    outcome, said, megabytes = json.loads(b"".join(parts))
    return outcome, said, megabytes


def _in_child(kind: str, folder: Path, send: int) -> None:
    """Read, and send the outcome; never returns."""
    outcome, said = "CRASH", ""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    os.chdir(folder)
    torch.set_num_threads(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 2 * MEMORY, resource.RLIM_INFINITY))
    try:
        outcome, said = "read", repr(KINDS[kind].read(folder))
    except (DataError, ConfigError) as error:
        outcome, said = "refused", str(error)
    except BaseException as error:
        said = f"{type(error).__name__}: {str(error)[:500]}"
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    with contextlib.suppress(OSError):
        os.write(send, json.dumps([outcome, said[:30_000], taken]).encode()[:60_000])
    os._exit(0)
