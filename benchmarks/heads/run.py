"""Train variants of heads and depth on rotated MNIST, several at once on one GPU.

python -m benchmarks.heads.run FOLDER_OF_IDX_FILES RESULTS.json

One JSON file, written anew after every finished run; runs that it already has are not done again. All variants come
with the first seed, then all with the second. Runs that the time left is too short for are not begun.
"""

from __future__ import annotations

import argparse
import json
import queue
import time
from pathlib import Path
from typing import Any

import torch
from torch import multiprocessing

from .training import Settings, train
from .variants import VARIANTS


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of MNIST's four idx files, gzipped")
    parser.add_argument("out", type=Path, help="the JSON file to write, and to go on with")
    parser.add_argument("--seconds", type=float, default=570, help="when to stop")
    parser.add_argument("--processes", type=int, default=4, help="runs at once")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="variants whose names contain one of these words, with semicolons between")
    parser.add_argument("--longest-first", action="store_true", help="so that no long run is left for the end")
    parser.add_argument("--all-seeds-first", action="store_true", help="all seeds of a variant before the next")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--limit", type=int, help="use this few digits, to try the script out")
    parser.add_argument("--test", type=int, help="digits to test, if not as many as --limit")
    parser.add_argument("--no-compile", action="store_true")
    return parser.parse_args()


def work(jobs: Any, results: Any, settings: Settings, deadline: float) -> None:
    """Take jobs until there are none, or no time."""
    torch.set_num_threads(1 if not torch.cuda.is_available() else 4)
    unit = 0.0  # seconds of a run of cost 1, once known
    while True:
        try:
            name, seed = jobs.get_nowait()
        except queue.Empty:
            return
        if time.time() + unit * VARIANTS[name].cost > deadline:
            continue
        begun = time.time()
        result = train(VARIANTS[name], seed, settings, deadline)
        if result is None:
            continue
        unit = max(unit, (time.time() - begun) / VARIANTS[name].cost)
        results.put({"variant": name, "seed": seed, **result})


def main() -> None:
    options = arguments()
    deadline = time.time() + options.seconds
    done = json.loads(options.out.read_text()) if options.out.exists() else []
    words = options.only.split(";") if options.only else [""]
    settings = Settings(
        options.data,
        options.epochs,
        options.batch,
        options.lr,
        options.limit,
        options.test,
        compiled=not options.no_compile,
    )
    context = multiprocessing.get_context("spawn")
    jobs, results = context.Queue(), context.Queue()
    known = {(run["variant"], run["seed"]) for run in done}
    chosen = [name for name in VARIANTS if any(word in name for word in words)]
    waiting = [(name, seed) for seed in range(options.seeds) for name in chosen if (name, seed) not in known]
    if options.all_seeds_first:
        waiting.sort(key=lambda job: chosen.index(job[0]))
    if options.longest_first:
        waiting.sort(key=lambda job: -VARIANTS[job[0]].cost)
    for job in waiting:
        jobs.put(job)
    time.sleep(0.5)  # the queue is filled by a thread of its own
    processes = [
        context.Process(target=work, args=(jobs, results, settings, deadline))
        for _ in range(min(options.processes, len(waiting)))
    ]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes) or not results.empty():
        try:
            result = results.get(timeout=1)
        except queue.Empty:
            if time.time() > deadline + 15:
                break
            continue
        done.append(result)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(done, indent=1, ensure_ascii=False))
        print(
            f"{result['error']:.2f} %  {result['variant']} (seed {result['seed']}, {result['seconds']:.0f} s)",
            flush=True,
        )
    for process in processes:
        process.terminate()
    print(table(done))


def table(runs: list[dict[str, Any]]) -> str:
    """Return all variants in a Markdown table: error of every seed, mean, how much the output changes when turned."""
    lines = ["| variant | weights | error, % | mean | changes when turned, % |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(run["variant"] for run in runs):
        mine = sorted((run for run in runs if run["variant"] == name), key=lambda run: run["seed"])
        errors, changes = ([run[key] for run in mine] for key in ("error", "change"))
        shown = ", ".join(f"{error:.2f}" for error in errors)
        mean, change = (sum(values) / len(mine) for values in (errors, changes))
        lines.append(f"| {name} | {mine[0]['weights']:,} | {shown} | {mean:.2f} | {change:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
