"""From the words of a configuration to the elements of a group."""

from __future__ import annotations

import math

import torch

from ...grids import Grid, local, repulsion, uniform
from ...groups import GL2, O2, O3, SO2, SO3, Product, Scale, Trivial
from ..settings import ConfigError, Network, written

SCALE_STEP = 0.5 * math.log(2)
SQUEEZE_STEP = 0.3
NEAR_STEP = 0.2
"""Of the logarithms of scales and squeezes in a network that is only equivariant near the identity."""
PLANE, SPACE = ("so2", "o2", "sim2", "gl2"), ("so3", "o3")
FACTORS = {
    "sim2": ("rotations x scales, such as 8x4", 2),
    "gl2": ("rotations x zooms x squeezes along the axes x squeezes along the diagonals, such as 8x1x3x3", 4),
}


def make_grid(network: Network, space_dim: int) -> Grid:
    """The elements of H that a configuration asks for, on images or volumes."""
    group = network.group
    if group in PLANE and space_dim != 2:
        raise ConfigError(
            f"group {group!r} acts on images; for data of {space_dim} dimensions choose so3, o3, scale or none"
        )
    if group in SPACE and space_dim != 3:
        also = ", sim2 and gl2 too" if space_dim == 2 else ""
        raise ConfigError(
            f"group {group!r} acts on volumes; for data of {space_dim} dimensions choose so2, o2, scale or none{also}"
        )
    if network.max_angle is not None:
        return near(network)
    if group == "none":
        return uniform(Trivial(space_dim), 1)
    if group in FACTORS:
        numbers = factors(network)
        return similarities(*numbers) if group == "sim2" else affine(*numbers)
    n = single(network)
    if group in ("o2", "o3"):
        _require_even("elements", n, group)
    match group:
        case "so2":
            return uniform(SO2(), n)
        case "o2":
            return uniform(O2(), n)
        case "scale":
            return uniform(Scale(space_dim), n, spacing=SCALE_STEP)
        case _:
            # Where the symmetries of a Platonic solid are as many, they are exact; else elements push each other apart.
            compact = SO3() if group == "so3" else O3()
            exact = n in ((12, 24, 60) if group == "so3" else (24, 48, 120))
            return uniform(compact, n) if exact else repulsion(compact, n)


def splines(network: Network) -> int | tuple[int, ...] | None:
    """N_k as the library takes it."""
    n_k = None if network.group == "none" else network.basis
    if network.group == "o2" and network.kernel in ("dense", "atrous") and isinstance(n_k, int):
        _require_even("basis", n_k, "o2")
    return n_k


def _require_even(name: str, count: int, group: str) -> None:
    """Say that half of the elements of a group with reflections are reflections."""
    if count % 2:
        right = f"take an even number, such as {count + 1}"
        raise ConfigError(f"{name} = {count}: half of the elements of {group} are reflections; {right}")


def near(network: Network) -> Grid:
    """Elements about the identity alone, for images that are rotated, scaled and squeezed by a little."""
    counts = factors(network) if network.group in FACTORS else (single(network),)
    step = 2 * math.radians(float(network.max_angle or 0)) / counts[0]  # each element stands for a step about it
    match network.group:
        case "so2":
            grid = local(SO2(), counts, step)
        case "sim2":
            grid = local(Product(SO2(), Scale(2)), counts, (step, NEAR_STEP))
        case "gl2":
            grid = local(GL2(), (*counts[1:], counts[0]), (NEAR_STEP, NEAR_STEP, NEAR_STEP, step))
        case _:
            raise ConfigError(
                f"max_angle = {network.max_angle}: for so2, sim2 and gl2; leave it out for {network.group}"
            )
    # A Haar measure is free up to a factor. By the product of such short steps, kernels would need large coefficients,
    # and an optimiser whose steps are of one size for all would hardly move them.
    return Grid(grid.group, grid.elements, grid.weights / grid.weights.mean(), grid.spacing)


def similarities(rotations: int, scales: int) -> Grid:
    """Every rotation with every scale 1, √2, 2, …: the H of SIM(2)."""
    return uniform(Product(SO2(), Scale(2)), (rotations, scales), spacing=(None, SCALE_STEP))


def affine(rotations: int, zooms: int, axes: int, diagonals: int) -> Grid:
    """Zooms and squeezes e^S about the identity, each with every rotation R: elements e^S R of GL(2)."""
    group, step = GL2(), 2 * math.pi / rotations
    near = local(group, (zooms, axes, diagonals, 1), (SCALE_STEP, SQUEEZE_STEP, SQUEEZE_STEP, step))
    angles = step * torch.arange(rotations, dtype=torch.float64)
    rotated = group.exp(torch.nn.functional.pad(angles.unsqueeze(-1), (3, 0)))
    # Rotating on the right leaves the Haar measure as it is.
    elements = group.product(near.elements.unsqueeze(1), rotated).flatten(0, 1)
    return Grid(group, elements, near.weights.repeat_interleave(rotations), near.spacing)


def single(network: Network) -> int:
    """N_h of a group that takes one number."""
    if isinstance(network.elements, int):
        return network.elements
    raise ConfigError(
        f"elements = {written(network.elements)}: {network.group} takes one number, such as {network.elements[0]}; "
        "several are for sim2 (rotations x scales) and gl2"
    )


def factors(network: Network) -> tuple[int, ...]:
    """N_h of a group that takes one number per factor."""
    words, count = FACTORS[network.group]
    if isinstance(network.elements, tuple) and len(network.elements) == count:
        return network.elements
    raise ConfigError(f"elements = {written(network.elements)}: {network.group} takes {words}")


def of_the_paper(network: Network, group: str) -> tuple[int, int]:
    """N_h and N_k of a network of the paper, which is for one group, or for none: its 2-D column."""
    if network.group not in (group, "none"):
        raise ConfigError(f"group {network.group!r}: network {network.network} is for {group} or none")
    if network.group == "none":
        return 1, 1
    n_h, n_k = single(network), network.basis
    if isinstance(n_k, tuple):
        raise ConfigError(f"basis = {written(n_k)}: {group} takes one number, such as {n_k[0]}")
    return n_h, n_k or n_h
