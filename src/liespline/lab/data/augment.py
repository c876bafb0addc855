"""Augmentation on the device, a batch at a time, with all randomness drawn in one place.

Every module maps `(images, targets, generator)` to `(float images, targets)`. With a generator seeded by the
step, a resumed run sees what the uninterrupted one saw.
"""

import kornia
import roma
import torch
from torch import Tensor, nn

from .split import as_float


def uniform(images: Tensor, count: int, generator: torch.Generator | None) -> Tensor:
    """`count` uniform draws from [0, 1) for each image of a batch, on its device: (count, B)."""
    return torch.rand(count, len(images), generator=generator, device=images.device)


def quarter_turns(images: Tensor, turns: Tensor) -> Tensor:
    """Each image turned counter-clockwise by its own number of quarter turns, without interpolation."""
    out = images
    for quarter in (1, 2, 3):
        turned = torch.rot90(images, quarter, (-2, -1))
        out = torch.where((turns == quarter).view(-1, 1, 1, 1), turned, out)
    return out


class Plain(nn.Module):
    """No augmentation: stored images as float32 in [0, 1]."""

    def forward(
        self, images: Tensor, targets: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        return as_float(images), targets


class Rotate(nn.Module):
    """Every image or volume turned by its own uniformly drawn rotation about its centre, zeros moving in."""

    def forward(
        self, images: Tensor, targets: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        x = as_float(images)
        if x.ndim == 4:
            angles = 360 * uniform(images, 1, generator)[0]
            return kornia.geometry.transform.rotate(x, angles, padding_mode="zeros"), targets
        if x.ndim != 5:
            raise ValueError(
                f"images of shape {tuple(x.shape)} cannot be turned; expected (B, C, H, W) or (B, C, D, H, W)"
            )
        # A normalised Gaussian 4-vector is a uniform unit quaternion.
        quaternions = torch.randn(len(x), 4, generator=generator, device=x.device)
        rotations = roma.unitquat_to_rotmat(nn.functional.normalize(quaternions, dim=-1))
        theta = torch.cat([rotations, rotations.new_zeros(len(x), 3, 1)], dim=-1)
        # Not kornia's rotate3d: it composes Euler angles, and uniform angles are not uniform rotations.
        grid = nn.functional.affine_grid(theta, list(x.shape), align_corners=False)
        return nn.functional.grid_sample(x, grid, align_corners=False), targets


class Zoom(nn.Module):
    """The centre magnified by a random factor, landmarks along (paper, section 4: for the 2-D network only).

    `paper`: always, by a factor drawn from 1–1.4. `released`: for half of the images, a centre crop of side
    0.704–1 resized to the full image. Targets are landmarks (B, L, 2) in (row, column) pixels.
    """

    def __init__(self, preset: str = "paper") -> None:
        super().__init__()
        if preset not in ("paper", "released"):
            raise ValueError(f"preset {preset!r} is unknown; choose paper or released")
        self.preset = preset

    def forward(
        self, images: Tensor, targets: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        draw, coin = uniform(images, 2, generator)
        if self.preset == "paper":
            factor = 1 + 0.4 * draw
        else:
            factor = torch.where(coin < 0.5, 1 / (1 - (1 - 0.704) * draw), torch.ones_like(draw))
        x = kornia.geometry.transform.scale(as_float(images), factor.unsqueeze(1).expand(-1, 2))
        centre = (torch.tensor(images.shape[-2:], device=images.device) - 1) / 2
        return x, (targets - centre) * factor.view(-1, 1, 1) + centre
