"""The definition in plain torch."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"": lambda x: x, "relu": F.relu, "silu": F.silu, "gelu": F.gelu}
"""What may follow; nothing among them."""


def normalise(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, activation: str, pool: int) -> Tensor:
    """activation(pool(batch norm(x))) of (B, C, N_h, *space) by the batch's own statistics."""
    out = F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
    out = out if pool == 1 else F.max_pool2d(out.flatten(0, 2), pool).unflatten(0, out.shape[:3])
    return ACTIVATIONS[activation](out)
