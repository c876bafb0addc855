"""How a layer is computed: what is asked of `decide`, with the path that is forced, and remembered."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from .._check import Size
from .._torch import is_autocast, traced, transformed
from . import decide
from .layout import Order, order_of, output_size
from .norm import available as norms_run
from .path import Choice, Path, Question, changed
from .plan import Plan

Made = TypeVar("Made")


class Asked(NamedTuple):
    """A question that was asked of `choose`, and what was chosen."""

    question: Question
    plan: Plan | None
    paths: tuple[Path, ...]
    blurred: bool


class _Forced(threading.local):
    def __init__(self) -> None:
        # In every thread's own instance, where a compiled network looks again in each call: not so on the class.
        self.path = os.environ.get("LIESPLINE_PATH", "auto")
        self.asked: list[Asked] | None = None  # where somebody watches


_forced = _Forced()


@contextmanager
def use(name: str) -> Iterator[None]:
    """Compute by one path inside the block and in this thread ("auto" chooses by cost): `with ops.use("dense"): …`.

    "separable" is "banded" for layers whose kernels do not separate, "fourier" is "dense" for those it does not take,
    and "blurred" and "blocks" are "auto"; "triton" and "hopper" raise for inputs they do not take. A compiled network
    is compiled once for each path.
    """
    before, _forced.path = _forced.path, _known(name)
    try:
        yield
    finally:
        _forced.path = before


def _known(name: str) -> str:
    if name not in decide.NAMES:
        raise ValueError(f"unknown path {name!r}: use one of {', '.join(decide.NAMES)}")
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


def exact(*tensors: Tensor) -> list[Tensor]:
    """Return what kernels are sampled from: in float32, or float64 where any operand is."""
    dtypes = [t.dtype for t in tensors]
    if dtypes.count(torch.float32) == len(dtypes):
        return list(tensors)
    dtype = torch.float64 if torch.float64 in dtypes else torch.float32
    return [t.to(dtype) for t in tensors]


# ---- the choice ----


def choose(
    x: Tensor, weight: Tensor, sizes: tuple[Size, ...], stride: Size, padding: Size, plan: Plan | None = None
) -> Choice:
    """Return what to do with such an input; what is asked again and again is decided once, while the plan lives."""
    dtype, outputs = compute_dtype(x), weight.shape[0]
    if traced(x):
        return decide.decide(_question(x, dtype, outputs, sizes, stride, padding), plan)

    def pick() -> Choice:
        question = _question(x, dtype, outputs, sizes, stride, padding)
        found = decide.decide(question, plan)
        _note(question, plan, found.paths, found.blurred)
        return found._replace(keep=plan is not None and plan.fixed and not transformed())

    tf32 = x.is_cuda and torch.backends.cudnn.allow_tf32
    asked = _forced.path, x.shape, x.stride(), x.device, dtype, tf32, outputs, sizes, stride, padding, transformed()
    return _once(_of_lifts if plan is None else _of_plans.setdefault(plan, {}), asked, pick)


def depthwise(x: Tensor, window: Size, stride: Size, padding: Size) -> Path:
    """Return how the fields of `(B, C, N_h, *space)` are correlated, each with a window of its own."""

    def pick() -> Path:
        fields = x.shape[1] * x.shape[2]
        question = _question(x, x.dtype, fields, (window,), stride, padding)
        question = changed(question, forced="auto", inputs=(fields,), window=window, alone=True)
        path = decide.alone(question)
        _note(question, None, (path,))
        return path

    if traced(x):
        return pick()
    return _once(_alone, (x.shape, x.device, x.dtype, window, stride, padding, transformed()), pick)


def prices(asked: Asked) -> dict[str, float]:
    """Return what each path that takes the question would cost, of whole kernels and of fields."""
    return decide.prices(asked.question, asked.plan)


def fuses(x: Tensor) -> bool:
    """Say whether kernels of our own normalise such a feature map."""
    return x.numel() > 0 and norms_run(x.device, x.dtype) and not transformed()


# ---- what was decided before ----

_MOST = 1024  # choices that are remembered of a plan, for images of many sizes
# Not in the plan: torch 2.6 would compile a network again whenever it was called uncompiled between.
_of_plans: WeakKeyDictionary[Plan, dict[Hashable, Choice]] = WeakKeyDictionary()
_of_lifts: dict[Hashable, Choice] = {}
_alone: dict[Hashable, Path] = {}


def _once(made: dict[Hashable, Made], asked: Hashable, pick: Callable[[], Made]) -> Made:
    if _forced.asked is not None:
        return pick()  # and write it down
    found = made.get(asked)
    if found is None:
        if len(made) >= _MOST:
            made.clear()
        found = made[asked] = pick()
    return found


def _note(question: Question, plan: Plan | None, paths: tuple[Path, ...], blurred: bool = False) -> None:
    if _forced.asked is not None:
        _forced.asked.append(Asked(question, plan, paths, blurred))


def _question(
    x: Tensor, dtype: torch.dtype, outputs: int, sizes: tuple[Size, ...], stride: Size, padding: Size
) -> Question:
    lead = x.ndim - len(stride)
    space, largest = tuple(x.shape[lead:]), [max(axis) for axis in zip(*sizes, strict=True)]
    return Question(
        forced=_forced.path, device=x.device, cuda=x.is_cuda, dtype=dtype,
        exact=dtype == torch.float32 and not torch.backends.cudnn.allow_tf32,
        batch=x.shape[0], inputs=tuple(x.shape[1:lead]), outputs=outputs, space=space,
        size=tuple(output_size(space, largest, stride, padding)), sizes=sizes, stride=stride, padding=padding,
        order=order_of(x) if lead > 2 else Order.PLANES, traced=traced(x), transformed=transformed(),
    )  # fmt: skip
