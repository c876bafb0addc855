"""`results.md` of a record: every network over its seeds, and how far ours is ahead of the one beside it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..data.files import DataError, write_text
from ..paper.intervals import Estimate, Interval, area_over_images, combined, over_images, over_seeds
from ..paper.results_page import SPLIT_WORDS, table
from ..paper.seed_averages import origin
from ..runs.folder import Run
from ..screen import printable
from .records import RECORDS, SETS
from .study import finished_runs, timed_alike

LAST = 5
"""Epochs over which validation scores are averaged, so that none is picked."""
ON_LAST = f"validation AUC, last {LAST} epochs"
CHANGE = "change when moved"
"""That of results of old: over the norm of the output, against images that were not interpolated."""
RELATIVE = "relative output change"
OF_MOVES = (", as they lie", ", cut", ", moved")
"""How the measures of those images end that were moved, at most some hundred of all."""
_NAMES = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "auc": "AUC"}
READING = """\
In per cent: mean ± standard deviation over seeds, in brackets the 95 % interval of the mean (Student's t over seeds;
with one seed, over images). Test images were scored once, after training. *Moved* is the score of images turned all
around, or moved as the group does, cut to the disc that stays in view; *cut* is that of the same images, cut but not
moved, and *as they lie* neither cut nor moved{changes}. *Minutes* are those of the machine that
most of the runs were on. A difference has Welch's interval."""
CHANGES = {
    CHANGE: "; *change* is that of the output",
    RELATIVE: "; *relative output change* is that between copies of an image that lie differently, over the standard\n"
    "deviation of the output over the images",
}


@dataclass(frozen=True)
class Scored:
    """The finished runs of one network: each measure, one value per seed."""

    name: str
    values: Mapping[str, Sequence[float]]
    images: int
    moved: int
    """How many of the images were moved."""
    second: float
    """The share of the second of two classes."""
    weights: int
    seeds: int
    seconds: Sequence[float]
    """How long those took that were on the machine of most."""

    def estimate(self, measure: str) -> Estimate | None:
        """The mean and how sure it is; None for one seed of what is no share of images."""
        values = self.values[measure]
        if len(values) > 1:
            return over_seeds(values)
        if measure in (CHANGE, RELATIVE, ON_LAST):
            return None
        images = self.moved if measure.endswith(OF_MOVES) else self.images
        return area_over_images(values[0], images, self.second) if "AUC" in measure else over_images(values[0], images)


def scored_runs(study: Path) -> dict[str, Scored]:
    """What the finished runs of a study are measured by, by network."""
    found = finished_runs(study)
    alike = timed_alike(found)
    return {name: _scored(name, runs, alike[name]) for name, runs in found.items()}


def _scored(name: str, runs: Sequence[Run], alike: Sequence[Run]) -> Scored:
    results = [run.read_results("scores", "images", "weights") for run in runs]
    each = [measures(result, run.read_metrics()) for result, run in zip(results, runs, strict=True)]
    shared = [key for key in each[0] if all(key in one for one in each)]
    values = {key: [one[key] for one in each] for key in shared}
    seconds = [float(run.read_results("seconds")["seconds"]) for run in alike]
    images, weights = results[0]["images"], results[0]["weights"]
    moved = results[0].get("moves", {}).get("images", images)
    table = results[0].get("confusion", [])
    second = sum(table[1]) / images if len(table) == 2 else 0.5
    return Scored(name, values, images, moved, second, weights, len(runs), seconds)


