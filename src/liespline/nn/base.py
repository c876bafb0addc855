"""What lifting and group correlation share (section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .. import functional, ops
from .._torch import beside, full_precision, has_values, real
from ..functional import Padding
from ..grids import Grid
from ..splines import SplineBasis
from . import arguments, initial
from .shift import Shiftable, renew
from .spec import Spec


class Correlation(Shiftable):
    """What lifting and group correlation share: a window, a spatial spline basis, and how its samples are kept.

    Fixed samples are non-persistent buffers, derived from float64 whenever the module moves or changes dtype, so a
    layer turned to float64 is exact and `state_dict` holds nothing but what is learned.
    """

    plan: ops.Plan | None = None
    weight: nn.Parameter
    bias: nn.Parameter | None
    x_samples: Tensor | None
    h_samples: Tensor | None
    x_centres: nn.Parameter
    h_centres: nn.Parameter
    x_points: Tensor
    h_points: Tensor
    x_factor: Tensor
    h_factor: Tensor

    def __init__(self, spec: Spec, *, bias: bool, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        super().__init__()
        in_channels, out_channels, grid, h_basis = spec.in_channels, spec.out_channels, spec.grid, spec.h_basis
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, spec.groups
        self.grid, self.out_grid = grid, spec.out_grid
        self.kernel_size, self.window, self.stride = spec.kernel_size, spec.window, spec.stride
        self.padding, self.padding_mode = spec.padding, spec.padding_mode
        self.borders = Padding(*self.window.borders(self.padding))  # about the largest window, not kernel_size
        self.x_basis, self.h_basis, self.h_boundary = spec.x_basis, h_basis, spec.h_boundary
        self._h_integral = 0.0 if h_basis is None or self.h_boundary == "zero" else h_basis.integral
        self.axial = functional.harmonics(self.x_basis, h_basis, grid, self.out_grid, self.window)
        self.in_type = spec.in_type
        rank = ("scalar", "vector", "tensor").index(spec.in_type)
        components = (self.out_grid.group.space_dim,) * rank if h_basis is None else (len(grid),)
        self._axes = (in_channels, *components)  # of an input, but B and space
        n_k = (math.prod(components),) if rank else () if h_basis is None else (len(h_basis),)
        shape = (out_channels, in_channels // self.groups, len(self.x_basis), *n_k)
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(out_channels, device=device, dtype=dtype)) if bias else None
        if self.x_basis.trainable:
            self.x_centres = self._new_centres(self.x_basis)
        if h_basis is not None and h_basis.trainable:
            self.h_centres = self._new_centres(h_basis)
        self._renew_buffers()
        self.reset_parameters()

    def reset_parameters(self, bandwidth: float = initial.BANDWIDTH) -> None:
        """Draw new coefficients so that activations keep their size; the bias is zero, centres are the grid's.

        `bandwidth` is 0 for smooth kernels, up to 1/2 for a flat expected spectrum.
        """
        h_samples = None
        with real():
            x_samples = functional.space_samples(self.x_basis, self.out_grid, self.window, self.axial)
            if self.h_basis is None:
                x_samples = x_samples[:, :1]
            else:
                h_samples = functional.group_samples(
                    self.h_basis, self.grid, self.out_grid, self.axial, self.h_boundary
                )
            arguments.overlap(type(self).__name__, x_samples, h_samples)
        if not has_values(self.weight):
            return
        with torch.no_grad(), torch.device("cpu"):
            weight = self.weight
            # On the CPU, whose draws are the same everywhere; half precision has no orthogonal matrices.
            drawn = torch.empty(weight.shape, dtype=_sample_dtype(weight))
            if self.in_type != "scalar":  # components are drawn like so many channels
                drawn = drawn.new_empty(len(weight), math.prod(self._axes) // self.groups, len(self.x_basis))
            bases = self.x_basis, self.h_basis, self.grid, self.out_grid, self.window, self.axial
            initial.fill(drawn, initial.start(*bases, self.h_boundary, bandwidth))
            if self.in_type != "scalar":
                drawn = drawn.unflatten(1, (weight.shape[1], -1)).movedim(2, -1)
            weight.copy_(drawn)
            for basis, centres in self._trained():
                centres.copy_(basis.grid.group.log(basis.grid.elements))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def samples(self) -> tuple[Tensor, Tensor | None]:
        """Return the sampled bases `(A, M, *W, N_x)` and `(A, M, N, N_k)`, differentiable in trainable centres."""
        x_samples, h_samples = self._buffers["x_samples"], self._buffers["h_samples"]  # sooner found so
        if x_samples is None:
            x_samples = self._sampled(self.x_basis, self.x_centres, self.x_points, self.x_factor)
            x_samples = functional.in_window(x_samples, self.window)
        if h_samples is None and self.h_basis is not None:
            h_samples = self._sampled(self.h_basis, self.h_centres, self.h_points, self.h_factor)
        return x_samples, h_samples

    def _check(self, x: Tensor, weight: Tensor) -> None:
        """Check an input against what the layer was built for."""
        axes = self._axes
        if x.shape[1 : 1 + len(axes)] != axes or x.ndim != 1 + len(axes) + len(self.kernel_size):
            arguments.wrong_shape(type(self).__name__, x, axes, len(self.kernel_size), self.in_type)
        if x.device != weight.device or x.dtype != weight.dtype:
            arguments.check_same_kind(type(self).__name__, x, weight)
        if torch.compiler.is_compiling():
            return
        space = x.shape[1 + len(axes) :]
        for size, k, step, p, q in zip(space, self.kernel_size, self.stride, *self.padding, strict=True):
            if size + p + q < k:
                arguments.too_small(type(self).__name__, x, self.kernel_size, self.padding)
            if (step > 1 or p != q) and len(self.out_grid) > 1:
                arguments.tell_off_centre(type(self).__name__, size, k, step, p, q)

    def _sampled(self, basis: SplineBasis, centres: Tensor, points: Tensor, factor: Tensor) -> Tensor:
        with full_precision(points.device):
            moved = basis.centres(centres.to(points.dtype))
            samples = functional.sample(basis, points, factor, centres=moved, axial=self.axial)
            cut_off = basis is not self.h_basis or self.h_boundary == "zero"
            return samples if cut_off else functional.renormalised(samples, basis, points, self._h_integral, moved)

    def _new_centres(self, basis: SplineBasis) -> nn.Parameter:
        return nn.Parameter(self.weight.new_empty((len(basis), basis.grid.group.dim)))

    def _trained(self) -> list[tuple[SplineBasis, nn.Parameter]]:
        found = [(self.x_basis, self.x_centres)] if self.x_basis.trainable else []
        if self.h_basis is not None and self.h_basis.trainable:
            found.append((self.h_basis, self.h_centres))
        return found

    # ---- what is derived from bases and grids, exactly, wherever the layer goes ----

    def _derived(self) -> dict[str, Tensor | None]:
        """Return the buffers in float64: samples of fixed bases, and where those of learned centres are taken."""
        found: dict[str, Tensor | None] = {"x_samples": None, "h_samples": None}
        if self.x_basis.trainable:
            found["x_points"], found["x_factor"] = functional.space_points(self.out_grid, self.window)
        else:
            found["x_samples"] = functional.space_samples(self.x_basis, self.out_grid, self.window, self.axial)
        if self.h_basis is not None and self.h_basis.trainable:
            found["h_points"], found["h_factor"] = functional.group_points(*self._relative)
        elif self.in_type != "scalar":
            found["h_samples"] = functional.frames(self.out_grid, self.in_type)
        elif self.h_basis is not None:
            found["h_samples"] = functional.group_samples(self.h_basis, *self._relative, self.axial, self.h_boundary)
        return found

    @property
    def _relative(self) -> tuple[Grid, Grid]:
        """Grids with the h⁻¹h̃ of those in use: as built, so that a shift samples nothing on H anew.

        On a quotient it is known up to a turn about the axis, and that does change.
        """
        if self._home is None or self.out_grid.group.quotient_of is not None:
            return self.grid, self.out_grid
        return self._home["grid"], self._home["out_grid"]

    def _renew_buffers(self) -> None:
        weight = self.weight
        device, dtype = weight.device, _sample_dtype(weight)
        for name, exact in self._derived().items():
            old = self._buffers.get(name)
            if exact is None or old is None or (old.device, old.dtype, old.shape) != (device, dtype, exact.shape):
                new = (
                    None if exact is None else beside(exact, weight).to(device, dtype, copy=True)
                )  # the exact one is everybody's
                self.register_buffer(name, new, persistent=False)
            else:
                renew(old, exact)
        if self.groups > 1 or self.in_type != "scalar":  # computed as one grouped convolution, or without a plan
            return
        where = device if has_values(weight) else torch.device("cpu")
        plan = functional.plan(
            self.x_basis, self.h_basis, *self._relative, self.out_grid, self.window, where, self.h_boundary
        )
        self.plan = plan and plan.beside(weight)

    def _rederive(self) -> None:
        if self._home is not None and self.out_grid is not self._home["out_grid"]:
            self.window = functional.window(self.out_grid, self.kernel_size)
        self.borders = Padding(*self.window.borders(self.padding))
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
            "sizes": self.window.sizes,
            "stride": self.stride,
            "padding": self.borders,
            "padding_mode": self.padding_mode,
            "groups": self.groups,
            "plan": self.plan,
        }

    def extra_repr(self) -> str:
        """Show the layer the way torch shows its own."""
        window = "×".join(map(str, self.kernel_size)) or "no space"
        n_k = "" if self.h_basis is None else f", N_k={len(self.h_basis)}"
        padding = self.padding.before if self.padding.before == self.padding.after else self.padding
        return (
            f"{self.in_channels}, {self.out_channels}, {window}, {self.out_grid!r}, "
            f"N_x={len(self.x_basis)}{n_k}, stride={self.stride}, padding={padding}"
            + (f", groups={self.groups}" if self.groups > 1 else "")
            + (f", in_type={self.in_type!r}" if self.in_type != "scalar" else "")
            + (f", h_boundary={self.h_boundary!r}" if self.h_boundary != "zero" else "")
        )


def _sample_dtype(weight: Tensor) -> torch.dtype:
    # Kernels are sampled in float32 even where the network computes in half precision.
    return torch.float64 if weight.dtype == torch.float64 else torch.float32
