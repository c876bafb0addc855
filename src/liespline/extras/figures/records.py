"""A record in pictures: accuracy against angle or scale, weights, labels, and time (figure records)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from ...lab.runs.folder import Run
from ...lab.settings import Config, ConfigError
from ...lab.sweep.study import finished_runs
from .style import PAGE, Theme, canvas

Points = list[tuple[float, float]]


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
    """Minutes of training, and the score of the validation images."""


def prepare(study: Path) -> list[Network]:
    """Read the finished runs of a study, in the order of their names; raises ConfigError if there is none."""
    found = finished_runs(study)
    if not found:
        raise ConfigError(f"{study}: holds no finished run of a study (runs/NETWORK/seed-N/results.json)")
    return [_network(name, runs) for name, runs in found.items()]


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


def _network(name: str, runs: Sequence[Run]) -> Network:
    config, results = Config.load(runs[0].config_file), [run.read_results("scores", "weights") for run in runs]
    score = "auc" if all("auc" in result["scores"] for result in results) else "accuracy"
    values = [float(result["scores"][score]) for result in results]
    moves = [result["moves"] for result in results if "moves" in result]
    moved: Points = []
    if moves:
        # Mirrored, shrunk and squeezed copies have a second word: the plain angles are the axis.
        plain = [i for i, label in enumerate(moves[0]["labels"]) if ", " not in label]
        places = [float(moves[0]["labels"][i].rstrip("°")) for i in plain]
        heights = [statistics.fmean(move["accuracy"][i] for move in moves) for i in plain]
        moved = sorted(zip(places, heights, strict=True))
    epochs = [run.read_metrics() for run in runs]
    count = min(map(len, epochs))
    minutes = [list(accumulate(row["seconds"] / 60 for row in rows))[:count] for rows in epochs]
    scores = [[row[f"valid_{score}"] for row in rows[:count]] for rows in epochs]
    times, heights = ([statistics.fmean(seeds) for seeds in zip(*rows, strict=True)] for rows in (minutes, scores))
    learning = list(zip(times, heights, strict=True))
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    axis = str(moves[0]["axis"]) if moves else ""
    group, weights, share = config.network.group, int(results[0]["weights"]), float(config.training.share)
    return Network(name, group, weights, share, score, statistics.fmean(values), spread, axis, moved, learning)


def _colour(networks: Sequence[Network], network: Network, theme: Theme) -> str:
    """Plain networks are grey."""
    groups = [group for group in dict.fromkeys(one.group for one in networks) if group != "none"]
    return theme.muted if network.group == "none" else theme.series[groups.index(network.group) % len(theme.series)]


def _strokes(networks: Sequence[Network]) -> dict[str, str]:
    """One dash for each network of a group."""
    strokes, seen = ("-", "--", ":", "-."), dict[str, int]()
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
            colour = _colour(networks, network, theme)
            axes.plot(x, [100 * v for v in y], stroke, color=colour, label=network.name)
    axis = next((network.axis for network in networks if network.axis), "angle")
    axes.set_xlabel(axis if axis == "scale" else f"{axis}, degrees")
    axes.set_title("accuracy of moved images, %", loc="left")


def _learning(axes: Axes, networks: Sequence[Network], theme: Theme) -> None:
    for network in networks:
        x, y = zip(*network.learning, strict=True)
        stroke = _strokes(networks)[network.name]
        axes.plot(x, [100 * v for v in y], stroke, color=_colour(networks, network, theme), label=network.name)
    axes.set_xlabel("minutes of training")
    axes.locator_params(axis="x", nbins=5)
    axes.set_title(f"{_words(networks)}, validation images, %", loc="left")
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
