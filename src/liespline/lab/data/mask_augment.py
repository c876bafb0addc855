"""Patches turned and mirrored together with their masks."""

from __future__ import annotations

import roma
import torch
from torch import Tensor, nn

from ..moving import resampled, rotations
from .augment import ANY, Draws
from .ragged import IGNORE
from .split import as_float


class MasksToo(nn.Module):
    """Each patch turned by its own uniformly drawn rotation, with `flips` half of them mirrored first.

    What moves in has the mean colour of the patch, and its mask is to be ignored.
    """

    def __init__(self, turns: bool, flips: bool = False) -> None:
        super().__init__()
        self.turns, self.flips = turns, flips

    def forward(self, images: Tensor, targets: Tensor, draws: Draws = ANY) -> tuple[Tensor, Tensor]:
        """Images (B, C, *space) and masks (B, *space) of class numbers."""
        x = as_float(images)
        if not self.turns:
            return x, targets
        matrix = self._matrices(x, draws)
        colour = x.mean(tuple(range(2, x.ndim)), keepdim=True)
        # Class numbers from 1 on, so that the zeros that move in are none of them.
        masks = torch.where(targets == IGNORE, 0, targets + 1).unsqueeze(1).to(x)
        turned = resampled(masks, matrix, mode="nearest")[:, 0].round().long()
        return resampled(x - colour, matrix) + colour, torch.where(turned == 0, IGNORE, turned - 1)

    def _matrices(self, x: Tensor, draws: Draws) -> Tensor:
        if x.ndim == 4:
            matrix = rotations(2 * torch.pi * draws.uniform(x, 1)[0])
        else:
            # A normalised Gaussian 4-vector is a uniform unit quaternion.
            matrix = roma.unitquat_to_rotmat(nn.functional.normalize(draws.normal(x, 4).T, dim=-1))
        if self.flips:
            side = torch.where(draws.uniform(x, 1)[0] < 0.5, -1.0, 1.0)
            matrix = torch.cat([matrix[:, :1] * side.view(-1, 1, 1), matrix[:, 1:]], 1)
        return matrix
