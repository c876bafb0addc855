"""How coefficients are drawn: kernels of a chosen bandwidth, and activations that keep their size in deep networks.

A kernel is K(h; y, h̃) = Σ_ij c_ij X_i(h⁻¹y) H_j(h⁻¹h̃). Coefficients drawn independently make it smooth, since splines
overlap: a strong low-pass. With the Gram matrix G of the sampled splines, coefficients c = G^(−p) ξ of white ξ multiply
the expected spectrum by G^(−2p): p = 0 leaves it smooth, p = 1/2 makes it as flat as the splines' span allows. The same is
done to the response to constant inputs, s = Σ_y X(y): its share of the gain on white inputs, R = sᵀG^(−2p)s / tr G^(1−2p),
becomes R^(1−2p), so that at p = 1/2 white and constant inputs are amplified alike. Space and H each have a G, an s and a p.

What is left is one number, the gain of a layer with unit ξ, from the recursion of infinitely wide networks: let
C_bb'(ω) be the spectrum over space of features on elements b and b', white at first. A layer and its ReLU make of it

    C_aa'(ω) ← κ(Σ_i X̂_ai(ω) X̂_a'i(ω)* · Σ_jbb' H_abj H_a'b'j C_bb'(ω)),

with the arc-cosine kernel κ acting on correlations at each lag: twice the second moment of ReLU's output, for He's 2.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

BANDWIDTH = 0.0
"""The power p, from 0 for smooth kernels to 1/2 for a flat spectrum."""
_DEPTH = 20


@torch.no_grad()
def fill(weight: Tensor, x_samples: Tensor, h_samples: Tensor | None, bandwidth: float = BANDWIDTH) -> None:
    """Draw spline coefficients `(O, C, N_x[, N_k])` of a bandwidth for layers followed by ReLU."""
    if h_samples is None:
        h_samples = torch.ones(*x_samples.shape[:2], 1, 1)
    x, in_space = _flattened(x_samples, bandwidth)
    h, on_h = _flattened(h_samples, bandwidth)
    # Along the direction that answers to constant inputs, which deep features come close to, channels are mixed by an
    # orthogonal matrix: it keeps their size in every draw, not on average only.
    constant = torch.outer(_response(x), _response(h)).flatten()
    constant = constant / constant.norm().clamp_min(1e-12)
    out_channels, in_channels = weight.shape[:2]
    noise = torch.randn(out_channels, in_channels, len(constant), dtype=weight.dtype).double()
    mixing = torch.empty(out_channels, in_channels, dtype=weight.dtype)
    mixing = torch.nn.init.orthogonal_(mixing, gain=math.sqrt(max(mixing.shape)))
    noise += (mixing - noise @ constant).unsqueeze(-1) * constant
    drawn = in_space @ noise.unflatten(-1, (len(in_space), len(on_h))) @ on_h.T
    weight.copy_(drawn.reshape(weight.shape) * math.sqrt(2 / (in_channels * _gain(x, h, out_channels))))


@torch.no_grad()
def fill_separable(
    weight: Tensor, mixing: Tensor, x_samples: Tensor, h_samples: Tensor, bandwidth: float = BANDWIDTH
) -> None:
    """Draw coefficients `(C, 1, N_x)` of filters in space that follow a mixing `(C, in, 1, N_k)`, drawn before.

    The two make the kernel of one layer, k(x) M(h), and it is that layer which has to keep the second moment.
    """
    x, in_space = _flattened(x_samples[:, :1], bandwidth)
    h, on_h = _flattened(h_samples[:, :1], bandwidth)
    noise = torch.randn(weight.shape, dtype=weight.dtype).double()
    # All channels answer to constant inputs alike but for the sign: there are few coefficients to average over.
    constant = _response(x)
    constant = constant / constant.norm().clamp_min(1e-12)
    along = noise @ constant
    noise += (along.sign() - along).unsqueeze(-1) * constant
    of_mixing = float(torch.linalg.solve(on_h, mixing.double().flatten(0, -2).T).square().mean())
    second_moment = 2 / (_gain(x, h, len(weight)) * mixing.shape[1] * of_mixing)
    weight.copy_(math.sqrt(second_moment) * noise @ in_space.T)


def _flattened(samples: Tensor, power: float) -> tuple[Tensor, Tensor]:
    """Return samples `(A, M, …, n)` of splines as those of functions with white coefficients, and the matrix to them."""
    samples = samples.double()
    each = samples.flatten(0, -2)
    values, vectors = torch.linalg.eigh(each.T @ each / len(samples))
    values = values.clamp_min(1e-3 * values[-1])  # splines that hardly anything is read of are not blown up
    factor = vectors * values**-power @ vectors.T
    gain = factor @ (vectors * values @ vectors.T) @ factor
    response = factor @ _response(samples)
    strength = response.square().sum().clamp_min(1e-12)
    along = torch.outer(response, response) / strength
    across = torch.eye(len(values), dtype=samples.dtype) - along
    # Of a gain of 1 on white inputs, this is what the direction that answers to constants has by itself.
    total, own = gain.trace(), (gain * along).sum().clamp_min(1e-12)
    share = own / strength * (strength / total) ** (1 - 2 * power)
    share = share.clamp(max=max(0.5, float(own / total)))
    rest = (1 - share) / (total - own).clamp_min(1e-12)
    factor = factor @ ((share / own).sqrt() * along + rest.clamp_min(0).sqrt() * across)
    return samples @ factor, factor


def _response(samples: Tensor) -> Tensor:
    """Return how splines `(A, M, …, n)` answer to constant inputs, on average over elements."""
    return samples.reshape(*samples.shape[:2], -1, samples.shape[-1]).sum(2).mean((0, 1))


def _gain(x: Tensor, h: Tensor, width: int) -> float:
    """Return by how much one layer with white coefficients multiplies the second moment, the mean over twenty layers.

    In nets of finite width the typical moment falls short of the expected one by about e^{−2ρ/width} per layer, where
    ρ is the share of it that is constant.
    """
    (elements, m, *size, _), n = x.shape, h.shape[2]
    axes = tuple(range(2, 2 + len(size)))
    spectra = torch.fft.rfftn(x, dim=axes).flatten(2, -2) if size else x.unsqueeze(2).to(torch.complex128)
    size = size or [1]
    spectra = spectra.flatten(0, 1).transpose(0, 1)  # (W, A M, N_x)
    in_space = spectra @ spectra.mH
    on_h = h.flatten(0, 1).to(spectra)  # (A M, N, N_k)
    features = torch.eye(n).to(spectra).expand(len(spectra), n, n)
    logs, constant = [], 0.0
    while len(logs) < _DEPTH:
        read = torch.einsum("abj,wbc->ajwc", on_h, features)
        out = in_space * torch.einsum("ajwc,dcj->wad", read, on_h)
        out = out.unflatten(2, (elements, m)).unflatten(1, (elements, m)).sum((2, 4))
        lags = _lags(out, size)
        moment = lags[0].diagonal()
        if not moment.any():  # elements that read only elements that read nothing: deeper layers are zero
            break
        before = _lags(features, size)[0].diagonal().mean()
        logs.append(math.log(float(moment.mean() / before)) - 2 * constant**2 / width)
        if elements != n:  # the layer changes the grid, and there is no second such layer
            break
        deviation = moment.clamp_min(1e-300).sqrt()
        scale = torch.outer(deviation, deviation)
        c = (lags / scale).clamp(-1, 1)
        lags = scale / moment.mean() * ((1 - c * c).sqrt() + (math.pi - c.acos()) * c) / math.pi
        constant = float(lags.mean())
        features = torch.fft.rfftn(lags.unflatten(0, size), dim=tuple(range(len(size)))).flatten(0, len(size) - 1)
    return math.exp(sum(logs) / max(len(logs), 1))


def _lags(spectrum: Tensor, size: list[int]) -> Tensor:
    """Return covariances at every lag of a torus of that size, `(*lags, A, A)`, lags in one axis."""
    half = [*size[:-1], size[-1] // 2 + 1]
    return torch.fft.irfftn(spectrum.unflatten(0, half), s=size, dim=tuple(range(len(size)))).flatten(0, len(size) - 1)
