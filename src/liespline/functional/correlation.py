"""The three layers of section 3.2 on plain tensors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import ops
from .._check import Size
from .._check import sizes as whole_numbers
from .._torch import full_precision, is_autocast, real, recorded, widened
from ..grids import Grid
from ..ops import blur, choose
from ..ops.correlate import fields, reference, whole
from ..ops.mix import blocks
from ..ops.path import Choice
from ..ops.plan import kept
from ..splines import SplineBasis
from . import translations
from .bispectrum import bispectrum
from .border import Padding, check_room, disc_pad, spread
from .sampling import Window, group_samples, space_samples


def lift(
    x: Tensor,
    weight: Tensor,
    x_samples: Tensor,
    bias: Tensor | None = None,
    *,
    sizes: tuple[Size, ...] | None = None,
    stride: int | Size = 1,
    padding: int | Size | Padding = 0,
    padding_mode: str = "zeros",
    groups: int = 1,
    plan: ops.Plan | None = None,
) -> Tensor:
    """Return the lifting correlation (eq. liftingcor): out(x, h) = 1/|det h| Σ_y k(h⁻¹(y − x)) f(y).

    x `(B, C, *space)`, weight `(O, C/groups, N_x)`, x_samples `(A, *W, N_x)` → `(B, O, A, *space)`. Samples are those
    of `space_samples`. Stride, padding and groups are those of a convolution with the window W; `sizes` says that the
    kernels of the A elements are zero outside smaller windows in the middle of W, which saves time, and so may `plan`.
    """
    window = tuple(x_samples.shape[1:-1])
    sizes, stride, border = _options(window, len(x_samples), sizes, stride, padding)
    x, zeros = pad(x, border, padding_mode)
    if groups > 1:
        return add_bias(
            reference.grouped(x, _sampled(reference.lift_kernel, weight, x_samples), groups, stride, zeros), bias
        )
    choice = choose.choose(x, weight, sizes, stride, zeros, plan)
    x = x.to(choice.dtype)
    with full_precision(x.device):
        if choice.blurred:
            x, x_samples, sizes, zeros, plan = _blurred(x, plan, zeros, choice, choice.keep)
            x_samples = x_samples[:, 0]
        weight, x_samples = choose.exact(weight, x_samples)
        sample = partial(reference.lift_kernel, weight, x_samples)
        sampled = whole.evaluated(weight, plan, "lift", sample) if plan is not None and choice.keep else sample()
        out = whole.convolve(x, sampled, sizes, choice, stride, zeros)
    return add_bias(out, bias)


def correlate(
    x: Tensor,
    weight: Tensor,
    x_samples: Tensor,
    h_samples: Tensor,
    bias: Tensor | None = None,
    *,
    sizes: tuple[Size, ...] | None = None,
    stride: int | Size = 1,
    padding: int | Size | Padding = 0,
    padding_mode: str = "zeros",
    groups: int = 1,
    plan: ops.Plan | None = None,
) -> Tensor:
    """Return the group correlation (eq. gcor): out(x, h) = 1/|det h| Σ_h̃ w(h̃) Σ_y K(h⁻¹(y − x), h⁻¹h̃) F(y, h̃).

    out[:,o,a] = Σ_cby K[o,a,c,b,y] x[:,c,b,·+y],
    K[o,a,c,b,y] = Σ_ijm weight[o,c,i,j] x_samples[a,m,y,i] h_samples[a,m,b,j]  (eq. BSplinesOnG)

    x `(B, C, N, *space)`, weight `(O, C/groups, N_x, N_k)`, x_samples `(A, M, *W, N_x)`, h_samples `(A, M, N, N_k)`
    → `(B, O, A, *space)`. Samples are those of `space_samples` and `group_samples`, options those of `lift`. What the
    samples allow to leave out is in the `plan`; without one the whole kernel is computed, with the same result.
    """
    window = tuple(x_samples.shape[2:-1])
    sizes, stride, border = _options(window, x_samples.shape[0], sizes, stride, padding)
    x, zeros = pad(x, border, padding_mode)
    if groups > 1:
        kernel = _sampled(reference.kernel, weight, x_samples, h_samples)
        return add_bias(reference.grouped(x, kernel, groups, stride, zeros), bias)
    choice = choose.choose(x, weight, sizes, stride, zeros, plan)
    x, plan = x if x.dtype == choice.dtype else x.to(choice.dtype), plan and plan.on(x.device)
    with full_precision(x.device):
        keep = choice.keep and not (x_samples.requires_grad or h_samples.requires_grad)
        if choice.blurred:
            x, x_samples, sizes, zeros, plan = _blurred(x, plan, zeros, choice, keep)
        weight, x_samples, h_samples = choose.exact(weight, x_samples, h_samples)
        if choice.paths[0] is blocks.PATH:
            assert plan is not None
            out = blocks.correlate(x, weight, x_samples, h_samples, plan, partial(kept, plan) if keep else fields.made)
        elif plan is None or choice.whole:
            if plan is not None and keep:
                sampled = whole.kept_kernel(weight, x_samples, h_samples, plan, "whole", x.is_cuda)
            else:
                sampled = reference.kernel(weight, x_samples, h_samples)
            out = whole.convolve(x, sampled, sizes, choice, stride, zeros)
        else:
            out = fields.correlate(
                x, weight, x_samples, h_samples, plan=plan, choice=choice, stride=stride, padding=zeros, keep=keep
            )
    return add_bias(out, bias)


def project(x: Tensor, reduce: str, weights: Tensor) -> Tensor:
    """Return the projection over H (eq. projection), `(B, C, N, *space)` → `(B, C, *space)`.

    "sum" is the integral with the Haar weights of the grid, "mean" the same over its volume, "max" the maximum;
    "vector" is the integral of F(h) h·e₀ over the volume, weights `(d, N)`, → `(B, C, d, *space)`; "bispectrum"
    and "joint-bispectrum" are `bispectrum`, weights `fourier_rows`.
    Under autocast it is computed, and leaves, in float32.
    """
    if reduce == "max":
        # The gradient of amax looks for the maximum again: among what a compiler recomputed unrounded there is none.
        # torch.jit.trace traces twice, with and without gradients, and wants to find the same.
        out = x.max(2).values if torch.is_grad_enabled() or recorded() else x.amax(2)
        return widened(out) if is_autocast(x.device) else out
    if reduce.endswith("bispectrum"):
        return bispectrum(x, weights, joint=reduce == "joint-bispectrum")
    return against(x, weights / weights.sum() if reduce == "mean" else weights)


def against(x: Tensor, weights: Tensor) -> Tensor:
    """Return Σ_n weights[n] x[:, :, n] of `(B, C, N, *space)`, for weights `(M, N)` with M in the place of N."""
    if is_autocast(x.device):
        with full_precision(x.device):
            return against(widened(x), weights)
    out = weights.to(x) @ x.reshape(*x.shape[:3], -1)
    return out.reshape(*out.shape[:-1], *x.shape[3:])


def _blurred(
    x: Tensor, plan: ops.Plan | None, padding: Size, choice: Choice, keep: bool
) -> tuple[Tensor, Tensor, tuple[Size, ...], Size, ops.Plan | None]:
    """Return the blurred input, and the samples, windows, padding and plan of what it meets then."""
    plan = plan and plan.on(x.device)
    assert plan is not None
    assert plan.blur is not None
    spline, centres = plan.blur.spline, plan.blur.centres
    make = partial(blur.factors, x, spline, padding)
    by = kept(plan, ("blur", x.shape[-spline.ndim :], x.dtype, padding), make) if keep else make()
    x = blur.blurred(x, by, padding, choice.order)
    return x, centres, (plan.blur.window,) * len(centres), (0,) * len(padding), plan.centres


def _sampled(kernel: Callable[..., Tensor], weight: Tensor, *samples: Tensor) -> Tensor:
    with full_precision(weight.device):
        return kernel(weight.to(samples[0].dtype), *samples).to(weight.dtype)


# ---- plans, shared by layers that have the same samples ----

_lock = threading.Lock()
_plans: WeakValueDictionary[Any, ops.Plan] = WeakValueDictionary()


def plan(
    x_basis: SplineBasis,
    h_basis: SplineBasis | None,
    grid: Grid,
    out_grid: Grid,
    space_grid: Grid,
    window: Window,
    device: torch.device,
    boundary: str = "zero",
) -> ops.Plan | None:
    """Return the plan of a group correlation on a device, None where centres on H train: they may move anywhere.

    That of a lifting (no `h_basis`) is the plan of a correlation with a single element. A quotient has none either,
    because its samples do not factor. `space_grid` is the output's grid as it acts on space: h·H where layers were
    shifted.
    """
    if (h_basis is not None and h_basis.trainable) or out_grid.group.quotient_of is not None:
        return None
    key = x_basis, h_basis, grid, out_grid, space_grid, window, device, boundary
    with _lock:
        found = _plans.get(key)
    if found is None:
        if space_grid != out_grid:  # tables are about H, where nothing moved
            home = plan(x_basis, h_basis, grid, out_grid, out_grid, window, device, boundary)
            assert home is not None
            made = home.moved()
        else:
            x_samples = None if x_basis.trainable else space_samples(x_basis, space_grid, window)
            single = max(window.largest, default=1) == 1 and grid == out_grid
            cut = translations.blocks(grid) if single else None
            with real():
                h_samples = torch.ones(len(out_grid), 1, 1, 1)
                if h_basis is not None:
                    h_samples = group_samples(h_basis, grid, out_grid, boundary=boundary)
                made = ops.plan_of(h_samples, window.sizes, x_samples, cut).on(device)
        with _lock:
            found = _plans.setdefault(key, made)
    return found


# ---- options and padding ----


def _options(
    window: Size,
    elements: int,
    sizes: tuple[Size, ...] | None,
    stride: int | Size,
    padding: int | Size | Padding,
) -> tuple[tuple[Size, ...], Size, Padding]:
    d = len(window)
    if not isinstance(stride, tuple):
        stride = whole_numbers("correlate", "stride", stride, d, least=1)
    if not isinstance(padding, Padding):
        padding = Padding(*(whole_numbers("correlate", "padding", padding, d, least=0),) * 2)
    return (window,) * elements if sizes is None else sizes, stride, padding


def pad(x: Tensor, padding: Padding, mode: str) -> tuple[Tensor, Size]:
    """Return x with the padding that a convolution cannot do by itself, and the zeros that it still has to add.

    Raises ValueError where an image is too small to be reflected or repeated so far.
    """
    before, after = padding
    none = (0,) * len(before)
    if mode == "disc" and before:
        return disc_pad(x, padding), none
    if before == after and (mode == "zeros" or not any(before)):
        return x, before
    sides = spread(padding)
    if mode == "zeros":
        return F.pad(x, sides), none
    # F.pad wants (batch, channel, *space); a feature map's H axis is one more channel axis to it
    lead = x.ndim - len(before)
    check_room(x.shape[lead:], padding, mode)
    padded = F.pad(x.flatten(1, lead - 1), sides, mode=mode)
    return padded.unflatten(1, x.shape[1:lead]), none


def add_bias(out: Tensor, bias: Tensor | None) -> Tensor:
    """Return out `(B, O, A, *space)` with a bias for each channel."""
    if bias is None:
        return out
    bias = bias if bias.dtype == out.dtype else bias.to(out.dtype)
    return out + bias.view(-1, *(1,) * (out.ndim - 2))
