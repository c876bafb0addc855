"""Rotated MNIST when each network answers with the mean over several copies of a digit, moved and bent.

    python experiments/copies.py runs/records-rotmnist-ensemble MNIST runs/records-rotmnist-copies

Which copies is settled on the 8,000 digits of MNIST that are in no split, over all finished runs of the first study;
then each of them is tested once with those. The second folder becomes a study with their results.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from liespline.lab.data.augment import Draws
from liespline.lab.data.split import Split
from liespline.lab.runs.folder import Run
from liespline.lab.runs.precision import in_precision
from liespline.lab.runs.trained import load
from liespline.lab.sweep.records_page import write_records_page
from liespline.nn import OverGrids

sys.path.append(str(Path(__file__).parents[1]))  # where studies/ is
from studies.data import mnist

BATCH = 1000
ELASTIC = words_of("affine+elastic")
MOVES = {
    "as it lies": Augmentation(), "affine": Augmentation(words_of("affine")), "bent": Augmentation(ELASTIC),
    "half bent": Augmentation(ELASTIC, deviation=0.5 / 28),
}  # fmt: skip
"""How copies are moved: the second and third are augmentations of the lab, the last bends half as far as the third."""
WAYS = {
    "as it lies": [("as it lies", 0)],
    "two grids": [("as it lies", 0), ("next grid", 0)],
    **{move: [(move, k) for k in range(8)] for move in ("affine", "bent", "half bent")},
    "half bent and affine": [(move, k) for move in ("half bent", "affine") for k in range(4)],
}
"""The copies whose mean is an answer: how each is moved, and the number that its random draws begin with."""


def copies(images: Tensor, move: str, number: int) -> Iterator[Tensor]:
    """Batches of one copy of each image (B, 1, 28, 28), the same for all networks."""
    for begin in range(0, len(images), BATCH):
        batch = images[begin : begin + BATCH]
        draws = Draws(torch.Generator(batch.device).manual_seed(1_000_003 * number + begin))
        yield MOVES[move](batch, batch, draws)[0]


class Answers:
    """The answers of one network for a set of images; those for a copy are computed once."""

    def __init__(self, network: nn.Module, precision: str, split: Split, device: str) -> None:
        images, self.targets = (part.to(device) for part in split.__getitems__(range(len(split))))
        self.images, self.precision, self.device = images, precision, device
        self.network, self.next_grid = OverGrids(network, 2).networks
        self.known: dict[tuple[str, int], Tensor] = {}

    @torch.inference_mode()
    def of(self, move: str, number: int) -> Tensor:
        """For one copy of each image: (images, classes)."""
        if (move, number) not in self.known:
            network, moved = (self.next_grid, "as it lies") if move == "next grid" else (self.network, move)
            with in_precision(self.precision, self.device):
                answers = [network(batch).float() for batch in copies(self.images, moved, number)]
            self.known[move, number] = torch.cat(answers)
        return self.known[move, number]

    def errors(self, way: str) -> int:
        """Images whose mean answer over the copies is wrong."""
        mean = torch.stack([self.of(*copy) for copy in WAYS[way]]).mean(0)
        return int((mean.argmax(1) != self.targets).sum())


def answers(run: Run, split: Split) -> Answers:
    """Those of a finished run, in the precision that it was trained in."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    trained = load(run.path, device)
    return Answers(trained.network, trained.config.training.precision, split, device)


def results(run: Run, errors: int, images: int) -> dict[str, Any]:
    """The results of a run with another score; what else was measured of it was without copies."""
    kept = ("split", "synthetic", "task", "weights", "seconds")
    found = run.read_results(*kept)
    return {**{key: found[key] for key in kept}, "images": images, "scores": {"accuracy": 1 - errors / images}}


def main(study: Path, data: Path, out: Path) -> None:
    """Settle, test, and write what came out."""
    runs = [Run(file.parent) for file in sorted(study.glob("runs/*/seed-*/results.json"))]
    if not runs:
        raise SystemExit(f"{study}: has no finished runs; expected those of `liespline sweep records --out {study}`")
    outside, test = mnist.outside(data), mnist.load(data, "test")
    wrong = dict.fromkeys(WAYS, 0)
    for run in runs:
        each = answers(run, outside)
        wrong = {way: count + each.errors(way) for way, count in wrong.items()}
    chosen = min(wrong, key=wrong.__getitem__)
    print(f"errors of {len(runs)} networks on {len(outside)} digits outside: {wrong}; chosen: {chosen}")
    for run in runs:
        errors = answers(run, test).errors(chosen)
        print(f"{run.path.parent.name} {run.path.name}: {errors} of {len(test)} test images", flush=True)
        folder = out / run.path.relative_to(study)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("config.yaml", "environment.json", "metrics.jsonl"):
            shutil.copy(run.path / name, folder)
        (folder / "results.json").write_text(json.dumps(results(run, errors, len(test)), indent=1))
    shutil.copy(study / "study.yaml", out)
    write_records_page(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("study", "data", "out"):
        parser.add_argument(name, type=Path)
    asked = parser.parse_args()
    main(asked.study, asked.data, asked.out)
