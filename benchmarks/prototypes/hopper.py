"""Measure the Hopper prototypes: `python benchmarks/prototypes/hopper.py --seconds 200 --out DIR`.

A pool of processes first launches every kernel once, which compiles it and finds those that fail; then one process
times the rest in turn. Whatever crashes or hangs costs its own row and no other.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "src")]
PATIENCE = 25.0  # seconds without a new row before a process counts as hung


def main() -> None:
    """Compile, time, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--part", default="")  # of a process started by this one: compile or time
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    end = time.time() + options.seconds
    if options.part:
        _child(options, float(os.environ["HOPPER_END"]))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ["HOPPER_END"] = str(end)
    for old in options.out.glob("hopper-*.jsonl"):
        old.unlink()
    begin = time.time()
    _compile(options, end)
    print(f"compiled in {time.time() - begin:.0f} s", flush=True)
    _time(options, end)
    print(f"all in {time.time() - begin:.0f} s", flush=True)
    _table(options.out)


def _start(options: argparse.Namespace, part: str, first: int) -> subprocess.Popen:
    command = [sys.executable, __file__, "--part", part, "--first", str(first), "--out", str(options.out)]
    log = (options.out / f"log-{part}.txt").open("a")
    return subprocess.Popen([*command, "--workers", str(options.workers)], stdout=log, stderr=log)


def _compile(options: argparse.Namespace, end: float) -> None:
    workers = [_start(options, "compile", i) for i in range(options.workers)]
    limit = min(time.time() + 75, end)
    for worker in workers:
        try:
            worker.wait(max(0.1, limit - time.time()))
        except subprocess.TimeoutExpired:
            worker.kill()


def _time(options: argparse.Namespace, end: float) -> None:
    path, first = options.out / "hopper-time.jsonl", 0
    while time.time() < end - 10:
        child, seen, since = _start(options, "time", first), -1, time.time()
        while child.poll() is None and time.time() < end + 5:
            time.sleep(0.5)
            lines = len(path.read_text().splitlines()) if path.exists() else 0
            if lines != seen:
                seen, since = lines, time.time()
            if time.time() - since > PATIENCE + 15 * (seen <= 0):
                child.kill()
        child.kill()
        child.wait()
        if child.returncode == 0:
            return
        first = max((r["index"] for r in _rows(path)), default=first - 1) + 1  # its row was begun, not ended


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _child(options: argparse.Namespace, end: float) -> None:
    import torch
    from plan import variants

    torch.backends.cudnn.benchmark = True
    todo = list(enumerate(variants()))
    path = options.out / f"hopper-{options.part}.jsonl"
    failed = {}  # by index: what was begun in the pool and failed or did not come back
    for row in _rows(options.out / "hopper-compile.jsonl") if options.part == "time" else []:
        failed[row["index"]] = "did not come back" if row.get("begun") else row.get("error")
    failed = {index: error for index, error in failed.items() if error}
    if options.part == "compile":
        todo = [pair for pair in todo if pair[1].compiles][options.first :: options.workers]
    else:
        todo = [pair for pair in todo if pair[0] >= options.first]
    for index, variant in todo:
        if time.time() > end - 3:
            return
        row = {"index": index, "layer": variant.layer, "what": variant.what, "label": variant.label}
        row["floor_us"] = round(variant.floor * 1e6, 1)
        _write(path, row | {"begun": True})
        if options.part == "time" and index in failed:
            _write(path, row | {"error": failed[index]})
            continue
        try:
            row |= _measure(variant) if options.part == "time" else _launch(variant)
        except Exception as error:  # one variant must not stop the rest
            text = " ".join(f"{type(error).__name__}: {error}".split())
            row["error"] = text if len(text) < 400 else f"{text[:200]} … {text[-200:]}"
        _write(path, row)
        if any(word in (row.get("error") or "") for word in ("CUDA error", "illegal", "misaligned", "launch failure")):
            os._exit(3)  # the context is gone


def _write(path: Path, row: dict) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def _launch(variant) -> dict:
    import torch

    run, _ = variant.make(0)
    run()
    torch.cuda.synchronize()
    return {}


def _measure(variant, seconds: float = 0.12) -> dict:
    import torch

    run, check = variant.make(int(time.time() * 1e3) % 2**31)
    found = run()
    torch.cuda.synchronize()
    error = None if check is None else check(found)
    if error is not None and not error < 0.02:
        raise ValueError(f"relative error {error:.3g}")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    times: list[float] = []
    begin = time.time()
    while time.time() - begin < seconds or len(times) < 12:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(7)]
        for event in events[:-1]:
            event.record()
            graph.replay()
        events[-1].record()
        torch.cuda.synchronize()
        times += [a.elapsed_time(b) * 1e3 for a, b in itertools.pairwise(events)]
    times = sorted(times[6:])
    middle = statistics.median(times)
    spread = [round(times[int(len(times) * q)], 1) for q in (0.1, 0.9)]
    return {"us": round(middle, 1), "spread_us": spread, "error": None, "relative_error": error}


def _table(out: Path) -> None:
    rows = [r for r in _rows(out / "hopper-time.jsonl") if not r.get("begun")]
    compiled = _rows(out / "hopper-compile.jsonl")
    (out / "hopper-results.json").write_text(json.dumps({"rows": rows, "compiled": compiled}, indent=1))
    best: dict[tuple[str, str, str], dict] = {}
    for row in rows:
        kind = row["label"].split(" ")[0]
        key = row["layer"], row["what"], kind
        if row.get("us") and row["us"] < best.get(key, {"us": 1e9})["us"]:
            best[key] = row
    for row in rows:
        if row.get("error"):
            print("FAILED", row["layer"], row["what"], row["label"], row["error"][:150])
    print(f"{'layer':9s}{'pass':20s}{'variant':42s}{'floor':>8s}{'µs':>9s}{'×floor':>7s}{'10–90 %':>18s} error")
    for (layer, what, _), row in best.items():
        shown = "" if row["relative_error"] is None else f"{row['relative_error']:.1e}"
        print(
            f"{layer:9s}{what:20s}{row['label'][:41]:42s}{row['floor_us']:8.0f}{row['us']:9.1f}"
            f"{row['us'] / row['floor_us']:7.2f}{row['spread_us']!s:>18s} {shown}"
        )


if __name__ == "__main__":
    main()
