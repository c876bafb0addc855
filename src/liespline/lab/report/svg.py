"""Small inline SVG drawings: charts, tables of numbers and pictures, readable on a phone and without scripts.

Everything goes through `Markup.format`, which escapes what it is given: class names come from users' folders.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image

Points = Sequence[tuple[float, float]]
Pixels = NDArray[np.float64]

WIDTH, HEIGHT = 440, 270
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 14, 44


def line_chart(
    series: Mapping[str, Points],
    *,
    x_label: str,
    y_label: str,
    percent: bool = False,
    x_ticks: Sequence[tuple[float, str]] | None = None,
    y_range: tuple[float, float] | None = None,
) -> Markup:
    """Lines over common axes, with a legend where there are several; hover a point to read it."""
    points = [p for line in series.values() for p in line if all(map(math.isfinite, p))]
    if not points:
        return Markup('<p class="note">No points to draw yet.</p>')
    x0, x1 = min(x for x, _ in points), max(x for x, _ in points)
    ticks = nice_ticks(*(y_range or (min(y for _, y in points), max(y for _, y in points))))
    y0, y1 = ticks[0], ticks[-1]
    across = (WIDTH - LEFT - RIGHT) / ((x1 - x0) or 1)
    up = (HEIGHT - TOP - BOTTOM) / (y1 - y0)

    def place(x: float, y: float) -> tuple[float, float]:
        return round(LEFT + (x - x0) * across, 1), round(HEIGHT - BOTTOM - (y - y0) * up, 1)

    parts = []
    for tick in ticks:
        _, y = place(x0, tick)
        label = f"{100 * tick:.0f} %" if percent else f"{tick:g}"
        parts.append(Markup('<path class="grid" d="M{} {}H{}"/>').format(LEFT, y, WIDTH - RIGHT))
        parts.append(Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(LEFT - 7, y + 4, label))
    chosen = x_ticks or [(x, f"{x:g}") for x in nice_ticks(x0, x1) if x0 <= x <= x1]
    for position, label in chosen:
        x, _ = place(position, y0)
        y = HEIGHT - BOTTOM + 17
        parts.append(Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(x, y, label))
    for index, (name, line) in enumerate(series.items()):
        placed = [(place(x, y), x, y) for x, y in line if math.isfinite(x) and math.isfinite(y)]
        path = "M" + "L".join(f"{px} {py}" for (px, py), _, _ in placed)
        parts.append(Markup('<path class="line c{}" d="{}"/>').format(index % 6, path))
        for (px, py), x, y in placed:
            read = f"{100 * y:.1f} %" if percent else f"{y:.4g}"
            tip = f"{name}, {x_label} {x:g}: {read}"
            dot = '<circle class="dot c{}" cx="{}" cy="{}" r="2.6"><title>{}</title></circle>'
            parts.append(Markup(dot).format(index % 6, px, py, tip))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        Markup('<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>').format(middle, HEIGHT - 6, x_label)
    )
    figure = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, f"{y_label} against {x_label}", Markup("").join(parts)
    )
    return Markup("<figure><figcaption>{}</figcaption>{}{}</figure>").format(y_label, figure, _legend(list(series)))


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers that reach from below `low` to above `high`."""
    span = (high - low) or abs(high) or 1.0
    step = 10 ** math.floor(math.log10(span / count))
    step *= next((m for m in (1, 2, 5) if span / (m * step) <= count), 10)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, max(last, first + 1) + 1)]


def confusion_table(table: Sequence[Sequence[int]], classes: Sequence[str]) -> Markup:
    """True classes down, answers across, each row shaded by its own share; the last column is the share found."""
    head = Markup("").join(Markup('<th scope="col"><span>{}</span></th>').format(name) for name in (*classes, "found"))
    rows = []
    for i, (name, counts) in enumerate(zip(classes, table, strict=True)):
        total = sum(counts) or 1
        recall = f"{100 * counts[i] / total:.0f} %" if sum(counts) else "–"
        cells = Markup("").join(
            Markup('<td style="--share:{}" title="{}">{}</td>').format(
                round(count / total, 3), f"{name} taken for {answer}: {count} of {total}", count
            )
            for count, answer in zip(counts, classes, strict=True)
        )
        found = Markup('<th class="found" title="sensitivity (recall) of {}">{}</th>').format(name, recall)
        rows.append(Markup('<tr><th scope="row">{}</th>{}{}</tr>').format(name, cells, found))
    return Markup(
        '<div class="scroll"><table class="confusion"><thead><tr><td></td>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(head, Markup("").join(rows))


def picture(pixels: Pixels, alt: str, *, signed: bool = False) -> Markup:
    """A small image: (H, W) grey or (H, W, 3) colour in [0, 1]; signed values from blue over white to red."""
    if signed:
        pixels = diverging(pixels)
    data = (255 * pixels.clip(0, 1)).round().astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(data).save(buffer, "PNG", optimize=True)
    code = base64.b64encode(buffer.getvalue()).decode()
    return Markup('<img class="pixels" alt="{}" src="data:image/png;base64,{}">').format(alt, code)


def diverging(values: Pixels) -> Pixels:
    """Values in [-1, 1] as colours: blue below zero, white at zero, red above."""
    v = values.clip(-1, 1)[..., None]
    blue, white, red = np.array([0.13, 0.40, 0.67]), np.ones(3), np.array([0.70, 0.09, 0.17])
    colours: Pixels = np.where(v < 0, white + v * (white - blue), white - v * (white - red))
    return colours


def ring(pictures: Sequence[Markup], labels: Sequence[str]) -> Markup:
    """Pictures around a circle, counter-clockwise from the right, as the rotations they belong to."""
    items = []
    # Percent of the square's side: neighbours, with their captions, must not touch.
    size = min(24.0, 56 * math.sin(math.pi / max(len(pictures), 3)) - 2)
    radius = 47 - size / 2
    for i, (image, label) in enumerate(zip(pictures, labels, strict=True)):
        angle = 2 * math.pi * i / len(pictures)
        left, top = 50 + radius * math.cos(angle), 50 - radius * math.sin(angle)
        style = f"left:{left:.2f}%;top:{top:.2f}%;width:{size:.2f}%"
        items.append(Markup('<figure style="{}">{}<figcaption>{}</figcaption></figure>').format(style, image, label))
    return Markup('<div class="ring">{}</div>').format(Markup("").join(items))


def strip(rows: Sequence[tuple[str, Sequence[Markup]]], heads: Sequence[str]) -> Markup:
    """Rows of pictures under common headings."""
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(name) for name in heads)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            name, Markup("").join(Markup("<td>{}</td>").format(image) for image in images)
        )
        for name, images in rows
    )
    return Markup(
        '<div class="scroll"><table class="strip"><thead><tr><td></td>{}</tr></thead><tbody>{}</tbody></table></div>'
    ).format(head, body)


def _legend(names: Sequence[str]) -> Markup:
    if len(names) < 2:
        return Markup("")
    items = Markup("").join(
        Markup('<li><span class="key c{}"></span>{}</li>').format(i % 6, name) for i, name in enumerate(names)
    )
    return Markup('<ul class="legend">{}</ul>').format(items)
