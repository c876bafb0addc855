"""What a way to compute a correlation offers: a price for a question, and the computing.

Prices are multiplications for each sample, as a fit to measured times: oneDNN on an AVX-512 core, cuDNN and our Triton
kernels on an H200 in bfloat16. Only ratios matter, and forward and backward cost the same multiple everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._check import Size
from .layout import Order


class Question(NamedTuple):
    """All that a choice depends on besides the plan: the input, and from `window` on the elements that share one."""

    forced: str
    device: torch.device
    cuda: bool  # whether that is a GPU: no property, as torch 2.6 does not trace those
    dtype: torch.dtype
    exact: bool  # whether products of float32 are to be exact, without TF32
    batch: int
    inputs: Size  # C, and N_in but for a lifting
    outputs: int  # O
    space: Size
    size: Size  # of the output's space
    sizes: tuple[Size, ...]  # windows of all elements
    stride: Size
    padding: Size
    order: Order  # of the input
    traced: bool  # by a compiler, which has no cost of launches, or by a tracer that follows shapes alone
    transformed: bool
    alone: bool = False  # each field has a window of its own
    window: Size = ()
    elements: int = 1
    group: int = 1  # neighbouring elements that share the union of their fields
    fields: int = 1  # that there are
    reads: int = 1  # of them by a group of elements
    runs: float = 1.0  # of neighbours among these, on average
    rank: int = 0  # of kernels along the window's first axis, 0 if full


def changed(q: Question, **values: Any) -> Question:
    """Return the question with other values: what `q._replace` does, which torch 2.6 does not trace."""
    return Question(*[values[name] if name in values else getattr(q, name) for name in Question._fields])


class Path(NamedTuple):
    """A way to correlate, one file each.

    `price` is None for what the path does not take, and infinite for what it takes only when forced. A path of whole
    kernels computes (x, kernel, stride, padding, order), one of fields (fields, blocks, part, group, stride, padding,
    keep), where `keep(key, make)` keeps what is made of fixed samples.
    """

    name: str
    price: Callable[[Question], float | None]
    correlate: Callable[..., Tensor]
    separated: bool = False  # whether blocks have the window's first axis reduced to its rank
    channels_last: bool = False  # whether blocks are wanted with channels innermost


class Choice(NamedTuple):
    """The whole kernel, or a plan's fields alone, and a path for each size of window."""

    whole: bool
    paths: tuple[Path, ...]
    group: int = 1  # neighbouring elements that share the union of their fields
    order: Order = Order.PLANES  # of the input in memory, and of what a lifting leaves
    dtype: torch.dtype | None = None  # in which it is computed
    blurred: bool = False  # the input, by what all samples have in common, and then its centres alone
    keep: bool = False  # what is made of samples: where they never move, and no tracer or transform sees it made

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the paths."""
        return tuple(path.name for path in self.paths)


def move(q: Question) -> float:
    """The price of taking one number through memory, which a volume's caches hold less of."""
    return 400.0 if q.cuda else 120.0 if len(q.space) == 3 else 60.0


def lanes(channels: int) -> int:
    """Channels as libraries compute them, so many at a time."""
    return -(-channels // 16) * 16
