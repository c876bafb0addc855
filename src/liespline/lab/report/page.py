"""The report: one HTML file that opens anywhere, without a network and without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..data.files import write_text
from .drawings import line_chart, nice_ticks, part, templates

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Section:
    """One part of the page."""

    name: str
    title: str
    text: str
    body: Markup


def write_page(
    path: Path, title: str, lead: str, cards: Sequence[tuple[str, str]], sections: Sequence[Section]
) -> None:
    """Render the page and put it in place in one step."""
    page = templates().get_template("report.html")
    write_text(path, page.render(title=title, lead=lead, cards=cards, sections=sections))


def learning_curves(metrics: Mapping[str, Rows], score: str) -> Section:
    """Losses and the validation score by epoch; one network with both its losses, or several side by side."""
    if len(metrics) == 1:
        rows = next(iter(metrics.values()))
        losses = {"training": _points(rows, "train_loss"), "validation": _points(rows, "valid_loss")}
    else:
        losses = {name: _points(rows, "train_loss") for name, rows in metrics.items()}
    of_score = {name: _points(rows, f"valid_{score}") for name, rows in metrics.items()}
    longest = max((len(rows) for rows in metrics.values()), default=0)
    ticks = [
        (tick, f"{tick:g}") for tick in nice_ticks(1, max(longest, 2)) if tick == int(tick) and 1 <= tick <= longest
    ]
    label = "Loss" if len(metrics) == 1 else "Training loss"
    charts = [
        line_chart(losses, x_label="epoch", y_label=label, x_ticks=ticks),
        line_chart(of_score, x_label="epoch", y_label=f"Validation {score}", percent=True, x_ticks=ticks),
    ]
    return Section("curves", "Learning curves", "", part("box", "pair", [(chart, "") for chart in charts]))


def _points(rows: Rows, name: str) -> list[tuple[float, float]]:
    return [(row["epoch"] + 1, row[name]) for row in rows if name in row]


def against_moves(results: Mapping[str, Mapping[str, Any]]) -> Section:
    """Accuracy of each network on rotated or scaled test images."""
    first = next(iter(results.values()))
    axis, labels = first["axis"], first["labels"]
    around = axis == "angle" and not any(label.startswith("-") for label in labels)  # else rotated a little both ways
    lines = {}
    for name, result in results.items():
        for how, order in _orders(labels).items():
            points = [(at, result["accuracy"][i]) for at, i in order]
            if around:
                points.append((360.0, points[0][1]))
            lines[f"{name}, {how}" if how else name] = points
    ticks = [(float(a), f"{a}°") for a in range(0, 361, 60)] if around else None
    chart = line_chart(
        lines, x_label=axis, y_label=f"Accuracy against {axis}", percent=True, x_ticks=ticks, y_range=(0, 1)
    )
    text = (
        f"The same {first['images']} test images, each cut to the disc that stays in view and transformed before the "
        "network sees it. A flat line means that predictions do not depend on the pose. Around the disc is the mean "
        "colour of its rim."
    )
    return Section("transformed", f"Accuracy against {axis}", text, chart)


def _orders(labels: Sequence[str]) -> dict[str, list[tuple[float, int]]]:
    """One line for each other transformation: `30°` and `30°, mirrored` are on two lines."""
    lines: dict[str, list[tuple[float, int]]] = {}
    for i, label in enumerate(labels):
        at, _, how = label.partition(", ")
        lines.setdefault(how, []).append((float(at.rstrip("°")), i))
    return {how: sorted(line) for how, line in lines.items()}


def confusion_section(table: Sequence[Sequence[int]], classes: Sequence[str], which: str) -> Section:
    """Which classes are taken for which."""
    text = (
        f"Rows are true classes, columns predicted ones, on {which}. The last column is the sensitivity of each class."
    )
    return Section("confusion", "Confusion matrix", text, part("confusion", list(classes), table))


def comparison(columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], best: int = -1) -> Section:
    """Networks side by side, the best one in bold."""
    return Section("comparison", "Side by side", "", part("table", "numbers", columns, rows, best))


def speed_section(metrics: Mapping[str, Rows]) -> Section:
    """Throughput and memory of training."""
    rows = []
    for name, epochs in metrics.items():
        if epochs:
            speeds = sorted(row["images_per_second"] for row in epochs)
            memory = max(row["memory_mib"] for row in epochs)
            seconds = sum(row["seconds"] for row in epochs)
            rows.append((name, [f"{speeds[len(speeds) // 2]:,.0f}", f"{memory:,.0f}", f"{seconds:,.1f}"]))
    section = comparison(["Network", "Images per second", "Peak memory, MiB", "Seconds of training"], rows)
    return Section("speed", "Speed and memory", "Training, forward and backward; the median epoch.", section.body)


def settings_section(yaml: str, environment: str) -> Section:
    """Everything needed to do it again."""
    body = part("folded", [("Configuration", yaml), ("Versions, commit and machine", environment)])
    return Section("settings", "How to repeat it", "The same seed gives the same numbers on the same machine.", body)
