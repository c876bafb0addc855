"""The widths of a ready-made network: those asked for, or what a budget of parameters makes of them."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TypeVar

from ..grids import Grid
from .kit import Kit, Layers

Network = TypeVar("Network")
VERSION = 2
"""Of the ready networks; 1 are those of liespline 0.2, which its files of parameters need."""


def checked(model: str, widths: Sequence[int], least: int) -> tuple[int, ...]:
    """Return widths, or say what they have to be."""
    if len(widths) < least or not all(isinstance(width, int) and width >= 1 for width in widths):
        raise ValueError(f"{model}: widths = {tuple(widths)}; needs {least} or more whole numbers ≥ 1")
    return tuple(widths)


def known(version: int) -> int:
    """Return a version, or say which there are."""
    if version not in range(1, VERSION + 1):
        raise ValueError(f"version = {version}: this liespline makes ready networks of versions 1 to {VERSION}")
    return version


def restrictions(model: str, restrict: Mapping[int, Grid] | None, stages: range) -> dict[int, Grid]:
    """Return what is restricted where, or say which stages there are."""
    found = dict(restrict or {})
    if wrong := [stage for stage in found if stage not in stages]:
        right = f"a whole number from {stages[0]} to {stages[-1]}" if stages else "left out: this one has no such stage"
        raise ValueError(f"{model}: restrict names stage {wrong[0]!r}, must be {right}")
    return found


def build(
    network: Callable[[Kit, Sequence[int]], Network],
    widths: Sequence[int],
    parameters: int | None,
    grid: Grid,
    layers: Layers,
    version: int = VERSION,
) -> Network:
    """Build a network of these widths, or scale them by a factor so that it has about `parameters` numbers to learn."""
    known(version)

    def count(candidate: Sequence[int]) -> int:
        kit = Kit(grid, layers, dry=True)
        network(kit, candidate)
        return kit.parameters

    if parameters is not None:
        # The count grows about as the square of the factor: try finely around where that puts it.
        guess = math.sqrt(parameters / count(widths))
        scaled = {tuple(max(1, round(guess * 2 ** (i / 64) * width)) for width in widths) for i in range(-128, 129)}
        off = {candidate: abs(count(candidate) - parameters) for candidate in scaled}
        widths = nearest = min(off, key=lambda candidate: (off[candidate], candidate))
        if version > 1:
            met = (near for near in in_lanes(nearest) if abs(count(near) - parameters) <= 0.03 * parameters)
            widths = next(met, nearest)
    return network(Kit(grid, layers), widths)


def in_lanes(widths: Sequence[int]) -> list[tuple[int, ...]]:
    """Multiples of eight, the lanes in which a GPU computes channels, near some widths: first what distorts them least.

    None are farther off than a third, so that small widths stay as they are; equal ones stay equal.
    """
    found = []
    near = {width: [8 * (round(width / 8) + step) for step in (-1, 0, 1)] for width in widths}
    each = {width: [lanes for lanes in near[width] if 3 / 4 <= lanes / width <= 4 / 3] for width in near}
    for picked in product(*each.values()):
        of = dict(zip(each, picked, strict=True))
        ratios = [lanes / width for width, lanes in of.items()]
        found.append((max(ratios) / min(ratios), tuple(of[width] for width in widths)))
    return [candidate for _, candidate in sorted(found)]
