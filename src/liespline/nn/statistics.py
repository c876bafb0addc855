"""What norms know of H: how much of it each element of a grid stands for."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .._torch import beside
from ..grids import Grid
from ..grids.grid import on_cpu
from .shift import renew


class HaarWeighted(nn.Module):
    """A norm of `(B, C, N_h, *space)` whose means over H are integrals: Σ_h w(h) F(h) / Σ_h w(h) (Haar's weights)."""

    grid: Grid | None
    haar: Tensor | None
    """`(N_h,)`, of mean 1; None where all elements count alike, as on uniform grids."""

    def _set_grid(self, grid: Grid | None, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        self.grid = grid
        exact = None if grid is None else _unequal_weights(grid)
        new = torch.empty(0, device=device, dtype=dtype)
        self.register_buffer(
            "haar", exact if exact is None else beside(exact, new).to(new, copy=True), persistent=False
        )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> HaarWeighted:
        super()._apply(fn, recurse)
        if self.haar is not None and self.grid is not None and (exact := _unequal_weights(self.grid)) is not None:
            renew(self.haar, exact)
        return self

    def _weigh(self, values: Tensor) -> Tensor:
        """Multiply `(B, C, N_h, *space)` by the weights of its elements."""
        if self.haar is None or self.grid is None:
            return values
        if values.ndim < 3 or values.shape[2] != len(self.haar):
            raise ValueError(
                f"{type(self).__name__}: x has shape {tuple(values.shape)}; expected (B, C, {len(self.haar)}, *space), "
                f"the {len(self.haar)} elements of {self.grid!r} on axis 2"
            )
        return values * self.haar.to(values).view(-1, *(1,) * (values.ndim - 3))


@on_cpu
def _unequal_weights(grid: Grid) -> Tensor | None:
    relative = grid.weights / grid.weights.mean()
    return None if (relative - 1).abs().max() < 1e-6 else relative


def affine(normal: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Scale and move the channels of `(B, C, …)`."""
    shape = (1, -1, *(1,) * (normal.ndim - 2))
    normal = normal if weight is None else normal * weight.view(shape)
    return normal if bias is None else normal + bias.view(shape)
