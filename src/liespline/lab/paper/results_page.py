"""`results.md`: every network with its scores over seeds, and every claim of the paper with its verdict."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..data.files import write_text
from ..screen import printable
from .claims import Pair, claims_of
from .intervals import Interval
from .seed_averages import LAST, PAPER, SCORES, Average, Collection, Study, Variant, name_of
from .verdicts import CHANCE, RULE, Effect, Verdict, effect_of, judge, measures, missing

SPLIT_WORDS = {"test": "test", "valid": "validation", "train": "training"}
_WORDS = {"success": "landmarks found", "accuracy": "accuracy", "auc": "AUC"}
_WORDS["balanced_accuracy"] = "balanced accuracy"


def write_results_page(collection: Collection, folder: Path) -> Path:
    """Write the page beside the figure that it shows."""
    runs = sum(average.runs for average in collection.averages)
    lines = [
        "# Results",
        "",
        f"Made by `liespline figures results` from {runs} finished runs of {len(collection.averages)} networks.",
    ]
    lines += [text for text in _left_out(collection) if text]
    lines += ["", "![scores of all networks against the sampling of the group](results-light.svg)", ""]
    lines += ["± is the standard deviation over seeds; a network with one seed has none. Bars in the picture are one"]
    lines += ["standard error of the mean, over seeds, or over images where there is one seed."]
    if any(claims_of(study) for study in collection.studies):
        lines += ["", "## How a claim is decided", "", RULE]
    for study, averages in collection.studies.items():
        lines += ["", f"## {title_of(study)}", "", about(study, list(averages.values())), ""]
        lines += networks_table(study, list(averages.values()))
        lines += claims_table(study, averages)
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
    commits = sorted({_commit(commit) for average in averages for commit in average.commits})
    sentences.append(f"Machine: {'; '.join(machines)}." if machines else "")
    sentences.append(f"Commit: {', '.join(commits)}." if commits else "")
    return " ".join(filter(None, sentences))


def networks_table(study: Study, averages: Sequence[Average]) -> list[str]:
    """One line per network; ± is the standard deviation over seeds."""
    scores = [name for name in (*SCORES, *measures(averages)) if any(name in average.scores for average in averages)]
    scores = list(dict.fromkeys(scores))
    head = ["network (N_h, N_k)", "seeds", *(f"{words(name)}, %" for name in scores)]
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


def claims_table(study: Study, averages: Mapping[Variant, Average]) -> list[str]:
    """One line per claim with its verdict, seeds and effects; then every pair behind them."""
    verdicts = [judge(claim, averages) for claim in claims_of(study)]
    if not verdicts:
        return []
    scores = measures(list(averages.values()))
    heads = [words(name) for name in scores]
    rows = [
        [v.claim.words, v.words, _seeds(v), *(_effect(v.effects.get(name), study.task) for name in scores)]
        for v in verdicts
    ]
    made = f", {SPLIT_WORDS[study.split]} split{', synthetic images' if study.synthetic else ''}"
    lines = ["", f"### The paper's claims{made}", "", *table(["claim", "verdict", "seeds", *heads], rows)]
    absent = dict.fromkeys(name for v in verdicts for name in missing(v.claim, study.task, averages))
    if absent:
        lines += ["", "No runs of " + ", ".join(f"`{name}`" for name in absent) + "."]
    pairs = dict.fromkeys(pair for v in verdicts for pair in v.claim.pairs if averages.keys() >= set(pair))
    each = [[_names(pair, study.task), *(_pair(pair, averages, name) for name in scores)] for pair in pairs]
    return lines + (["", "### Each pair", "", *table(["difference", *heads], each)] if each else [])


def words(measure: str) -> str:
    """A measure in words."""
    plain = _WORDS[measure.removeprefix(LAST)]
    return f"{plain}, last ten epochs" if measure.startswith(LAST) else plain


def points(value: float, interval: Interval | None) -> str:
    """An effect in percentage points, with its interval."""
    bounds = "" if interval is None else f" [{_signed(interval.low)}, {_signed(interval.high)}]"
    return _signed(value) + bounds


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def _effect(effect: Effect | None, task: str) -> str:
    if effect is None:
        return ""
    text = points(effect.value, effect.interval)
    text = text if effect.outcome in (None, CHANCE) else f"**{text}**"  # zero, or the margin, lies outside
    return text + (f" ({_names(effect.pair, task)})" if effect.pair else "")


def _pair(pair: Pair, averages: Mapping[Variant, Average], measure: str) -> str:
    if any(measure not in averages[variant].scores for variant in pair):
        return ""
    return points(*effect_of([pair], averages, measure))


def _names(pair: Pair, task: str) -> str:
    return " − ".join(name_of(task, variant) for variant in pair)


def _seeds(verdict: Verdict) -> str:
    low, high = verdict.seeds
    return str(low) if low == high else f"{low} to {high}"


def _left_out(collection: Collection) -> list[str]:
    left, without = collection.unfinished, collection.unscored
    return [
        f"Not counted: {left} run{'s' * (left > 1)} not finished." if left else "",
        f"Not counted: {without} run{'s' * (without > 1)} without accuracy or success rate." if without else "",
    ]


def _score(average: Average, name: str) -> str:
    spread = average.spread(name)
    return f"{100 * average.mean(name):.2f}" + ("" if spread is None else f" ± {100 * spread:.2f}")


def _signed(share: float) -> str:
    return f"{100 * share:+.2f}".replace("-", "−")


def _commit(commit: str) -> str:
    return _text(commit.partition("+")[0])[:12] + (" with changes" if "+" in commit else "")


def _text(name: str) -> str:
    """Text of somebody else's file as text: no table, link, or HTML in it."""
    plain = printable(" ".join(name.split()))
    return "".join(f"&#{ord(c)};" if c in "|<>&[]`*\\" else c for c in plain)
