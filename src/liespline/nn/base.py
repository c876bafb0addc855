"""What lifting and group correlation share (section 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .. import functional
from ..functional import Size
from ..grids import Grid
from ..splines import SplineBasis
from . import arguments, initial
from .shift import Shiftable


class Correlation(Shiftable):
    """What lifting and group correlation share: a window, a spatial spline basis, and how its samples are kept.

    Fixed samples are non-persistent buffers, derived from float64 whenever the module moves or changes dtype, so a
    layer turned to float64 is exact and `state_dict` holds nothing but what is learned.
    """

    weight: nn.Parameter
    bias: nn.Parameter | None
    x_samples: Tensor | None
    h_samples: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Size | None,
        grid: Grid,
        out_grid: Grid,
        x_basis: SplineBasis | None,
        h_basis: SplineBasis | None,
        stride: int | Size,
        padding: int | Size | str,
        padding_mode: str,
        bias: bool,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.in_channels = arguments.count(name, "in_channels", in_channels)
        self.out_channels = arguments.count(name, "out_channels", out_channels)
        self.grid, self.out_grid = grid, out_grid
        space_dim = out_grid.group.space_dim
        self.kernel_size = arguments.kernel_size(name, kernel_size, space_dim)
        self.stride = arguments.sizes(name, "stride", stride, len(self.kernel_size), least=1)
        self.padding = arguments.padding(name, padding, self.kernel_size, self.stride)
        self.padding_mode = arguments.padding_mode(name, padding_mode)
        self.window = functional.window(out_grid, self.kernel_size)
        self.x_basis = arguments.x_basis(name, x_basis, self.kernel_size, space_dim)
        self.h_basis = h_basis
        arguments.warn_if_cut_off(name, self.x_basis, out_grid, self.window)
        n_k = () if h_basis is None else (len(h_basis),)
        shape = (out_channels, in_channels, len(self.x_basis), *n_k)
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(out_channels, device=device, dtype=dtype)) if bias else None
        for axis, basis in (("x", self.x_basis), ("h", h_basis)):
            if basis is not None and basis.trainable:
                basis.claim(self)
                shape = (len(basis), basis.grid.group.dim)
                self.register_parameter(f"{axis}_centres", nn.Parameter(self.weight.new_empty(shape)))
        self._renew_buffers()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new coefficients, such that activations keep their size; the bias is zero, centres are the grid's."""
        x_samples, h_samples = self._exact_samples()
        if h_samples is None:
            x_samples = x_samples[:, :1]
        arguments.overlap(type(self).__name__, x_samples, h_samples)
        with torch.no_grad(), torch.device("cpu"):
            drawn = self.weight.to(self._sample_dtype)  # half precision has no orthogonal matrices
            initial.fill(drawn, x_samples, h_samples)
            self.weight.copy_(drawn)
            for axis, basis in (("x", self.x_basis), ("h", self.h_basis)):
                if basis is not None and basis.trainable:
                    self.get_parameter(f"{axis}_centres").copy_(basis.grid.group.log(basis.grid.elements))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def samples(self) -> tuple[Tensor, Tensor | None]:
        """Return the sampled bases `(A, M, *W, N_x)` and `(A, M, N, N_k)`, differentiable in trainable centres."""
        result: list[Tensor | None] = []
        for axis, basis in (("x", self.x_basis), ("h", self.h_basis)):
            fixed: Tensor | None = getattr(self, f"{axis}_samples")
            if fixed is None and basis is not None:
                centres = basis.centres(getattr(self, f"{axis}_centres").to(self._sample_dtype))
                points, factor = getattr(self, f"{axis}_points"), getattr(self, f"{axis}_factor")
                axial = functional.axial(self.out_grid)
                with torch.autocast(points.device.type, enabled=False):
                    fixed = functional.sample(basis, points, factor, centres=centres, axial=axial)
                fixed = functional.in_window(fixed, self.window) if axis == "x" else fixed
            result.append(fixed)
        x_samples, h_samples = result
        assert x_samples is not None
        return x_samples, h_samples

    @property
    def _sample_dtype(self) -> torch.dtype:
        # Kernels are sampled in float32 even where the network computes in half precision.
        return torch.float64 if self.weight.dtype == torch.float64 else torch.float32

    def _exact_samples(self) -> tuple[Tensor, Tensor | None]:
        x_samples = functional.space_samples(self.x_basis, self.out_grid, self.window)
        if self.h_basis is None:
            return x_samples, None
        return x_samples, functional.group_samples(self.h_basis, self.grid, self.out_grid)

    def _renew_buffers(self) -> None:
        device, dtype = self.weight.device, self._sample_dtype
        x_samples, h_samples = self._exact_samples()
        sources: dict[str, tuple[SplineBasis | None, Tensor | None, Callable[[], tuple[Tensor, Tensor]]]] = {
            "x": (self.x_basis, x_samples, lambda: functional.space_points(self.out_grid, self.window)),
            "h": (self.h_basis, h_samples, lambda: functional.group_points(self.grid, self.out_grid)),
        }
        for axis, (basis, exact, where) in sources.items():
            learned = basis is not None and basis.trainable
            fixed = None if learned or exact is None else exact.to(device, dtype)
            self.register_buffer(f"{axis}_samples", fixed, persistent=False)
            if learned:
                points, factor = where()
                self.register_buffer(f"{axis}_points", points.to(device, dtype), persistent=False)
                self.register_buffer(f"{axis}_factor", factor.to(device, dtype), persistent=False)

    def _rederive(self) -> None:
        self.window = functional.window(self.out_grid, self.kernel_size)
        self._renew_buffers()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Correlation:
        def apply(tensor: Tensor) -> Tensor:
            # Coefficients (O, C, N_x, N_k) and samples are no images: channels_last is not for them.
            return fn(tensor.flatten(1)).view(tensor.shape) if tensor.ndim > 3 else fn(tensor)

        super()._apply(apply, recurse)
        self._renew_buffers()
        return self

    def _load_from_state_dict(self, *args: Any) -> None:
        before = self.weight.device, self.weight.dtype
        super()._load_from_state_dict(*args)
        if before != (self.weight.device, self.weight.dtype):  # by assign=True, say on a layer made on the meta device
            self._renew_buffers()

    def _options(self) -> dict[str, Any]:
        return {
            "window": self.window,
            "stride": self.stride,
            "padding": self.padding,
            "padding_mode": self.padding_mode,
        }

    def extra_repr(self) -> str:
        """Show the layer the way torch shows its own."""
        window = "×".join(map(str, self.kernel_size)) or "no space"
        n_k = "" if self.h_basis is None else f", N_k={len(self.h_basis)}"
        return (
            f"{self.in_channels}, {self.out_channels}, {window}, {self.out_grid!r}, "
            f"N_x={len(self.x_basis)}{n_k}, stride={self.stride}, padding={self.padding}"
        )
