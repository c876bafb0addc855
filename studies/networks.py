"""The lines of a file of results as networks: each measure with one value per seed, and how sure its mean is."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from liespline.lab.runs.line import read
from studies.intervals import Estimate, Interval, area_over_images, combined, over_both, over_images, over_seeds
from studies.paired import compare, contrast

Line = Mapping[str, Any]
NAMES = {
    "success": "landmarks found", "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "auc": "AUC",
    "dice": "Dice", "dice_per_image": "Dice per image",
}  # fmt: skip
"""Scores in words. The first of them that a run has decides its pictures."""
ON_LAST, LAST_TEN = "validation AUC, last 5 epochs", ", last ten epochs"
CHANGE, RELATIVE = "output change, 0.2", "relative output change"
"""Of results of 0.2, over the norm of the output and against the upright image; and of later ones."""
OF_MOVES = (", upright", ", cropped", ", transformed")
"""How the measures end of those images, some hundred at most, that were also transformed."""
MARK = " †"
"""Behind what was measured, in part at least, with uncommitted changes of the source."""


@dataclass(frozen=True)
class Network:
    """The finished runs of one network of a study."""

    name: str
    runs: Sequence[Line]
    machine: str
    """The one that most runs of the study were on: minutes of one machine say nothing beside those of another."""

    @cached_property
    def values(self) -> dict[str, list[float]]:
        """Measures that all runs have, one value per seed."""
        each = [measures(run) for run in self.runs]
        return {name: [one[name] for one in each] for name in each[0] if all(name in one for one in each)}

    @property
    def first(self) -> Mapping[str, Any]:
        """The results of the first seed, for what all seeds share."""
        results: Mapping[str, Any] = self.runs[0]["results"]
        return results

    @property
    def alike(self) -> list[Line]:
        """The runs on the machine that most runs of the study were on."""
        return [run for run in self.runs if run["environment"]["machine"] == self.machine]

    @property
    def mark(self) -> str:
        """The mark of uncommitted changes, or nothing."""
        return MARK if any(run["environment"]["uncommitted"] for run in self.runs) else ""

    @property
    def minutes(self) -> str:
        """The mean time of a run."""
        seconds = [run["results"]["seconds"] for run in self.alike]
        return f"{statistics.fmean(seconds) / 60:.1f}" if seconds else "–"

    @property
    def fastest(self) -> float:
        """The minutes of the fastest run."""
        return min(float(run["results"]["seconds"]) for run in self.runs) / 60

    @property
    def changed(self) -> float | None:
        """The share of images whose predicted class differs between rotated copies; None where it was not counted."""
        shares = [run["results"].get("transformed", {}).get("changed_predictions") for run in self.runs]
        return None if None in shares else statistics.fmean(shares)

    def mean(self, measure: str) -> float:
        """The mean over seeds."""
        return statistics.fmean(self.values[measure])

    def cell(self, measure: str, error: bool = False) -> str:
        """Mean ± 95 % in per cent, or of one minus the score; without a ± where no interval is known."""
        mean = self.mean(measure)
        interval = self.interval(measure)
        spread = "" if interval is None else f" ± {100 * interval.half:.2f}"
        return f"{100 * (1 - mean if error else mean):.2f}{spread}"

    def interval(self, measure: str) -> Interval | None:
        """Over seeds and images: drawn again where the scores of every image were kept, else from both variances."""
        if (drawn := contrast([(1, self.runs)], measure)) is not None:
            return drawn.interval
        estimate = self.estimate(measure)
        return combined([(1, estimate)]) if estimate else None

    def estimate(self, measure: str) -> Estimate | None:
        """The mean and how sure it is, over seeds and over images; None where neither is known."""
        values, images = self.values[measure], self._over_images(measure)
        if len(values) == 1:
            return images
        seeds = over_seeds(values)
        return over_both(seeds, images) if images else seeds

    def _over_images(self, measure: str) -> Estimate | None:
        """How far other images would give another mean of these seeds; None where their number is unknown."""
        mean, first = self.mean(measure), self.first
        of_validation = measure == ON_LAST or measure.endswith(LAST_TEN)
        if measure in (CHANGE, RELATIVE) or (of_validation and first["split"] != "valid"):
            return None
        images = first["transformed"]["images"] if measure.endswith(OF_MOVES) else first["images"]
        if "AUC" not in measure:
            return over_images(mean, images)
        table = first.get("confusion", [])
        return area_over_images(mean, images, sum(table[1]) / first["images"] if len(table) == 2 else 0.5)


@dataclass(frozen=True)
class Ahead:
    """How far one network is ahead of another."""

    value: float
    interval: Interval | None
    p: float | None
    """None where it is not paired, image by image."""


def ahead(one: Network, other: Network, measure: str) -> Ahead:
    """Paired where the scores of every image were kept, else with the variances of both."""
    if (paired := compare(one.runs, other.runs, measure)) is not None:
        return Ahead(paired.interval.value, *paired)
    both = one.estimate(measure), other.estimate(measure)
    interval = combined([(1, both[0]), (-1, both[1])]) if both[0] and both[1] else None
    return Ahead(one.mean(measure) - other.mean(measure), interval, None)


@dataclass(frozen=True)
class Results:
    """A study as it was run: the line that says what it is, and the lines of its runs."""

    head: Line
    lines: Sequence[Line]

    @property
    def name(self) -> str:
        """The name of the study."""
        return str(self.head["study"])

    @property
    def finished(self) -> list[Line]:
        """The runs that were scored."""
        return [line for line in self.lines if line["finished"]]

    @cached_property
    def networks(self) -> dict[str, Network]:
        """The networks with finished runs."""
        machines = Counter(line["environment"]["machine"] for line in self.finished)
        usual = max(machines, key=lambda machine: machines[machine], default="")
        runs: dict[str, list[Line]] = {}
        for line in sorted(self.finished, key=lambda line: int(line["seed"])):
            runs.setdefault(line["network"], []).append(line)
        return {name: Network(name, same, usual) for name, same in runs.items()}


def load(file: Path) -> dict[str, Results]:
    """The studies in a file of results, by name."""
    lines = read(file)
    heads = [line for line in lines if "about" in line]
    of = {head["study"]: [one for one in lines if one["study"] == head["study"] and one is not head] for head in heads}
    return {head["study"]: Results(head, of[head["study"]]) for head in heads}


def task_of(line: Line) -> str:
    """The task in one word: `pcam` of `pcam`, and of `studies.paper.pcam:PCAM`."""
    return str(line["config"]["task"]).rpartition(":")[2].lower()


def measures(line: Line) -> dict[str, float]:
    """What one run is measured by, in words."""
    results, valid = line["results"], line["training"]["valid"]
    found = {words: results["scores"][key] for key, words in NAMES.items() if key in results["scores"]}
    for key in ("success", "accuracy", "auc", "dice"):
        if "last_10" in valid.get(key, {}):
            found[NAMES[key] + LAST_TEN] = valid[key]["last_10"]
    if "last_5" in valid.get("auc", {}):
        found[ON_LAST] = valid["auc"]["last_5"]
    moves = results.get("transformed", {})
    if "scores" in moves:
        found |= {"accuracy, upright": moves["upright"], "accuracy, cropped": moves["accuracy"][0]}
        scores = moves["scores"]
        found |= {f"{words}, transformed": scores[key] for key, words in NAMES.items() if key in scores}
        changes = {CHANGE: moves.get("change"), RELATIVE: moves.get("relative_output_change")}
        found |= {name: value for name, value in changes.items() if value is not None}
    if (rotated := results.get("rotated_masks", {}).get("rotated")) is not None:
        found["Dice, rotated"] = rotated
    return {name: float(value) for name, value in found.items()}
