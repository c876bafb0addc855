"""The one place that decides how a layer is computed: by what is forced, by device and dtype, and by price."""

from __future__ import annotations

import math
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
from . import blur
from .correlate import banded, cudnn, fourier, reference, separable, triton
from .correlate.hopper import operators as hopper
from .depthwise import hopper as depthwise_hopper
from .depthwise import reference as depthwise_plain
from .layout import Order, order_of, output_size
from .mix import blocks
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
# Of a direct convolution's price, below which no shape of `benchmarks/chosen.py` was slower.
_WORTH = {"fourier": 0.55, "blurred": 0.7, "blocks": 0.8}
_NAMES = ("auto", "dense", "fourier", "blurred", "blocks", *(path.name for path in _OF_FIELDS))


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


def exact(*tensors: Tensor) -> list[Tensor]:
    """Return what kernels are sampled from: in float32, or float64 where any operand is."""
    dtypes = {t.dtype for t in tensors}
    if dtypes == _SINGLE:
        return list(tensors)
    dtype = torch.float64 if torch.float64 in dtypes else torch.float32
    return [t.to(dtype) for t in tensors]


_SINGLE = {torch.float32}


# ---- the choice ----


def choose(
    x: Tensor, weight: Tensor, sizes: tuple[Size, ...], stride: Size, padding: Size, plan: Plan | None = None
) -> Choice:
    """Return what to do with such an input; what is asked again and again is decided once, while the plan lives."""
    dtype, outputs = compute_dtype(x), weight.shape[0]
    if traced(x):
        return _decide(_question(x, dtype, outputs, sizes, stride, padding), plan)

    def decide() -> Choice:
        question = _question(x, dtype, outputs, sizes, stride, padding)
        found = _decide(question, plan)
        _note(question, plan, found.paths, found.blurred)
        return found._replace(keep=plan is not None and plan.fixed and not transformed())

    tf32 = x.is_cuda and torch.backends.cudnn.allow_tf32
    asked = _forced.path, x.shape, x.stride(), x.device, dtype, tf32, outputs, sizes, stride, padding, transformed()
    return _once(_of_lifts if plan is None else _of_plans.setdefault(plan, {}), asked, decide)


def depthwise(x: Tensor, window: Size, stride: Size, padding: Size) -> Path:
    """Return how the fields of `(B, C, N_h, *space)` are correlated, each with a window of its own."""

    def decide() -> Path:
        fields = x.shape[1] * x.shape[2]
        question = _question(x, x.dtype, fields, (window,), stride, padding)
        question = changed(question, forced="auto", inputs=(fields,), window=window)
        path, _ = _pick(question, _OF_FIELDS_ALONE)
        assert path is not None
        _note(question, None, (path,))
        return path

    if traced(x):
        return decide()
    return _once(_alone, (x.shape, x.device, x.dtype, window, stride, padding, transformed()), decide)


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
    for name, way in _RARE.items():
        some, price = way(changed(q, forced="auto"), plan)
        if some is not None:
            found[name] = price
    if plan is None or len(q.inputs) == 1:
        return found
    for path in _OF_FIELDS:
        fields, price = _of_fields(changed(q, forced=path.name), plan)
        if fields is not None and path.name in fields.methods and math.isfinite(price):
            found[path.name] = price
    return found


def fuses(x: Tensor) -> bool:
    """Say whether kernels of our own normalise such a feature map."""
    return x.numel() > 0 and norms_run(x.device, x.dtype) and not transformed()


# ---- what was decided before ----

_MOST = 1024  # choices that are remembered of a plan, for images of many sizes
# Not in the plan: torch 2.6 would compile a network again whenever it was called uncompiled between.
_of_plans: WeakKeyDictionary[Plan, dict[Hashable, Choice]] = WeakKeyDictionary()
_of_lifts: dict[Hashable, Choice] = {}
_alone: dict[Hashable, Path] = {}


def _once(made: dict[Hashable, Made], asked: Hashable, decide: Callable[[], Made]) -> Made:
    if _forced.asked is not None:
        return decide()  # and write it down
    found = made.get(asked)
    if found is None:
        if len(made) >= _MOST:
            made.clear()
        found = made[asked] = decide()
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


def _decide(q: Question, plan: Plan | None) -> Choice:
    """Return the cheapest way, or that of the forced path."""
    if q.forced != "auto" and q.forced not in _RARE:
        return _direct(q, plan)[0]
    free = changed(q, forced="auto")
    best, lowest = _direct(free, plan)
    for name, way in _RARE.items():
        found, price = way(free, plan)
        if found is not None and q.forced == name:
            return found
        if found is not None and price < _WORTH[name] * lowest:
            best, lowest = found, price
    return best


def _blurred(q: Question, plan: Plan | None) -> tuple[Choice | None, float]:
    """How centres alone meet the input once it is blurred, and the price."""
    if plan is None or plan.blur is None:
        return None, math.inf
    found, rest = _direct(blur.question(q, plan.blur), plan.centres)
    return Choice(found.whole, found.paths, found.group, found.order, found.dtype, blurred=True), rest + blur.price(q)


def _in_blocks(q: Question, plan: Plan | None) -> tuple[Choice | None, float]:
    """How a finite group is mixed by its irreps, and the price."""
    price = None if plan is None or len(q.inputs) == 1 else blocks.price(q, plan)
    return (None, math.inf) if price is None else (Choice(False, (blocks.PATH,), dtype=q.dtype), price)


_RARE = {"blurred": _blurred, "blocks": _in_blocks}  # ways that few layers have


def _direct(q: Question, plan: Plan | None) -> tuple[Choice, float]:
    """How the input itself meets the kernel, and the price."""
    whole, lowest = _whole(q)
    if plan is None or len(q.inputs) == 1 or q.forced in ("dense", "fourier"):
        return whole, lowest
    found, least = _of_fields(q, plan)
    if q.forced == "auto":
        return (whole, lowest) if found is None or least >= lowest else (found, least)
    if found is None:
        raise ValueError(f"path {q.forced!r} does not take {q.dtype} on this device with windows {distinct(q.sizes)}")
    return found, least


def _of_fields(q: Question, plan: Plan) -> tuple[Choice | None, float]:
    """How a plan's fields are correlated in each window, and the price; None where no path takes them all."""
    found, least = None, math.inf
    for group in range(1, 2 if q.cuda else len(plan.parts[0].tables) + 1):
        picked = [_pick(_of_part(q, plan, part, group), _family(q.forced, _OF_FIELDS)) for part in plan.parts]
        paths = tuple(path for path, _ in picked if path is not None)
        total = sum(price for _, price in picked) + (0.0 if plan.rows is None else mix.price(q, plan.fields))
        if len(paths) == len(picked) and (found is None or total < least):
            found, least = Choice(False, paths, group, q.order, q.dtype), total
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
    return Choice(True, tuple(paths), order=_order(q), dtype=q.dtype), total


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
