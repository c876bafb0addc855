"""What a network gives for images that are known at every point, and how that compares when they are moved."""

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..grids import Grid
from ..grids.grid import same
from ..grids.regular import centred
from ..groups import Group
from .measure import Compared, compared, constant, levels, relative
from .moving import continued, interior, moved, shifted

FEWEST = 9
"""Samples across a map by which translations are judged: by one of seven, a network of small images sees its border."""


class Mixture:
    """Sums of anisotropic Gaussians with random signs: images (B, C, *space) at points (*space, d)."""

    def __init__(self, images: int, channels: int, d: int, size: int, blur: float, generator: torch.Generator) -> None:
        shape = (images, channels, 12)
        self.means = size / 4 * torch.randn(*shape, d, dtype=torch.float64, generator=generator)
        self.heights = torch.randn(shape, dtype=torch.float64, generator=generator)
        self.widths = blur * (1 + torch.rand(shape, dtype=torch.float64, generator=generator))

    def __call__(self, points: Tensor) -> Tensor:
        flat = points.reshape(-1, points.shape[-1])
        square = (flat - self.means.unsqueeze(-2)).square().sum(-1)  # (B, C, blobs, points)
        values = (self.heights.unsqueeze(-1) * (-square / (2 * self.widths.unsqueeze(-1).square())).exp()).sum(2)
        return values.reshape(*values.shape[:2], *points.shape[:-1])


