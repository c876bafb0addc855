"""One place that chooses: the cheapest path for a layer's shapes, or the one the user forces."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from liespline.paths import cost, triton
from liespline.paths.plan import Plan, Route

Size = tuple[int, ...]
_NAMES = ("auto", "dense", "banded", "triton")


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


def choose(x: Tensor, weight: Tensor, plan: Plan | None, sizes: tuple[Size, ...]) -> tuple[str, Route | None]:
    """The path's name and, for all but the dense one, its route. Without a plan there is only the dense one."""
    if plan is None or _forced == "dense":
        return "dense", None
    parts = tuple(
        cost.Part(sizes.count(window), math.prod(window), window[-1] if window else 1) for window in plan.windows
    )
    shape = cost.Shape(weight.shape[1], weight.shape[0], x.shape[2], len(plan.rows), parts)
    options: list[tuple[str, Route | None]] = []
    costs: list[float] = []
    if _forced == "auto":
        options.append(("dense", None))
        costs.append(cost.dense(shape, x.is_cuda))
    if _forced == "banded" or (_forced == "auto" and (not x.is_cuda or _single(parts))):
        for route in plan.routes:
            options.append(("banded", route))
            costs.append(cost.banded(shape, route, x.is_cuda))
    if _forced == "triton" or (_forced == "auto" and x.is_cuda and _fast_dot(x)):
        if triton.available(x, plan.windows):
            for route in plan.routes:
                if route.group == 1:
                    options.append(("triton", route))
                    costs.append(cost.triton(shape, route))
        elif _forced == "triton":
            raise ValueError(f"path 'triton' does not take {x.dtype} on {x.device} with windows {plan.windows}")
    return options[costs.index(min(costs))]


def _single(parts: tuple[cost.Part, ...]) -> bool:
    # cuDNN's grouped convolutions are slow; with one element a part none is needed.
    return all(part.elements == 1 for part in parts)


def _fast_dot(x: Tensor) -> bool:
    half = x.dtype in (torch.float16, torch.bfloat16) or torch.is_autocast_enabled(x.device.type)
    return half or torch.backends.cudnn.allow_tf32
