"""U-Nets of equal weights, equivariant and plain, on nuclei and hippocampi: `python study.py DATA OUT [--minutes 9]`.

DATA holds what pack.py wrote. Several trainings run at once, each a process; the most decisive ones come first, and
each leaves OUT/results.jsonl one line longer. Started again, it goes on with what is missing. `--only nuclei` or
`hippocampus` picks a part, `--steps` and `--weights` make it smaller. Needs torch and liespline, not the extra `lab`.
"""

import argparse
import json
import multiprocessing as mp
import time
from pathlib import Path
from typing import Any

from networks import NETWORKS

SEEDS = (0, 1, 2)


def jobs(only: str | None) -> list[dict[str, Any]]:
    """Every training, the most decisive first: a quarter of the labels, then all; then hippocampi; then extras."""

    def several(data: str, networks: tuple[str, ...], turns: bool, share: float) -> list[dict[str, Any]]:
        return [{"data": data, "network": n, "turns": turns, "share": share} for n in networks]

    nuclei: list[dict[str, Any]] = []
    for share in (0.25, 1.0):
        for data in ("histo", "fluo"):
            nuclei += several(data, ("plain", "se2", "o2"), False, share) + several(data, ("plain",), True, share)
    for data in ("histo", "fluo"):
        nuclei += several(data, ("se2", "o2"), True, 0.25)
    brains = several("hippocampus", ("plain3", "se3"), False, 1.0) + several(
        "hippocampus", ("plain3", "se3"), True, 1.0
    )
    found = {"nuclei": nuclei, "hippocampus": brains}
    chosen = found[only] if only else nuclei[:8] + brains[:3] + nuclei[8:] + brains[3:]
    return [{**job, "seed": seed} for job in chosen for seed in SEEDS]


def worker(queue: Any, answers: Any, options: argparse.Namespace) -> None:
    """Train what the queue gives until the time is up."""
    from train import train

    while True:
        job = queue.get()
        if job is None or time.time() > options.until:
            answers.put(None)
            return
        begun = time.time()
        try:
            result = train(job, options.data, NETWORKS[job["network"]], options)
        except Exception as error:  # one that fails must not take the others along
            result = {"error": f"{type(error).__name__}: {error}"[:500]}
        answers.put({**job, **result, "seconds": round(time.time() - begun, 1)})


def main() -> None:
    """Share the jobs among processes and write what they find."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--only", choices=("nuclei", "hippocampus"))
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--weights", type=int, default=145_000)
    parser.add_argument("--done", type=Path, help="results.jsonl of an earlier call: its trainings are left out.")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    options.until = time.time() + 60 * options.minutes - 45  # the last ones must end in time
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "results.jsonl"
    seen = set()
    for path in (file, options.done):
        if path and path.exists():
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            seen |= {name_of(row) for row in rows if "error" not in row}
    queue, answers = mp.Queue(), mp.Queue()
    todo = [job for job in jobs(options.only) if name_of(job) not in seen]
    for job in [*todo, *[None] * options.processes]:
        queue.put(job)
    running = [mp.Process(target=worker, args=(queue, answers, options), daemon=True) for _ in range(options.processes)]
    for process in running:
        process.start()
    ended = 0
    while ended < options.processes:
        found = answers.get()
        if found is None:
            ended += 1
            continue
        with file.open("a") as stream:
            stream.write(json.dumps(found) + "\n")
        print(json.dumps({key: value for key, value in found.items() if key != "curve"}), flush=True)


def name_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What makes a training the same."""
    return tuple(row[key] for key in ("data", "network", "turns", "share", "seed"))


if __name__ == "__main__":
    mp.set_start_method("spawn")
    main()
