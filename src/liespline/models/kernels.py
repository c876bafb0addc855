"""The kinds of kernel on H that the paper compares, as choices of a spline basis (section 3.3, app. D)."""

from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..grids import Grid, local, repulsion, uniform
from ..grids.grid import on_cpu, on_every_component
from ..groups import O2, O3, SO2, SO3, Axial, Group, Product, Scale
from ..nn import GConv
from ..splines import SplineBasis

N = TypeVar("N", bound=nn.Module)

SPLINES = "h_basis"
"""What the splines of a layer are called in a `state_dict`."""
KERNELS = ("dense", "local", "atrous", "deformable", "pointwise")


@on_cpu
def h_basis(grid: Grid, kernel: str, n_k: int | Sequence[int] | None = None, *, degree: int = 3) -> SplineBasis:
    """Return n_k splines on H of a kind: by default one per element, or the nearest neighbours for local kernels.

    dense: spread over the group, as wide as they lie apart; local: next to the identity, one step of the grid apart;
    atrous: spread over the group but only as wide as one step; deformable: local, with centres that are learned;
    pointwise: one linear spline that ends at the neighbours, so that each element of H sees itself alone until H is
    projected. On a grid that ends somewhere, the others know where it ends, and are not equivariant there.
    n_k counts as `uniform` and `local` do, on products one number per factor. Local kernels on O(2) and O(3), which
    would else never relate an image to its mirror image, have as many splines again next to the reflection.
    """
    group = grid.group
    if kernel not in KERNELS:
        right = 'is called "pointwise" now' if kernel == "apart" else f"must be one of {', '.join(KERNELS)}"
        raise ValueError(f"kernel = {kernel!r}, {right}")
    if len(grid) == 1 and n_k in (None, 1):
        return SplineBasis(grid, degree=degree) if group.dim == 0 else SplineBasis(local(group, 1, 1.0), degree=degree)
    if kernel == "pointwise":
        if n_k not in (None, 1):
            raise ValueError(f"n_k = {n_k}: a pointwise kernel is one spline; leave n_k out")
        return SplineBasis(local(group, 1, grid.spacing), degree=1)
    if kernel in ("local", "deformable"):
        centres = local(group, 2 * group.dim + 1 if n_k is None else n_k, grid.spacing)
        if len(group.component(grid.elements).unique()) > 1:  # not where a network was restricted to rotations
            centres = on_every_component(centres)
        return SplineBasis(centres, degree=degree, trainable=kernel == "deformable")
    scale = grid.spacing if kernel == "atrous" else None
    return SplineBasis(_spread(grid, n_k), scale=scale, degree=degree)


def guarded(network: N) -> N:
    """The network itself, which now refuses weights that were learned with other splines on H than its own.

    Local and atrous splines are as wide as one step of the grid: on a finer grid the same weights are another kernel.
    The splines travel in `state_dict` as a small tensor beside each weight, which safetensors keeps too; states without
    it, of older versions or of a layer alone, load as they are.
    """
    for layer in network.modules():
        if isinstance(layer, GConv):
            layer.register_state_dict_post_hook(_tell)
            layer.register_load_state_dict_pre_hook(_compare)
    return network


def _tell(layer: nn.Module, state: dict[str, Any], prefix: str, metadata: dict[str, Any]) -> None:
    state[prefix + SPLINES] = _splines(layer)


def _compare(
    layer: nn.Module, state: Any, prefix: str, metadata: Any, strict: bool, missing: Any, unexpected: Any, errors: Any
) -> None:
    own, learned = _splines(layer), state.pop(prefix + SPLINES, None)
    if learned is None and SPLINES in metadata:  # where version 0.2 kept them
        learned = torch.tensor(_flat(metadata[SPLINES]), dtype=own.dtype)
    if learned is not None and not _same(learned, own):
        errors.append(
            f"{prefix}weight was learned with splines on H of width {learned[0]:.4g}, and here they have width "
            f"{own[0]:.4g}, or other centres: the same weights are another kernel. Build the network on the "
            'grid it was trained on; kernel="dense" with n_k keeps its splines on every grid'
        )


def _splines(layer: Any) -> Tensor:
    """Width, degree, number and centres of a layer's splines on H; learned centres are among the weights already."""
    basis = layer.h_basis
    centres = [] if basis.trainable else basis.grid.elements.flatten().tolist()
    numbers = _flat([basis.scale, basis.degree, len(basis), centres])
    return torch.tensor(numbers, dtype=torch.float64, device="cpu")


def _flat(value: Any) -> list[float]:
    return [number for one in value for number in _flat(one)] if isinstance(value, list | tuple) else [float(value)]


def _same(learned: Tensor, own: Tensor) -> bool:
    """Whether splines are the same, to what half precision leaves of them."""
    return learned.shape == own.shape and bool(((learned.to(own) - own).abs() <= 0.01 * own.abs().clamp_min(1)).all())


def _spread(grid: Grid, n: int | Sequence[int] | None) -> Grid:
    """Return n elements that cover what the grid covers, all of its own by default."""
    group = grid.group
    if n is None or n == len(grid):
        return grid
    if isinstance(group, Product) and isinstance(n, Sequence) and len(n) == len(group.factors):
        return _spread_each(group, grid, n)
    if not isinstance(n, int):
        raise ValueError(f"n_k = {n}: splines on {grid!r} take {_right(group)}")
    exact = (isinstance(group, SO3) and n in (12, 24, 60)) or (isinstance(group, O3) and n in (24, 48, 120))
    if isinstance(group.plane if isinstance(group, Axial) else group, SO2 | O2) or exact:
        return uniform(group, n)
    if isinstance(group, Scale) and n < len(grid):
        return uniform(group, n, spacing=grid.steps[0] * (len(grid) - 1) / max(n - 1, 1))
    if isinstance(group, SO3 | O3):
        return repulsion(group, n)
    raise ValueError(
        f"n_k = {n} splines cannot be spread over {grid!r}; leave n_k out, use a local kernel"
        + f", or take {_right(group)}" * isinstance(group, Product)
    )


def _spread_each(group: Product, grid: Grid, n: Sequence[int]) -> Grid:
    """Return every combination of n[i] elements of factor i, scales as far apart as those of the grid reach."""
    spacing: list[float | None] = []
    for factor, own, count, step in zip(group.factors, group.split(grid.elements), n, grid.steps, strict=True):
        if not isinstance(factor, SO2 | Scale):
            raise ValueError(
                f"n_k = {tuple(n)}: splines cannot be spread over {factor!r}; leave n_k out or use a local kernel"
            )
        log = factor.log(own)
        reach = float(log.max() - log.min())
        spacing.append(None if isinstance(factor, SO2) else reach / (count - 1) if count > 1 and reach else step)
    return uniform(group, tuple(n), spacing=tuple(spacing))


def _right(group: Group) -> str:
    if isinstance(group, Product):
        return f"{len(group.factors)} numbers, one per factor of {group!r}"
    return "one number"
