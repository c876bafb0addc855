"""The layers of the paper: lifting, group correlation and projection (section 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .. import functional, paths
from ..functional import Size
from ..grids import Grid
from ..splines import SplineBasis
from . import arguments, initial


class _Correlation(nn.Module):
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

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> _Correlation:
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


class Lift(_Correlation):
    """Lifting correlation (eq. liftingcor): an image `(B, in, *space)` to a feature map `(B, out, N_h, *space)`.

    `weight` is `(out, in, N_x)`. `kernel_size` is the sampled window at the identity, with `nn.Conv2d`'s arithmetic of
    shapes; scaling groups grow it with the element. The default basis keeps the kernel inside its window.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Size,
        grid: Grid,
        *,
        x_basis: SplineBasis | None = None,
        stride: int | Size = 1,
        padding: int | Size | str = 0,
        padding_mode: str = "zeros",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        arguments.grid("Lift", "grid", grid)
        if kernel_size is None:
            raise ValueError("Lift: kernel_size = None, but an image has space axes; give the window, such as 5")
        super().__init__(
            in_channels, out_channels, kernel_size, grid, grid, x_basis, None,
            stride, padding, padding_mode, bias, device, dtype,
        )  # fmt: skip

    def kernel(self) -> Tensor:
        """Return the sampled kernel `(out, N_h, in, *window)`, determinant included."""
        x_samples, _ = self.samples()
        with torch.autocast(x_samples.device.type, enabled=False):
            return paths.dense.lift_kernel(self.weight.to(x_samples.dtype), x_samples[:, 0]).to(self.weight.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Lift `(B, in, *space)` to `(B, out, N_h, *space)`."""
        arguments.feature_map(self, x, (self.in_channels,), "(B, in, *space)")
        x_samples, _ = self.samples()
        return functional.lift(x, self.weight, x_samples[:, 0], self.bias, **self._options())


class GConv(_Correlation):
    """Group correlation (eq. gcor): `(B, in, N_h, *space)` to `(B, out, N_h_out, *space)`.

    `weight` is `(out, in, N_x, N_k)`. `h_basis` decides the kind of kernel on H: dense (a spline on every element of
    the grid, the default), `local`, atrous, or with trainable centres. `kernel_size=None` means feature maps on H
    alone, `(B, in, N_h)`; with `grid` on the sphere and `out_grid` on SO(3) it lifts functions on S² to SO(3).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Size | None,
        grid: Grid,
        *,
        out_grid: Grid | None = None,
        x_basis: SplineBasis | None = None,
        h_basis: SplineBasis | None = None,
        stride: int | Size = 1,
        padding: int | Size | str = 0,
        padding_mode: str = "zeros",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        arguments.grid("GConv", "grid", grid)
        out_grid = grid if out_grid is None else arguments.grid("GConv", "out_grid", out_grid)
        arguments.same_group("GConv", grid, out_grid, kernel_size)
        super().__init__(
            in_channels, out_channels, kernel_size, grid, out_grid, x_basis, arguments.h_basis("GConv", h_basis, grid),
            stride, padding, padding_mode, bias, device, dtype,
        )  # fmt: skip

    def _renew_buffers(self) -> None:
        super()._renew_buffers()
        _, h_samples = self._exact_samples()
        assert h_samples is not None
        planned = h_samples.shape[1] == 1 and "h_centres" not in self._parameters
        with torch.device("cpu"):
            self.plan = paths.Plan(h_samples, self.window.sizes).to(self.weight.device) if planned else None

    def kernel(self) -> Tensor:
        """Return the sampled kernel `(out, N_h_out, in, N_h_in, *window)`, quadrature and determinant included."""
        x_samples, h_samples = self.samples()
        assert h_samples is not None
        with torch.autocast(x_samples.device.type, enabled=False):
            return paths.dense.kernel(self.weight.to(x_samples.dtype), x_samples, h_samples).to(self.weight.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Correlate `(B, in, N_h, *space)` to `(B, out, N_h_out, *space)`."""
        arguments.feature_map(self, x, (self.in_channels, len(self.grid)), "(B, in, N_h, *space)")
        x_samples, h_samples = self.samples()
        assert h_samples is not None
        return functional.correlate(x, self.weight, x_samples, h_samples, self.bias, **self._options(), plan=self.plan)


class Project(nn.Module):
    """Projection over H (eq. projection): `(B, C, N_h, *space)` to `(B, C, *space)`.

    "sum" is the integral with the grid's Haar weights, "mean" the same over its volume, "max" the maximum.
    """

    weights: Tensor

    def __init__(self, reduce: str, grid: Grid) -> None:
        super().__init__()
        if reduce not in ("max", "mean", "sum"):
            raise ValueError(f'Project: reduce = {reduce!r}, must be "max", "mean" or "sum"')
        self.reduce = reduce
        self.grid = arguments.grid("Project", "grid", grid)
        self.register_buffer("weights", grid.weights.to(torch.get_default_dtype()), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Project:
        super()._apply(fn, recurse)
        self.weights = self.grid.weights.to(self.weights)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Project `(B, C, N_h, *space)` to `(B, C, *space)`."""
        if x.ndim < 3 or x.shape[2] != len(self.grid):
            raise ValueError(
                f"Project: x has shape {tuple(x.shape)}; expected (B, C, {len(self.grid)}, *space), "
                f"the {len(self.grid)} elements of {self.grid!r} on axis 2"
            )
        return functional.project(x, self.reduce, self.weights)

    def extra_repr(self) -> str:
        """Show how H is reduced."""
        return f"{self.reduce!r}, {self.grid!r}"
