"""Studies in pictures: scores against angle or scale, time, parameters and labels; the paper's networks by N_h."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from liespline.lab.evaluation.elements import ROTATIONS
from studies.celeba import PAPER_SCALES
from studies.figures.style import PAGE, THEMES, Theme, canvas, in_theme
from studies.networks import NAMES, Network, Results, task_of
from studies.paper.tables import by_name

RECORDS = ("modelnet10_vertical", "rotmnist_parameters", "vessel_64", "pcam_disc", "rotmnist_labels")
PAPER = {"pcam_40": "results-pcam", "celeba_synthetic": "results-celeba"}
"""Which studies are drawn."""
LEAST_POINTS = 2
"""How much of the accuracy of transformed images is shown at least: one image more or less is no valley."""
MARKS = {"-": "o", "--": "s", ":": "^", "-.": "D"}
"""The dashes of a group's networks, and what stands for them where there are points and no lines."""
STROKES = {"dense": "o-", "atrous": "s--", "local": "^:", "deformable": "D-.", "pointwise": "v:"}
SCALES = {0.0: "1", 0.5: "√2", 1.0: "2", 1.5: "2√2", 2.0: "4"}
"""log₂ of the largest scale, and how the axis has it."""


def draw_all(studies: Mapping[str, Results], folder: Path) -> None:
    """Draw the studies of the docs in every theme; the same results give the same bytes."""
    for theme in THEMES:
        with in_theme(theme):
            figures = {
                f"record-{name.replace('_', '-')}": draw_record(studies[name].networks, theme) for name in RECORDS
            }
            figures |= {file: draw_paper(by_name(studies[name].networks), theme) for name, file in PAPER.items()}
            for name, figure in figures.items():
                file = folder / f"{name}-{theme.name}.png"
                figure.savefig(file, metadata={"Software": None}, bbox_inches="tight", pad_inches=0.04, dpi=200)


def draw_record(found: Mapping[str, Network], theme: Theme) -> Figure:
    """Draw the panels that a study has something for; a network of 25 comes before one of 100."""
    parts = {name: re.split(r"(\d+)", name) for name in found}
    names = sorted(found, key=lambda name: [int(part) if part.isdigit() else part for part in parts[name]])
    networks = [found[name] for name in names]
    panels = [_transformed, _minutes]
    panels += [partial(_lines, along=along) for along in ("parameters", "train_fraction") if lines_of(networks, along)]
    figure = canvas(PAGE, 2.6 * math.ceil(len(panels) / 2))
    axes = list(figure.subplots(math.ceil(len(panels) / 2), 2, squeeze=False).flat)
    for one, panel in zip(axes, panels, strict=False):
        panel(one, networks, theme)
        one.grid(axis="y")
        one.set_axisbelow(True)
    for unused in axes[len(panels) :]:
        unused.set_axis_off()
    figure.subplots_adjust(hspace=0.5, wspace=0.3)
    return figure


def transformed(network: Network) -> list[tuple[float, float]]:
    """How images were transformed, and the mean accuracy there: not all seeds need have the same elements.

    Reflected, shrunk and squeezed copies have a second word, and are left out.
    """
    found: dict[float, list[float]] = {}
    for moves in (run["results"]["transformed"] for run in network.runs if "transformed" in run["results"]):
        for label, height in zip(moves["labels"], moves["accuracy"], strict=True):
            if ", " not in label:
                found.setdefault(float(label.rstrip("°")), []).append(height)
    return sorted((place, statistics.fmean(heights)) for place, heights in found.items())


def lines_of(networks: Sequence[Network], along: str) -> dict[str, list[Network]]:
    """Networks of a group that differ in "parameters" or "train_fraction", least first; others are left out."""
    other = {"parameters": "train_fraction", "train_fraction": "parameters"}[along]
    lines: dict[str, list[Network]] = {}
    for network in sorted(networks, key=lambda one: _size(one, along)):
        alike = [n for n in networks if _group(n) == _group(network) and _size(n, other) == _size(network, other)]
        values = [_size(one, along) for one in alike]
        if max(values) > 1.5 * min(values):  # about equal sizes are no line
            lines.setdefault(_group(network), []).append(network)
    return lines


