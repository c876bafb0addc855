"""Charts, tables and pictures of the page, readable on a phone, in light and dark, and without scripts."""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image

Points = Sequence[tuple[float, float]]
Pixels = NDArray[np.float64]
BOX = {"width": 440, "height": 270, "left": 52, "right": 426, "top": 14, "bottom": 226}


class Section(NamedTuple):
    """One part of the page."""

    name: str
    title: str
    text: str
    body: Markup


@cache
def templates() -> Environment:
    """The templates, which escape what they are given."""
    loader = PackageLoader("liespline.lab.report")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def part(name: str, *values: Any, **named: Any) -> Markup:
    """A piece of the page: a macro of `parts.html`."""
    return getattr(templates().get_template("parts.html").module, name)(*values, **named)


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
    lines = {name: [p for p in line if all(map(math.isfinite, p))] for name, line in series.items()}
    if not (points := [p for line in lines.values() for p in line]):
        return Markup('<p class="note">No points to draw yet.</p>')
    (x0, y0), (x1, y1) = np.min(points, 0).tolist(), np.max(points, 0).tolist()
    ticks = nice_ticks(*(y_range or (y0, y1)))
    chosen = x_ticks or [(x, f"{x:g}") for x in nice_ticks(x0, x1) if x0 <= x <= x1]

    def across(x: float) -> float:
        return round(BOX["left"] + (x - x0) / ((x1 - x0) or 1) * (BOX["right"] - BOX["left"]), 1)

    def up(y: float) -> float:
        return round(BOX["bottom"] - (y - ticks[0]) / (ticks[-1] - ticks[0]) * (BOX["bottom"] - BOX["top"]), 1)

    def read(y: float) -> str:
        return f"{100 * y:.1f} %" if percent else f"{y:.4g}"

    drawn = {name: [(across(x), up(y), f"{x_label} {x:g}: {read(y)}") for x, y in line] for name, line in lines.items()}
    x_words = [(across(x), words) for x, words in chosen]
    y_words = [(up(y), f"{100 * y:.0f} %" if percent else f"{y:g}") for y in ticks]
    return part("chart", y_label, x_label, list(drawn.items()), x_words, y_words, BOX)


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers that reach from below `low` to above `high`."""
    span = (high - low) or abs(high) or 1.0
    step = 10 ** math.floor(math.log10(span / count))
    step *= next((m for m in (1, 2, 5) if span / (m * step) <= count), 10)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, max(last, first + 1) + 1)]


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
    return np.where(v < 0, white + v * (white - blue), white - v * (white - red))


def ring(pictures: Sequence[Markup], labels: Sequence[str]) -> Markup:
    """Pictures around a circle, counter-clockwise from the right, as the rotations they belong to."""
    # Percent of the square's side: neighbours, with their captions, must not touch.
    size = min(24.0, 56 * math.sin(math.pi / max(len(pictures), 3)) - 2)
    radius, angles = 47 - size / 2, [2 * math.pi * i / len(pictures) for i in range(len(pictures))]
    places = [(50 + radius * math.cos(angle), 50 - radius * math.sin(angle)) for angle in angles]
    styles = [f"left:{left:.2f}%;top:{top:.2f}%;width:{size:.2f}%" for left, top in places]
    return part("figures", "ring", list(zip(pictures, labels, strict=True)), styles)


def strip(rows: Sequence[tuple[str, Sequence[Markup]]], heads: Sequence[str]) -> Markup:
    """Rows of pictures under common headings."""
    return part("table", "strip", ["", *heads], rows)
