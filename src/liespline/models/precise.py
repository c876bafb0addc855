"""What a network predicts, not rounded to half precision."""

from __future__ import annotations

from torch import Tensor, nn

from .._torch import full_precision, is_autocast


class PreciseLinear(nn.Linear):
    """`nn.Linear` that computes in its own dtype under autocast too.

    Logits in bfloat16 have three digits: an exact quarter turn of an image then changes them by a hundredth of their
    spread over images. The layers at the end of a network are too small for half precision to save time.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Map `(B, in_features)`."""
        if not is_autocast(input.device):
            return super().forward(input)
        with full_precision(input.device):
            return super().forward(input.to(self.weight.dtype))
