"""Scores of finished runs against N_h, one panel a task (figure results)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from ..config import ConfigError
from ..run import Run
from ..tasks import find_task
from .style import PAGE, Theme, canvas

_SCORES = ("success", "accuracy")
"""What is plotted, the first of these that a run has."""
_STROKES = {"dense": "o-", "atrous": "s--", "local": "^:", "deformable": "D-."}


@dataclass(frozen=True)
class Point:
    """One finished run."""

    task: str
    network: str
    kernel: str
    n_k: int
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
    name = "plain network" if plain else f"{network.kernel}, $N_k$ = {network.n_k or network.n_h}"
    if network.scale not in (None, 1.0):
        name += f" at scale {network.scale:.3g}"
    if config.training.augment != find_task(config.task).defaults.training.augment:
        name += f", augmentation {config.training.augment}"
    n_h, n_k = (1, 1) if plain else (network.n_h, network.n_k or network.n_h)
    made_up = bool(results.get("synthetic"))
    yield Point(config.task, name, network.kernel, n_k, n_h, found[0], scores[found[0]], made_up)


def draw(points: list[Point], theme: Theme) -> Figure:
    """Draw a panel a task: every run as a dot, lines through the means; colours are N_k, strokes kinds of kernels."""
    tasks = sorted({point.task for point in points})
    figure = canvas(PAGE, 3.0 * len(tasks))
    for axes, task in zip(figure.subplots(len(tasks), 1, squeeze=False).flat, tasks, strict=True):
        mine = [point for point in points if point.task == task]
        counts = sorted({point.n_k for point in mine})
        ordered = sorted(mine, key=lambda point: (point.n_h > 1, point.kernel, point.n_k))
        for name in dict.fromkeys(point.network for point in ordered):
            runs = [point for point in mine if point.network == name]
            shade = theme.series[counts.index(runs[0].n_k) % len(theme.series)]
            axes.plot([p.n_h for p in runs], [100 * p.value for p in runs], ".", color=shade, alpha=0.5, markersize=3)
            places = sorted({p.n_h for p in runs})
            means = [_mean([100 * p.value for p in runs if p.n_h == n]) for n in places]
            axes.plot(places, means, _STROKES[runs[0].kernel], color=shade, label=name)
        made_up = " (synthetic data)" if any(point.synthetic for point in mine) else ""
        axes.set_title(f"{task}{made_up}: {mine[0].score}, %", loc="left")
        axes.set_xlabel("$N_h$")
        axes.set_xticks(sorted({point.n_h for point in mine}))
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        axes.legend(handlelength=2.4, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
    figure.subplots_adjust(hspace=0.4)
    return figure


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
