"""The one place that decides how a layer is computed: by what is forced, by device and dtype, and by price."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from .._check import Size
from .._torch import is_autocast, traced, transformed
from .correlate import banded, cudnn, fourier, reference, separable, triton
from .correlate.hopper import operators as hopper
from .depthwise import hopper as depthwise_hopper
from .depthwise import reference as depthwise_plain
from .layout import Order, order_of, output_size
from .mix import reference as mix
from .norm import available as norms_run
from .path import Choice, Path, Question, changed
from .plan import Part, Plan, distinct

# Of paths with one price the first is taken.
_OF_KERNELS = (cudnn.PATH, reference.PATH, fourier.PATH)
_OF_FIELDS = (banded.PATH, separable.PATH, triton.PATH, hopper.PATH)
_OF_FIELDS_ALONE = (depthwise_hopper.PATH, depthwise_plain.PATH)
_FORCED = {  # paths in the order in which they are tried, where one name alone would not do
    "dense": (cudnn.PATH, reference.PATH),
    "fourier": (fourier.PATH, cudnn.PATH, reference.PATH),
    "separable": (separable.PATH, banded.PATH),
}
_WORTH = {"fourier": 0.55}  # of a direct convolution's price, below which no shape of `benchmarks/chosen.py` was slower
_NAMES = ("auto", "dense", "fourier", *(path.name for path in _OF_FIELDS))


class Asked(NamedTuple):
    """A question that was asked of `choose`, and what was chosen."""

    question: Question
    plan: Plan | None
    paths: tuple[Path, ...]


class _Forced(threading.local):
    def __init__(self) -> None:
        # In every thread's own instance, where a compiled network looks again in each call: not so on the class.
        self.path = os.environ.get("LIESPLINE_PATH", "auto")
        self.asked: list[Asked] | None = None  # where somebody watches


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
    if name not in _NAMES:
        raise ValueError(f"unknown path {name!r}: use one of {', '.join(_NAMES)}")
    return name


_known(_forced.path)


@contextmanager
def watched() -> Iterator[list[Asked]]:
    """Write down what is asked in the block, and in this thread."""
    before, _forced.asked = _forced.asked, []
    try:
        yield _forced.asked
    finally:
        _forced.asked = before


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


def choose(
    x: Tensor, weight: Tensor, sizes: tuple[Size, ...], stride: Size, padding: Size, plan: Plan | None = None
) -> Choice:
    """Return what to do with such an input; the same question is answered once."""
    lead, dtype = x.ndim - len(stride), compute_dtype(x)
    space = tuple(x.shape[lead:])
    largest = [max(axis) for axis in zip(*sizes, strict=True)]
    question = Question(
        forced=_forced.path, device=x.device, cuda=x.is_cuda, dtype=dtype,
        exact=dtype == torch.float32 and not torch.backends.cudnn.allow_tf32,
        batch=x.shape[0], inputs=tuple(x.shape[1:lead]), outputs=weight.shape[0], space=space,
        size=tuple(output_size(space, largest, stride, padding)), sizes=sizes, stride=stride, padding=padding,
        order=order_of(x) if lead > 2 else Order.PLANES, traced=traced(x), transformed=transformed(),
    )  # fmt: skip
    choice = _decide(question, plan) if question.traced else _decided(question, plan)
    if _forced.asked is not None:
        _forced.asked.append(Asked(question, plan, choice.paths))
    return choice


def depthwise(x: Tensor, window: Size, stride: Size, padding: Size) -> Path:
    """Return how the fields of `(B, C, N_h, *space)` are correlated, each with a window of its own."""
    count, space = x.shape[1] * x.shape[2], tuple(x.shape[3:])
    question = Question(
        forced="auto", device=x.device, cuda=x.is_cuda, dtype=x.dtype, exact=False, batch=x.shape[0],
        inputs=(count,), outputs=count, space=space, size=tuple(output_size(space, window, stride, padding)),
        sizes=(window,), stride=stride,
        padding=padding, order=Order.FIELDS, traced=traced(x), transformed=transformed(), window=window,
    )  # fmt: skip
    path, _ = _pick(question, _OF_FIELDS_ALONE)
    assert path is not None
    if _forced.asked is not None:
        _forced.asked.append(Asked(question, None, (path,)))
    return path


def prices(asked: Asked) -> dict[str, float]:
    """Return what each path that takes the question would cost, of whole kernels and of fields."""
    q, plan = asked.question, asked.plan
    if asked.paths[0] in _OF_FIELDS_ALONE:
        alone = {path.name: path.price(q) for path in _OF_FIELDS_ALONE}
        return {name: price for name, price in alone.items() if price is not None and math.isfinite(price)}
    found = {}
    for name in ("dense", "fourier"):
        choice, price = _whole(changed(q, forced=name))
        if name == "dense" or "fourier" in choice.methods:
            found[name] = price
    if plan is None:
        return found
    for path in _OF_FIELDS:
        fields, price = _of_fields(changed(q, forced=path.name), plan)
        if fields is not None and path.name in fields.methods and math.isfinite(price):
            found[path.name] = price
    return found


def fuses(x: Tensor) -> bool:
    """Say whether kernels of our own normalise such a feature map."""
    return x.numel() > 0 and norms_run(x.device, x.dtype) and not transformed()


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
    """Return the cheapest way, or that of the forced path."""
    whole, lowest = _whole(q)
    if plan is None or q.forced in ("dense", "fourier"):
        return whole
    found, least = _of_fields(q, plan)
    if q.forced == "auto":
        return whole if found is None or least >= lowest else found
    if found is None:
        raise ValueError(f"path {q.forced!r} does not take {q.dtype} on this device with windows {distinct(q.sizes)}")
    return found


def _of_fields(q: Question, plan: Plan) -> tuple[Choice | None, float]:
    """How a plan's fields are correlated in each window, and the price; None where no path takes them all."""
    found, least = None, math.inf
    for group in range(1, 2 if q.cuda else len(plan.parts[0].tables) + 1):
        picked = [_pick(_of_part(q, plan, part, group), _family(q.forced, _OF_FIELDS)) for part in plan.parts]
        paths = tuple(path for path, _ in picked if path is not None)
        total = sum(price for _, price in picked) + (0.0 if plan.rows is None else mix.price(q, plan.fields))
        if len(paths) == len(picked) and (found is None or total < least):
            found, least = Choice(False, paths, group, q.order), total
    return found, least


