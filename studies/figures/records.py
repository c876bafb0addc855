"""A record in pictures: accuracy against angle or scale, weights, labels, and time (figure records)."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from liespline.lab.evaluation.moves import ROTATIONS
from liespline.lab.runs.folder import Run
from liespline.lab.settings import Config, ConfigError
from liespline.lab.sweep.study import finished_runs, timed_alike

from .style import PAGE, Theme, canvas

Points = list[tuple[float, float]]
LAST_POINTS = 30
"""How far below the best a learning curve is shown: what networks differ in comes last."""
LEAST_POINTS = 2
"""How much of the accuracy of moved images is shown at least: one image more or less is no valley."""
MARKS = {"-": "o", "--": "s", ":": "^", "-.": "D"}
"""The dashes of a group's networks, and what stands for them where there are points and no lines."""


@dataclass(frozen=True)
class Network:
    """A network of a study, means over its seeds."""

    name: str
    group: str
    weights: int
    share: float
    score: str
    """What `value` and `learning` are: accuracy or auc."""
    value: float
    spread: float
    """Standard deviation over seeds; 0 for one."""
    axis: str
    moved: Points
    """Angle in degrees, or scale, and accuracy."""
    learning: Points
    """Minutes of training on the machine of most runs, and the score of the validation images."""
    learned: bool
    """Whether these images are learned too."""


def prepare(study: Path) -> list[Network]:
    """Read the finished runs of a study, by name, with 25 before 100; raises ConfigError if there is none."""
    found = finished_runs(study)
    if not found:
        raise ConfigError(f"{study}: holds no finished run of a study (runs/NETWORK/seed-N/results.json)")
    alike = timed_alike(found)
    names = sorted(found, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])
    return [_network(name, found[name], alike[name]) for name in names]


def draw(networks: Sequence[Network], theme: Theme) -> Figure:
    """Draw the panels that the study has something for."""
    panels: list[Callable[[Axes, Sequence[Network], Theme], None]] = [_moved, _learning]
    if any(len(line) > 1 for line in lines_of(networks, "weights").values()):
        panels.append(_weights)
    if any(len(line) > 1 for line in lines_of(networks, "share").values()):
        panels.append(_labels)
    rows = (len(panels) + 1) // 2
    figure = canvas(PAGE, 2.6 * rows)
    axes = list(figure.subplots(rows, 2, squeeze=False).flat)
    for one, panel in zip(axes, panels, strict=False):
        panel(one, networks, theme)
        one.grid(axis="y")
        one.set_axisbelow(True)
    for unused in axes[len(panels) :]:
        unused.set_axis_off()
    figure.subplots_adjust(hspace=0.5, wspace=0.3)
    return figure


def lines_of(networks: Sequence[Network], along: str) -> dict[str, list[Network]]:
    """Networks of a group that differ along `along` ("weights" or "share"), least first; others are left out."""
    other = {"weights": "share", "share": "weights"}[along]
    lines: dict[str, list[Network]] = {}
    for network in sorted(networks, key=lambda network: float(getattr(network, along))):
        alike = [
            one for one in networks if one.group == network.group and getattr(one, other) == getattr(network, other)
        ]
        values = [float(getattr(one, along)) for one in alike]
        if max(values) > 1.5 * min(values):  # about equal sizes are no line
            lines.setdefault(network.group, []).append(network)
    return lines


def _network(name: str, runs: Sequence[Run], alike: Sequence[Run]) -> Network:
    config, results = Config.load(runs[0].config_file), [run.read_results("scores", "weights") for run in runs]
    score = "auc" if all("auc" in result["scores"] for result in results) else "accuracy"
    values = [float(result["scores"][score]) for result in results]
    moves = [result["moves"] for result in results if "accuracy" in result.get("moves", {})]
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    axis = str(moves[0]["axis"]) if moves else ""
    group, weights, share = config.network.group, int(results[0]["weights"]), float(config.training.share)
    value, learning, learned = statistics.fmean(values), _learning_of(alike, score), config.training.valid_too
    return Network(name, group, weights, share, score, value, spread, axis, _heights(moves), learning, learned)


def _learning_of(runs: Sequence[Run], score: str) -> Points:
    """Minutes and validation scores after each epoch, means over seeds."""
    epochs = [run.read_metrics() for run in runs]
    minutes = [list(accumulate(row["seconds"] / 60 for row in rows)) for rows in epochs]
    scores = [[row[f"valid_{score}"] for row in rows] for rows in epochs]
    # A seed that was stopped early ends the line, which would else jump there.
    times, heights = ([statistics.fmean(seeds) for seeds in zip(*rows, strict=False)] for rows in (minutes, scores))
    return list(zip(times, heights, strict=True))


