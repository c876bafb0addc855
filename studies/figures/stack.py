"""Functions on R² × H as sheets one above the other, seen from the side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Polygon
from matplotlib.transforms import Affine2D
from torch import Tensor

from .style import Theme, pixels

_SHEAR = np.array([[1.0, -0.34], [0.0, -0.36]])  # where one step along columns and one along rows go


def lay(row: float, column: float, height: float) -> tuple[float, float]:
    """Return where a point of a sheet, in [−1, 1]², lies in the drawing."""
    x, y = _SHEAR @ np.array([column, row])
    return float(x), float(y) + height


def draw(
    axes: Axes,
    sheets: Tensor,
    colours: Sequence[str | tuple[float, float, float]],
    labels: Sequence[str],
    theme: Theme,
    *,
    gap: float = 0.3,
    top: float | None = None,
) -> None:
    """Draw sheets `(N, rows, columns)` of amounts ≥ 0 from the bottom up, each in its own colour."""
    top = float(sheets.max()) if top is None else top
    for level, (sheet, colour, label) in enumerate(zip(sheets, colours, labels, strict=True)):
        height = level * gap
        corners = [lay(r, c, height) for r, c in ((-1, -1), (-1, 1), (1, 1), (1, -1))]
        axes.add_patch(
            Polygon(corners, closed=True, facecolor="none", edgecolor=theme.muted, alpha=0.35, lw=0.5, zorder=2 * level)
        )
        picture = np.empty((*sheet.shape, 4))
        picture[..., :3] = to_rgb(colour)
        picture[..., 3] = pixels((sheet / top).clamp(0, 1).sqrt())  # faint things are still seen when it is small
        move = Affine2D(np.vstack((np.column_stack((_SHEAR, [0.0, height])), [0.0, 0.0, 1.0])))
        image = axes.imshow(picture, extent=(-1, 1, 1, -1), interpolation="bilinear", zorder=2 * level + 1)
        image.set_transform(move + axes.transData)
        if label:
            x, y = lay(-0.8, 1, height)
            axes.text(x + 0.05, y, label, va="center", color=theme.muted, fontsize=6)
    axes.set_aspect("equal")
    axes.set_xlim(-1.38, 1.38)
    axes.set_ylim(-0.42, (len(sheets) - 1) * gap + 0.42)
    axes.set_axis_off()


def square(n: int, half: float) -> Tensor:
    """Return the n × n points of [−half, half]², `(n, n, 2)`, coordinate 0 down the rows."""
    axis = torch.linspace(-half, half, n, dtype=torch.float64)
    return torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)
