"""From the words of a configuration to the elements of a group."""

import math

import torch

from ...grids import Grid, local, repulsion, uniform
from ...groups import GL2, O2, O3, SO2, SO3, Axial, Product, Scale, Trivial
from ..settings import ConfigError, Network, written

SCALE_STEP = 0.5 * math.log(2)
SQUEEZE_STEP = 0.3
NEAR_STEP = 0.2
"""Of the logarithms of scales and squeezes in a network that is only equivariant near the identity."""
ACTS_ON = {"so2": 2, "o2": 2, "sim2": 2, "gl2": 2, "so3": 3, "o3": 3, "axial": 3, "axial-o2": 3}
FACTORS = {
    "sim2": ("rotations x scales, such as 8x4", 2),
    "gl2": ("rotations x zooms x squeezes along the axes x squeezes along the diagonals, such as 8x1x3x3", 4),
}


def make_grid(network: Network, space_dim: int) -> Grid:
    """The elements of H that a configuration asks for, on images or volumes."""
    group = network.group
    if ACTS_ON.get(group, space_dim) != space_dim:
        what = "images" if ACTS_ON[group] == 2 else "volumes"
        others = "so2, o2, scale or none, sim2 and gl2 too" if space_dim == 2 else "so3, o3, axial, scale or none"
        raise ConfigError(f"group {group!r} acts on {what}; for data of {space_dim} dimensions choose {others}")
    if network.max_angle is not None:
        return near(network)
    if group == "none":
        return uniform(Trivial(space_dim), 1)
    counts = elements(network)
    match group:
        case "so2":
            return uniform(SO2(), *counts)
        case "o2":
            return uniform(O2(), *counts)
        case "axial" | "axial-o2":
            return uniform(Axial(O2() if group == "axial-o2" else SO2(), network.axis), *counts)
        case "scale":
            return uniform(Scale(space_dim), *counts, spacing=SCALE_STEP)
        case "sim2":  # every rotation with every scale 1, √2, 2, …
            return uniform(Product(SO2(), Scale(2)), counts, spacing=(None, SCALE_STEP))
        case "gl2":
            return affine(*counts)
        case _:
            # Where the symmetries of a Platonic solid are as many, they are exact; else elements push each other apart.
            compact, (n,) = SO3() if group == "so3" else O3(), counts
            exact = n in ((12, 24, 60) if group == "so3" else (24, 48, 120))
            return uniform(compact, n) if exact else repulsion(compact, n)


def restrictions(network: Network, grid: Grid) -> dict[int, Grid]:
    """From which stage on the network sees which elements of its grid alone."""
    return {stage: within(grid, group) for stage, group in network.restrictions.items()}


def within(grid: Grid, group: str) -> Grid:
    """The elements of a grid that act on space as some of this group do; `axial`: that leave the last axis alone."""
    matrices = grid.group.matrix(grid.elements)
    eye = torch.eye(matrices.shape[-1], dtype=matrices.dtype)
    rigid = _equal(matrices.mT @ matrices, eye)
    if group == "none":
        kept = _equal(matrices, eye)
    elif group == "scale":
        kept = _equal(matrices, matrices[:, :1, :1] * eye) & (matrices[:, 0, 0] > 0)
    else:
        kept = rigid if group == "o2" else rigid & (torch.linalg.det(matrices) > 0)
        if group == "axial":
            kept = kept & _equal(matrices[:, -1], eye[-1])
    if not kept.any() or kept.all():
        some = "all of its elements are" if kept.any() else "none of its elements is"
        raise ConfigError(f"restrict to {group}: {some} in it, of {grid!r}; leave it out, or name another group")
    return Grid(grid.group, grid.elements[kept], grid.weights[kept], grid.spacing)


def _equal(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Which of a batch are the same but for rounding: (N,)."""
    return (a - b).abs().flatten(1).amax(1) < 1e-6


def near(network: Network) -> Grid:
    """Elements about the identity alone, for images that are rotated, scaled and squeezed by a little."""
    if network.group not in ("so2", "sim2", "gl2"):
        raise ConfigError(f"max_angle = {network.max_angle}: for so2, sim2 and gl2; leave it out for {network.group}")
    counts = elements(network)
    step = 2 * math.radians(float(network.max_angle or 0)) / counts[0]  # each element stands for a step about it
    match network.group:
        case "so2":
            grid = local(SO2(), counts, step)
        case "sim2":
            grid = local(Product(SO2(), Scale(2)), counts, (step, NEAR_STEP))
        case _:
            grid = local(GL2(), (*counts[1:], counts[0]), (NEAR_STEP, NEAR_STEP, NEAR_STEP, step))
    # A Haar measure is free up to a factor. By the product of such short steps, kernels would need large coefficients,
    # and an optimiser whose steps are of one size for all would hardly move them.
    return Grid(grid.group, grid.elements, grid.weights / grid.weights.mean(), grid.spacing)


def affine(rotations: int, zooms: int, axes: int, diagonals: int) -> Grid:
    """Zooms and squeezes e^S about the identity, each with every rotation R: elements e^S R of GL(2)."""
    group, step = GL2(), 2 * math.pi / rotations
    near = local(group, (zooms, axes, diagonals, 1), (SCALE_STEP, SQUEEZE_STEP, SQUEEZE_STEP, step))
    angles = step * torch.arange(rotations, dtype=torch.float64)
    rotated = group.exp(torch.nn.functional.pad(angles.unsqueeze(-1), (3, 0)))
    # Rotating on the right leaves the Haar measure as it is.
    elements = group.product(near.elements.unsqueeze(1), rotated).flatten(0, 1)
    return Grid(group, elements, near.weights.repeat_interleave(rotations), near.spacing)


def elements(network: Network) -> tuple[int, ...]:
    """N_h: one number, or of a product one per factor."""
    group, n_h = network.group, network.elements
    words, count = FACTORS.get(group, ("", 1))
    counts = n_h if isinstance(n_h, tuple) else (n_h,)
    if len(counts) != count:
        right = words or f"one number, such as {counts[0]}; several are for sim2 and gl2"
        raise ConfigError(f"elements = {written(n_h)}: {group} takes {right}")
    if group in ("o2", "o3", "axial-o2"):
        _require_even("elements", counts[0], group)
    return counts


def splines(network: Network) -> int | tuple[int, ...] | None:
    """N_k as the library takes it."""
    n_k = None if network.group == "none" else network.basis
    if network.group in ("o2", "axial-o2") and network.kernel in ("dense", "atrous") and isinstance(n_k, int):
        _require_even("basis", n_k, network.group)
    return n_k


def _require_even(name: str, count: int, group: str) -> None:
    """Say that half of the elements of a group with reflections are reflections."""
    if count % 2:
        right = f"take an even number, such as {count + 1}"
        raise ConfigError(f"{name} = {count}: half of the elements of {group} are reflections; {right}")


def of_the_paper(network: Network, group: str) -> tuple[int, int]:
    """N_h and N_k of a network of the paper, which is for one group, or for none: its 2-D column."""
    if network.group not in (group, "none"):
        raise ConfigError(f"group {network.group!r}: network {network.network} is for {group} or none")
    if network.group == "none":
        return 1, 1
    (n_h,), n_k = elements(network), network.basis
    if isinstance(n_k, tuple):
        raise ConfigError(f"basis = {written(n_k)}: {group} takes one number, such as {n_k[0]}")
    return n_h, n_k or n_h
