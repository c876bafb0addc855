"""Augmentation on the device, a batch at a time, with all randomness drawn in one place.

Every module maps `(images, targets, draws)` to `(float images, targets)`. With draws seeded by the step, a resumed run
sees what the uninterrupted one saw, and several processes see what one would have seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import roma
import torch
from torch import Tensor, nn

from ..moving import resampled, rim_colour, rotations, splined
from .split import as_float


@dataclass(frozen=True)
class Draws:
    """Random numbers for a process's share of a batch: every `world`-th image of it, beginning at `rank`.

    All numbers of the whole batch are drawn everywhere, so that those of an image do not depend on the process.
    """

    generator: torch.Generator | None = None
    world: int = 1
    rank: int = 0

    def uniform(self, images: Tensor, count: int) -> Tensor:
        """`count` uniform draws from [0, 1) for each image, on its device: (count, B)."""
        shape = (count, self.world * len(images))
        return torch.rand(shape, generator=self.generator, device=images.device)[:, self.rank :: self.world]

    def normal(self, images: Tensor, count: int) -> Tensor:
        """The same from the standard normal distribution."""
        shape = (count, self.world * len(images))
        return torch.randn(shape, generator=self.generator, device=images.device)[:, self.rank :: self.world]


ANY = Draws()
"""Numbers that are new every time."""


class Plain(nn.Module):
    """No augmentation: stored images as float32 in [0, 1]."""

    def forward(self, images: Tensor, targets: Tensor, draws: Draws = ANY) -> tuple[Tensor, Tensor]:
        return as_float(images), targets


class Rotate(nn.Module):
    """Every image or volume turned by its own uniformly drawn rotation about its centre, the rim's colour moving in."""

    def forward(self, images: Tensor, targets: Tensor, draws: Draws = ANY) -> tuple[Tensor, Tensor]:
        x = as_float(images)
        if x.ndim not in (4, 5):
            raise ValueError(
                f"images of shape {tuple(x.shape)} cannot be turned; expected (B, C, H, W) or (B, C, D, H, W)"
            )
        colour = rim_colour(x)
        x, matrices = x - colour, self.matrices(x, draws)
        # As sharp as the images that are scored; in 3-D torch has no cubic interpolation, in 2-D its own is as sharp.
        turned = resampled(x, matrices, mode="bicubic") if x.ndim == 4 else splined(x, matrices)
        return turned + colour, targets

    def matrices(self, x: Tensor, draws: Draws) -> Tensor:
        """The matrices A (B, d, d) of f(Ax): uniform rotations."""
        if x.ndim == 4:
            return rotations(2 * torch.pi * draws.uniform(x, 1)[0])
        # A normalised Gaussian 4-vector is a uniform unit quaternion.
        return roma.unitquat_to_rotmat(nn.functional.normalize(draws.normal(x, 4).T, dim=-1))


class FlipRotate(Rotate):
    """Turned by a uniformly drawn rotation, half of them mirrored: any element of O(d)."""

    def matrices(self, x: Tensor, draws: Draws) -> Tensor:
        """Uniform orthogonal matrices (B, d, d)."""
        side = torch.where(draws.uniform(x, 1)[0] < 0.5, -1.0, 1.0).view(-1, 1, 1)
        matrix = super().matrices(x, draws)
        return torch.cat([matrix[:, :1] * side, matrix[:, 1:]], 1)


class Affine(Rotate):
    """Turned by any rotation, zoomed by 0.9 to 1.1 and sheared by up to 0.1 in some direction; never shifted.

    A = R (I + k e₀e₁ᵀ) M / z: the centre, which an equivariant network turns about, stays where it is. R is the
    identity if images should stay upright; M is too, unless half of them should be mirrored left to right.
    """

    def __init__(self, turned: bool = True, mirrored: bool = False) -> None:
        super().__init__()
        self.turned, self.mirrored = turned, mirrored

    def matrices(self, x: Tensor, draws: Draws) -> Tensor:
        """The matrices (B, d, d)."""
        zoom, shear = draws.uniform(x, 2)
        slanted = torch.eye(x.ndim - 2, device=x.device).repeat(len(x), 1, 1)
        slanted[:, 0, 1] = 0.2 * shear - 0.1
        slanted = slanted / (0.9 + 0.2 * zoom).view(-1, 1, 1)
        if self.mirrored:
            slanted[:, :, -1] *= torch.where(draws.uniform(x, 1)[0] < 0.5, -1.0, 1.0).view(-1, 1)
        return super().matrices(x, draws) @ slanted if self.turned else slanted


class Spin(Affine):
    """As `Affine`, but turned only about the last axis: volumes that stand on the other two stay upright."""

    def __init__(self) -> None:
        super().__init__(turned=False)

    def matrices(self, x: Tensor, draws: Draws) -> Tensor:
        """The matrices (B, 3, 3); their slant keeps the last axis too."""
        about = torch.eye(3, device=x.device).repeat(len(x), 1, 1)
        about[:, :2, :2] = rotations(2 * torch.pi * draws.uniform(x, 1)[0])
        return about @ super().matrices(x, draws)


class Flips(nn.Module):
    """Mirrored along each axis of space with probability ½, without interpolation."""

    def forward(self, images: Tensor, targets: Tensor, draws: Draws = ANY) -> tuple[Tensor, Tensor]:
        x = as_float(images)
        for axis, coin in enumerate(draws.uniform(images, x.ndim - 2), 2):
            x = torch.where((coin < 0.5).view(-1, *(1,) * (x.ndim - 1)), x.flip(axis), x)
        return x, targets


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

    def forward(self, images: Tensor, targets: Tensor, draws: Draws = ANY) -> tuple[Tensor, Tensor]:
        draw, coin = draws.uniform(images, 2)
        if self.preset == "paper":
            factor = 1 + 0.4 * draw
        else:
            factor = torch.where(coin < 0.5, 1 / (1 - (1 - 0.704) * draw), torch.ones_like(draw))
        x = resampled(as_float(images), torch.eye(2, device=images.device) / factor.view(-1, 1, 1))
        centre = (torch.tensor(images.shape[-2:], device=images.device) - 1) / 2
        return x, (targets - centre) * factor.view(-1, 1, 1) + centre
