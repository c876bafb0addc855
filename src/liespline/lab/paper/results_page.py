"""`results.md`: every network with its scores over seeds, and every finding of the paper with its verdict."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..data.files import write_text
from ..screen import printable
from .findings import RULE, Difference, Verdict, findings_of, judge, missing
from .seed_averages import PAPER, Average, Collection, Study, Variant, name_of

SPLIT_WORDS = {"test": "test", "valid": "validation", "train": "training"}
_HEADS = {
    "success": "landmarks found, %", "accuracy": "accuracy, %", "balanced_accuracy": "balanced accuracy, %",
    "auc": "AUC, %",
}  # fmt: skip
_FINDINGS_HEAD = ("finding", "verdict", "differences of means, percentage points")


def write_results_page(collection: Collection, folder: Path) -> Path:
    """Write the page beside the figure that it shows."""
    runs = sum(average.runs for average in collection.averages)
    lines = [
        "# Results",
        "",
        f"Made by `liespline figures results` from {runs} finished runs of {len(collection.averages)} networks.",
    ]
    lines += [text for text in _left_out(collection) if text]
    lines += ["", "![scores of all networks against the sampling of the group](results-light.svg)"]
    lines += ["", "± is the standard deviation over seeds; a network with one run has none.", "", RULE]
    for study, averages in collection.studies.items():
        lines += ["", f"## {title_of(study)}", "", about(study, list(averages.values())), ""]
        lines += networks_table(study, list(averages.values()))
        lines += findings_table(study, averages)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.md"
    write_text(path, "\n".join(lines) + "\n")
    return path


def title_of(study: Study) -> str:
    """A study in one line: the task, the preset, and the images that were scored."""
    made_up = "synthetic " if study.synthetic else ""
    preset = f", preset {study.preset}" if study.task in PAPER else ""
    data = f", data {_text(study.data)}" if study.data else ""
    return f"{study.task}{preset}: {study.images:,} {made_up}{SPLIT_WORDS[study.split]} images{data}"


def about(study: Study, averages: Sequence[Average]) -> str:
    """What must be known before the numbers are read."""
    changed = [f"{key} {used} (default {usual})" for key, (used, usual) in study.changes.items()]
    sentences = [
        "Trained with " + ", ".join(changed) + "." if changed else "Trained with the task's own settings.",
        "The images are synthetic: drawn by `liespline data synthesize`, not the official data."
        if study.synthetic
        else "",
        "Scores are of the validation images, which also picked the best epoch of each run: they flatter a little."
        if study.split == "valid"
        else "",
    ]
    machines = sorted({_text(machine) for average in averages for machine in average.machines})
    commits = sorted({_text(commit)[:12] for average in averages for commit in average.commits})
    sentences.append(f"Machine: {'; '.join(machines)}." if machines else "")
    sentences.append(f"Commit: {', '.join(commits)}." if commits else "")
    return " ".join(filter(None, sentences))


def networks_table(study: Study, averages: Sequence[Average]) -> list[str]:
    """One line per network; ± is the standard deviation over seeds."""
    scores = [name for name in _HEADS if any(name in average.scores for average in averages)]
    head = ["network (N_h, N_k)", "seeds", *(_HEADS[name] for name in scores)]
    head += ["weights", "training images/s", "minutes per run", "data"]
    data = f"{'synthetic' if study.synthetic else 'not synthetic'}, {SPLIT_WORDS[study.split]} split"
    rows = []
    for average in averages:
        row = [name_of(study.task, average.variant), str(average.seeds)]
        row += [_score(average, name) if name in average.scores else "" for name in scores]
        row.append(" or ".join(f"{count:,}" for count in average.weights))
        row.append(f"{statistics.fmean(average.speeds):,.0f}" if average.speeds else "")
        row.append(f"{statistics.fmean(average.seconds) / 60:,.1f}" if average.seconds else "")
        rows.append([*row, data])
    return table(head, rows)


def findings_table(study: Study, averages: Mapping[Variant, Average]) -> list[str]:
    """One line per finding, with the numbers that decide it."""
    verdicts = [judge(finding, averages) for finding in findings_of(study)]
    if not verdicts:
        return []
    score = _HEADS[next(iter(averages.values())).score].split(",")[0]
    scored = f"{score}, {SPLIT_WORDS[study.split]} split{', synthetic images' if study.synthetic else ''}"
    rows = [[v.finding.claim, v.words, numbers_of(v, study.task, averages)] for v in verdicts]
    return ["", f"### The paper's findings, by {scored}", "", *table(_FINDINGS_HEAD, rows)]


def numbers_of(verdict: Verdict, task: str, averages: Mapping[Variant, Average]) -> str:
    """The mean difference if that decides, each pair's, and the runs that are missing."""
    parts = []
    if verdict.overall is not None:
        up = sum(part.value > 0 for part in verdict.differences.values())
        count = len(verdict.differences)
        parts.append(f"mean {_points(verdict.overall)} over {count} pair{'s' * (count > 1)}, {up} up")
    for (better, worse), part in verdict.differences.items():
        one, other = (f"{name_of(task, v)} {100 * averages[v].mean():.2f}" for v in (better, worse))
        parts.append(f"{one} − {other} = {_points(part)}")
    absent = missing(verdict, task, averages)
    if absent:
        parts.append("no runs of " + ", ".join(f"`{name}`" for name in absent))
    return "; ".join(parts)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def _left_out(collection: Collection) -> list[str]:
    left, without = collection.unfinished, collection.unscored
    return [
        f"Not counted: {left} run{'s' * (left > 1)} not finished yet." if left else "",
        f"Not counted: {without} run{'s' * (without > 1)} without accuracy or success rate." if without else "",
    ]


def _score(average: Average, name: str) -> str:
    spread = average.spread(name)
    return f"{100 * average.mean(name):.2f}" + ("" if spread is None else f" ± {100 * spread:.2f}")


def _points(part: Difference) -> str:
    return f"{100 * part.value:+.2f}".replace("-", "−") + (f" ± {100 * part.spread:.2f}" if part.spread else "")


def _text(name: str) -> str:
    """Text of somebody else's file as text: no table, link, or HTML in it."""
    plain = printable(" ".join(name.split()))
    return "".join(f"&#{ord(c)};" if c in "|<>&[]`*\\" else c for c in plain)
