"""Medians, ratios, and the facts a number is worthless without."""

import json
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

Step = Callable[[], object]


@dataclass
class Row:
    """One line of the table: a measured number and what it should reach."""

    what: str
    value: float
    reach: str
    note: str = ""


@dataclass
class Series:
    """How the time of a layer grows with one number: seconds by path, one for each value."""

    what: str
    values: list[int]
    seconds: dict[str, list[float]]


def times(steps: dict[str, Step], device: str, seconds: float = 1.0) -> dict[str, float]:
    """Median seconds of each step; steps take turns, so that a busy machine slows all of them alike."""
    for step in steps.values():
        for _ in range(3 if device == "cuda" else 1):
            step()
    once = sum(_once(step, device) for step in steps.values())
    repeats = max(3, min(200, int(seconds * len(steps) / once)))
    seen: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            seen[name].append(_once(step, device))
    return {name: sorted(values)[len(values) // 2] for name, values in seen.items()}


def captured(step: Step) -> Step:
    """The step as a CUDA graph: its time on the device, without what Python takes to launch it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay(inputs: Step = step) -> None:  # the graph reads their memory, so they must outlive it
        graph.replay()

    return replay


def _once(step: Step, device: str) -> float:
    if device == "cuda":
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        step()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3
    begin = time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()
    step()
    return (time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()) - begin


def facts(device: str) -> dict[str, str]:
    """The machine, the versions and the commit."""
    commit = _git("rev-parse", "HEAD") or "unknown"
    found = {
        "commit": commit + ("+changes" if _git("status", "--porcelain", "src", "benchmarks/*.py") else ""),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "processor": _processor(),
        "threads": str(torch.get_num_threads()),
    }
    if device == "cuda":
        import triton

        found |= {"gpu": torch.cuda.get_device_name(), "triton": triton.__version__}
    return found


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()


def _processor() -> str:
    names = Path("/proc/cpuinfo")
    lines = names.read_text().splitlines() if names.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def report(rows: list[Row], device: str, path: str, series: Sequence[Series] = ()) -> None:
    """Print the table and write it, with the facts, as JSON."""
    print(f"{'what':70s} {'value':>10s}  reach")
    for row in rows:
        print(f"{row.what:70s} {row.value:10.3f}  {row.reach}  {row.note}")
    for line in series:
        for name, seconds in line.seconds.items():
            shown = "  ".join(f"{v}: {1e3 * s:.3f}" for v, s in zip(line.values, seconds, strict=True))
            print(f"ms by {line.what}, {name} path: {shown}")
    document = {"facts": facts(device), "rows": [asdict(row) for row in rows], "series": [asdict(s) for s in series]}
    Path(path).write_text(json.dumps(document, indent=1) + "\n")


def write_tables(path: str, tables: dict[str, list[list[str]]], about: str) -> None:
    """Write tables of words, each with its head as the first row, for `page.py` to put into the docs."""
    document = {"facts": facts("cpu"), "about": about, "tables": tables}
    Path(path).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
