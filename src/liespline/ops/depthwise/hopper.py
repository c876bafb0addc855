"""The depthwise correlation of images on a Hopper GPU, as operators that autograd and torch.compile know.

Bandwidth is its limit, and cuDNN stays far from that. Fields lie innermost in memory, in whatever order they come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._check import Size
from ..layout import by_axis, output_size
from ..operator import Differentiable, Gradients, Operator, on_its_device
from ..path import Path, Question, move
from ..trust import KINDS, Kernels, drawn, off

_WIDEST = 5  # samples of a window along an axis: more do not fit the registers
_PROGRAMS = 1024  # that keep the device busy: columns are cut into parts until there are so many


def price(q: Question) -> float | None:
    """Numbers through memory, where our kernels were measured and won; None elsewhere."""
    taken = q.cuda and not q.transformed and not off("depthwise", q.device, q.dtype)
    if not taken or len(q.window) != 2 or max(q.stride) > 1 or max(q.window) > _WIDEST:
        return None
    room = all(p < k <= n + 2 * p for n, k, p in zip(q.space, q.window, q.padding, strict=True))
    whole = q.batch > 0 and q.inputs[0] % 8 == 0 and q.inputs[0] * math.prod(q.space) < 2**31
    return q.inputs[0] * move(q) if room and whole else None


def convolve(x: Tensor, kernel: Tensor, _: Size, padding: Size) -> Tensor:
    """x (B, fields, H, W), kernel (fields, KH, KW) -> (B, fields, H', W'), with fields innermost in memory."""
    last, taps = x.movedim(1, -1).contiguous(), kernel.movedim(0, -1)
    out: Tensor = correlate(last, taps, padding)
    return out.movedim(-1, 1)


PATH = Path("hopper", price, convolve)


# ---- operators; x (B, H, W, F), weight (KH, KW, F) ----


def _to_input(grad: Tensor, weight: Tensor, padding: list[int]) -> Tensor:
    borders = [k - 1 - p for k, p in zip(weight.shape[:2], padding, strict=True)]
    return _launch(grad, weight.flip(0, 1), borders)


@on_its_device
def _to_weight(x: Tensor, grad: Tensor, window: list[int], padding: list[int]) -> Tensor:
    from . import hopper_kernels as kernels  # here, since importing it needs Triton

    x, grad = x.contiguous(), grad.contiguous()
    tile = _tile(x, grad.shape[1:3])
    sums = torch.promote_types(x.dtype, torch.float32)
    partial = torch.empty(tile.programs, *window, x.shape[-1], device=x.device, dtype=sums)
    kernels.correlate_weight[(tile.programs * tile.blocks,)](
        x=x, grad=grad, partial=partial, **_sizes(x, grad, padding, tile), KH=window[0], KW=window[1],
        KEPT=kernels.dtype(x.dtype), **_constants(x, padding),
    )  # fmt: skip
    return partial.sum(0)


def _fake_forward(x: Tensor, weight: Tensor, padding: list[int]) -> Tensor:
    return x.new_empty(len(x), *_size(x, weight.shape, padding), x.shape[-1])


def _fake_to_input(grad: Tensor, weight: Tensor, padding: list[int]) -> Tensor:
    borders = [k - 1 - p for k, p in zip(weight.shape[:2], padding, strict=True)]
    return grad.new_empty(len(grad), *_size(grad, weight.shape, borders), grad.shape[-1])


def _fake_to_weight(x: Tensor, grad: Tensor, window: list[int], padding: list[int]) -> Tensor:
    return x.new_empty(*window, x.shape[-1], dtype=torch.promote_types(x.dtype, torch.float32))


def _plain(x: Tensor, weight: Tensor, padding: list[int]) -> Tensor:
    """The same by torch's own operators."""
    taps = weight.to(x.dtype).movedim(-1, 0).unsqueeze(1)
    return F.conv2d(x.movedim(-1, 1), taps, None, 1, tuple(padding), groups=x.shape[-1]).movedim(1, -1)


def _size(x: Tensor, window: Size, padding: list[int]) -> list[int]:
    return output_size(x.shape[1:3], window[:2], (1, 1), padding)


