"""Tables of a study in Markdown: every run, every network over its seeds, and the differences of networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from liespline.lab.sweep.study import Row
from liespline.lab.symmetry.statistics import holm
from studies.intervals import Interval, combined
from studies.networks import LAST_TEN, MARK, NAMES, Line, Network
from studies.paired import compare

SPLITS = {"test": "test", "valid": "validation", "train": "training"}
BEHIND = ("AUC", "balanced", "sensitivity", "majority class")
TRANSFORMED = ("the same, upright", "transformed", "output change")
MEASURED = ("accuracy", "landmarks found", "Dice", *BEHIND, *TRANSFORMED, "scored on")
COLUMNS = ("network", "seed", "parameters", *MEASURED, "epochs", "training", "images/s", "machine", "commit")
SHARED = ("seed", "majority class", "scored on", "epochs", "machine", "commit")
"""Above the columns where all runs agree."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def runs_table(lines: Sequence[Line]) -> list[str]:
    """All runs of a study; what they have in common stands above the columns."""
    rows = [_run(line) for line in lines]
    columns = [name for name in COLUMNS if any(name in cells for cells in rows)]
    common = [name for name in SHARED if name in columns and len({cells.get(name) for cells in rows}) == 1]
    shown = [name for name in columns if name not in common]
    above = "; ".join(f"{name}: {rows[0][name]}" for name in common)
    return [f"All: {above}.", "", *table(shown, ([cells.get(name, "") for name in shown] for cells in rows))]


def networks_table(networks: Sequence[Network]) -> list[str]:
    """One line per network: each measure with its deviation over seeds and the interval of its mean."""
    names = _columns(networks)
    rows = []
    for network in networks:
        cells = [_with_interval(network, name) if name in network.values else "" for name in names]
        counts = [f"{network.first['parameters']:,}", str(len(network.runs))]
        rows.append([network.name + network.mark, *counts, *cells, network.minutes])
    return table(["network", "parameters", "seeds", *names, "minutes per run"], rows)


def differences_table(rows: Sequence[Row], networks: Mapping[str, Network]) -> list[str]:
    """How far the first network of each comparison is ahead of the second, in points; nothing where none was run.

    Where the scores of every image were kept, the comparison is paired, and p is corrected by Holm over the table.
    """
    pairs = dict.fromkeys((row.ours, row.other) for row in rows if row.other)
    there = [(networks[a], networks[b]) for a, b in pairs if a in networks and b in networks]
    names = _columns([pair[0] for pair in there])
    lines = [[f"{a.name} − {b.name}{a.mark or b.mark}", *(difference(a, b, name) for name in names)] for a, b in there]
    found = {(i, j): compare(a.runs, b.runs, name) for i, (a, b) in enumerate(there) for j, name in enumerate(names)}
    paired = {place: one for place, one in found.items() if one}
    for ((i, j), one), p in zip(paired.items(), holm([one.p for one in paired.values()]), strict=True):
        lines[i][1 + j] = f"{points(one.interval.value, one.interval)}, p = {p:.3f}"
    return ["", "In points:", "", *table(["difference", *names], lines)] if lines else []


def difference(one: Network, other: Network, measure: str) -> str:
    """A difference of means in points, with Welch's interval."""
    if measure not in one.values or measure not in other.values:
        return ""
    pair = one.estimate(measure), other.estimate(measure)
    known = pair[0] is not None and pair[1] is not None
    interval = combined([(1, pair[0]), (-1, pair[1])]) if known else None  # type: ignore[list-item]
    return points(one.mean(measure) - other.mean(measure), interval)


def points(value: float, interval: Interval | None) -> str:
    """An effect in percentage points, with its interval."""
    bounds = "" if interval is None else f" [{_signed(interval.low)}, {_signed(interval.high)}]"
    return _signed(value) + bounds


