"""The one place that decides how a layer is computed: by what is forced, by device, dtype and autocast, and by cost.

Costs are multiplications for each output sample, as a fit to measured times: oneDNN on an AVX-512 core, cuDNN and our
Triton kernels on an H200 in bfloat16. Only ratios matter, and forward and backward cost the same multiple everywhere.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from .._check import Size
from .._torch import is_autocast, traced, transformed
from .correlate import cudnn, fourier, triton
from .correlate.hopper import operators as hopper
from .correlate.hopper import tiles
from .plan import Part, Plan, distinct

_PATHS = ("auto", "dense", "fourier", "banded", "separable", "triton", "hopper")
_WORTH = 0.55  # of a direct convolution's cost, below which no shape of `benchmarks/chosen.py` was slower by Fourier
_PLANES = 1.25  # of the cost of a line whose channels lie innermost, as only those of images do for oneDNN


class _Forced(threading.local):
    def __init__(self) -> None:
        # In every thread's own instance, where a compiled network looks again in each call: not so on the class.
        self.path = os.environ.get("LIESPLINE_PATH", "auto")


_forced = _Forced()


@contextmanager
def use(name: str) -> Iterator[None]:
    """Compute by one path inside the block and in this thread ("auto" chooses by cost): `with ops.use("dense"): …`.

    "separable" is "banded" for layers whose kernels do not separate, and "fourier" is "dense" for those it does not
    take; "triton" and "hopper" raise for inputs it does not take. A compiled network is compiled once for each path.
    """
    before, _forced.path = _forced.path, _known(name)
    try:
        yield
    finally:
        _forced.path = before


def _known(name: str) -> str:
    if name not in _PATHS:
        raise ValueError(f"unknown path {name!r}: use one of {', '.join(_PATHS)}")
    return name


_known(_forced.path)


def compute_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype of the convolution: autocast's where it is on."""
    if x.dtype != torch.float64 and is_autocast(x.device):
        return torch.get_autocast_dtype(x.device.type)
    return x.dtype


