"""What a network predicts, not rounded to half precision."""

from torch import Tensor, nn

from .._torch import full_precision, is_autocast


class _Precise(nn.Module):
    """A layer that computes in its own dtype under autocast too.

    Logits in bfloat16 have three digits: an exact quarter turn of an image then changes them by a hundredth of their
    spread over images. The layers at the end of a network are too small for half precision to save time.
    """

    weight: Tensor

    def forward(self, input: Tensor) -> Tensor:
        if not is_autocast(input.device):
            return super().forward(input)
        with full_precision(input.device):
            return super().forward(input.to(self.weight.dtype))


class PreciseLinear(_Precise, nn.Linear):
    """`nn.Linear` in its own dtype."""


class PreciseConv1d(_Precise, nn.Conv1d):
    """`nn.Conv1d` in its own dtype."""


class PreciseConv2d(_Precise, nn.Conv2d):
    """`nn.Conv2d` in its own dtype."""


class PreciseConv3d(_Precise, nn.Conv3d):
    """`nn.Conv3d` in its own dtype."""
