"""How equivariant a network is: a measured number."""

import math
from typing import NamedTuple, Required, TypedDict, Unpack

import torch
from torch import Tensor, nn

from ..grids import Grid
from .measure import output_change, relative
from .probe import (
    Mixture,
    Probe,
    Translated,
    as_maps,
    between,
    by_element,
    constant_inside,
    matches,
    under_elements,
    under_translations,
)  # fmt: skip


class Equivariance(NamedTuple):
    """What `measure_equivariance` finds, over the standard deviation of the output; NaN where that is zero."""

    mean: float
    """Root mean square over the elements."""
    worst: float
    """That of the worst element."""
    element: Tensor
    """Which element that is; of answers (B, C), by which the copies of the worst pair differ."""
    exact: float | None
    """Over the elements that carry the samples and the grid onto themselves; None if there are none."""
    floor: float
    """What interpolating the maps alone costs, there and back; 0 for answers, where nothing is interpolated."""
    translated: Translated | None
    """The same for translations by a whole and by half a sample of the maps; None for answers."""
    by_element: tuple[float, ...] | None = None
    """Of each element of the grid, in its order, so the ends of scales are first and last; None without axis of H."""


def measure_equivariance(
    module: nn.Module,
    grid: Grid,
    *,
    size: int,
    in_channels: int = 1,
    elements: Tensor | None = None,
    images: int = 8,
    blur: float = 2.0,
    seed: int = 0,
    dtype: torch.dtype | None = None,
) -> Equivariance:
    """Measure ‖Φ(L_h f) − L_h Φ(f)‖ over the standard deviation of Φ(f), over all `elements` h and for translations.

    By default these are the grid's own and those half-way between neighbours: a network can be exact on its grid and
    poor in between. The inputs f are mixtures of Gaussians (standard deviation `blur` samples and up) evaluated at
    h⁻¹ ⊙ x, so they are transformed exactly and nothing is interpolated. The module, which is measured in eval mode and
    left as it was, maps images `(B, in_channels, size, …)` to feature maps `(B, C, N_h, *space)` on `grid`, or to
    `(B, C, *space)` or answers `(B, C)`, whose values should not change at all. It computes in `dtype`, or its own.

    The standard deviation is about the channels' means over images, elements and positions: a bias takes no part in
    it, and a constant output has none. Maps are compared in a disc of half their size, moved there by cubic splines;
    where h⁻¹h′ is on the grid; for an h between the elements of a grid that is closed, such as rotations, by their mean
    over H; else, as at the ends of a scale grid, they are left out. So choose `size` so large that the middle half of
    the maps does not see the border of the image. Answers are compared over all pairs of copies, as `output_change`.
    """
    d = grid.group.space_dim
    mixture = Mixture(images, in_channels, d, size, blur, torch.Generator().manual_seed(seed))
    probe = Probe(module, mixture, (size,) * d, dtype)
    chosen = torch.cat([grid.elements, between(grid)]) if elements is None else elements.to(torch.float64)
    output = probe(probe.points)
    if output.ndim == 2:
        return _of_answers(probe, grid, chosen, output)
    still = as_maps(output, grid)
    if constant_inside(still):
        return Equivariance(math.nan, math.nan, chosen[0], None, math.nan, None)
    found = under_elements(probe, grid, chosen, still)
    if not found:
        raise ValueError(f"equivariance_error: nothing to compare; no product of these elements lies on {grid!r}")
    every, exact = [one.found.error for one in found], [one.found.error for one in found if one.exact]
    each = [relative([error], every) for error in every]
    worst = max(range(len(each)), key=lambda i: math.inf if each[i] != each[i] else each[i])
    on_grid = [(one.elements, one.found.each) for one in found if len(one.elements)]
    return Equivariance(
        relative(every),
        each[worst],
        found[worst].h,
        relative(exact, every) if exact else None,
        relative([one.found.floor for one in found], every),
        under_translations(probe, grid, still),
        by_element(on_grid, len(grid), every) if still.shape[2] == len(grid) > 1 else None,
    )


def _of_answers(probe: Probe, grid: Grid, elements: Tensor, still: Tensor) -> Equivariance:
    """Of outputs (B, C): all pairs of copies, the images as they are among them."""
    group = grid.group
    places = [group.pull(h, probe.points) for h in elements]
    moves, outputs = list(elements), [probe(there) for there in places]
    exact = [
        probe.onto_samples(there) and len(matches(grid, h)[0]) == len(grid)
        for h, there in zip(elements, places, strict=True)
    ]
    if not any(torch.allclose(there, probe.points, rtol=0, atol=1e-9) for there in places):
        moves, outputs, exact = [group.identity(dtype=torch.float64), *moves], [still, *outputs], [True, *exact]
    copies, on = torch.stack(outputs), torch.tensor(exact)
    every, some = output_change(copies), output_change(copies, pairs=on & on.unsqueeze(1))
    i, j = every.pair or (0, 0)
    h = moves[j] if group.quotient_of is not None else group.product(moves[j], group.inverse(moves[i]))
    return Equivariance(every.mean, every.worst, h, some.mean if on.sum() > 1 else None, 0.0, None)


class Options(TypedDict, total=False):
    """Those of `measure_equivariance`, which has the defaults."""

    size: Required[int]
    in_channels: int
    elements: Tensor | None
    images: int
    blur: float
    seed: int
    dtype: torch.dtype | None


def equivariance_error(module: nn.Module, grid: Grid, **options: Unpack[Options]) -> float:
    """Return the mean that `measure_equivariance` finds, whose options these are; NaN where it is undefined."""
    return measure_equivariance(module, grid, **options).mean


def assert_equivariant(module: nn.Module, grid: Grid, *, tolerance: float = 0.3, **options: Unpack[Options]) -> None:
    """Raise AssertionError if what `measure_equivariance` finds, whose options these are, is above the tolerance.

    At elements that carry the samples and the grid onto themselves, such as quarter turns, nothing is interpolated, and
    a thirtieth of the tolerance is allowed. Fresh networks of 8 or 16 orientations have errors of 0.02 to 0.2 in all,
    of 4 up to 0.27, and 1e-6 there; plain ones 0.5 to 1.2. Maps must follow translations too, by a whole sample of
    theirs, and by half a one where interpolating them costs less than half the tolerance. An output that is the same
    for all images is refused, since it says nothing.
    """
    found = measure_equivariance(module, grid, **options)
    if found.mean != found.mean:
        raise AssertionError(
            "the output is not equivariant: relative error nan. It is not finite, or the same for all images, of which "
            "equivariance is undefined"
        )
    checks = [(found.mean, tolerance, ""), (found.exact, tolerance / 30, " where samples meet samples")]
    if found.translated is not None:
        checks.append((found.translated.whole, tolerance, " under a translation by a sample of the map"))
        if found.translated.floor <= tolerance / 2:
            checks.append((found.translated.half, tolerance, " under a translation by half a sample of the map"))
    for error, limit, where in checks:
        if error is not None and not error <= limit:
            raise AssertionError(
                f"the output is not equivariant: relative error {error:.2g}{where}, above the tolerance {limit:g}; "
                f"largest at h = {found.element.tolist()}: {found.worst:.2g}; interpolating maps alone: "
                f"{found.floor:.2g}"
            )
