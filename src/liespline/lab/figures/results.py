"""Scores of finished runs against N_h, one panel a task (figure results)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from ..config import ConfigError
from ..run import Run
from .style import PAGE, Theme, canvas

_SCORES = ("success", "accuracy")
"""What is plotted, the first of these that a run has."""


@dataclass(frozen=True)
class Point:
    """One finished run."""

    task: str
    network: str
    n_h: int
    score: str
    value: float
    synthetic: bool


def prepare(folder: Path) -> list[Point]:
    """Read every finished run below a folder; raises ConfigError if there is none."""
    points = [point for file in sorted(folder.rglob("results.json")) for point in _read(file.parent)]
    if not points:
        raise ConfigError(f"{folder}: holds no finished run (no results.json beside a config.yaml)")
    return points


def _read(folder: Path) -> Iterable[Point]:
    if not (folder / "config.yaml").is_file():
        return
    run, config = Run.open(folder)
    results = run.read_results()
    scores = results.get("scores", {})
    found = [name for name in _SCORES if name in scores]
    if not found:
        return
    network = config.network
    plain = network.group == "none" or network.n_h == 1
    name = "2-D" if plain else f"{network.kernel}, $N_k$ = {network.n_k or network.n_h}"
    if config.training.augment not in (None, "none", "default"):
        name += f", {config.training.augment}"
    n_h = 1 if plain else network.n_h
    yield Point(config.task, name, n_h, found[0], scores[found[0]], bool(results.get("synthetic")))


def draw(points: list[Point], theme: Theme) -> Figure:
    """Draw a panel a task: every run as a dot, lines through the means of equal networks."""
    tasks = sorted({point.task for point in points})
    figure = canvas(PAGE, 2.9 * ((len(tasks) + 1) // 2))
    panels = figure.subplots((len(tasks) + 1) // 2, min(2, len(tasks)), squeeze=False).flat
    for axes, task in zip(panels, tasks, strict=False):
        mine = [point for point in points if point.task == task]
        for colour, name in enumerate(sorted({point.network for point in mine})):
            runs = [point for point in mine if point.network == name]
            shade = theme.series[colour % len(theme.series)]
            axes.plot([p.n_h for p in runs], [100 * p.value for p in runs], ".", color=shade, alpha=0.5, markersize=3)
            counts = sorted({p.n_h for p in runs})
            means = [_mean([100 * p.value for p in runs if p.n_h == n]) for n in counts]
            axes.plot(counts, means, "o-", color=shade, label=name)
        made_up = " (synthetic data)" if any(point.synthetic for point in mine) else ""
        axes.set_title(f"{task}{made_up}: {mine[0].score}, %", loc="left")
        axes.set_xlabel("$N_h$")
        axes.set_xticks(sorted({point.n_h for point in mine}))
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        axes.legend(handlelength=1.2)
    for axes in list(panels)[len(tasks) :]:
        axes.set_axis_off()
    return figure


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
