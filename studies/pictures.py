"""Studies in pictures: accuracy against angle, and the paper's networks by N_h or the largest scale."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from matplotlib.figure import Figure

from studies.celeba import PAPER_SCALES
from studies.figures.style import PAGE, THEMES, Theme, canvas, in_theme
from studies.networks import NAMES, Network, Results, task_of
from studies.paper.tables import by_name

PAPER = {"pcam_sealed": "results-pcam", "celeba_synthetic": "results-celeba"}
"""Which studies of the paper's networks are drawn."""
ANGLES = "angles"
"""The study behind the picture of the front page."""
LINES = {
    "so2-8": "liespline, 8 orientations, trained upright", "plain": "plain, trained upright",
    "plain-equal-time": "plain, trained rotated for equal time",
}  # fmt: skip
STROKES = {"dense": "o-", "atrous": "s--", "local": "^:", "deformable": "D-.", "pointwise": "v:"}
SCALES = {0.0: "1", 0.5: "√2", 1.0: "2", 1.5: "2√2", 2.0: "4"}
"""log₂ of the largest scale, and how the axis has it."""


def draw_all(studies: Mapping[str, Results], folder: Path) -> None:
    """Draw the studies of the docs in every theme; the same results give the same bytes."""
    for theme in THEMES:
        with in_theme(theme):
            figures = {ANGLES: draw_angles(studies[ANGLES].networks, theme)}
            figures |= {file: draw_paper(by_name(studies[name].networks), theme) for name, file in PAPER.items()}
            for name, figure in figures.items():
                file = folder / f"{name}-{theme.name}.png"
                figure.savefig(file, metadata={"Software": None}, bbox_inches="tight", pad_inches=0.04, dpi=200)


def by_angle(network: Network) -> dict[float, list[float]]:
    """The accuracy of rotated images at each angle, one value per seed."""
    found: dict[float, list[float]] = {}
    for moves in (run["results"]["transformed"] for run in network.runs):
        for label, height in zip(moves["labels"], moves["accuracy"], strict=True):
            found.setdefault(float(label.rstrip("°")), []).append(height)
    return dict(sorted(found.items()))


def draw_angles(networks: Mapping[str, Network], theme: Theme) -> Figure:
    """Draw accuracy against angle: the mean over seeds, and a band from the least to the most."""
    figure = canvas(0.75 * PAGE, 2.3)  # smaller than others: type stays readable on a phone
    axes = figure.subplots()
    shown = [(networks[name], words) for name, words in LINES.items() if name in networks]
    for (network, words), colour, above in zip(shown, (1, 0, 2), (4, 2, 3), strict=False):
        found = by_angle(network)
        angles, columns = [*found, 360.0], [[100 * value for value in each] for each in found.values()]
        columns.append(columns[0])
        shade = theme.series[colour]
        axes.plot(angles, [statistics.fmean(each) for each in columns], color=shade, label=words, lw=1.6, zorder=above)
        axes.fill_between(angles, [*map(min, columns)], [*map(max, columns)], color=shade, alpha=0.18, lw=0)
    axes.set(xlim=(0, 360), ylim=(0, 101), xticks=range(0, 361, 45), yticks=(0, 25, 50, 75, 100))
    axes.set_xticklabels([f"{angle}°" for angle in range(0, 361, 45)])
    axes.set_yticklabels([f"{share} %" for share in (0, 25, 50, 75, 100)])
    axes.set_xlabel("test digits rotated by")
    axes.set_title("accuracy on handwritten digits", loc="left")
    axes.grid(axis="y")
    axes.legend(loc="center", bbox_to_anchor=(0.5, 0.66))
    return figure


