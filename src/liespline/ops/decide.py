"""The one place that decides how a layer is computed: by what is forced, by device and dtype, and by price."""

from __future__ import annotations

import math

from . import blur
from .correlate import banded, cudnn, fourier, reference, separable, triton
from .correlate.hopper import operators as hopper
from .depthwise import hopper as depthwise_hopper
from .depthwise import masked
from .depthwise import reference as depthwise_plain
from .layout import Order
from .mix import blocks
from .mix import reference as mix
from .path import Choice, Path, Question, changed
from .plan import Part, Plan, distinct

# Of paths with one price the first is taken.
_OF_KERNELS = (cudnn.PATH, reference.PATH, fourier.PATH)
_OF_FIELDS = (banded.PATH, separable.PATH, triton.PATH, hopper.PATH)
_OF_FIELDS_ALONE = (depthwise_hopper.PATH, masked.PATH, depthwise_plain.PATH)
_FORCED = {  # paths in the order in which they are tried, where one name alone would not do
    "dense": (cudnn.PATH, reference.PATH),
    "fourier": (fourier.PATH, cudnn.PATH, reference.PATH),
    "separable": (separable.PATH, banded.PATH),
}
# Of a direct convolution's price, below which no shape of `benchmarks/chosen.py` was slower.
WORTH = {"fourier": 0.55, "blurred": 0.7, "blocks": 0.8}
NAMES = ("auto", "dense", "fourier", "blurred", "blocks", *(path.name for path in _OF_FIELDS))


def decide(q: Question, plan: Plan | None) -> Choice:
    """Return the cheapest way, or that of the forced path."""
    if q.forced != "auto" and q.forced not in _RARE:
        return _direct(q, plan)[0]
    free = changed(q, forced="auto")
    best, lowest = _direct(free, plan)
    for name, way in _RARE.items():
        found, price = way(free, plan)
        if found is not None and q.forced == name:
            return found
        if found is not None and price < WORTH[name] * lowest:
            best, lowest = found, price
    return best


def alone(q: Question) -> Path:
    """Return how fields are correlated that each have a window of their own."""
    path, _ = _pick(q, _OF_FIELDS_ALONE)
    assert path is not None
    return path


def prices(q: Question, plan: Plan | None) -> dict[str, float]:
    """Return what each path that takes the question would cost."""
    if q.alone:
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


# ---- ways to compute a layer, and their prices ----


def _blurred(q: Question, plan: Plan | None) -> tuple[Choice | None, float]:
    """How centres alone meet the input once it is blurred, and the price."""
    # A lifting on a GPU takes the time of what it writes, and blurring adds to that.
    if plan is None or plan.blur is None or (q.cuda and len(q.inputs) == 1):
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
        worth = price / WORTH.get(path.name, 1.0)
        if found is None or worth < least:
            found, lowest, least = path, price, worth
    return found, lowest
