"""Which symmetries data have, with two controls, and what that means for a network."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..data import DataError, Split, as_float
from .pose import log_probabilities, trained
from .statistics import Element, Share, elements, pose_found
from .transformations import Matrix, Transformations, is_rotation, signed_permutations

MOST_IMAGES, HELD_OUT, MOST_SEEN = 4000, 0.3, 20_000
FEWEST = 10
SIDES = {2: 48, 3: 16}
"""Larger images are averaged down to at most this side."""
RAMP = 0.2
"""How much the planted ramp rises from the middle to the rim, in standard deviations of the images."""
WEAK, ALIKE = 0.1, 0.5
"""Where a direction is called weak, and where images are said to lie alike: from 0, chance, to 1, always found."""
_READ_AT_ONCE = 64


class Findings(NamedTuple):
    """What the pose network found: in the data, in the data rotated and reflected at random, in these with a ramp."""

    images: int
    held_out: int
    side: int
    dimensions: int
    pose: Share
    chance: float
    elements: tuple[Element, ...]
    at_random: Share
    """The first control: no network can beat chance here."""
    with_ramp: Share
    """The second: what a weak direction would have looked like."""

    @property
    def sentence(self) -> str:
        """What it means."""
        kept = [i for i in range(len(self.elements) + 1) if i == 0 or not self.elements[i - 1].seen]
        above = (self.pose.value - self.chance) / (1 - self.chance)
        return advice(signed_permutations(self.dimensions), kept, above, self.with_ramp.low > self.chance)

    @property
    def as_dict(self) -> dict[str, Any]:
        """All of it for programs."""
        shares = {name: getattr(self, name)._asdict() for name in ("pose", "at_random", "with_ramp")}
        found = [{"name": e.name, "told": e.told._asdict(), "p": e.p, "seen": e.seen} for e in self.elements]
        return self._asdict() | shares | {"elements": found, "sentence": self.sentence}


def look(train: Split, held_out: Sequence[Split], say: Callable[[str], None] = lambda text: None) -> Findings:
    """Train on images of `train` and look at images of the other splits; `say` is told what is being done."""
    dimensions = len(train.space)
    if dimensions not in SIDES:
        raise DataError(f"the data have {dimensions} dimensions in space; images have 2 and volumes 3")
    others = sum(map(len, held_out))
    if min(len(train), others) < FEWEST:
        raise DataError(f"{len(train)} images to train on and {others} to look at; at least {FEWEST} each are needed")
    order = 8 if dimensions == 2 else 48
    seen = min(others, round(HELD_OUT * MOST_IMAGES), MOST_SEEN // order)
    fitted = small(train, round((1 - HELD_OUT) * MOST_IMAGES))
    looked_at = torch.cat([small(split, round(seen * len(split) / others)) for split in held_out])
    transformations = Transformations(fitted.shape[-1], dimensions)
    fitted, looked_at = normalised(fitted, looked_at, transformations.disc)

    def poses(name: str, first: Tensor, second: Tensor, seed: int) -> Tensor:
        say(name)
        return log_probabilities(trained(first, transformations, seed), second, transformations)

    generator = torch.Generator().manual_seed(0)

    def at_random(images: Tensor) -> Tensor:
        return transformations.apply(images, torch.randint(order, (len(images),), generator=generator))

    found = poses("the data as they are", fitted, looked_at, 0)
    rotated = at_random(fitted), at_random(looked_at)
    ramp = RAMP * slope(transformations)
    return Findings(
        len(fitted), len(looked_at), transformations.side, dimensions, pose_found(found), 1 / order,
        tuple(elements(found, transformations.names)),
        pose_found(poses("rotated and reflected at random", *rotated, 1)),
        pose_found(poses("the same with a weak ramp", rotated[0] + ramp, rotated[1] + ramp, 2)),
    )  # fmt: skip


def small(split: Split, most: int) -> Tensor:
    """At most so many images of a split, spread evenly, their middle square or cube averaged down: (N, C, *space)."""
    count, found = min(most, len(split)), []
    rows = [i * len(split) // count for i in range(count)]
    for start in range(0, count, _READ_AT_ONCE):
        images = as_float(split.__getitems__(rows[start : start + _READ_AT_ONCE])[0])
        side = min(images.shape[2:])
        factor = -(-side // SIDES[images.ndim - 2])
        wanted = side // factor
        for axis in range(2, images.ndim):
            images = images.narrow(axis, (images.shape[axis] - wanted * factor) // 2, wanted * factor)
        found.append((F.avg_pool2d, F.avg_pool3d)[images.ndim - 4](images, factor))
    return torch.cat(found)


def normalised(fitted: Tensor, looked_at: Tensor, disc: Tensor) -> tuple[Tensor, Tensor]:
    """Both with mean 0 and deviation 1 per channel in the disc over the images that are trained on, and 0 outside."""
    inside = fitted[..., disc]
    mean, deviation = inside.mean((0, 2)), inside.std((0, 2)).clamp_min(1e-6)
    shape = (-1, *(1,) * disc.ndim)
    first, second = ((x - mean.view(shape)) / deviation.view(shape) * disc for x in (fitted, looked_at))
    return first, second


def slope(transformations: Transformations) -> Tensor:
    """A linear function on the disc, up to 1 at its rim, that no transformation but the identity leaves as it is."""
    place = torch.linspace(-1, 1, transformations.side)
    axes = torch.meshgrid(*[place] * transformations.dimensions, indexing="ij")
    rise = sum((axis * float(i) for i, axis in enumerate(axes, 1)), torch.zeros(()))
    rise = rise * transformations.disc
    return rise / rise.abs().amax()


def advice(matrices: Sequence[Matrix], kept: Sequence[int], above: float, ramp_seen: bool) -> str:
    """What to do, from the transformations not told from none, and how far the pose is found, 0 chance and 1 always."""
    if len(kept) == len(matrices) and not ramp_seen:
        return "Too few images to say: a weak ramp planted in them would not have been seen either."
    group = largest(matrices, kept)
    plane = len(matrices[0]) == 2
    what, full, rotations = ("images", "o2", "so2") if plane else ("volumes", "o3", "so3")
    if len(group) == len(matrices):
        return f"No direction seen: rotations and reflections fit (--group {full})."
    if len(group) == len(matrices) // 2 and all(is_rotation(matrices[i]) for i in group):
        return f"No direction seen, but left and right differ: rotations fit (--group {rotations}), reflections do not."
    lie = f"All {what} lie alike" if above > ALIKE else f"The {what} have a{' weak' * (above < WEAK)} direction"
    but = f", but {words(matrices, group)}" if len(group) > 1 else ""
    if above < WEAK:
        return f"{lie}{but}: equivariance (--group {full}) should cost little. Compare on validation data."
    return (
        f"{lie}{but}: expect --group {rotations} to cost accuracy unless test {what} are rotated, or few are labelled. "
        'That is not "do not use it": edges and textures have every orientation where whole images have one. Try '
        "--breaking, and compare on validation data."
    )


def largest(matrices: Sequence[Matrix], kept: Sequence[int]) -> list[int]:
    """The largest of these groups that is kept: all, the rotations, those that fix an axis, a reflection, or none."""
    axes, rotation = np.eye(len(matrices[0]), dtype=np.int64), np.array([is_rotation(m) for m in matrices])
    rules = [np.ones(len(matrices), bool), rotation]
    for axis in axes:
        fixing = np.array([bool((m @ axis == axis).all()) for m in matrices])
        along = np.array([bool((m == np.diag(1 - 2 * axis)).all()) for m in matrices])
        rules += [fixing, fixing & rotation, along | (np.arange(len(matrices)) == 0)]
    groups = [np.flatnonzero(rule).tolist() for rule in rules]
    return max((group for group in groups if set(group) <= set(kept)), key=len, default=[0])


def words(matrices: Sequence[Matrix], group: Sequence[int]) -> str:
    """What a group that keeps an axis does."""
    if len(group) == 2:
        (axis,) = np.flatnonzero(np.diag(matrices[group[1]]) < 0).tolist()
        return f"reflections along axis {axis} are not seen"
    fixed = np.stack([matrices[i] for i in group]).sum(0)
    (axis,) = np.flatnonzero(np.diag(fixed) == len(group)).tolist()
    mirrored = " and reflections that keep it" if len(group) == 8 else ""
    return f"rotations about axis {axis}{mirrored} are not seen"
