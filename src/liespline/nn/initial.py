"""How coefficients are drawn, so that activations keep their size through many layers, whatever the kernel."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_DEPTH = 10


@torch.no_grad()
def fill(weight: Tensor, x_samples: Tensor, h_samples: Tensor | None) -> None:
    """Draw spline coefficients `(O, C, N_x[, N_k])` for layers followed by ReLU.

    They are independent, which makes kernels smooth and so as equivariant as their basis allows. Their size is He's,
    generalised to kernels whose gain differs between what neighbouring samples share and what they do not, and between
    group elements: it keeps the second moment over ten such layers, by the mean-field recursion of `_gain`.
    """
    x, h = _flat(x_samples, h_samples)
    # Along the direction that answers to constant inputs, which deep features come close to, channels are mixed by an
    # orthogonal matrix: it keeps their size in every draw, not on average only.
    constant = (x.sum((1, 2)).mean(0).unsqueeze(1) * h.sum((1, 2)).mean(0)).flatten()
    constant = (constant / constant.norm().clamp_min(1e-12)).to(weight)
    out_channels, in_channels = weight.shape[:2]
    noise = torch.randn(out_channels, in_channels, len(constant), dtype=weight.dtype, device=weight.device)
    mixing = torch.nn.init.orthogonal_(torch.empty_like(noise[:, :, 0]), gain=math.sqrt(max(weight.shape[:2])))
    noise += (mixing - noise @ constant).unsqueeze(-1) * constant
    weight.copy_(noise.reshape(weight.shape) * math.sqrt(2 / (in_channels * _gain(x, h, out_channels))))


@torch.no_grad()
def fill_separable(weight: Tensor, mixing: Tensor, x_samples: Tensor, h_samples: Tensor) -> None:
    """Draw coefficients `(C, 1, N_x)` of filters in space that follow a mixing `(C, in, 1, N_k)`, drawn before.

    The two make the kernel of one layer, k(x) M(h), and it is that layer which has to keep the second moment.
    """
    x, h = _flat(x_samples[:, :1], h_samples[:, :1])
    noise = torch.randn(weight.shape, dtype=weight.dtype)
    # All channels answer to constant inputs alike but for the sign: there are few coefficients to average over.
    constant = x.sum((1, 2)).mean(0)
    constant = (constant / constant.norm().clamp_min(1e-12)).to(weight)
    along = noise @ constant
    noise += (along.sign() - along).unsqueeze(-1) * constant
    second_moment = 2 / (_gain(x, h, len(weight)) * mixing.shape[1] * float(mixing.double().square().mean()))
    weight.copy_(math.sqrt(second_moment) * noise)


def _flat(x_samples: Tensor, h_samples: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return samples in float64, `(A, M, Y, N_x)` and `(A, M, N, N_k)`."""
    x = x_samples.double().reshape(*x_samples.shape[:2], -1, x_samples.shape[-1])
    return x, torch.ones(*x.shape[:2], 1, 1, dtype=x.dtype) if h_samples is None else h_samples.double()


def _gain(x: Tensor, h: Tensor, width: int) -> float:
    """Return by how much one layer with unit coefficients multiplies the second moment of its input.

    The input of a layer has a second moment f_b on each element b, of which a share ρ is common to all its samples and
    the rest independent. ReLU halves the moment and turns a correlation c of what it gets into κ(c) (the arc-cosine
    kernel), so ρ grows from 0 at a network's input; the gain is the geometric mean over its first layers. In nets of
    finite width the typical moment falls short of the expected one by about e^{−2ρ/width} per layer, which is
    corrected here.
    """
    alone = torch.einsum("amn,amnb->ab", torch.einsum("amyi,anyi->amn", x, x), torch.einsum("ambj,anbj->amnb", h, h))
    joint = torch.einsum("ami,ani->amn", x.sum(2), x.sum(2))
    moment, common, log_gain = torch.ones(h.shape[2], dtype=h.dtype), 0.0, 0.0
    square = len(x) == len(moment)  # otherwise the layer changes the grid, and there is no second such layer
    depth = 0
    while depth < _DEPTH:
        # Independent contributions are squared and then added up, common ones the other way round.
        added = torch.einsum("ambj,b->amj", h, moment.sqrt())
        shared = torch.einsum("amn,amj,anj->a", joint, added, added).clamp_min(0)
        total = (1 - common) * (alone @ moment) + common * shared
        if not total.any():  # elements that read only elements that read nothing: deeper layers are zero
            break
        depth += 1
        log_gain += math.log(float(total.mean() / moment.mean())) - 2 * common / width
        c = float((common * shared / total.clamp_min(1e-300)).mean().clamp(0, 1))
        common = (math.sqrt(1 - c * c) + (math.pi - math.acos(c)) * c) / math.pi
        moment = total / total.mean() if square else moment
    return math.exp(log_gain / max(depth, 1))
