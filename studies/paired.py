"""Networks scored on the same images: a bootstrap over seeds and images at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from liespline.lab.evaluation.evaluate import NAMES as IMAGES
from liespline.lab.evaluation.evaluate import unpack
from studies.data import mnist
from studies.intervals import LEVEL, Interval

Line = Mapping[str, Any]
Each = Mapping[str, NDArray[Any]]
Floats = NDArray[np.floating[Any]]
DRAWS = 2000
WEIGHTS = 4_000_000
"""How many weights of images are held at once."""
ROUNDED = 1e-3
"""How far a score may be from what the kept numbers say, which have three digits."""
DEALT = "studies.digits:DEALT"
"""The task whose seeds have deals of their own of the same digits: digits are drawn, not images."""


class Paired(NamedTuple):
    """A difference of means with its interval, and the chance of one so far from zero where there is none."""

    interval: Interval
    p: float


def accuracy(each: Each, weights: Floats) -> Floats:
    """The share of right answers, for rows of weights (draws, images)."""
    return weights @ (each["true"] == each["predicted"]) / weights.sum(1)


def balanced_accuracy(each: Each, weights: Floats) -> Floats:
    """The mean share over the classes that occur."""
    of_class = each["true"][:, None] == np.unique(each["true"])
    right = of_class & (each["true"] == each["predicted"])[:, None]
    found = weights @ np.concatenate([right, of_class], axis=1).astype(weights.dtype)  # one product: classes are many
    there = found.shape[1] // 2
    return np.mean(found[:, :there] / np.maximum(found[:, there:], 1e-12), axis=1)


def area(each: Each, weights: Floats) -> Floats:
    """The area under the ROC curve of two classes; equal scores count half."""
    second = each["true"] == 1
    score = np.where(second, each["log_odds"], -each["log_odds"])
    order = np.argsort(score, kind="stable")
    starts = np.flatnonzero(np.diff(score[order], prepend=-np.inf))
    with_second = np.add.reduceat(weights[:, order] * second[order], starts, axis=1)
    with_first = np.add.reduceat(weights[:, order] * ~second[order], starts, axis=1)
    below = np.cumsum(with_first, axis=1) - with_first / 2
    return (with_second * below).sum(1) / np.maximum(with_second.sum(1) * with_first.sum(1), 1e-12)


def dice(each: Each, weights: Floats) -> Floats:
    """The mean Dice of images."""
    return weights @ each["dice"] / weights.sum(1)


STATISTICS: dict[str, tuple[str, Callable[[Each, Floats], Floats]]] = {
    "accuracy": ("accuracy", accuracy),
    "balanced accuracy": ("balanced_accuracy", balanced_accuracy),
    "AUC": ("auc", area),
    "Dice per image": ("dice_per_image", dice),
}
"""By measure: the name of its score in results, and how it comes from the images."""


def compare(ours: Sequence[Line], others: Sequence[Line], measure: str) -> Paired | None:
    """How far the first network is ahead, from the runs of both; None where no score of every image was kept."""
    return contrast([(1, ours), (-1, others)], measure)


def contrast(terms: Sequence[tuple[float, Sequence[Line]]], measure: str) -> Paired | None:
    """Σ c · (mean score of a network's runs), or None where no score of every image was kept.

    Both samplings are drawn again: images, the same ones for all runs, and the seeds of each network. Where each seed
    has images of its own, a deal, the deals that all networks have are compared, and drawn for all of them together;
    of deals of the same digits the digits are drawn. A mean of n drawn seeds varies too little by the factor
    (n − 1)/n, which is undone.
    """
    lines = [line for _, runs in terms for line in runs]
    results = [line["results"] for line in lines]
    if measure not in STATISTICS or not all("per_image" in one for one in results):
        return None
    key, statistic = STATISTICS[measure]
    each = [unpack(one["per_image"]) for one in results]
    whole = np.array([statistic(one, np.ones((1, len(next(iter(one.values()))))))[0] for one in each])
    if not np.allclose(whole, [one["scores"][key] for one in results], atol=ROUNDED):
        return None  # a score of another kind, such as a Dice of all voxels together
    images, begins = [_images(line, one) for line, one in zip(lines, each, strict=True)], [0]
    for _, runs in terms:
        begins.append(begins[-1] + len(runs))
    columns = [slice(*pair) for pair in pairwise(begins)]
    crossed = len(set(images)) == 1
    if not crossed and any(images[own] != images[columns[0]] for own in columns):
        shared = set.intersection(*(set(images[own]) for own in columns))
        there = [[run for run, one in zip(runs, images[own], strict=True) if one in shared]
                 for (_, runs), own in zip(terms, columns, strict=True)]  # fmt: skip
        again = [(factor, runs) for (factor, _), runs in zip(terms, there, strict=True)]
        return contrast(again, measure) if shared and sum(map(len, there)) < len(lines) else None
    places = _places(lines[columns[0]], each, crossed)
    count = 1 + max(int(own.max()) for own in places)
    packed = (tuple(sorted(one["per_image"].items())) for one in results)
    scores = [_drawn(one, measure, places[i % len(places)].tobytes(), count) for i, one in enumerate(packed)]
    drawn, draw = np.stack(scores, axis=1), np.random.default_rng(1)
    value, values, seeds = 0.0, np.zeros(DRAWS), np.zeros((0, 0), np.int64)
    for (factor, runs), own in zip(terms, columns, strict=True):
        if crossed or not len(seeds):
            seeds = draw.integers(0, len(runs), (DRAWS, len(runs)))
        value += factor * float(whole[own].mean())
        values += factor * _mean_of(drawn[:, own], seeds)
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    beyond = min(int((values <= 0).sum()), int((values >= 0).sum())) + 1
    return Paired(Interval(value, float(low), float(high)), min(1.0, 2 * beyond / (DRAWS + 1)))


def _images(line: Line, each: Each) -> tuple[str, bytes]:
    """What tells the images of runs apart: rows of a file are named alike in every deal, but not labelled alike."""
    return line["results"]["per_image"][IMAGES], each["true"].tobytes() if "true" in each else b""


def _places(lines: Sequence[Line], each: Sequence[Each], crossed: bool) -> list[NDArray[np.int64]]:
    """By seed: the number of what is drawn behind each image, which is the image itself, or the digit of a deal."""
    sizes = [len(next(iter(one.values()))) for one in each[: len(lines)]]
    if crossed:
        return [np.arange(sizes[0])]
    if all(line.get("config", {}).get("task") == DEALT for line in lines):
        own = [mnist.rows("test", int(line["seed"]) + 1) for line in lines]
    else:
        own = list(np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]))
    _, numbers = np.unique(np.concatenate(own), return_inverse=True)
    return list(np.split(numbers, np.cumsum(sizes)[:-1]))


@cache
def _drawn(packed: tuple[tuple[str, str], ...], measure: str, places: bytes, count: int) -> Floats:
    """The scores of a run on images that are drawn again, the same ones for all runs: (draws,)."""
    each, own = unpack(dict(packed)), np.frombuffer(places, np.int64)
    parts = np.array_split(_times(count), max(1, DRAWS * count // WEIGHTS))
    return np.concatenate([STATISTICS[measure][1](each, part[:, own].astype(np.float32)) for part in parts])


@lru_cache(maxsize=2)
def _times(count: int) -> NDArray[np.uint8]:
    """How often each of so many images is drawn: (draws, count)."""
    draw = np.random.default_rng(0)
    drawn = (draw.integers(0, count, count) for _ in range(DRAWS))
    return np.stack([np.bincount(one, minlength=count).astype(np.uint8) for one in drawn])


def _mean_of(scores: Floats, seeds: NDArray[np.int64]) -> Floats:
    """The mean of the drawn seeds, its deviation from that of all seeds made as large as it should be."""
    mean, count = scores.mean(1), scores.shape[1]
    factor = math.sqrt(count / (count - 1)) if count > 1 else 1.0
    return mean + factor * (np.take_along_axis(scores, seeds, 1).mean(1) - mean)