def records_table(rows: Iterable[tuple[Row, str, Mapping[str, Network], str]], short: bool) -> list[str]:
    """The table of all studies, from each row with the name, the networks and the last commit of its results."""
    head = ["in per cent", "ours", "plain, equal parameters", "published"]
    lines = []
    for row, name, networks, tree in rows:
        names = [one for one in (row.ours, row.other) if one]
        pair = [networks[one] for one in names if one in networks and row.measure in networks[one].values]
        if len(pair) < len(names) or (short and not row.short):
            continue
        cells = [one.cell(row.measure, row.error) for one in pair]
        beside = cells[1] + pair[1].mark if row.other else "–"
        line = [row.words, f"{cells[0]} ({row.ours}){pair[0].augmented}{pair[0].mark}", beside, row.published]
        seeds = sorted({len(network.runs) for network in pair})
        counted = " and ".join(map(str, seeds)) + (" seed" if seeds == [1] else " seeds")
        made = f"`{name}`, {counted}; {_origin(pair, tree)}"
        lines.append(line if short else [*line, f"{pair[0].first['parameters']:,}", made])
    return table(head if short else [*head, "parameters", "made by: study, seeds, machine, commit"], lines)


def _origin(networks: Sequence[Network], tree: str) -> str:
    """The machines and the commits of runs; that of a source with changes is the one that they were committed in."""
    found = [run["environment"] for network in networks for run in network.runs]
    machines = {"a CPU" if "threads" in one["machine"] else one["machine"].split(", ")[-1] for one in found}
    commits = {(tree if tree and one["uncommitted"] else one["commit"] or "?")[:7] for one in found}
    return f"{', '.join(sorted(machines))}; {', '.join(sorted(commits))}"


def _run(line: Line) -> dict[str, str]:
    """One run: its final numbers, and what they cost. One that did not end has its best validation score instead."""
    environment, training = line["environment"], line["training"]
    return {
        "network": line["network"] + MARK * environment["uncommitted"],
        "seed": str(line["seed"]),
        **(_final(line["results"]) if line["finished"] else _best(training["valid"])),
        "epochs": str(training["epochs"]),
        "training": f"{training['seconds']:.0f} s",
        "images/s": f"{training['images_per_second']:,.0f}",
        "machine": environment["machine"],
        "commit": (environment["commit"] or "?")[:7] + "+" * environment["uncommitted"],
    }


def _final(results: Line) -> dict[str, str]:
    """What a finished run was scored with."""
    scores, moves = results["scores"], results.get("transformed")
    shown = {"parameters": f"{results['parameters']:,}"}
    shown |= {NAMES[key]: f"{scores[key]:.2%}" for key in ("accuracy", "success", "auc", "dice") if key in scores}
    if "confusion" in results:
        counts = [sum(row) for row in results["confusion"]]
        recalls = [row[i] / counts[i] for i, row in enumerate(results["confusion"]) if counts[i]]
        shown |= {
            "balanced": f"{sum(recalls) / len(recalls):.2%}",
            "majority class": f"{max(counts) / sum(counts):.2%}",
        }
        shown |= {"sensitivity": f"{recalls[1]:.2%}"} if len(counts) == 2 else {}
    if moves:  # the first of the elements is the identity
        shown["the same, upright"] = f"{moves.get('upright', moves['accuracy'][0]):.2%}"
        change = moves["change"] if "change" in moves else moves["relative_output_change"]
        shown |= {"transformed": f"{moves['mean_accuracy']:.2%}"}
        shown |= {"output change": f"{change:.1%}"} if change is not None else {}
    return {**shown, "scored on": f"{results['split']}, {results['images']:,} images"}


def _best(valid: Line) -> dict[str, str]:
    """The best epoch of a run that was stopped."""
    key = next(key for key in ("accuracy", "success", "dice") if key in valid)
    return {NAMES[key]: f"{valid[key]['best']:.2%}", "scored on": "valid, in training; stopped"}


def _columns(networks: Iterable[Network]) -> list[str]:
    """What networks are measured by: balanced accuracy only where there are two classes."""
    columns = dict.fromkeys(name for network in networks for name in network.values if not name.endswith(LAST_TEN))
    return [name for name in columns if "AUC" in columns or not name.startswith("balanced")]


def _with_interval(network: Network, measure: str) -> str:
    estimate = network.estimate(measure)
    if estimate is None:
        return network.cell(measure)
    interval = combined([(1, estimate)])
    return f"{network.cell(measure)} [{100 * interval.low:.2f}, {100 * interval.high:.2f}]"


def _signed(share: float) -> str:
    return f"{100 * share:+.2f}".replace("-", "−")
