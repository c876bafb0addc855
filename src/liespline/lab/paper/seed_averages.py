"""Finished runs averaged over their seeds: what the results figure and the results page are made of."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..data.files import DataError
from ..data.split import SPLITS
from ..runs.folder import Run
from ..settings import SETTINGS, Config, ConfigError, Training, one_of, total
from ..settings.old import SHORT
from ..tasks import SUMMARIES, find_task
from .intervals import Estimate, area_over_images, over_images, over_seeds
from .variants import PAPER, Variant, unusual, variant_of

SCORES = ("success", "accuracy", "balanced_accuracy", "auc")
"""What is reported; the first of these that a run has is what figures show."""
DECIDING = ("success", "accuracy", "auc")
"""The scores by which claims are decided."""
LAST, LAST_EPOCHS = "last_", 10
"""`last_accuracy` is the mean accuracy of the validation images over the last ten epochs: no epoch was picked."""
ORDER = (*PAPER, *SUMMARIES)
_ASIDE = {name: one.default for name, one in SETTINGS.items() if one.machine or name == "augment"}
"""Settings of the machine, and the augmentation, which belongs to the network."""


@dataclass(frozen=True)
class Study:
    """What has to agree before two networks may be compared: the images that were scored, and how both learned."""

    task: str
    preset: str
    split: str
    images: int
    synthetic: bool
    size: int | tuple[int, ...] | None
    data: str | None
    """Fingerprint of the images and their splits; None for runs that were begun before runs knew it."""
    training: Training
    """Without the augmentation, which belongs to the network, and without the machine."""

    @property
    def changes(self) -> dict[str, tuple[Any, Any]]:
        """Settings of the training that are not the task's own: what was used, and what is usual."""
        usual = asdict(find_task(self.task).defaults.training)
        used = {key: value for key, value in asdict(self.training).items() if key not in _ASIDE}
        return {key: (value, usual[key]) for key, value in used.items() if value != usual[key]}


@dataclass(frozen=True)
class Average:
    """The finished runs of one network, one value per seed."""

    study: Study
    variant: Variant
    runs: int
    scores: Mapping[str, Sequence[float]]
    weights: Sequence[int]
    speeds: Sequence[float]
    """Images per second in training, the median epoch of each run."""
    seconds: Sequence[float]
    machines: Sequence[str]
    commits: Sequence[str]

    @property
    def score(self) -> str:
        """What figures show."""
        return next(name for name in SCORES if name in self.scores)

    @property
    def seeds(self) -> int:
        """The number of different seeds."""
        return len(self.scores[self.score])

    def mean(self, score: str | None = None) -> float:
        """The mean over seeds."""
        return statistics.fmean(self.scores[score or self.score])

    def spread(self, score: str | None = None) -> float | None:
        """The standard deviation over seeds, with n − 1 below; a single run has none."""
        values = self.scores[score or self.score]
        return statistics.stdev(values) if len(values) > 1 else None

    def estimate(self, score: str | None = None) -> Estimate | None:
        """The mean and how sure it is: over seeds, or over images for a single one; None if their number is unknown."""
        score = score or self.score
        values, images = self.scores[score], self.study.images
        if len(values) > 1:
            return over_seeds(values)
        if score.startswith(LAST) and self.study.split != "valid":
            return None  # how many validation images there were is written nowhere
        return (area_over_images if score.endswith("auc") else over_images)(values[0], images)


@dataclass(frozen=True)
class Collection:
    """All runs below a folder: the finished ones by network, and how many were left out."""

    averages: Sequence[Average]
    unfinished: int
    unscored: int

    @property
    def studies(self) -> dict[Study, dict[Variant, Average]]:
        """The networks of each study."""
        studies: dict[Study, dict[Variant, Average]] = defaultdict(dict)
        for average in self.averages:
            studies[average.study][average.variant] = average
        return dict(studies)


