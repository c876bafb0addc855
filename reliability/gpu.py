"""Everything on a GPU against the CPU's numbers: `make gpu`, or on a machine without a virtual environment

    PYTHONPATH=src python reliability/gpu.py --result gpu.json
    PYTHONPATH=src python reliability/gpu.py --device cpu --only "2-D" --seconds 60 --no-bench

A failure is written down and the rest goes on. The result says when it last passed, where, and with what.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from gpu_lab import check_tasks
from gpu_layers import check_all
from record import RESULTS, Findings

ROOT = Path(__file__).parent.parent


def versions() -> dict[str, str]:
    """Of Python and what the result depends on."""
    found = {"python": platform.python_version()}
    for name in ("torch", "triton", "lightning", "typer", "onnx"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def benchmark(folder: Path, seconds: float) -> dict[str, object]:
    """The speed table, as far as it comes in the time."""
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
    return {"rows": rows, "failures": failures, "seconds": round(time.monotonic() - begin)}


def main() -> None:
    """Check layers and networks, the lab, and speed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--result", type=Path, help="default: reliability/results/gpu.json, on the CPU nowhere")
    parser.add_argument("--only", default="", help="checks of layers and tasks whose name contains this")
    parser.add_argument("--seconds", type=float, default=240, help="for layers and networks; the rest is left out")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="processes")
    parser.add_argument("--no-lab", action="store_true")
    parser.add_argument("--no-bench", action="store_true")
    parser.add_argument("--no-inductor", action="store_true")
    parser.add_argument("--commit", help="where this is no git repository")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no CUDA device here; --device cpu tries the checks themselves")
    torch.manual_seed(0)
    begin = time.monotonic()
    parts = {
        "layers": check_all(
            arguments.device, arguments.seconds, arguments.jobs, arguments.only, not arguments.no_inductor
        )
    }
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.no_lab:
            parts["lab"] = check_tasks(Path(folder), arguments.device, arguments.only)
        if not arguments.no_bench and arguments.device == "cuda":
            parts["benchmark"] = benchmark(Path(folder), 120)
    failures = [failure for part in parts.values() for failure in part["failures"]]
    counted = [sum(part["counts"].values()) for part in parts.values() if "counts" in part]
    left_out = sum(part.get("left_out", 0) for part in parts.values())
    where = torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
    findings = Findings(
        check=f"every layer, network and task on {where}, against the CPU's numbers",
        command="make gpu",
        cases=sum(counted),
        crashes=len(failures),
        remarks=f"{left_out} left out for want of time" if left_out else "all of them",
        seconds=round(time.monotonic() - begin, 1),
    )
    more = {"versions": versions(), "device": where, "parts": parts}
    path = arguments.result or (RESULTS / "gpu.json" if arguments.device == "cuda" else None)
    if path is not None:
        findings.write(path, commit=arguments.commit, **more)
    print(f"{findings.cases} checks, {len(failures)} failures, {findings.remarks}, {findings.seconds:.0f} s on {where}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
