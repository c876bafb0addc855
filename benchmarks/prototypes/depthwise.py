"""Depthwise correlation on tensors (B, H, W, channels), its gradients, and the sizes of its tiles."""

from dataclasses import dataclass

import depthwise_kernels as kernels
import torch
import triton
import triton.language as tl
from torch import Tensor


@dataclass(frozen=True)
class Tile:
    """Output columns, images, channels of a program, in how many parts the lines are cut, and warps."""

    columns: int = 4
    images: int = 4
    channels: int = 64
    parts: int = 1
    warps: int = 4
    wide: bool = False  # whether gradients wait in float32
    registers: int = 128


def _geometry(x: Tensor, out: Tensor, padding: tuple[int, int], tile: Tile) -> tuple[tuple[int, ...], int]:
    batch, height, width, channels = x.shape
    tiles_w, tiles_c = triton.cdiv(out.shape[2], tile.columns), triton.cdiv(channels, tile.channels)
    lines = triton.cdiv(out.shape[1], tile.parts)
    tiles_h = triton.cdiv(out.shape[1], lines)
    tiles = tiles_w * tiles_h * triton.cdiv(batch, tile.images)
    sizes = (batch, height, width, out.shape[1], out.shape[2], *padding, tiles_w, tiles_c, tiles_h, lines)
    return sizes, tiles


def _constants(x: Tensor, padding: tuple[int, int], tile: Tile) -> dict[str, object]:
    whole = x.shape[0] % tile.images == 0 and x.shape[3] % tile.channels == 0
    return {
        "C": x.shape[3], "WT": tile.columns, "BR": tile.images, "BC": tile.channels, "SUMS": _sums(x),
        "PAD": any(padding), "WHOLE": whole, "num_warps": tile.warps, "maxnreg": tile.registers,
    }  # fmt: skip


def _sums(x: Tensor) -> tl.dtype:
    return tl.float64 if x.dtype == torch.float64 else tl.float32


def correlate(x: Tensor, weight: Tensor, padding: tuple[int, int], tile: Tile) -> Tensor:
    """x (B, H, W, C), weight (KH, KW, C) -> (B, H + 2·pad − KH + 1, …, C)."""
    kh, kw, channels = weight.shape
    size = (x.shape[1] + 2 * padding[0] - kh + 1, x.shape[2] + 2 * padding[1] - kw + 1)
    out = x.new_empty(x.shape[0], *size, channels)
    sizes, tiles = _geometry(x, out, padding, tile)
    constants = _constants(x, padding, tile)
    if size[1] < tile.columns:
        constants["PAD"] = True  # no tile fits, so none can move in
    kernels.correlate[(tiles * sizes[8],)](
        x, weight, out, *sizes, KH=kh, KW=kw, **constants
    )  # fmt: skip
    return out


def input_gradient(grad: Tensor, weight: Tensor, padding: tuple[int, int], tile: Tile) -> Tensor:
    """grad (B, H', W', C), weight (KH, KW, C) -> (B, H, W, C)."""
    borders = (weight.shape[0] - 1 - padding[0], weight.shape[1] - 1 - padding[1])
    return correlate(grad, weight.flip(0, 1).contiguous(), borders, tile)


def weight_gradient(x: Tensor, grad: Tensor, window: tuple[int, int], padding: tuple[int, int], tile: Tile) -> Tensor:
    """x (B, H, W, C), grad (B, H', W', C) -> (KH, KW, C)."""
    sizes, tiles = _geometry(x, grad, padding, tile)
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    partial = torch.empty(tiles, *window, x.shape[-1], device=x.device, dtype=dtype)
    kernels.correlate_weight[(tiles * sizes[8],)](
        x, grad, partial, *sizes, KH=window[0], KW=window[1], **_constants(x, padding, tile),
        KEPT=_sums(x) if tile.wide or x.dtype != torch.bfloat16 else tl.bfloat16,
    )  # fmt: skip
    return partial.sum(0)