def read_runs(folder: Path) -> Collection:
    """Every run below a folder; raises ConfigError if none is finished, DataError where one's numbers are damaged."""
    found: dict[tuple[Study, Variant], list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    unfinished = unscored = 0
    for file in sorted(folder.rglob("config.yaml")):
        run = Run(file.parent)
        if not run.finished:
            unfinished += 1
        elif not any(name in run.read_results().get("scores", {}) for name in SCORES[:2]):
            unscored += 1
        else:
            config = Config.load(file)
            study, numbers = _numbers(run, config)
            found[study, variant_of(config)].append((config.seed, numbers))
    if not found:
        raise ConfigError(f"{folder}: holds no finished run (no results.json with scores beside a config.yaml)")
    averages = [_average(*key, runs) for key, runs in found.items()]
    averages.sort(key=_order)
    return Collection(averages, unfinished, unscored)


def _numbers(run: Run, config: Config) -> tuple[Study, dict[str, Any]]:
    results = run.read_results("scores", "images", "weights", "split", "synthetic")
    scores = {name: float(results["scores"][name]) for name in SCORES if name in results["scores"]}
    epochs = run.read_metrics()
    scores |= _last(epochs)
    for name, value in scores.items():
        if not 0 <= value <= 1:  # NaN too
            file = run.metrics_file if name.startswith(LAST) else run.results_file
            raise DataError(f"{file}: {name} is {value}; expected a share from 0 to 1")
    find_task(config).augmentation(config, where=f"{run.config_file}: ")
    study = Study(
        task=SHORT.get(config.task, config.task),
        preset=config.preset,
        split=one_of(f"{run.results_file}: split", results["split"], SPLITS),
        images=results["images"],
        synthetic=results["synthetic"],
        size=config.size,
        data=results.get("data"),
        training=replace(config.training, **_ASIDE),
    )
    speeds = [float(row["images_per_second"]) for row in epochs]
    return study, {
        "scores": scores,
        "weights": results["weights"],
        "speed": statistics.median(speeds) if speeds else None,
        "seconds": results.get("seconds"),
        **origin(run.path / "environment.json"),
    }


def _last(epochs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean validation scores of the last ten epochs; none where there are fewer."""
    last = epochs[-LAST_EPOCHS:]
    names = [name for name in DECIDING if len(last) == LAST_EPOCHS and all(f"valid_{name}" in row for row in last)]
    return {LAST + name: statistics.fmean(float(row[f"valid_{name}"]) for row in last) for name in names}


def _average(study: Study, variant: Variant, runs: Iterable[tuple[int, dict[str, Any]]]) -> Average:
    by_seed = defaultdict(list)
    for seed, numbers in runs:
        by_seed[seed].append(numbers)
    every = [numbers for group in by_seed.values() for numbers in group]
    names = [name for name in every[0]["scores"] if all(name in numbers["scores"] for numbers in every)]
    # A seed that ran twice, by hand or on two machines, is one value: copies would make the spread look small.
    scores = {
        name: [statistics.fmean(numbers["scores"][name] for numbers in by_seed[seed]) for seed in sorted(by_seed)]
        for name in names
    }

    def all_of(key: str) -> list[Any]:
        return [numbers[key] for numbers in every if numbers[key] is not None]

    weights, machines, commits = (sorted(set(all_of(key))) for key in ("weights", "machine", "commit"))
    return Average(study, variant, len(every), scores, weights, all_of("speed"), all_of("seconds"), machines, commits)


def _order(average: Average) -> tuple[Any, ...]:
    study, variant = average.study, average.variant
    net = variant.network
    ways = (unusual(study.task, variant), net.scale, net.kernel, total(net.n_k or 0))
    place = ORDER.index(study.task) if study.task in ORDER else len(ORDER)
    return place, repr(study), total(net.n_h), *ways, repr(variant)


def origin(file: Path) -> dict[str, str | None]:
    """The machine and commit of a run as its own file names them; None where that file lacks them or is damaged."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = None
    named = found if isinstance(found, dict) else {}
    return {key: v[:200] if isinstance(v := named.get(key), str) else None for key in ("machine", "commit")}
