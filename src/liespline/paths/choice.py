"""One place that chooses: the cheapest path for a layer's shapes, or the one the user forces."""

from dataclasses import dataclass

import torch
from torch import Tensor

from liespline.paths import cost, fourier, triton
from liespline.paths.force import forced
from liespline.paths.plan import Plan, Route

Size = tuple[int, ...]


@dataclass(frozen=True)
class Choice:
    """A factorisation over H, and for each part of the plan how its blocks are correlated in space."""

    route: Route
    methods: tuple[str, ...]  # "banded", "separable" or "triton"


def choose(
    x: Tensor, weight: Tensor, plan: Plan | None, sizes: tuple[Size, ...], stride: Size = (1, 1), padding: Size = (0, 0)
) -> Choice | None:
    """What to do, None for the whole kernel, dense or by Fourier. Without a plan there is no other."""
    if plan is None or forced() in ("dense", "fourier"):
        return None
    if torch.compiler.is_compiling():
        return _cheapest(x, weight, plan, sizes, stride, padding)
    key = (forced(), x.shape, weight.shape, x.device.type, x.dtype, _fast_dot(x), stride, padding)
    if key not in plan.choices:
        plan.choices[key] = _cheapest(x, weight, plan, sizes, stride, padding)
    return plan.choices[key]


def _cheapest(
    x: Tensor, weight: Tensor, plan: Plan, sizes: tuple[Size, ...], stride: Size, padding: Size
) -> Choice | None:
    machine = cost.CUDA if x.is_cuda else cost.CPU
    lowest, found = float("inf"), None
    if forced() == "auto":
        whole = [_part(x, weight, plan, sizes, part, x.shape[2], 1) for part in range(len(plan.windows))]
        lowest = sum(_whole(x, part, plan.windows[-1], stride, padding, machine) for part in whole)
    for route in plan.routes:
        total = cost.mixing(len(plan.rows), x.shape[2], x.shape[1], machine) if route.mixed else 0.0
        methods = []
        for part, width in enumerate(route.widths):
            method, price = _method(x, _part(x, weight, plan, sizes, part, width, route.group), machine)
            methods.append(method)
            total += price
        if total < lowest:
            lowest, found = total, Choice(route, tuple(methods))
    if found is None and forced() == "triton":
        raise ValueError(f"path 'triton' does not take {x.dtype} on {x.device} with windows {plan.windows}")
    return found


def _whole(x: Tensor, part: cost.Part, largest: Size, stride: Size, padding: Size, machine: cost.Machine) -> float:
    """The cost of a part's whole kernel, of which `dense.convolve` takes the cheaper way."""
    other = None
    if len(largest) == 2 and fourier.possible(x, stride):
        inputs, outputs = part.width * part.channels, part.elements * part.outputs
        space = fourier.outputs_of(x.shape[3:], largest, padding)
        other = fourier.cheaper(len(x), inputs, outputs, space, part.window)
    return cost.dense(part, machine) if other is None else other


def _part(
    x: Tensor, weight: Tensor, plan: Plan, sizes: tuple[Size, ...], part: int, width: int, group: int
) -> cost.Part:
    window = plan.windows[part]
    return cost.Part(
        elements=len([size for size in sizes if size == window]),  # not count, which torch 2.11 does not trace
        window=window,
        channels=weight.shape[1],
        outputs=weight.shape[0],
        height=x.shape[3] if window else 1,
        rank=plan.ranks[part],
        width=width,
        group=group,
        # A compiled network pays nothing for its launches.
        positions=1 << 60 if torch.compiler.is_compiling() else x.numel() // (x.shape[1] * x.shape[2]),
    )


def _method(x: Tensor, part: cost.Part, machine: cost.Machine) -> tuple[str, float]:
    """The cheapest way to correlate a part that is allowed, and its cost; infinite where none is."""
    # cuDNN's grouped convolutions are slow, so on a GPU the paths that use them wait for a single group.
    plain = forced() in ("banded", "separable") or (
        forced() == "auto" and (not x.is_cuda or part.elements == part.group)
    )
    method, price = "banded", float("inf")
    if plain and (forced() != "separable" or not part.rank):
        price = cost.banded(part, machine)
    if plain and forced() != "banded" and part.rank and cost.separable(part, machine) < price:
        method, price = "separable", cost.separable(part, machine)
    takes = forced() == "triton" or (forced() == "auto" and x.is_cuda and _fast_dot(x))
    if takes and part.group == 1 and triton.available(x, part.window) and cost.triton(part, machine) < price:
        method, price = "triton", cost.triton(part, machine)
    return method, price


def _fast_dot(x: Tensor) -> bool:
    half = x.dtype in (torch.float16, torch.bfloat16) or torch.is_autocast_enabled(x.device.type)
    return half or torch.backends.cudnn.allow_tf32