def _whole(q: Question) -> tuple[Choice, float]:
    """How the whole kernel is convolved in each window, and the price."""
    family, paths, total = _family("dense" if q.forced != "fourier" else q.forced, ()), [], 0.0
    for window in distinct(q.sizes):
        elements = len([size for size in q.sizes if size == window])  # not tuple.count, which torch 2.11 does not trace
        path, price = _pick(changed(q, window=window, elements=elements), _OF_KERNELS if q.forced == "auto" else family)
        assert path is not None
        paths.append(path)
        total += price
    return Choice(True, tuple(paths), order=_order(q)), total


def _order(q: Question) -> Order:
    """How fields lie: as in the input; a lifting leaves channels together where our own kernels may follow."""
    if len(q.inputs) > 1:
        return q.order
    count = len(q.sizes)
    ours = count > 1 and count * q.outputs % 8 == 0 and hopper.available(q.device, q.dtype)
    return Order.CHANNELS if ours else Order.PLANES


def _of_part(q: Question, plan: Plan, part: Part, group: int) -> Question:
    return changed(
        q, window=part.window, elements=part.elements, group=group, fields=plan.fields, reads=part.widths[group - 1],
        runs=part.tables[0].runs, rank=part.rank,
    )  # fmt: skip


def _family(forced: str, auto: tuple[Path, ...]) -> tuple[Path, ...]:
    """The paths that may be taken, in the order in which they are tried."""
    if forced == "auto":
        return auto
    return _FORCED[forced] if forced in _FORCED else tuple(path for path in _OF_FIELDS if path.name == forced)


def _pick(q: Question, paths: tuple[Path, ...]) -> tuple[Path | None, float]:
    """Return the cheapest path and its price; where one is forced, the first that takes the question."""
    found, lowest, least = None, math.inf, math.inf
    for path in paths:
        price = path.price(q)
        if price is None:
            continue
        if q.forced != "auto":
            return path, price
        worth = price / _WORTH.get(path.name, 1.0)
        if found is None or worth < least:
            found, lowest, least = path, price, worth
    return found, lowest
