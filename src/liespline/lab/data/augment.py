"""Augmentation on the device, a batch at a time, with all randomness drawn in one place.

Every module maps `(images, targets, draws)` to `(float images, targets)`. With draws seeded by the step, a resumed run
sees what the uninterrupted one saw, and several processes see what one would have seen. Words joined by + say what an
image, and its mask if it has one, is transformed by: one matrix and one field, in one interpolation; and how the
intensities of the image alone are varied behind that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import roma
import torch
from torch import Tensor, nn

from ..settings import ConfigError
from ..settings.words import unknown
from ..transforms import lattice_points, resampled, rim_colour, rotations, sampled, splined
from . import intensity
from .elastic import NODES, deformed
from .samples import IGNORE, as_float

NONE = "none"
MOVES = ("rotate", "rotate-z", "flip", "mirror", "zoom-shear", "elastic")
WORDS = (*MOVES, *intensity.WORDS)
SHORT = {"affine": ("rotate", "zoom-shear"), "intensity": intensity.WORDS}
"""Words that stand for several."""
_PART_OF = {"rotate-z": "rotate", "mirror": "flip"}
_ONLY = {
    "rotate-z": (3, "is about the last axis of volumes; images take rotate"),
    "mirror": (2, "is left to right, for images; volumes take flip"),
    "elastic": (2, "is for images, not for volumes"),
}
"""The dimensions that a word is for, and what to say elsewhere."""


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


def words_of(name: str, dimensions: Collection[int] = (2, 3), where: str = "augment") -> frozenset[str]:
    """What `rotate+flip`, `affine` and the like consist of; ConfigError for what makes no sense in these dimensions."""
    if name == NONE:
        return frozenset()
    parts = [word for part in name.split("+") for word in SHORT.get(part, (part,))]
    for word in parts:
        if word not in WORDS:
            said = unknown(where if word == name else f"{where} {name!r}:", word, [NONE, *WORDS, *SHORT])
            raise ConfigError(said.replace("one of", "one or more, joined by +, of", 1))
        if parts.count(word) > 1:
            raise ConfigError(f"{where} {name!r}: {word} is there twice ({_meaning()}); leave one out")
        if _PART_OF.get(word) in parts:
            raise ConfigError(f"{where} {name!r}: {word} is part of {_PART_OF[word]}; leave one of them out")
        only, why = _ONLY.get(word, (None, ""))
        if only is not None and only not in dimensions:
            raise ConfigError(f"{where} {name!r}: {word} {why}")
    return frozenset(parts)


def _meaning() -> str:
    return ", ".join(f"{short} is {'+'.join(words)}" for short, words in SHORT.items())


class Augmentation(nn.Module):
    """Each image f becomes f(φ(Ax)) with a matrix A and a field φ of its own, about its centre; never shifted.

    A = R Z (I + k e₀e₁ᵀ) M / z has a factor for each of its `words`: `rotate` a uniform rotation R, `rotate-z` a
    rotation Z about the last axis, `zoom-shear` z from 0.9 to 1.1 and k up to 0.1, `flip` a reflection M along each
    axis with probability ½, `mirror` along the last one. `elastic` displaces by a smooth random field, of this
    `deviation` as part of the shorter side. What moves in has the mean colour of the rim. Reflections alone are exact.
    Targets of the images' own size are masks: they are transformed as the images are, by the nearest class, and what
    moves in is to be ignored.
    """

    def __init__(self, words: Collection[str] = (), deviation: float = 1 / 28) -> None:
        super().__init__()
        self.words, self.intensities = frozenset(words) & {*MOVES}, frozenset(words) & {*intensity.WORDS}
        self.deviation = deviation

    def forward(self, images: Tensor, targets: Tensor, draws: Draws = ANY) -> tuple[Tensor, Tensor]:
        """Images (B, C, *space), and masks (B, *space) of class numbers or any other targets."""
        x = as_float(images)
        self._check(x)
        x, targets = self._moved(x, targets, draws)
        return intensity.varied(x, self.intensities, draws) if self.intensities else x, targets

    def _moved(self, x: Tensor, targets: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        if not self.words:
            return x, targets
        space = x.shape[2:]
        masked = targets.shape == (len(x), *space)
        if self.words <= {"flip", "mirror"}:
            signs = self._signs(x, draws)
            return _flipped(x, signs), _flipped(targets.unsqueeze(1), signs)[:, 0] if masked else targets
        matrix, colour = self.matrices(x, draws), rim_colour(x)
        if "elastic" in self.words:
            points, normal = lattice_points(x) @ matrix.mT, draws.normal(x, 2 * NODES**2)
            where = deformed(points, x - colour, normal, self.deviation * min(space)).unflatten(1, space)
        else:
            where = None

        def at(values: Tensor, mode: str) -> Tensor:
            return resampled(values, matrix, mode=mode) if where is None else sampled(values, where, mode)

        # As sharp as the images that are scored; in 3-D torch has no cubic interpolation, in 2-D its own is as sharp.
        transformed = at(x - colour, "bicubic") if x.ndim == 4 else splined(x - colour, matrix)
        return transformed + colour, _nearest(targets, at) if masked else targets

    def matrices(self, x: Tensor, draws: Draws) -> Tensor:
        """The matrices A (B, d, d)."""
        d = x.ndim - 2
        matrix, about = (torch.eye(d, device=x.device).repeat(len(x), 1, 1) for _ in range(2))
        if "rotate-z" in self.words:
            about[:, :2, :2] = rotations(2 * torch.pi * draws.uniform(x, 1)[0])
        if "zoom-shear" in self.words:
            zoom, shear = draws.uniform(x, 2)
            matrix[:, 0, 1] = 0.2 * shear - 0.1
            matrix = matrix / (0.9 + 0.2 * zoom).view(-1, 1, 1)
        if self.words & {"flip", "mirror"}:
            matrix = matrix * self._signs(x, draws).unsqueeze(1)
        matrix = about @ matrix
        if "rotate" not in self.words:
            return matrix
        if d == 2:
            return rotations(2 * torch.pi * draws.uniform(x, 1)[0]) @ matrix
        # A normalised Gaussian 4-vector is a uniform unit quaternion.
        return roma.unitquat_to_rotmat(nn.functional.normalize(draws.normal(x, 4).T, dim=-1)) @ matrix

    def _signs(self, x: Tensor, draws: Draws) -> Tensor:
        """−1 for each axis that is reflected, else 1: (B, d)."""
        d = x.ndim - 2
        signs = torch.ones(len(x), d, device=x.device)
        count = d if "flip" in self.words else 1
        signs[:, d - count :] -= 2 * (draws.uniform(x, count) < 0.5).T.to(signs)
        return signs

    def _check(self, x: Tensor) -> None:
        d = x.ndim - 2
        if d not in (2, 3):
            raise ValueError(f"images of shape {tuple(x.shape)}; expected (B, C, H, W) or (B, C, D, H, W)")
        for word in self.words & _ONLY.keys():
            if _ONLY[word][0] != d:
                raise ValueError(f"images of shape {tuple(x.shape)}: {word} {_ONLY[word][1]}")


def _flipped(images: Tensor, signs: Tensor) -> Tensor:
    """Images (B, C, *space) reflected along the axes whose sign (B, d) is −1, without interpolation."""
    for axis, sign in enumerate(signs.T, 2):
        images = torch.where((sign < 0).view(-1, *(1,) * (images.ndim - 1)), images.flip(axis), images)
    return images


def _nearest(masks: Tensor, at: Callable[[Tensor, str], Tensor]) -> Tensor:
    """Masks as `at` samples their images; class numbers count from 1 there, so that zeros that move in are none."""
    known = torch.where(masks == IGNORE, 0, masks + 1).unsqueeze(1).float()
    found = at(known, "nearest")[:, 0].round().to(masks)
    return torch.where(found == 0, IGNORE, found - 1)


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
