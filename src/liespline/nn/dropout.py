"""Dropout of whole fields: a channel at all positions and elements of H, or not at all."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F


class FieldDropout(nn.Module):
    """Set each channel of `(B, C, N_h, *space)` to zero with probability p in training, and scale up the rest.

    Single samples or elements that are dropped would be different ones when the input turns; whole fields are not.
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"FieldDropout: p = {p}, must be a probability below 1")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Drop fields."""
        if not self.training or self.p == 0:
            return x
        return x * F.dropout(x.new_ones(*x.shape[:2], *(1,) * (x.ndim - 2)), self.p)

    def extra_repr(self) -> str:
        """Show the probability."""
        return str(self.p)
