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
from studies.intervals import Estimate, area_over_images, over_images, over_seeds

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
JITTERED = " ‡"
"""Behind a network whose grids were offset at random in training: that is augmentation over H."""


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
    def augmented(self) -> str:
        """The mark of grid jitter, or nothing."""
        return JITTERED if any(run["config"]["training"].get("grid_jitter") for run in self.runs) else ""

    @property
    def minutes(self) -> str:
        """The mean time of a run."""
        seconds = [run["results"]["seconds"] for run in self.alike]
        return f"{statistics.fmean(seconds) / 60:.1f}" if seconds else "–"

    def mean(self, measure: str) -> float:
        """The mean over seeds."""
        return statistics.fmean(self.values[measure])

    def cell(self, measure: str, error: bool = False) -> str:
        """Mean ± standard deviation over seeds in per cent, or of one minus the score; one seed has no deviation."""
        values = [100 * (1 - value if error else value) for value in self.values[measure]]
        spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
        return f"{statistics.fmean(values):.2f}{spread}"

    def estimate(self, measure: str) -> Estimate | None:
        """The mean and how sure it is: over seeds, or over images for one; None where their number is unknown."""
        values, first = self.values[measure], self.first
        if len(values) > 1:
            return over_seeds(values)
        if measure in (CHANGE, RELATIVE, ON_LAST) or (measure.endswith(LAST_TEN) and first["split"] != "valid"):
            return None
        images = first["transformed"]["images"] if measure.endswith(OF_MOVES) else first["images"]
        if "AUC" not in measure:
            return over_images(values[0], images)
        table = first.get("confusion", [])
        return area_over_images(values[0], images, sum(table[1]) / first["images"] if len(table) == 2 else 0.5)


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