# ---- launches ----

_COLUMNS, _IMAGES, _CHANNELS = 4, 4, 64  # of a program


class Tile(NamedTuple):
    """How the work is cut: programs along W, blocks of fields, parts of H, lines of a part, and programs of a block."""

    wide: int
    blocks: int
    parts: int
    lines: int
    programs: int


def _tile(x: Tensor, size: Size) -> Tile:
    wide, blocks, crowds = _ceil(size[1], _COLUMNS), _ceil(x.shape[-1], _CHANNELS), _ceil(len(x), _IMAGES)
    lines = _ceil(size[0], min(max(_PROGRAMS // (wide * blocks * crowds), 1), max(size[0] // 8, 1)))
    parts = _ceil(size[0], lines)
    return Tile(wide, blocks, parts, lines, wide * parts * crowds)


@on_its_device
def _launch(x: Tensor, weight: Tensor, padding: list[int]) -> Tensor:
    from . import hopper_kernels as kernels

    x = x.contiguous()
    out = x.new_empty(len(x), *_size(x, weight.shape, padding), x.shape[-1])
    tile = _tile(x, out.shape[1:3])
    constants = _constants(x, padding)
    constants["PAD"] |= out.shape[2] < _COLUMNS  # no tile fits, so none can move in
    kernels.correlate[(tile.programs * tile.blocks,)](
        x=x, weight=weight.contiguous(), out=out, **_sizes(x, out, padding, tile),
        KH=weight.shape[0], KW=weight.shape[1], **constants,
    )  # fmt: skip
    return out


def _sizes(x: Tensor, out: Tensor, padding: list[int], tile: Tile) -> dict[str, int]:
    (batch, height, width), (out_height, out_width) = x.shape[:3], out.shape[1:3]
    space = {"height": height, "width": width, "out_height": out_height, "out_width": out_width}
    tiles = {"tiles_w": tile.wide, "tiles_c": tile.blocks, "tiles_h": tile.parts, "lines": tile.lines}
    return {"batch": batch} | space | by_axis("pad", padding, "hw") | tiles


def _constants(x: Tensor, padding: list[int]) -> dict[str, Any]:
    from . import hopper_kernels as kernels

    whole = len(x) % _IMAGES == 0 and x.shape[3] % _CHANNELS == 0
    return {
        "C": x.shape[3], "WT": _COLUMNS, "BR": _IMAGES, "BC": _CHANNELS, "PAD": any(padding), "WHOLE": whole,
        "SUMS": kernels.dtype(torch.promote_types(x.dtype, torch.float32)), "num_warps": 4, "maxnreg": 128,
    }  # fmt: skip


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit)


_input_gradient = Operator(
    "depthwise_input_gradient(Tensor grad, Tensor weight, SymInt[] padding) -> Tensor", _to_input, _fake_to_input
)
_weight_gradient = Operator(
    "depthwise_weight_gradient(Tensor x, Tensor grad, SymInt[] window, SymInt[] padding) -> Tensor",
    _to_weight, _fake_to_weight,
)  # fmt: skip


def _gradients(needs: Sequence[bool], grad: Tensor, x: Tensor, weight: Tensor, padding: Size) -> Gradients:
    return (
        _input_gradient(grad, weight, padding) if needs[0] else None,
        _weight_gradient(x, grad, weight.shape[:2], padding).to(weight.dtype) if needs[1] else None,
    )


correlate = Differentiable(
    "depthwise(Tensor x, Tensor weight, SymInt[] padding) -> Tensor",
    _launch, _fake_forward, plain=_plain, gradients=_gradients,
)  # fmt: skip


def _call(device: torch.device, dtype: torch.dtype) -> tuple[Differentiable, tuple[Any, ...]]:
    x, weight = drawn(6, 9, 10, 24), drawn(3, 3, 24, seed=1)
    return correlate, (x.to(device, dtype), weight.to(device), (1, 0))


KINDS["depthwise"] = Kernels(
    "depthwise kernels", (torch.bfloat16,), "NVIDIA GPUs of compute capability 9.0", lambda found: found == (9, 0),
    (_call,), (3, 3),  # which has tuples
)  # fmt: skip
