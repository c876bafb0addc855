"""How a layer is computed: every path gives the dense path's numbers, to rounding."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from liespline.paths import banded, cost, dense
from liespline.paths.plan import Plan, Route

__all__ = ["Plan", "correlate", "lift", "use"]

Size = tuple[int, ...]
_NAMES = ("auto", "dense", "banded")


def _known(name: str) -> str:
    if name not in _NAMES:
        raise ValueError(f"unknown path {name!r}: use one of {', '.join(_NAMES)}")
    return name


_forced = _known(os.environ.get("LIESPLINE_PATH", "auto"))


@contextmanager
def use(name: str) -> Iterator[None]:
    """Compute by one path inside the block ("auto" chooses by cost): `with paths.use("dense"): ...`."""
    global _forced
    before, _forced = _forced, _known(name)
    try:
        yield
    finally:
        _forced = before


def correlate(
    x: Tensor,
    weight: Tensor,
    x_samples: Tensor,
    h_samples: Tensor,
    *,
    sizes: tuple[Size, ...],
    stride: Size,
    padding: Size,
    plan: Plan | None = None,
) -> Tensor:
    """Correlate a feature map with spline coefficients (eq. gcor with the kernel of eq. BSplinesOnG).

    out[:,o,a] = Σ_cby K[o,a,c,b,y] x[:,c,b,·+y],
    K[o,a,c,b,y] = Σ_ijm weight[o,c,i,j] x_samples[a,m,y,i] h_samples[a,m,b,j]

    x (B, C, N_in, *space), weight (O, C, N_x, N_k), x_samples (A, M, *W, N_x), h_samples (A, M, N_in, N_k)
    -> (B, O, A, *space); sizes are the A elements' own windows, centred in the largest one W. Without a plan
    the path is dense.
    """
    route = None if plan is None else _route(x, weight, plan, sizes)
    if plan is not None and route is not None:
        return banded.correlate(x, weight, x_samples, h_samples, plan, route, stride, padding, banded.grouped)
    dtype = dense.accumulate_dtype(x, weight, x_samples, h_samples)
    with torch.autocast(x.device.type, enabled=False):
        sampled = dense.kernel(weight.to(dtype), x_samples.to(dtype), h_samples.to(dtype))
    return dense.convolve(x.flatten(1, 2), sampled.flatten(2, 3).to(x.dtype), sizes, stride, padding)


def lift(
    x: Tensor, weight: Tensor, x_samples: Tensor, *, sizes: tuple[Size, ...], stride: Size, padding: Size
) -> Tensor:
    """Lift an image to the group (eq. liftingcor).

    x (B, C, *space), weight (O, C, N_x), x_samples (A, *W, N_x) -> (B, O, A, *space).
    """
    dtype = dense.accumulate_dtype(x, weight, x_samples)
    with torch.autocast(x.device.type, enabled=False):
        sampled = dense.lift_kernel(weight.to(dtype), x_samples.to(dtype))
    return dense.convolve(x, sampled.to(x.dtype), sizes, stride, padding)


def _route(x: Tensor, weight: Tensor, plan: Plan, sizes: tuple[Size, ...]) -> Route | None:
    """The banded route to take, or None where dense costs less."""
    windows = tuple((sizes.count(window), math.prod(window)) for window in plan.windows)
    shape = cost.Shape(weight.shape[1], weight.shape[0], x.shape[2], windows, len(plan.rows))
    costs = [cost.banded(shape, route) for route in plan.routes]
    cheapest = min(costs)
    if _forced == "dense" or (_forced == "auto" and cheapest >= cost.dense(shape)):
        return None
    return plan.routes[costs.index(cheapest)]
