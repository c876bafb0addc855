"""The paper's figures and ours, drawn from the library's own objects, in a light and a dark theme."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from . import bsplines, dial, kernels, lifting, logexp, measured, transforms
from .style import THEMES, Theme, in_theme, save

__all__ = ["DRAWINGS", "Drawing", "draw"]


@dataclass(frozen=True)
class Drawing:
    """A figure: its numbers are computed once, and drawn in every theme."""

    prepare: Callable[[], Any]
    draw: Callable[[Any, Theme], Figure]
    summary: str


DRAWINGS = {
    "lifting": Drawing(lifting.prepare, lifting.draw, "faces as lines in SE(2) and as blobs in R²⋊R⁺ (gccnnoverview)"),
    "logexp": Drawing(logexp.prepare, logexp.draw, "Log and Exp on the sphere (LogExpMap)"),
    "bsplines": Drawing(bsplines.prepare, bsplines.draw, "splines on SO(2), R⁺ and S² (BSplinesOnH)"),
    "kernels": Drawing(kernels.prepare, kernels.draw, "localised, scaled, atrous, deformable (kerneltypes)"),
    "turns": Drawing(transforms.prepare_turns, transforms.draw_turns, "a face and a kernel under SO(2) (reprSO2)"),
    "zooms": Drawing(transforms.prepare_zooms, transforms.draw_zooms, "a face and a kernel under R⁺ (reprR2Rp)"),
    "dial": Drawing(dial.prepare, dial.draw, "between all of a group and none: four steps"),
    "measured": Drawing(measured.prepare, measured.draw, "equivariance, accuracy against angle, time; measured now"),
}


def draw(name: str, folder: Path) -> Iterator[Path]:
    """Draw one figure into a folder, as NAME-light.svg, .png and NAME-dark.svg, .png."""
    if name not in DRAWINGS:
        raise ValueError(f"figure {name!r} is not one of {', '.join(DRAWINGS)}")
    drawing = DRAWINGS[name]
    yield from _themes(name, drawing.prepare(), drawing.draw, folder)


def _themes(name: str, data: Any, drawn: Callable[[Any, Theme], Figure], folder: Path) -> Iterator[Path]:
    for theme in THEMES:
        with in_theme(theme):
            yield from save(drawn(data, theme), folder, f"{name}-{theme.name}")
