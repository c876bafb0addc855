"""The banded path: correlate each output group with the fields it reads, in space alone."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from liespline.paths.plan import Table

Size = tuple[int, ...]
_LARGEST = 14 * 14  # samples in a window beyond which oneDNN has no fast channels-last convolution


def grouped(fields: Tensor, kernel: Tensor, table: Table, stride: Size, padding: Size) -> Tensor:
    """Correlate gathered fields by one grouped convolution, channels last.

    out[:,o,g·G+e] = Σ_fc kernel[o,g·G+e,c,f] ⋆ fields[:,c,table.fields[g,f]], with G = A / groups

    fields (B, C, R, *space), kernel (O, A, C, width, *W) -> (B, O, A, *space).
    """
    groups = table.fields.shape[0]
    picked = fields.movedim((2, 1), (-2, -1)).index_select(-2, table.fields.flatten())
    picked = picked.flatten(-2).movedim(-1, 1)  # (B, groups·width·C, *space)
    blocks = kernel.permute(1, 0, *range(4, kernel.ndim), 3, 2)  # (A, O, *W, width, C)
    blocks = blocks.flatten(-2).flatten(0, 1).movedim(-1, 1)  # (A·O, width·C, *W)
    match len(stride):
        case 0:
            inputs = picked.view(-1, groups, blocks.shape[1])
            out = torch.einsum("bgi,goi->bgo", inputs, blocks.view(groups, -1, blocks.shape[1])).flatten(1)
        case 1:  # a second axis, since only images have a channels-last layout
            out = F.conv2d(picked[:, :, None], blocks[:, :, None], None, (1, *stride), (0, *padding), groups=groups)[
                :, :, 0
            ]
        case 2 if fields.is_cuda or math.prod(blocks.shape[2:]) <= _LARGEST:
            out = F.conv2d(picked, blocks, None, stride, padding, groups=groups)
        case 2:
            out = _one_by_one(F.conv2d, picked.contiguous(), blocks.contiguous(), groups, stride, padding)
        case _:  # oneDNN's grouped volumes are slow
            out = _one_by_one(F.conv3d, picked, blocks, groups, stride, padding)
    return out.view(out.shape[0], kernel.shape[1], kernel.shape[0], *out.shape[2:]).transpose(1, 2)


def _one_by_one(
    convolve: Callable[..., Tensor], x: Tensor, weight: Tensor, groups: int, stride: Size, padding: Size
) -> Tensor:
    pairs = zip(x.chunk(groups, 1), weight.chunk(groups, 0), strict=True)
    return torch.cat([convolve(part, block, None, stride, padding) for part, block in pairs], dim=1)
