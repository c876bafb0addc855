"""Images and volumes moved by group elements, to see how a network follows."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ..groups import Group


def moved(images: Tensor, group: Group, element: Tensor) -> Tensor:
    """The images f(h⁻¹x) about their centre, zeros moving in; (B, C, *space) with d = 2 or 3.

    `element` is one element for all images, or a batch of them, one an image. Quarter turns are exact to
    rounding; other moves interpolate (cubic in 2-D, linear in 3-D).
    """
    d = images.ndim - 2
    if group.space_dim != d or d not in (2, 3):
        raise ValueError(f"{group!r} acts on {group.space_dim} dimensions; the images have {d} (2 or 3 can be moved)")
    inverse = group.matrix(group.inverse(element.double()))  # (*batch, d, d), coordinate i along axis i
    sizes = torch.tensor(images.shape[2:], dtype=torch.float64)
    # grid_sample's coordinates run from -1 to 1 over each axis, the last axis first.
    scaled = (inverse * sizes / sizes.unsqueeze(-1)).flip(-2, -1)
    theta = torch.cat([scaled, torch.zeros(*scaled.shape[:-1], 1, dtype=torch.float64)], -1)
    theta = theta.expand(len(images), d, d + 1).to(images)
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    mode = "bicubic" if d == 2 else "bilinear"
    return F.grid_sample(images, grid, mode=mode, padding_mode="zeros", align_corners=False)