def draw_paper(networks: Mapping[str, Network], theme: Theme) -> Figure:
    """Draw the paper's networks against N_h or the largest scale: means over seeds, bars of one standard error."""
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
        known = [one.estimate(score) for one in line]
        bars = [100 * math.sqrt(one.variance) if one else 0 for one in known]
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
    axes.set_title(f"{task}: {images} (bars: ± one standard error)", loc="left")
    axes.set_ylabel(f"{score}, %")
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.legend(handlelength=2.8, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
    return figure


def _transformed(axes: Axes, networks: Sequence[Network], theme: Theme) -> None:
    kind = next((one.first["transformed"]["axis"] for one in networks if "transformed" in one.first), "angle")
    for network, colour, stroke in _styled(networks, theme):
        # Rotations of volumes have axes as well as angles, so between two of them there is no line.
        how = MARKS[stroke] if kind == ROTATIONS else stroke
        points = transformed(network)
        axes.plot([x for x, _ in points], [100 * y for _, y in points], how, color=colour, label=network.name)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, high - LEAST_POINTS), high)
    axes.set_xlabel(kind if kind == "scale" else f"{kind}, degrees")
    axes.set_title("accuracy of transformed images, %", loc="left")


def _minutes(axes: Axes, networks: Sequence[Network], theme: Theme) -> None:
    """Time is that of the machine that most runs were on."""
    for network, colour, stroke in _styled(networks, theme):
        if network.alike:
            minutes = statistics.fmean(run["results"]["seconds"] / 60 for run in network.alike)
            height, spread = _height(network)
            fmt = MARKS[stroke] + stroke  # for the legend of both panels
            axes.errorbar(minutes, height, spread, fmt=fmt, capsize=2, color=colour, label=network.name)
    axes.set_xlim(left=0)
    axes.set_xlabel("minutes per run")
    axes.set_title(f"{_score(networks[0])}, %", loc="left")
    axes.legend(handlelength=2.8, borderaxespad=0.2)


def _lines(axes: Axes, networks: Sequence[Network], theme: Theme, along: str) -> None:
    lines = lines_of(networks, along)
    colours = {_group(network): colour for network, colour, _ in _styled(networks, theme)}
    for group, line in lines.items():
        heights, spreads = zip(*map(_height, line), strict=True)
        name, x = "plain" if group == "none" else group, [_size(one, along) for one in line]
        axes.errorbar(x, heights, spreads, fmt="o-", capsize=2, color=colours[group], label=name)
    axes.set_xscale("log")
    ticks = sorted({_size(network, along) for line in lines.values() for network in line})
    apart = [tick for i, tick in enumerate(ticks) if not i or tick > 1.3 * ticks[i - 1]]
    axes.set_xticks(apart, [f"{tick:,.0f}" for tick in apart])
    axes.xaxis.set_minor_formatter(ScalarFormatter())
    axes.minorticks_off()
    axes.set_xlabel("parameters" if along == "parameters" else "share of the labels, %")
    axes.set_title(f"{_score(networks[0])}, %", loc="left")
    axes.legend(handlelength=1.6)


def _styled(networks: Sequence[Network], theme: Theme) -> Iterable[tuple[Network, str, str]]:
    """Each network with its colour, that of its group and grey without one, and its stroke within the group."""
    groups = dict.fromkeys(map(_group, networks))
    coloured = [group for group in groups if group != "none"]
    colours = {"none": theme.muted} | {g: theme.series[i % len(theme.series)] for i, g in enumerate(coloured)}
    for group in groups:
        for number, network in enumerate(one for one in networks if _group(one) == group):
            yield network, colours[group], list(MARKS)[number % len(MARKS)]


def _net(network: Network) -> Mapping[str, Any]:
    config: Mapping[str, Any] = network.runs[0]["config"]["network"]
    return config


def _group(network: Network) -> str:
    return str(_net(network)["group"])


def _size(network: Network, along: str) -> float:
    share = 100 * float(network.runs[0]["config"]["training"].get("train_fraction", 1))
    return share if along == "train_fraction" else float(network.first["parameters"])


def _score(network: Network) -> str:
    """What pictures show: the AUC of two classes, else accuracy or landmarks found."""
    return next(name for name in ("landmarks found", "AUC", "accuracy", *NAMES.values()) if name in network.values)


def _height(network: Network) -> tuple[float, float]:
    values = [100 * value for value in network.values[_score(network)]]
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def _place(network: Network) -> float:
    """Where a network lies on the axis: N_h, or for scales log₂ of the largest one, so that 2-D networks fit in."""
    net = _net(network)
    if task_of(network.runs[0]) != "celeba":
        return float(net["elements"])
    return round(math.log2(net["scale"] if net["group"] == "none" else PAPER_SCALES[net["elements"] - 1]), 2)


def _kind(line: str) -> str:
    """What lines of one colour share: the N_k in their names."""
    return line.partition("$")[2].partition("$")[0]
