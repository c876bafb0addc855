"""Launching the Triton kernels on plain tensors: layouts, packing, gradients."""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from liespline.paths.plan import Table
from liespline.paths.triton import kernels, tiles

Size = tuple[int, ...]
_PROGRAMS = 1024  # programs that keep the device busy: the sum over samples is split until there are so many


def correlate(
    x: Tensor, blocks: Tensor, lines: Tensor, counts: Tensor, size: Size, stride: Size, padding: Size
) -> Tensor:
    """Correlate each element's fields with its blocks, an output of `size`.

    x (B, R, D, H, W, C), blocks (A, T, KD, KH, KW, C, O), lines (A, T), counts (A,) -> (B, A, *size, O).
    """
    elements, width, *window, _, outputs = blocks.shape
    x = _aligned(x)
    out = x.new_empty(x.shape[0], elements, *size, outputs)
    tile = tiles.forward(x.shape[-1], outputs, window[2], x.dtype)
    wide = (size[2] - 1) * stride[2] + window[2]
    rows = x.shape[0] * size[0] * size[1] * wide
    count = triton.cdiv(rows, tile.rows - window[2] + 1)
    grid = (count * elements * triton.cdiv(outputs, tile.outputs),)
    kernels.correlate[grid](
        x, _pack(blocks.to(x.dtype), x.shape[-1], tile), lines, counts, out,
        rows, count, elements, width, *_eighths(x), *x.shape[2:5], *out.stride()[:5], *size, wide,
        *stride, *padding,
        C=x.shape[-1], N=outputs, KD=window[0], KH=window[1], KW=window[2],
        BM=tile.rows, BO=tile.outputs, BC=tile.inner, PIECES=tile.pieces, STARTS=tile.starts,
        Q=sum(tile.pieces), TILES_FIRST=tile.rows == 64, SUMS=_sums(x), PRECISION=_precision(x),
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return out


def input_gradient(grad: Tensor, blocks: Tensor, table: Table, size: Size, stride: Size, padding: Size) -> Tensor:
    """The same correlation the other way: what each field's readers send back.

    grad (B, A, D, H, W, O), blocks (A, T, KD, KH, KW, C, O) -> (B, R, *size, C).
    """
    if any(s > 1 for s in stride):
        spread = [(n - 1) * s + 1 for n, s in zip(grad.shape[2:5], stride, strict=True)]
        sparse = grad.new_zeros(*grad.shape[:2], *spread, grad.shape[-1])
        sparse[:, :, :: stride[0], :: stride[1], :: stride[2]] = grad
        grad = sparse
    turned = blocks.flatten(0, 1)[table.blocks].flip(2, 3, 4).mT
    borders = tuple(k - 1 - p for k, p in zip(blocks.shape[2:5], padding, strict=True))
    return correlate(grad, turned, table.readers, table.reads, size, (1, 1, 1), borders)


def weight_gradient(x: Tensor, grad: Tensor, lines: Tensor, window: Size, stride: Size, padding: Size) -> Tensor:
    """Correlate fields with gradients: x (B, R, D, H, W, C), grad (B, A, …, O) -> (A, T, *window, C, O)."""
    channels, outputs = x.shape[-1], grad.shape[-1]
    borders = [n for p in reversed(padding) for n in (p, p)]
    x = _aligned(F.pad(x, (0, -channels % 8, *borders)) if any(padding) else x)
    grad = _aligned(grad)
    elements, width = lines.shape
    tile = tiles.weight_gradient(outputs, window[2], x.dtype)
    size = grad.shape[2:5]
    wide = (size[2] - 1) * stride[2] + window[2]
    rows = x.shape[0] * size[0] * size[1] * wide
    columns = width * window[0] * window[1] * x.shape[-1]
    programs = triton.cdiv(columns, tile.rows) * triton.cdiv(grad.shape[-1], tile.outputs) * elements
    splits = min(max(triton.cdiv(_PROGRAMS, programs), 1), triton.cdiv(rows, 8 * tile.inner))
    share = triton.cdiv(triton.cdiv(rows, splits), tile.inner) * tile.inner
    partial = torch.empty(
        (splits, elements, width, window[0], window[1], x.shape[-1], window[2], grad.shape[-1]),
        device=x.device, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32,
    )  # fmt: skip
    kernels.correlate_weight[(programs * splits,)](
        x, grad, lines, partial, rows, share, elements, *_eighths(x), *_eighths(grad), *size, wide, *stride,
        T=width, C=x.shape[-1], N=grad.shape[-1], KD=window[0], KH=window[1], KW=window[2],
        BM=tile.rows, BO=tile.outputs, BP=tile.inner, PIECES=tile.pieces, STARTS=tile.starts,
        SUMS=_sums(x), PRECISION=_precision(x), num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return partial.sum(0)[..., :channels, :, :outputs].transpose(-2, -3)


def _aligned(x: Tensor) -> Tensor:
    # Channels innermost, in vectors of eight: copied only where the caller's layout is another.
    if x.shape[-1] % 8:
        return F.pad(x, (0, -x.shape[-1] % 8))
    if x.stride(-1) != 1 or any(s % 8 for s in x.stride()[:-1]) or x.data_ptr() % 16:
        return x.contiguous()
    return x


def _eighths(x: Tensor) -> list[int]:
    return [s // 8 for s in x.stride()[:5]]


def _pack(blocks: Tensor, channels: int, tile: tiles.Tile) -> Tensor:
    """(A, T, KD, KH, KW, C, O) -> (A, output blocks, T, KD, KH, channels, Q), zero where there was nothing."""
    elements, width, depth, height, taps, c, outputs = blocks.shape
    blocks = F.pad(blocks, (0, -outputs % tile.outputs, 0, channels - c))
    blocks = blocks.view(elements, width, depth, height, taps, channels, -1, tile.outputs)
    blocks = blocks.permute(0, 6, 1, 2, 3, 5, 4, 7).flatten(-2)
    return F.pad(blocks, (0, sum(tile.pieces) - blocks.shape[-1])).contiguous()


def _sums(x: Tensor) -> tl.dtype:
    return tl.float64 if x.dtype == torch.float64 else tl.float32


def _precision(x: Tensor) -> str:
    return "ieee" if x.dtype in (torch.float32, torch.float64) and not torch.backends.cudnn.allow_tf32 else "tf32"