class Probe:
    """A network, in eval mode while it is asked, and the images that it is shown: `probe(points)` gives (B, C, …)."""

    def __init__(self, module: nn.Module, mixture: Mixture, space: Sequence[int], dtype: torch.dtype | None) -> None:
        self.module = module if dtype is None else copy.deepcopy(module).to(dtype)
        self.like = next(self.module.parameters(), torch.zeros((), dtype=dtype or torch.get_default_dtype()))
        self.mixture, self.points = mixture, centred(space)

    def __call__(self, points: Tensor) -> Tensor:
        """The output for the images f(points), on the CPU."""
        with torch.no_grad(), evaluating(self.module):
            output: Tensor = self.module(self.mixture(points).to(self.like))
        return output.cpu()

    def onto_samples(self, points: Tensor) -> bool:
        """Whether all points are samples of the image."""
        places, size = points + (len(self.points) - 1) / 2, len(self.points)
        off = (places - places.round()).abs().max()
        return bool(off < 1e-6 and places.min() > -0.5 and places.max() < size - 0.5)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a network in eval mode, and every part of it back into its own mode."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def layer_outputs(network: nn.Module, layers: Sequence[nn.Module], inputs: Tensor) -> list[Tensor]:
    """What each of these layers gives while the network is asked about inputs."""
    seen: dict[nn.Module, Tensor] = {}
    hooks = [layer.register_forward_hook(lambda module, _, output: seen.update({module: output})) for layer in layers]
    try:
        network(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return [seen[layer] for layer in layers]


def as_maps(output: Tensor, grid: Grid) -> Tensor:
    """An output as feature maps (B, C, N, *space): N = 1 without an axis of H, one sample where it has no space."""
    d = grid.group.space_dim
    space = output.shape[output.ndim - d :] if output.ndim >= 2 + d else (1,) * d
    lead = output.shape[: output.ndim - d] if output.ndim >= 2 + d else output.shape
    if len(lead) == 3 and lead[2] != len(grid):
        raise ValueError(f"the output has shape {tuple(output.shape)}, {lead[2]} elements on axis 2; {grid!r} differs")
    return with_inside(output.reshape(*lead, *(() if len(lead) == 3 else (1,)), *space))


def with_inside(maps: Tensor) -> Tensor:
    """Maps (B, C, N, *space), or their mean over space where that is two samples across and has no inside."""
    d = maps.ndim - 3
    return maps if interior(maps.shape[3:]).any() else maps.flatten(3).mean(-1).reshape(*maps.shape[:3], *(1,) * d)


def constant_inside(maps: Tensor) -> bool:
    """Whether maps (B, C, N, *space) are constant in their middle half, so that no error can be told."""
    inner = maps[..., interior(maps.shape[3:])]
    return constant(compared(inner, inner).spread / inner.numel(), inner)


class Followed(NamedTuple):
    """What comes of feature maps (B, C, N, *space) beside those that are expected."""

    error: Compared
    floor: Compared
    """Of the maps moved there and back, beside themselves."""
    each: Tensor
    """The mean squared error of each element, (N,)."""


def followed(actual: Tensor, source: Tensor, group: Group, h: Tensor) -> Followed | None:
    """Maps (B, C, N, *space) beside the source moved by h, and the source moved there and back beside itself.

    In the disc where both show the middle half; None where there is none, or no element.
    """
    space = source.shape[3:]
    inside = interior(space, group, h).to(source.device)
    if source.numel() == 0 or not inside.any():
        return None
    follows = moved(continued(source.double().flatten(1, 2)), group, h, space)
    back = moved(continued(follows), group, h, space, back=True)
    actual, follows, back, source = (one.reshape(source.shape)[..., inside] for one in (actual, follows, back, source))
    each = (actual.double() - follows).square().mean((0, 1, 3))
    return Followed(compared(actual, follows), compared(back, source), each)


class Moved(NamedTuple):
    """What an element does to feature maps."""

    h: Tensor
    found: Followed
    elements: Tensor
    """Which elements of the output's grid were compared; none where it was their mean over H."""
    exact: bool
    """Whether h carries the samples and the grid onto themselves."""


def under_elements(probe: Probe, grid: Grid, elements: Tensor, still: Tensor) -> list[Moved]:
    """Φ(L_h f) beside L_h Φ(f), for each element that has something to compare."""
    group, parts = grid.group, []
    closed = all(len(matches(grid, h)[0]) == len(grid) for h in grid.elements)
    mean = (grid.weights / grid.weights.sum()).to(still)
    level = levels(still)
    for h in elements:
        there = group.pull(h, probe.points)
        actual, source = as_maps(probe(there), grid) - level, still - level
        to, origin = matches(grid, h)
        exact = len(to) == len(grid) and probe.onto_samples(there)
        if still.shape[2] == len(grid) > 1:
            if len(to) == 0 and closed:
                actual, source = (torch.einsum("bcn...,n->bc...", one, mean).unsqueeze(2) for one in (actual, source))
            else:
                actual, source = actual[:, :, to], source[:, :, origin]
        if found := followed(actual, source, group, h):
            parts.append(Moved(h, found, to, exact))
    return parts


class Translated(NamedTuple):
    """What translations do to feature maps."""

    whole: float
    """By as many samples of the image as make one of the map: nothing is interpolated."""
    half: float
    """By half as many."""
    floor: float
    """What interpolating the maps at half samples alone costs, there and back."""


def under_translations(probe: Probe, grid: Grid, still: Tensor) -> Translated | None:
    """Φ(f(x − t)) beside Φ(f) moved as far, along all axes at once; None for maps of less than nine samples.

    How many samples of the image make one of the map is not asked: it is the number that fits best.
    """
    space, size = still.shape[3:], len(probe.points)
    if min(space) < FEWEST:
        return None
    inside, level = interior(space), levels(still)
    flat = (still - level).double().flatten(1, 2)
    one, half = (shifted(continued(flat), step, space) for step in (1.0, 0.5))

    def error(expected: Tensor, step: float | None) -> float:
        actual = flat if step is None else (as_maps(probe(probe.points - step), grid) - level).flatten(1, 2)
        return relative([compared(actual[..., inside], expected[..., inside])])

    whole, step = min(
        ((error(one, step), step) for step in range(1, math.ceil(size / min(space)) + 1)),
        key=lambda found: math.inf if found[0] != found[0] else found[0],
    )
    return Translated(whole, error(half, step / 2), error(shifted(continued(half), -0.5, space), None))


def by_element(parts: Sequence[tuple[Tensor, Tensor]], count: int, every: Sequence[Compared]) -> tuple[float, ...]:
    """The error of each of `count` elements over the spread of `every` part, from (elements, mean squared errors).

    NaN for one that never had a counterpart.
    """
    total, times = torch.zeros(count, dtype=torch.float64), torch.zeros(count, dtype=torch.float64)
    for elements, squares in parts:
        total.index_add_(0, elements, squares.cpu())
        times.index_add_(0, elements, torch.ones_like(squares.cpu()))
    spread = sum(one.spread for one in every) / max(sum(one.values for one in every), 1)
    return tuple((total / times / spread).sqrt().tolist())


def matches(grid: Grid, h: Tensor) -> tuple[Tensor, Tensor]:
    """Return the index pairs (i, j) with h⁻¹ h_i = h_j."""
    pairs = same(grid, grid.group.relative(h, grid.elements)).nonzero()
    return pairs[:, 0], pairs[:, 1]


def between(grid: Grid) -> Tensor:
    """Return the elements half-way from each element of a grid to its nearest neighbour, none for a single element."""
    if len(grid) == 1:
        return grid.elements[:0]
    group = grid.group
    steps = group.offset(grid.elements.unsqueeze(1), grid.elements)  # (N, N, dim)
    distance = steps.norm(dim=-1)
    nearest = distance.fill_diagonal_(math.inf).argmin(1)
    half = steps[torch.arange(len(grid)), nearest] / 2
    return group.product(grid.elements, group.exp(half))
