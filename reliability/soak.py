"""Training and evaluation over and over in one process, memory watched: `python reliability/soak.py [--minutes 30]`."""

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

from liespline.lab.runs.folder import Run
from liespline.lab.session import Session
from liespline.lab.settings import Config, Network, Training
from liespline.lab.training.train import train
from table import Findings

WARM_UP = 0.2  # of the time: caches fill, and the allocator finds its size
MOST_GROWTH = 0.01


def one_round(folder: Path, number: int) -> None:
    """A small run from its folder to its report, of a group and kernel that change from round to round."""
    group, kernel = [("so2", "dense"), ("so2", "local"), ("scale", "local"), ("none", "dense")][number % 4]
    config = Config(
        task="digits",
        seed=number,
        network=Network(group=group, elements=1 if group == "none" else 3, kernel=kernel, widths=(3, 4, 4)),
        training=Training(epochs=3, batch_size=64, augment="rotate", accelerator="cpu"),
    )
    run = Run.create(folder, config)
    train(Session(config, run), progress=False)


def resident() -> float:
    """Memory of this process after a collection, in MiB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def quarters(samples: list[float]) -> tuple[float, float]:
    """The medians of the first and of the last quarter of the samples."""
    size = max(1, len(samples) // 4)
    return statistics.median(samples[:size]), statistics.median(samples[-size:])


def main() -> None:
    """Soak, and write down how memory went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    minutes = parser.parse_args().minutes
    torch.set_num_threads(1)
    begun, samples = time.monotonic(), []
    while (spent := time.monotonic() - begun) < 60 * minutes:
        with tempfile.TemporaryDirectory() as folder:
            one_round(Path(folder) / "run", len(samples))
        samples.append((spent, resident()))
        print(f"{spent:6.0f} s, round {len(samples)}: {samples[-1][1]:.1f} MiB", flush=True)
    settled = [memory for spent, memory in samples if spent > 60 * minutes * WARM_UP]
    first, last = quarters(settled)
    grown = last / first - 1
    findings = Findings(
        "training and evaluation in one process on the CPU, memory watched",
        f"python reliability/soak.py --minutes {minutes:g}",
        cases=len(samples),
        crashes=int(grown >= MOST_GROWTH),
        remarks=(
            f"{first:.1f} MiB in the first quarter after the warm-up, {last:.1f} MiB in the last: growth "
            f"{100 * grown:.2f} %, at most {100 * MOST_GROWTH:g} %"
        ),
        seconds=round(time.monotonic() - begun, 1),
    )
    findings.write("soak")
    print(findings.remarks)
    sys.exit(not findings.clean)


if __name__ == "__main__":
    main()