def measures(results: Mapping[str, Any], epochs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What one run is measured by."""
    names = {key: words for key, words in _NAMES.items() if key == "accuracy" or "auc" in results["scores"]}
    found = {words: results["scores"][key] for key, words in names.items()}
    last = [row["valid_auc"] for row in epochs[-LAST:] if "valid_auc" in row]
    if len(last) == LAST:
        found[ON_LAST] = statistics.fmean(last)
    moves = results.get("moves", {})
    if "scores" in moves:
        found |= {"accuracy, as they lie": moves["upright"], "accuracy, cut": moves["accuracy"][0]}
        found |= {f"{words}, moved": moves["scores"][key] for key, words in names.items() if key in moves["scores"]}
        known = {CHANGE: moves.get("change"), RELATIVE: moves.get("relative_output_change")}
        found |= {words: value for words, value in known.items() if value is not None}
    return {key: float(value) for key, value in found.items()}


def write_records_page(study: Path, out: Path | None = None) -> Path:
    """Write the page of a study's finished runs into its folder, or another."""
    about = yaml.safe_load((study / "study.yaml").read_text(encoding="utf-8"))
    if not isinstance(about, dict) or about.get("task") != RECORDS or about.get("set") not in SETS:
        raise DataError(f"{study / 'study.yaml'}: is of no set of records; expected one of {', '.join(SETS)}")
    record, scored = SETS[about["set"]], scored_runs(study)
    scored = {name: scored[name] for name in (*record.networks, *scored) if name in scored}
    begun = len(list(study.glob("runs/*/seed-*/config.yaml")))
    finished = sum(network.seeds for network in scored.values())
    words = str(about.get("about") or record.about)
    lines = [f"# {about['set']}", "", words, "", f"`{command_of(about)}`", "", _made_by(study)]
    lines += [f"Not counted: {begun - finished} runs that are not finished."] * (begun > finished)
    measured = {name for network in scored.values() for name in network.values}
    measured |= {CHANGE} - ({CHANGE} if RELATIVE in measured else set())
    changes = "".join(words for name, words in CHANGES.items() if name in measured)
    lines += ["", READING.format(changes=changes), "", *_networks(list(scored.values()))]
    lines += _differences(record.pairs, scored)
    path = (out or study) / "results.md"
    write_text(path, "\n".join(lines) + "\n")
    return path


def command_of(about: Mapping[str, Any]) -> str:
    """The command that does it again; the place of the data is everyone's own."""
    options = []
    for name, value in (about.get("settings") or {}).items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            options.append(f"--{option}" if value else f"--no-{option}")
        else:
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            options.append(f"--{option} {printable(text)}")
    return " ".join([f"liespline sweep records --set {about['set']} --seeds {about['seeds']} --data DATA", *options])


def _made_by(study: Path) -> str:
    runs = [run for same in finished_runs(study).values() for run in same]
    splits = sorted({run.read_results("split")["split"] for run in runs})
    found = [origin(run.path / "environment.json") for run in runs]
    machines, commits = (sorted({str(one[key]) for one in found if one[key]}) for key in ("machine", "commit"))
    words = f"Scored: {' and '.join(SPLIT_WORDS.get(split, split) for split in splits)} images." if splits else ""
    return printable(f"{words} Machine: {'; '.join(machines)}. Commit: {', '.join(c[:12] for c in commits)}.")


def _networks(scored: Sequence[Scored]) -> list[str]:
    names = list(dict.fromkeys(name for network in scored for name in network.values))
    head = ["network", "weights", "seeds", *names, "minutes per run"]
    rows = []
    for network in scored:
        cells = [_cell(network, name) if name in network.values else "" for name in names]
        minutes = f"{statistics.fmean(network.seconds) / 60:.1f}" if network.seconds else "–"
        rows.append([network.name, f"{network.weights:,}", str(network.seeds), *cells, minutes])
    return table(head, rows) if rows else ["No run is finished."]


def _cell(network: Scored, measure: str) -> str:
    values = network.values[measure]
    text = f"{100 * statistics.fmean(values):.2f}"
    if len(values) > 1:
        text += f" ± {100 * statistics.stdev(values):.2f}"
    estimate = network.estimate(measure)
    return text if estimate is None else f"{text} {_bounds(combined([(1, estimate)]))}"


def _differences(pairs: Sequence[tuple[str, str]], scored: Mapping[str, Scored]) -> list[str]:
    there = [pair for pair in pairs if pair[0] in scored and pair[1] in scored]
    names = list(dict.fromkeys(name for pair in there for name in scored[pair[0]].values))
    rows = [[f"{a} − {b}", *(_difference(scored[a], scored[b], name) for name in names)] for a, b in there]
    return ["", "In points:", "", *table(["difference", *names], rows)] if rows else []


def _difference(one: Scored, other: Scored, measure: str) -> str:
    if measure not in one.values or measure not in other.values:
        return ""
    value = statistics.fmean(one.values[measure]) - statistics.fmean(other.values[measure])
    pair = one.estimate(measure), other.estimate(measure)
    text = _signed(value)
    if pair[0] is None or pair[1] is None:
        return text
    return f"{text} {_bounds(combined([(1, pair[0]), (-1, pair[1])]), signed=True)}"


def _bounds(interval: Interval, signed: bool = False) -> str:
    low, high = (_signed(v) if signed else f"{100 * v:.2f}" for v in (interval.low, interval.high))
    return f"[{low}, {high}]"


def _signed(value: float) -> str:
    return f"{100 * value:+.2f}".replace("-", "−")
