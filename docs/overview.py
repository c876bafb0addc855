"""Draw the README's picture with the library: python docs/overview.py docs/overview.png."""

from __future__ import annotations

import math
import sys

import matplotlib
import torch

import liespline as ls

matplotlib.use("Agg")
from matplotlib import pyplot as plt


def face(points: torch.Tensor) -> torch.Tensor:
    """Return a face drawn with soft lines, known at every point `(*space, 2)`."""
    y, x = points[..., 0], points[..., 1]
    ring = (-((torch.hypot(x, y) - 17) ** 2) / 3).exp()
    eyes = sum((-((x - c) ** 2 / 8 + (y + 6) ** 2 / 2)).exp() for c in (-6.0, 6.0))
    nose = (-(x**2 / 2) - (y - 0.5) ** 2 / 14).exp()
    mouth = (-((torch.hypot(x, y + 1) - 9.5) ** 2) / 2).exp() * (y > 3)
    return ring + eyes + nose + mouth


def main(path: str) -> None:
    grid = ls.uniform(ls.SO2(), 8)
    lift = ls.Lift(1, 1, 7, grid, padding=3, bias=False)
    with torch.no_grad():  # a bar along the rows: positive on the middle line of centres, negative beside it
        row = lift.x_basis.grid.elements[:, 0]
        lift.weight.copy_(torch.where(row == 0, 1.0, torch.where(row.abs() == 1, -0.55, 0.0)).float())
    axis = torch.arange(61, dtype=torch.float64) - 30
    points = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)
    plt.rcParams.update({"font.family": "sans-serif", "font.size": 10})
    figure, axes = plt.subplots(2, 6, figsize=(11, 4.1), facecolor="white")
    for line, (angle, label) in zip(axes, ((0.0, "an image"), (math.pi / 4, "turned by 45°")), strict=True):
        image = face(grid.group.pull(torch.tensor([angle], dtype=torch.float64), points)).float()
        features = lift(image[None, None]).relu()[0, 0].detach()
        line[0].imshow(image, cmap="gray_r")
        line[0].set_title(label)
        for a, place in enumerate(line[1:]):
            place.imshow(features[a], cmap="magma", vmin=0, vmax=float(features.max()))
            place.set_title(f"h = {45 * a}°")
    for place in axes.flat:
        place.set_xticks([])
        place.set_yticks([])
        for side in place.spines.values():
            side.set_color("#cccccc")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
