"""Write the tables of records in README.md and in the guide anew, from the studies `records-SET` beside this file."""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import NamedTuple

import yaml

from liespline.lab.paper.seed_averages import origin
from liespline.lab.sweep.records_page import Scored, scored_runs

ROOT = Path(__file__).parents[1]
MARK = "<!-- records, by `python experiments/records.py` -->"
PAGES = {ROOT / "README.md": True, ROOT / "docs" / "guide" / "when-it-pays.md": False}
"""Whether a page has the short table."""
BEHIND = ("weights", "made by: set, seeds, machine, commit")


class Row(NamedTuple):
    """One measure of one study: ours, the network beside it if one was run, and the best that we know of elsewhere."""

    study: str
    words: str
    measure: str
    ours: str
    other: str | None
    published: str = "–"
    short: bool = True
    error: bool = False


ROWS = [
    Row("rotmnist", "rotated MNIST, 12,000 to train on: errors", "accuracy", "so2-16", "plain", "0.59", error=True),
    Row("rotmnist-elastic", "the same, bent in training", "accuracy", "so2-16", "plain", "0.59", error=True),
    Row("rotmnist-ensemble", "the same, three networks together", "accuracy", "so2-16", None, "0.59", error=True),
    Row("rotmnist-copies", "the same, the mean over eight copies", "accuracy", "so2-16", None, "0.59", error=True),
    Row("rotmnist-no-cue", "turned about their mass", "accuracy", "so2-16", "plain", short=False, error=True),
    Row("rotmnist-small", "rotated MNIST, 29,000 weights", "accuracy", "so2-16-29k", "plain-29k", "1.87", error=True),
    Row("rotmnist-weights", "rotated MNIST, 120,000 weights", "accuracy", "so2-16-120k", "plain-120k", short=False,
        error=True),
    Row("rotmnist-labels", "rotated MNIST, 1,000 labels", "accuracy", "so2-16-10", "plain-10", short=False, error=True),
    Row("rotmnist-labels", "rotated MNIST, 2,500 labels", "accuracy", "so2-16-25", "plain-25", short=False, error=True),
    Row("scaled-digits", "scaled MNIST", "accuracy", "scale-4-apart", "plain", "98.30"),
    Row("scaled-digits", "scaled MNIST, local kernels", "accuracy", "scale-3", "plain", "98.30", short=False),
    Row("scaled-fashion-mirrored", "scaled Fashion-MNIST", "accuracy", "scale-4-apart", "plain", "89.62"),
    Row("scaled-fashion", "not mirrored, local kernels", "accuracy", "scale-3", "plain", "89.62", short=False),
    Row("rotated-scaled-digits", "rotated and scaled MNIST, 5,000 digits", "accuracy", "sim2-8x3", "plain", "95.80"),
    Row("rotated-scaled-digits", "the same, 16 turns", "accuracy", "so2-16", "plain", "95.80", short=False),
    Row("affine-digits", "MNIST, learned upright, moved as affNIST", "accuracy", "sim2-3x2-apart", "plain", "98.45"),
    Row("modelnet10-34", "ModelNet10, learned turned, scored turned", "accuracy, moved", "so3-24-turned",
        "plain-turned", "90.0"),
    Row("modelnet10-spun", "learned upright and spun, scored turned", "accuracy, moved", "so3-24", "plain"),
    Row("modelnet10-spun", "learned upright and spun, scored upright", "accuracy, as they lie", "so3-24", "plain"),
    Row("modelnet10-spun", "the same, cut alike", "accuracy, cut", "so3-24", "plain", short=False),
    Row("modelnet10-34", "not spun; the plain one learned turned", "accuracy, moved", "so3-24", "plain-turned",
        short=False),
    Row("modelnet10", "ModelNet10 in 30³, turned", "accuracy, moved", "so3-24-turned", "plain-turned", short=False),
    Row("modelnet10", "ours learned upright, plain turned", "accuracy, moved", "so3-24", "plain-turned", short=False),
    Row("modelnet10", "the same, upright, cut alike", "accuracy, cut", "so3-24", "plain-turned", short=False),
    Row("modelnet10", "the same, upright, whole", "accuracy, as they lie", "so3-24", "plain-turned", short=False),
    *(
        Row(f"{study}-{side}", f"{name} {side}³, {how}: {score}", score + key, "so3-24", "plain", short=score == "AUC")
        for score in ("AUC", "balanced accuracy")
        for side in (28, 64)
        for study, name in (("adrenal", "AdrenalMNIST3D"), ("vessel", "VesselMNIST3D"))
        for how, key in (("upright", ""), ("turned", ", moved"))
    ),
    Row("pcam-disc", "PCam subset, all labels: AUC", "validation AUC, last 5 epochs", "o2-12-100", "plain-100"),
    Row("pcam-disc", "the same, a tenth of the labels", "validation AUC, last 5 epochs", "o2-12-10", "plain-10"),
    Row("pcam-disc", "a quarter of the labels", "validation AUC, last 5 epochs", "o2-12-25", "plain-25", short=False),
    Row("pcam-disc-ensemble", "all labels, two networks together", "validation AUC, last 5 epochs", "o2-12-100",
        "plain-100", short=False),
    Row("pcam-disc-grids", "all labels, the mean over two grids", "validation AUC, last 5 epochs", "o2-12-100",
        "plain-100", short=False),
    Row("pcam-disc-small", "a tenth of the labels, 13,000 weights", "validation AUC, last 5 epochs", "o2-12-10",
        "plain-10", short=False),
    Row("pcam", "the mean over a square, all labels", "validation AUC, last 5 epochs", "o2-12-100", "plain-100",
        short=False),
    Row("pcam", "the same, a tenth of the labels", "validation AUC, last 5 epochs", "o2-12-10", "plain-10",
        short=False),
]  # fmt: skip