def angles_words(networks: Mapping[str, Network]) -> str:
    """What the picture says, in words."""
    parts = []
    for name, words in LINES.items():
        if name in networks:
            means = [100 * statistics.fmean(each) for each in by_angle(networks[name]).values()]
            parts.append(f"{words} {means[0]:.1f} % and {min(means):.1f} %")
    first = next(iter(networks.values()))
    images, seeds = first.first["transformed"]["images"], min(len(one.runs) for one in networks.values())
    text = (
        f"Accuracy on upright digits and at the worst angle: {'; '.join(parts)}. {images} test digits, "
        f"{first.first['parameters']:,} parameters, means of {seeds} seed{'s' * (seeds > 1)} (`liespline sweep "
        f"studies/angles.py`, minutes on a CPU, nothing to fetch)."
    )
    return "\n".join(wrap(text, 120, break_on_hyphens=False))


def draw_paper(networks: Mapping[str, Network], theme: Theme) -> Figure:
    """Draw the paper's networks against N_h or the largest scale: means over seeds, bars of 95 %."""
    lines: dict[str, list[Network]] = {}
    for network in networks.values():
        net, plain = _net(network), _group(network) == "none"
        extra = re.sub(r"^.*\)|^2-D( at scale [\d.]+)?", "", network.name)  # what follows the network itself
        equal = net["kernel"] == "dense" and net["elements"] == net.get("basis")
        kind = "dense, $N_k = N_h$" if equal else f"{net['kernel']}, $N_k = {net.get('basis')}$"
        lines.setdefault(("2-D" if plain else kind) + extra, []).append(network)
    some = next(iter(networks.values()))
    task, first = task_of(some.runs[0]), some.first
    score = next(name for name in NAMES.values() if name in some.values)
    figure = canvas(PAGE, 3.0)
    axes = figure.subplots()
    step = (0.5 if task == "celeba" else 4) * 0.06
    colours = {kind: theme.series[i % len(theme.series)] for i, kind in enumerate(dict.fromkeys(map(_kind, lines)))}
    for number, (name, line) in enumerate(sorted(lines.items())):
        usual = not name.endswith(("no-rot90", "zoom"))
        base = theme.muted if name.startswith("2-D") else theme.ink if "N_h" in name else colours[_kind(name)]
        stroke = "x-" if name.startswith("2-D") else STROKES[_net(line[0])["kernel"]]
        x = [_place(one) + step * (number - len(lines) / 2) / 2 for one in line]
        y = [100 * one.mean(score) for one in line]
        known = [one.interval(score) for one in line]
        bars = [100 * interval.half if interval else 0 for interval in known]
        face = base if usual else theme.paper
        shape = stroke[0] + (stroke[1:] if usual else "--")
        axes.errorbar(x, y, bars, fmt=shape, color=base, markerfacecolor=face, elinewidth=0.9, capsize=2, label=name)
    if task == "celeba":
        axes.set_xlabel("largest scale")
        axes.set_xticks(*zip(*SCALES.items(), strict=True))
    else:
        axes.set_xlabel("$N_h$")
        axes.set_xticks(sorted({_place(one) for one in networks.values()}))
    images = f"{first['images']:,} {'synthetic ' if first['synthetic'] else ''}images"
    axes.set_title(f"{task}: {images} (bars: 95 %)", loc="left")
    axes.set_ylabel(f"{score}, %")
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.legend(handlelength=2.8, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
    return figure


def _net(network: Network) -> Mapping[str, Any]:
    config: Mapping[str, Any] = network.runs[0]["config"]["network"]
    return config


def _group(network: Network) -> str:
    return str(_net(network)["group"])


def _place(network: Network) -> float:
    """Where a network lies on the axis: N_h, or for scales log₂ of the largest one, so that 2-D networks fit in."""
    net = _net(network)
    if task_of(network.runs[0]) != "celeba":
        return float(net["elements"])
    return round(math.log2(net["scale"] if net["group"] == "none" else PAPER_SCALES[net["elements"] - 1]), 2)


def _kind(line: str) -> str:
    """What lines of one colour share: the N_k in their names."""
    return line.partition("$")[2].partition("$")[0]
