"""Fields are mixed over H: a field is a distinct row of the samples on H, applied to the input at every sample."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ..layout import Order, fields_first, fields_last
from ..path import Question, move


def price(q: Question, fields: int) -> float:
    """What making so many fields costs."""
    return fields * q.inputs[0] * (q.inputs[1] + move(q))


def mixer(h_samples: Tensor, rows: Tensor, channels: int, order: Order, dtype: torch.dtype) -> Tensor:
    """Return the rows (R, N_in) of h_samples (A, 1, N_in, N_k), or where all fields lie together (R·C, N_in·C).

    Products with zeros cost less than a product for each sample.
    """
    found = h_samples[:, 0].transpose(1, 2).flatten(0, 1).index_select(0, rows).to(dtype)
    return torch.kron(found, torch.eye(channels, device=found.device, dtype=dtype)) if order is Order.FIELDS else found


def mix(x: Tensor, mixer: Tensor, order: Order) -> Tensor:
    """Apply the mixer along H: (B, C, N_in, *space) -> (B, C, R, *space), as products over whichever axes lie last."""
    if order is Order.FIELDS:
        mixed = F.linear(fields_last(x).flatten(-2), mixer)
        return fields_first(mixed.unflatten(-1, (-1, x.shape[1])))
    if order is Order.CHANNELS:
        last = x.movedim(1, -1)  # (B, N_in, *space, C)
        return torch.matmul(mixer, last.flatten(2)).view(x.shape[0], -1, *last.shape[2:]).movedim(-1, 1)
    planes = x.flatten(3) if x.ndim > 3 else x[..., None]
    return torch.matmul(mixer, planes).view(*x.shape[:2], -1, *x.shape[3:])
