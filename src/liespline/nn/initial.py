"""How coefficients are drawn, so that activations keep their size through any number of layers."""

from __future__ import annotations

import torch
from torch import Tensor

_COMMON = 0.85  # share of a feature map that neighbouring samples have in common; see docs on initialisation


@torch.no_grad()
def fill(weight: Tensor, x_samples: Tensor, h_samples: Tensor | None) -> None:
    """Draw spline coefficients `(O, C, N_x[, N_k])` for layers followed by ReLU.

    Overlapping splines would make the kernel's samples agree with each other, so coefficients are drawn as white noise
    on the kernel's samples seen through the basis: c = G^{−½} z with G the Gram matrix of the sampled basis. Their size
    then follows He: the output's second moment is twice the input's, taken over all output elements, for inputs of
    which `_COMMON` is the same everywhere in the window and the rest independent.
    """
    x = x_samples.flatten(2, -2).double()  # (A, M, Y, N_x)
    h = torch.ones(*x.shape[:2], 1, 1, dtype=x.dtype) if h_samples is None else h_samples.double()
    x_root, h_root = _whitener(x), _whitener(h)
    x, h = x @ x_root, h @ h_root
    independent = (torch.einsum("amyi,anyi->amn", x, x) * torch.einsum("amyi,anyi->amn", h, h)).sum((1, 2)).mean()
    x_sum, h_sum = x.sum(2), h.sum(2)
    common = (torch.einsum("ami,ani->amn", x_sum, x_sum) * torch.einsum("ami,ani->amn", h_sum, h_sum)).sum((1, 2)).mean()
    gain = weight.shape[1] * ((1 - _COMMON) * independent + _COMMON * common)
    noise = torch.randn(*weight.shape[:2], x.shape[-1], h.shape[-1], device=weight.device).to(weight)
    drawn = torch.einsum("ocij,ki,lj->ockl", noise, x_root.to(noise), h_root.to(noise)) * (2 / gain).sqrt().to(noise)
    weight.copy_(drawn.reshape(weight.shape))


def _whitener(samples: Tensor) -> Tensor:
    """Return G^{−½} of the Gram matrix of samples `(A, M, P, N)`, averaged over elements; it ignores null directions."""
    gram = torch.einsum("ampi,ampj->ij", samples, samples) / len(samples)
    values, vectors = torch.linalg.eigh(gram)
    values = values.clamp_min(1e-3 * values.max())
    return vectors / values.sqrt() @ vectors.T