def exact(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return what kernels are sampled from: in float32, or float64 where any operand is."""
    dtype = torch.float64 if any(t.dtype == torch.float64 for t in tensors) else torch.float32
    return tuple(t.to(dtype) for t in tensors)


def keeps(x: Tensor, plan: Plan | None, *samples: Tensor) -> bool:
    """Say whether what is made of samples is kept: on a GPU, which waits for launches, where they never move."""
    moving = plan is None or not plan.fixed or any(t.requires_grad for t in samples)
    return x.is_cuda and not moving and not traced(x)


# ---- the choice ----


@dataclass(frozen=True)
class Choice:
    """The whole kernel, or a plan's fields alone, and for each size of window how its blocks are correlated."""

    whole: bool
    methods: tuple[str, ...]  # "plain", "fourier" or "cudnn" for the whole kernel; else a path's name
    group: int = 1  # neighbouring elements that share the union of their fields


class Question(NamedTuple):
    """All that the choice depends on, besides the plan."""

    forced: str
    cuda: bool
    dtype: torch.dtype
    triton: bool  # whether our kernels take such numbers
    batch: int
    inputs: Size  # C, and N_in but for a lifting
    outputs: int  # O
    space: Size
    sizes: tuple[Size, ...]
    stride: Size
    padding: Size
    traced: bool  # by a compiler, which has no cost of launches, or by a tracer that follows shapes alone
    transformed: bool
    hopper: bool = False  # whether the kernels for Hopper GPUs take such numbers
    innermost: bool = False  # whether the fields of a sample lie together, as those need it


def choose(
    x: Tensor, weight: Tensor, sizes: tuple[Size, ...], stride: Size, padding: Size, plan: Plan | None = None
) -> Choice:
    """Return what to do with such an input; the same question is answered once."""
    followed = traced(x)
    dtype, lead = compute_dtype(x), x.ndim - len(stride)
    fast = dtype in (torch.float16, torch.bfloat16) or torch.backends.cudnn.allow_tf32
    own = _forced.path == "triton" or (_forced.path == "auto" and x.is_cuda and fast)
    one = _forced.path in ("auto", "hopper") and plan is not None and hopper.available(x.device, dtype)
    question = Question(
        _forced.path, x.is_cuda, dtype, own and plan is not None and triton.available(x.device, dtype),
        x.shape[0], tuple(x.shape[1:lead]), weight.shape[0], tuple(x.shape[lead:]), sizes, stride, padding,
        followed, transformed(), one, one and hopper.innermost(x),
    )  # fmt: skip
    return _decide(question, plan) if followed else _decided(question, plan)


_MOST_CHOICES = 1024  # that are remembered of a plan, for images of many sizes
# Not in the plan: torch 2.6 would compile a network again whenever it was called uncompiled between.
_choices: WeakKeyDictionary[Plan, dict[Question, Choice]] = WeakKeyDictionary()


def _decided(q: Question, plan: Plan | None) -> Choice:
    """Return the choice of `_decide`, made once while the plan lives."""
    if plan is None:
        return _decided_without_plan(q)
    made = _choices.setdefault(plan, {})
    found = made.get(q)
    if found is None:
        if len(made) >= _MOST_CHOICES:
            made.clear()
        found = made[q] = _decide(q, plan)
    return found


@lru_cache(maxsize=_MOST_CHOICES)
def _decided_without_plan(q: Question) -> Choice:
    return _decide(q, None)


def _decide(q: Question, plan: Plan | None) -> Choice:
    # Not tuple.count, which torch 2.11 does not trace.
    whole = [_whole(q, w, len([size for size in q.sizes if size == w])) for w in distinct(q.sizes)]
    found, lowest = Choice(True, tuple(method for method, _ in whole)), sum(price for _, price in whole)
    if plan is None or q.forced in ("dense", "fourier"):
        return found
    if q.forced != "auto":
        lowest = math.inf
    for group in range(1, 2 if q.cuda else len(plan.parts[0].tables) + 1):
        best = [_cheapest(prices(q, part, group)) for part in plan.parts]
        total = sum(price for _, price in best) + (0.0 if plan.rows is None else mixing(q, plan.fields))
        if total < lowest:
            lowest, found = total, Choice(False, tuple(method for method, _ in best), group)
    if q.forced in ("triton", "hopper") and found.whole:
        raise ValueError(f"path {q.forced!r} does not take {q.dtype} on this device with windows {distinct(q.sizes)}")
    return found


def _cheapest(prices: dict[str, float]) -> tuple[str, float]:
    found, lowest = "banded", math.inf
    for method, price in prices.items():  # not min with a key, which torch.compile does not trace
        if price < lowest:
            found, lowest = method, price
    return found, lowest


def _whole(q: Question, window: Size, elements: int) -> tuple[str, float]:
    """How the whole kernel is convolved in a window, and the cost."""
    inputs, outputs = math.prod(q.inputs), elements * q.outputs
    price = convolution(q, inputs, outputs, window)
    if q.cuda:
        return "cudnn" if len(window) > 1 and not q.transformed else "plain", price
    exact = q.dtype in (torch.float32, torch.float64)
    followed = q.traced or q.transformed
    if len(window) != 2 or q.stride != (1, 1) or not exact or followed or q.forced not in ("auto", "fourier"):
        return "plain", price
    space = fourier.outputs_of(q.space, [max(axis) for axis in zip(*q.sizes, strict=True)], q.padding)
    if min(q.batch, inputs, *space) < 1:
        return "plain", price
    other, _ = fourier.cheapest(q.batch, inputs, outputs, space, window)
    return ("fourier", other) if q.forced == "fourier" or other < _WORTH * price else ("plain", price)


# ---- costs ----


def convolution(q: Question, inputs: int, outputs: int, window: Size) -> float:
    """One convolution by the vendor's library."""
    times = _lanes(outputs) * (_lanes(inputs) if q.cuda else inputs) * math.prod(window)  # cuDNN's are padded
    return times * (_PLANES if len(window) == 1 and not q.cuda else _volumes(q, inputs, window))


def _volumes(q: Question, inputs: int, window: Size) -> int:
    """How many volumes are convolved for each of the input: two, where a single one goes with an empty one."""
    one = len(window) == 3 and not q.cuda and q.dtype == torch.float32
    return 2 if one and cudnn.left_to_torch(q.batch, inputs, q.space, window) else 1


def mixing(q: Question, fields: int) -> float:
    """The product that makes the fields."""
    return fields * q.inputs[0] * (q.inputs[1] + _move(q))


def prices(q: Question, part: Part, group: int) -> dict[str, float]:
    """What each way that is allowed to correlate the fields of a part costs."""
    channels, outputs, elements = q.inputs[0], q.outputs, part.elements
    samples, width = math.prod(part.window), part.widths[group - 1]
    inputs = elements // group * width * channels
    found = {"banded": math.inf}
    # cuDNN's grouped convolutions are slow, so on a GPU the paths that use them wait for a single element.
    if q.forced in ("banded", "separable") or (q.forced == "auto" and (not q.cuda or elements == 1)):
        if q.forced != "separable" or not part.rank:  # a gather, then a grouped convolution
            both = _volumes(q, width * channels, part.window)
            found["banded"] = inputs * both * (_lanes(group * outputs) * samples + _move(q))
        if q.forced != "banded" and part.rank:  # the gather, a convolution along other axes, a product along the first
            both = _volumes(q, width * channels, (1, *part.window[1:]))
            first = inputs * both * (_lanes(part.rank * group * outputs) * (samples // part.window[0]) + _move(q))
            found["separable"] = first + elements * outputs * part.rank * (q.space[0] + 2 * _move(q))
    if q.triton and group == 1 and not q.transformed and (not part.window or part.window[-1] <= triton.MOST_TAPS):
        # The blocks alone, read where they are, in whole tiles; and launches, which a compiled network does not pay.
        terms = width * samples * (1.4 * _tiles(channels) + 18)
        launch = 0.0 if q.traced or not q.cuda else 7e10 / max(q.batch * math.prod(q.space), 1)
        found["triton"] = elements * _tiles(outputs) * (terms + 2300) + launch
    if q.hopper and group == 1 and not q.transformed and len(distinct(q.sizes)) == 1:
        shapes = q.batch, q.space, part.window, q.stride, q.padding
        table = part.tables[0]
        terms = tiles.terms(*shapes, elements, len(table.readers), channels, outputs, width, table.runs)
        moved = elements * (channels + outputs) + (0 if q.innermost else math.prod(q.inputs))
        launch = 0.0 if q.traced else 7e10 / max(q.batch * math.prod(q.space), 1)
        found["hopper"] = terms + _move(q) * moved + launch
    return found


def _move(q: Question) -> float:
    """Taking one number through memory, which a volume's caches hold less of."""
    return 400.0 if q.cuda else 120.0 if len(q.space) == 3 else 60.0


def _lanes(channels: int) -> int:
    return -(-channels // 16) * 16  # what libraries compute at a time


def _tiles(channels: int) -> int:
    block = triton.block(channels)
    return -(-channels // block) * block
