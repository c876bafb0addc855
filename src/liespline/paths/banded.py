"""The banded path: correlate each output group with the fields it reads, in space alone."""

import torch
from torch import Tensor
from torch.nn import functional as F

from liespline.paths.plan import Table

Size = tuple[int, ...]


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
        case 2:
            out = F.conv2d(picked, blocks, None, stride, padding, groups=groups)
        case _:  # oneDNN's grouped volumes are slow: one convolution a group
            pairs = zip(picked.chunk(groups, 1), blocks.chunk(groups, 0), strict=True)
            out = torch.cat([F.conv3d(part, block, None, stride, padding) for part, block in pairs], dim=1)
    return out.view(out.shape[0], kernel.shape[1], kernel.shape[0], *out.shape[2:]).transpose(1, 2)