def _heights(moves: Sequence[Mapping[str, Any]]) -> Points:
    """Where images were moved to, and the mean accuracy there: not all seeds need have been moved alike.

    Mirrored, shrunk and squeezed copies have a second word, and are left out.
    """
    found: dict[float, list[float]] = {}
    for move in moves:
        for label, height in zip(move["labels"], move["accuracy"], strict=True):
            if ", " not in label:
                found.setdefault(float(label.rstrip("°")), []).append(height)
    return sorted((place, statistics.fmean(heights)) for place, heights in found.items())


def _colour(networks: Sequence[Network], network: Network, theme: Theme) -> str:
    """Plain networks are grey."""
    groups = [group for group in dict.fromkeys(one.group for one in networks) if group != "none"]
    return theme.muted if network.group == "none" else theme.series[groups.index(network.group) % len(theme.series)]


def _strokes(networks: Sequence[Network]) -> dict[str, str]:
    """One dash for each network of a group."""
    strokes, seen = tuple(MARKS), dict[str, int]()
    found = {}
    for network in networks:
        found[network.name] = strokes[seen.get(network.group, 0) % len(strokes)]
        seen[network.group] = seen.get(network.group, 0) + 1
    return found


def _moved(axes: Axes, networks: Sequence[Network], theme: Theme) -> None:
    for network in networks:
        if network.moved:
            x, y = zip(*network.moved, strict=True)
            stroke = _strokes(networks)[network.name]
            # Rotations of volumes have axes as well as angles, so between two of them there is no line.
            how = MARKS[stroke] if network.axis == ROTATIONS else stroke
            axes.plot(x, [100 * v for v in y], how, color=_colour(networks, network, theme), label=network.name)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, high - LEAST_POINTS), high)
    axis = next((network.axis for network in networks if network.axis), "angle")
    axes.set_xlabel(axis if axis == "scale" else f"{axis}, degrees")
    axes.set_title("accuracy of moved images, %", loc="left")


def _learning(axes: Axes, networks: Sequence[Network], theme: Theme) -> None:
    for network in networks:
        x, y = zip(*network.learning, strict=True) if network.learning else ((), ())
        stroke = _strokes(networks)[network.name]
        axes.plot(x, [100 * v for v in y], stroke, color=_colour(networks, network, theme), label=network.name)
    heights = [100 * height for network in networks for _, height in network.learning]
    axes.set_ylim(bottom=max(min(heights), max(heights) - LAST_POINTS) - 1)
    axes.set_xlabel("minutes of training")
    axes.locator_params(axis="x", nbins=5)
    images = "learned images" if any(network.learned for network in networks) else "validation images"
    axes.set_title(f"{_words(networks)}, {images}, %", loc="left")
    axes.legend(handlelength=2.4, borderaxespad=0.2)


def _weights(axes: Axes, networks: Sequence[Network], theme: Theme) -> None:
    _against(axes, lines_of(networks, "weights"), lambda network: float(network.weights), networks, theme)
    axes.set_xlabel("weights")
    axes.set_title(f"{_words(networks)}, %", loc="left")


def _labels(axes: Axes, networks: Sequence[Network], theme: Theme) -> None:
    _against(axes, lines_of(networks, "share"), lambda network: 100 * network.share, networks, theme)
    axes.set_xlabel("share of the labels, %")
    axes.set_title(f"{_words(networks)}, %", loc="left")


def _against(
    axes: Axes,
    lines: dict[str, list[Network]],
    place: Callable[[Network], float],
    networks: Sequence[Network],
    theme: Theme,
) -> None:
    for group, line in lines.items():
        x, y, spread = zip(*((place(n), 100 * n.value, 100 * n.spread) for n in line), strict=True)
        name = "plain" if group == "none" else group
        axes.errorbar(x, y, yerr=spread, fmt="o-", capsize=2, color=_colour(networks, line[0], theme), label=name)
    axes.set_xscale("log")
    ticks = sorted({round(place(network)) for line in lines.values() for network in line})
    apart = [tick for i, tick in enumerate(ticks) if not i or tick > 1.3 * ticks[i - 1]]
    axes.set_xticks(apart, [f"{tick:,}" for tick in apart])
    axes.xaxis.set_minor_formatter(ScalarFormatter())
    axes.minorticks_off()
    axes.legend(handlelength=1.6)


def _words(networks: Sequence[Network]) -> str:
    return "AUC" if networks[0].score == "auc" else "accuracy"
