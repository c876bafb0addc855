"""Everything on a GPU against the CPU's numbers: `make gpu`, or on a machine without a virtual environment

    PYTHONPATH=src python reliability/gpu.py --result gpu.json
    PYTHONPATH=src python reliability/gpu.py --device cpu --only "2-D.*float32, eager" --minutes 1 --no-bench

A failure is written down and the rest goes on; the result is written as it comes. It says when it last passed, where,
and with what.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from gpu_hopper import check_hopper
from gpu_lab import check_tasks
from gpu_layers import check_all
from table import RESULTS, Findings

ROOT = Path(__file__).parent.parent
BENCHMARK = 120  # seconds


class Record:
    """What was found so far, in one file."""

    def __init__(self, file: Path | None, device: str, commit: str | None) -> None:
        self.file, self.commit, self.parts, self.lock = file, commit, {}, threading.Lock()
        self.where = torch.cuda.get_device_name() if device == "cuda" else "CPU"
        self.begin = self.written = time.monotonic()

    def note(self, part: str) -> Callable[[dict], None]:
        """Return what takes the findings of a part, each time all of them; written every few seconds."""

        def take(found: dict) -> None:
            with self.lock:
                self.parts[part] = found
                if time.monotonic() > self.written + 5:
                    self.write()

        return take

    @property
    def failures(self) -> list[dict]:
        """Of all parts."""
        return [failure for part in self.parts.values() for failure in part["failures"]]

    def write(self) -> Findings:
        """Write the file."""
        left_out = sum(part.get("left_out", 0) for part in self.parts.values())
        findings = Findings(
            check=f"every layer, network and task on {self.where}, against the CPU's numbers",
            command="make gpu",
            cases=sum(sum(part.get("counts", {}).values()) for part in self.parts.values()),
            crashes=len(self.failures),
            remarks=f"{left_out} left out for lack of time" if left_out else "all of them",
            seconds=round(time.monotonic() - self.begin, 1),
        )
        if self.file is not None:
            more = {"versions": versions(), "device": self.where, "parts": self.parts}
            findings.write("gpu", self.commit, self.file, **more)
        self.written = time.monotonic()
        return findings


def versions() -> dict[str, str]:
    """Of Python and what the result depends on."""
    found = {"python": platform.python_version()}
    for name in ("torch", "triton", "lightning", "typer", "onnx"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def benchmark(folder: Path, seconds: float, note: Callable[[dict], None]) -> None:
    """Note the speed table, as far as it comes in the time."""
    result = folder / "speed.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), str(result)]
    begin, problem = time.monotonic(), None
    try:
        done = subprocess.run(command, timeout=seconds, capture_output=True, text=True, check=False)
        problem = done.stderr[-2000:] if done.returncode else None
    except subprocess.TimeoutExpired:
        pass  # rows are written as they come
    rows = json.loads(result.read_text())["rows"] if result.is_file() else []
    if not rows and problem is None:
        problem = f"no row in {seconds:.0f} seconds"
    failures = [{"check": "benchmark", "problem": problem}] if problem else []
    note({"rows": rows, "failures": failures, "seconds": round(time.monotonic() - begin)})


def main() -> None:
    """Check layers and networks and beside them the lab, then speed."""
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--result", type=Path, help="default: reliability/results.json, on the CPU nowhere")
    parser.add_argument("--only", default="", help="checks in whose name this pattern is found")
    parser.add_argument("--minutes", type=float, default=5, help="for all checks; the rest is left out")
    parser.add_argument("--jobs", type=int, default=max(1, cores - cores // 8), help="processes")
    parser.add_argument("--no-lab", action="store_true")
    parser.add_argument("--no-bench", action="store_true")
    parser.add_argument("--no-inductor", action="store_true")
    parser.add_argument("--commit", help="where this is no git repository")
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no CUDA device here; --device cpu tries the checks themselves")
    file = given.result or (RESULTS if given.device == "cuda" else None)
    record, seconds = Record(file, given.device, given.commit), 60 * given.minutes
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        (truths := Path(folder, "truths")).mkdir()
        lab = threading.Thread(
            target=check_tasks,
            args=(given.device, Path(folder), seconds, max(1, cores // 8), given.only, record.note("lab")),
        )
        if not given.no_lab:
            lab.start()
        note = record.note("layers")
        check_all(given.device, truths, seconds, given.jobs, given.only, not given.no_inductor, note)
        if given.device == "cuda" and not given.only:
            record.note("hopper")(check_hopper(90, given.jobs))
        if not given.no_lab:
            lab.join()
        record.write()
        if not given.no_bench and given.device == "cuda":
            benchmark(Path(folder), BENCHMARK, record.note("benchmark"))
    findings = record.write()
    done = f"{findings.cases} checks, {len(record.failures)} failures, {findings.remarks}"
    print(f"{done}, {findings.seconds:.0f} s on {record.where}")
    sys.exit(bool(record.failures))


if __name__ == "__main__":
    main()
