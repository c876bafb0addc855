"""Tables of a study in Markdown: every run, every network over its seeds, and the differences of networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from liespline.lab.sweep.study import Row
from liespline.lab.symmetry.statistics import holm
from studies.intervals import Interval
from studies.networks import LAST_TEN, MARK, NAMES, Ahead, Line, Network, ahead

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
    """One line per network: each measure with its 95 % interval."""
    names = _columns(networks)
    rows = []
    for network in networks:
        cells = [network.cell(name) if name in network.values else "" for name in names]
        counts = [f"{network.first['parameters']:,}", str(len(network.runs))]
        rows.append([network.name + network.mark, *counts, *cells, network.minutes])
    return table(["network", "parameters", "seeds", *names, "minutes per run"], rows)


def differences_table(rows: Sequence[Row], networks: Mapping[str, Network]) -> list[str]:
    """How far the first network of each comparison is ahead of the second, in points; nothing where none was run.

    Where the scores of every image were kept, the comparison is paired, and p is corrected by Holm over the table.
    """
    pairs = dict.fromkeys((row.ours, row.other) for row in rows)
    there = [(networks[a], networks[b]) for a, b in pairs if a in networks and b in networks]
    names = _columns([pair[0] for pair in there])
    found = [[ahead(a, b, name) if name in b.values else None for name in names] for a, b in there]
    adjusted = iter(holm([one.p for line in found for one in line if one and one.p is not None]))
    lines = []
    for (a, b), line in zip(there, found, strict=True):
        cells = [difference(one, next(adjusted) if one and one.p is not None else None) for one in line]
        lines.append([f"{a.name} − {b.name}{a.mark or b.mark}", *cells])
    return ["", "In points:", "", *table(["difference", *names], lines)] if lines else []


def difference(one: Ahead | None, p: float | None) -> str:
    """A difference of means in points, with its interval, and with p where it is paired."""
    if one is None:
        return ""
    return points(one.value, one.interval) + ("" if p is None else f", p = {p:.3f}")


def points(value: float, interval: Interval | None) -> str:
    """An effect in percentage points, with its interval."""
    bounds = "" if interval is None else f" [{_signed(interval.low)}, {_signed(interval.high)}]"
    return _signed(value) + bounds


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


def _signed(share: float) -> str:
    return f"{100 * share:+.2f}".replace("-", "−")