def cell(network: Scored, row: Row) -> str:
    """Mean ± standard deviation in per cent."""
    values = [100 * (1 - value if row.error else value) for value in network.values[row.measure]]
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.2f}{spread}"


def behind(study: Path, networks: list[str]) -> tuple[str, str]:
    """The machines and the commits of the finished runs of networks; the study names the tree of changed ones."""
    tree = yaml.safe_load((study / "study.yaml").read_text(encoding="utf-8"))["commit"][:7]
    finished = (file for name in networks for file in study.glob(f"runs/{name}/seed-*/results.json"))
    found = [origin(file.with_name("environment.json")) for file in finished]
    names = {"a CPU" if "threads" in (one := str(run["machine"])) else one.split(", ")[-1] for run in found}
    trees = {tree if "+" in (one := str(run["commit"])) else one[:7] for run in found}
    return ", ".join(sorted(names)), ", ".join(sorted(trees))


def table(short: bool) -> str:
    """All rows whose runs are there, in Markdown."""
    head = ["in per cent", "ours", "plain, as many weights", "published", *([] if short else BEHIND)]
    lines = [head, ["---"] * len(head)]
    for row in ROWS:
        study = ROOT / "experiments" / f"records-{row.study}"
        scored = scored_runs(study) if study.is_dir() else {}
        names = [name for name in (row.ours, row.other) if name]
        pair = [scored[name] for name in names if name in scored and row.measure in scored[name].values]
        if len(pair) < len(names) or (short and not row.short):
            continue
        beside = cell(pair[1], row) if row.other else "–"
        line = [row.words, f"{cell(pair[0], row)} ({row.ours})", beside, row.published]
        if not short:
            seeds = sorted({network.seeds for network in pair})
            machines, trees = behind(study, names)
            counted = " and ".join(map(str, seeds)) + (" seed" if seeds == [1] else " seeds")
            line += [f"{pair[0].weights:,}", f"`{row.study}`, {counted}; {machines}; {trees}"]
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled(text: str, short: bool) -> str:
    """A page with the table between its marks."""
    pattern = rf"({re.escape(MARK)}\n).*?({re.escape(MARK)})"
    return re.sub(pattern, lambda found: f"{found[1]}{table(short)}\n{found[2]}", text, flags=re.DOTALL)


if __name__ == "__main__":
    for page, short in PAGES.items():
        page.write_text(filled(page.read_text(encoding="utf-8"), short), encoding="utf-8")
