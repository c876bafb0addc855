"""Scores of finished runs against the sampling of the group, one panel per study (figure results)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liespline.lab.paper.results_page import title_of
from liespline.lab.paper.seed_averages import Average, Collection, Study, read_runs
from liespline.lab.paper.variants import Variant, plain_name, unusual
from liespline.lab.settings import total, written
from liespline.models.celeba import scale_grid

from .style import PAGE, Theme, canvas

_STROKES = {"dense": "o-", "atrous": "s--", "local": "^:", "deformable": "D-.", "apart": "v:"}
_WORDS = {"success": "landmarks found, %", "accuracy": "accuracy, %"}
_SCALES = {0.0: "1", 0.5: "√2", 1.0: "2", 1.5: "2√2", 2.0: "4"}
_EQUAL = "dense, $N_k = N_h$"


@dataclass
class Series:
    """Networks that differ in the sampling of the group alone: one line."""

    name: str
    stroke: str
    n_k: int | None
    """None for the two lines that every N_k is measured by: 2-D and N_k = N_h."""
    usual: bool
    """Whether it was trained with the task's own augmentation; else its marks are hollow."""
    networks: list[Average] = field(default_factory=list)
    begin: Average | None = None
    """A network of another series that is also the first of this one."""

    @property
    def plain(self) -> bool:
        """Whether these networks have no group."""
        return self.networks[0].variant.network.group == "none"


def prepare(folder: Path) -> Collection:
    """Read every finished run below a folder; raises ConfigError if there is none."""
    return read_runs(folder)


def draw(collection: Collection, theme: Theme) -> Figure:
    """Draw one panel per study: means over seeds, with bars of one standard error (of images, for a single seed)."""
    studies = collection.studies
    figure = canvas(PAGE, 3.0 * len(studies))
    panels = figure.subplots(len(studies), 1, squeeze=False).flat
    for axes, (study, averages) in zip(panels, studies.items(), strict=True):
        _panel(axes, study, list(averages.values()), theme)
    figure.subplots_adjust(hspace=0.45)
    return figure


def series_of(averages: Sequence[Average]) -> list[Series]:
    """Sort the networks of a study into lines."""
    found: dict[str, Series] = {}
    for average in averages:
        net, task = average.variant.network, average.study.task
        tail = unusual(task, average.variant)
        if net.group == "none":
            line = Series(plain_name(task) + tail, "x-", None, not tail)
        elif net.kernel == "dense" and net.n_h == net.n_k:
            line = Series(_EQUAL + tail, _STROKES["dense"], None, not tail)
        else:
            splines = f", $N_k = {written(net.n_k)}$" if net.n_k else ""
            line = Series(
                net.kernel + splines + tail, _STROKES[net.kernel], total(net.n_k) if net.n_k else None, not tail
            )
        found.setdefault(line.name, line).networks.append(average)
    for line in found.values():
        _begin(line, averages)
    return sorted(found.values(), key=lambda s: (s.n_k is not None, s.name.split(",")[0], s.n_k or 0, s.name))


def _begin(line: Series, averages: Sequence[Average]) -> None:
    """Give dense and atrous lines the network with N_k = N_h, where both are the same, and that line the 2-D one."""
    first = line.networks[0]
    net = first.variant.network
    # On scales the 2-D networks are a line of their own.
    if line.plain or net.kernel not in ("dense", "atrous") or (line.n_k is None and first.study.task == "celeba"):
        return
    wanted = (1, 1) if line.n_k is None else (net.n_k, net.n_k)
    for other in averages:
        candidate = other.variant.network
        same = other.variant.augment == first.variant.augment and candidate.kernel == "dense"
        if same and (candidate.n_h, candidate.n_k) == wanted and other not in line.networks:
            line.begin = other


def place(average: Average) -> float:
    """Where a network lies on the axis: N_h, or for scales log₂ of the largest one, so that 2-D networks fit in."""
    net = average.variant.network
    if average.study.task != "celeba":
        return total(net.n_h)
    preset = "paper" if net.group == "none" else average.study.preset
    return round(math.log2(float(scale_grid(total(net.n_h), net.scale, preset).elements.max())), 2)


def _side_by_side(lines: Sequence[Series], gap: float) -> dict[Variant, float]:
    """The place of each network, with those at the same place beside each other, or their bars would overlap."""
    together = defaultdict(list)
    for line in lines:
        for average in line.networks:
            together[place(average)].append(average.variant)
    step = gap * min(0.06, 0.6 / max(map(len, together.values())))
    return {
        variant: at + step * (number - (len(variants) - 1) / 2)
        for at, variants in together.items()
        for number, variant in enumerate(variants)
    }


def _panel(axes: Axes, study: Study, averages: Sequence[Average], theme: Theme) -> None:
    lines = series_of(averages)
    places = sorted({place(average) for average in averages})
    if study.task == "celeba":
        axes.set_xlabel("largest scale")
        axes.set_xticks(*zip(*_SCALES.items(), strict=True))
    else:
        axes.set_xlabel("$N_h$")
        axes.set_xticks(places)
    gap = 0.5 if study.task == "celeba" else min((b - a for a, b in pairwise(places)), default=1.0)
    positions = _side_by_side(lines, gap)
    counts = sorted({line.n_k for line in lines if line.n_k is not None})
    for line in lines:
        base = theme.muted if line.plain else theme.ink
        colour = base if line.n_k is None else theme.series[counts.index(line.n_k) % len(theme.series)]
        _line(axes, line, positions, colour, theme)
    axes.set_title(f"{title_of(study)} (bars: ± one standard error)", loc="left")
    axes.set_ylabel(_WORDS[averages[0].score])
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.legend(handlelength=2.8, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)


def _line(axes: Axes, line: Series, positions: Mapping[Variant, float], colour: str, theme: Theme) -> None:
    drawn = sorted(line.networks, key=place)
    x, y = [positions[one.variant] for one in drawn], [100 * one.mean() for one in drawn]
    marker, dash = line.stroke[0], line.stroke[1:] if line.usual else "--"
    face = colour if line.usual or line.plain else theme.paper
    axes.plot(x, y, marker + dash, color=colour, markerfacecolor=face, label=line.name, zorder=3)
    if line.begin is not None:
        start = positions[line.begin.variant], 100 * line.begin.mean()
        axes.plot([start[0], x[0]], [start[1], y[0]], dash, color=colour, alpha=0.6, zorder=2)
    if line.plain and len(drawn) == 1:  # one 2-D network: the height that all others are measured by
        axes.axhline(y[0], color=colour, linewidth=0.6, linestyle=":" if line.usual else (0, (1, 4)), zorder=1)
    for at, mean, estimate in zip(x, y, (one.estimate() for one in drawn), strict=True):
        if estimate is not None:
            axes.errorbar(at, mean, yerr=100 * estimate.error, ecolor=colour, elinewidth=0.9, capsize=2, zorder=3)
