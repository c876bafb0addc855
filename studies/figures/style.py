"""One look for every figure: two themes, one type size, colours that survive print and colour blindness."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

PAGE = 7.2
"""Width of a figure in inches: the text width of a printed page, so that type comes out in its true size."""

Pixels = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Theme:
    """The colours of a figure."""

    name: str
    paper: str
    ink: str
    muted: str
    faint: str
    negative: str
    positive: str
    centre: str
    """Of spline centres, seen on both signs."""
    solid: str
    """Of bodies without a value."""
    series: tuple[str, ...]

    @property
    def diverging(self) -> LinearSegmentedColormap:
        """Below zero, zero as the paper itself, above zero."""
        return LinearSegmentedColormap.from_list("signed", [self.negative, self.paper, self.positive])

    @property
    def on_bodies(self) -> LinearSegmentedColormap:
        """The same with zero as the colour of bodies."""
        return LinearSegmentedColormap.from_list("signed", [self.negative, self.solid, self.positive])

    @property
    def around(self) -> LinearSegmentedColormap:
        """A colour for every angle."""
        a, b, c, d = (self.series[i] for i in (0, 2, 1, 3))
        return LinearSegmentedColormap.from_list("angle", [a, b, c, d, a])

    @property
    def upward(self) -> LinearSegmentedColormap:
        """A colour for every size."""
        return LinearSegmentedColormap.from_list("size", [self.series[i] for i in (0, 2, 1)])

    @property
    def sequential(self) -> LinearSegmentedColormap:
        """From nothing, the paper itself, to much."""
        return LinearSegmentedColormap.from_list("amount", [self.paper, self.series[0], self.ink])

    @property
    def settings(self) -> dict[str, Any]:
        """The matplotlib settings of this theme."""
        coloured = ("text.color", "axes.labelcolor", "axes.titlecolor")
        return {
            "font.family": ["DejaVu Sans"],
            "mathtext.fontset": "dejavusans",
            "font.size": 7.5,
            "axes.titlesize": 7.5,
            "axes.labelsize": 7.5,
            "legend.fontsize": 7,
            "xtick.labelsize": 7,
            "ytick.labelsize": 7,
            "axes.titlepad": 4,
            "axes.linewidth": 0.6,
            "xtick.major.width": 0.6,
            "ytick.major.width": 0.6,
            "xtick.major.size": 2.5,
            "ytick.major.size": 2.5,
            "xtick.minor.visible": False,
            "ytick.minor.visible": False,
            "lines.linewidth": 1.2,
            "lines.markersize": 3.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": self.muted,
            "xtick.color": self.muted,
            "ytick.color": self.muted,
            "axes.facecolor": self.paper,
            "figure.facecolor": self.paper,
            "savefig.facecolor": self.paper,
            "legend.frameon": False,
            "grid.color": self.faint,
            "grid.linewidth": 0.5,
            "image.interpolation": "nearest",
            "svg.fonttype": "path",  # a figure looks alike where these fonts are not installed
            "svg.hashsalt": "liespline",
            **dict.fromkeys(coloured, self.ink),
        }


# Okabe and Ito's colours, lightened on the dark paper.
LIGHT = Theme(
    "light", "#ffffff", "#1b1f27", "#5b6472", "#e3e6ea", "#2066a8", "#c2321d", "#1a8a4a", "#f4f5f7",
    ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9"),
)  # fmt: skip
DARK = Theme(
    "dark", "#14171d", "#eceff4", "#a3adba", "#2c323c", "#4aa3f0", "#ff7a5c", "#5fdd8f", "#454c59",
    ("#56b4e9", "#ff9d4d", "#3ccf9f", "#e59fc6", "#e8d44d", "#9ad0f5"),
)  # fmt: skip
THEMES = (LIGHT, DARK)


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure, in inches, that no global state knows about."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write the figure as SVG and as PNG; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.svg", folder / f"{name}.png"]
    figure.savefig(files[0], metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.04, dpi=200)
    figure.savefig(files[1], metadata={"Software": None}, bbox_inches="tight", pad_inches=0.04, dpi=200)
    return files


def in_theme(theme: Theme) -> AbstractContextManager[None]:
    """Return the context in which a figure of this theme is drawn and saved."""
    settings: Any = theme.settings  # matplotlib's stubs want each key as a literal
    return mpl.rc_context(settings)


def bare(axes: Axes) -> None:
    """Leave only what is drawn: no ticks, no frame."""
    axes.set_axis_off()
    axes.set_aspect("equal")


def framed(axes: Axes, theme: Theme) -> None:
    """Leave a thin frame and no ticks."""
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(True)
        side.set_color(theme.faint)


def pixels(values: torch.Tensor) -> Pixels:
    """Return a tensor as matplotlib wants it."""
    return np.asarray(values.detach().double().numpy())
