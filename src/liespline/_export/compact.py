"""Convolutions that compute their kernels from spline weights: an exported file of about the size of the weights."""

from torch import Tensor, nn
from torch.nn.utils import parametrize

from .. import functional
from ..nn import GConv, Lift


class Sampled(nn.Module):
    """A parametrisation of a plain convolution's weight: the sampled kernel of eq. BSplinesOnG, from its weights."""

    x_samples: Tensor
    h_samples: Tensor | None

    def __init__(self, layer: Lift | GConv) -> None:
        super().__init__()
        x_samples, h_samples = layer.samples()
        self.register_buffer("x_samples", x_samples.detach().clone())
        self.register_buffer("h_samples", None if h_samples is None else h_samples.detach().clone())

    def forward(self, weight: Tensor) -> Tensor:
        """Return the kernel `(out·N_h, in[·N_h], *window)`."""
        if self.h_samples is None:
            return functional.lift_kernel(weight, self.x_samples[:, 0]).flatten(0, 1)
        return functional.kernel(weight, self.x_samples, self.h_samples).flatten(0, 1).flatten(1, 2)


def keep_weights(conv: nn.Module, layer: Lift | GConv, weight: Tensor) -> None:
    """Let a convolution hold a layer's spline weights, and sample its kernel from them in `forward`."""
    conv.weight = nn.Parameter(weight.detach().clone())
    parametrize.register_parametrization(conv, "weight", Sampled(layer), unsafe=True)  # another shape than the kernel's
