"""How coefficients are drawn: kernels of a chosen bandwidth, and activations that keep their size in deep networks.

A kernel is K(h; y, h̃) = Σ_ij c_ij X_i(h⁻¹y) H_j(h⁻¹h̃). Splines overlap, so coefficients that are drawn independently
make it smooth: a strong low-pass. Let G be the Gram matrix of the sampled splines. Coefficients c = G^(−p) ξ with
white ξ give a kernel the expected spectrum G^(1−2p): p = 0 is smooth, p = 1/2 as flat as the splines' span allows.
The same goes for the response to constant inputs, s = Σ_y X(y): the gain that it has for them, over that of white
inputs, R = sᵀG^(−2p)s / tr G^(1−2p), becomes R^(1−2p). At p = 1/2 constant and white inputs are amplified alike, and
the mean of features behind a ReLU does not grow from layer to layer. Space and H each have a G, an s and an R.

What is left is one number, the gain of a layer with unit ξ, for p > 0 from the recursion of infinitely wide networks.
Let C_bb'(ω) be the spectrum over space of features on elements b and b': white and the same for all at first, as an
image is. A layer and its ReLU make of it

    C_aa'(ω) ← κ(Σ_i X̂_ai(ω) X̂_a'i(ω)* · Σ_jbb' H_abj H_a'b'j C_bb'(ω)),

where κ, the arc-cosine kernel, acts on correlations at each lag, and is 1 at 1: ReLU's half is He's factor 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from torch import Tensor

from .. import functional
from ..functional import Window
from ..grids import Grid
from ..grids.grid import on_cpu
from ..splines import SplineBasis

BANDWIDTH = 0.0
"""The power p, from 0 for smooth kernels to 1/2 for a flat spectrum."""
_DEPTH, _SMOOTH_DEPTH = 20, 10


@dataclass(frozen=True)
class Start:
    """What a draw needs to know of a layer's splines."""

    constant: Tensor
    """The unit vector of coefficients that answers to constant inputs, `(N_x, N_k)`; of white ones where flattened."""
    gain: Callable[[int], float]
    """By how much a layer of so many channels multiplies the second moment, on average over deep networks."""
    in_space: Tensor | None = None
    """From white coefficients to those of the splines, `(N_x, N_x)`; None where these are drawn themselves."""
    on_h: Tensor | None = None
    """The same on H, `(N_k, N_k)`."""


@torch.no_grad()
def fill(weight: Tensor, start: Start) -> None:
    """Draw spline coefficients `(O, C, N_x[, N_k])` for layers followed by ReLU."""
    out_channels, in_channels = weight.shape[:2]
    constant = start.constant.flatten().to(weight)
    noise = torch.randn(out_channels, in_channels, len(constant), dtype=weight.dtype)
    # Along the direction that answers to constant inputs, which deep features come close to, channels are mixed by an
    # orthogonal matrix: it keeps their size in every draw, not on average only.
    mixing = torch.nn.init.orthogonal_(torch.empty_like(noise[:, :, 0]), gain=math.sqrt(max(weight.shape[:2])))
    noise += (mixing - noise @ constant).unsqueeze(-1) * constant
    if start.in_space is not None and start.on_h is not None:
        noise = start.in_space @ noise.double().unflatten(-1, start.constant.shape) @ start.on_h.T
    weight.copy_(noise.reshape(weight.shape) * math.sqrt(2 / (in_channels * start.gain(out_channels))))


@torch.no_grad()
def fill_separable(weight: Tensor, mixing: Tensor, start: Start) -> None:
    """Draw coefficients `(C, 1, N_x)` of filters in space that follow a mixing `(C, in, 1, N_k)`, drawn before.

    The two make the kernel of one layer, k(x) M(h), and it is that layer which has to keep the second moment.
    """
    noise = torch.randn(weight.shape, dtype=weight.dtype)
    # All channels answer to constant inputs alike but for the sign: there are few coefficients to average over.
    constant = (start.constant.sum(1) / start.constant.sum(1).norm().clamp_min(1e-12)).to(weight)
    along = noise @ constant
    noise += (along.sign() - along).unsqueeze(-1) * constant
    of_mixing = mixing.double()
    if start.in_space is not None and start.on_h is not None:
        noise = noise.double() @ start.in_space.T
        of_mixing = torch.linalg.solve(start.on_h, of_mixing.flatten(0, -2).T)
    second_moment = 2 / (start.gain(len(weight)) * mixing.shape[1] * float(of_mixing.square().mean()))
    weight.copy_(math.sqrt(second_moment) * noise)


@lru_cache(maxsize=64)
@on_cpu
def start(
    x_basis: SplineBasis,
    h_basis: SplineBasis | None,
    grid: Grid,
    out_grid: Grid,
    window: Window,
    axial: int | None,
    h_boundary: str,
    bandwidth: float,
) -> Start:
    """Return what is known of a layer before it is drawn; the same for all layers that differ in channels alone."""
    x = functional.space_samples(x_basis, out_grid, window, axial)
    if h_basis is None:
        x, h = x[:, :1], torch.ones(len(out_grid), 1, 1, 1, dtype=x.dtype)
    else:
        h = functional.group_samples(h_basis, grid, out_grid, axial, h_boundary)
    if bandwidth == 0:
        return Start(_constant(x, h), partial(_smooth_gain, x.reshape(*x.shape[:2], -1, x.shape[-1]), h))
    (x, in_space), (h, on_h) = (_flattened(part, bandwidth) for part in (x, h))
    return Start(_constant(x, h), partial(_gain, *_recursion(x.float(), h.float())), in_space, on_h)


def _constant(x: Tensor, h: Tensor) -> Tensor:
    constant = torch.outer(_response(x), _response(h))
    return constant / constant.norm().clamp_min(1e-12)


def _gain(log_gains: Sequence[float], shares: Sequence[float], width: int) -> float:
    """Return the mean gain over twenty layers of a width, behind the first.

    In nets of finite width the typical moment falls short of the expected one: where features are constant, a share ρ
    of them, few channels are either on or off everywhere. By how much per layer is measured.
    """
    each = [log - 0.75 * share**2 / width for log, share in zip(log_gains, shares, strict=True)]
    each = each[1:] or each or [0.0]  # a network's first layer is a lift, and none of the others sees white noise
    settled = _DEPTH - len(each) if len(each) > 1 else 0  # the last gain stays what it is
    return math.exp((sum(each) + settled * each[-1]) / (len(each) + settled))


def _flattened(samples: Tensor, power: float) -> tuple[Tensor, Tensor]:
    """Return samples `(A, M, …, n)` of splines as those of functions with white coefficients, and the matrix."""
    each = samples.flatten(0, -2)
    values, vectors = torch.linalg.eigh(each.T @ each / len(samples))
    values = values.clamp_min(1e-3 * values[-1])  # splines that hardly anything is read of are not blown up
    factor = vectors * values**-power @ vectors.T
    gain = vectors * values ** (1 - 2 * power) @ vectors.T
    response = factor @ _response(samples)
    strength = response.square().sum().clamp_min(1e-12)
    along = torch.outer(response, response) / strength
    across = torch.eye(len(values), dtype=samples.dtype) - along
    # Of a gain of 1 on white inputs, `share` is what the direction that answers to constants has by itself.
    total, own = gain.trace(), (gain * along).sum().clamp_min(1e-12)
    share = own / strength * (strength / total) ** (1 - 2 * power)
    share = share.clamp(max=max(0.5, float(own / total)))
    rest = (1 - share) / (total - own).clamp_min(1e-12)
    factor = factor @ ((share / own).sqrt() * along + rest.clamp_min(0).sqrt() * across)
    return samples @ factor, factor


def _response(samples: Tensor) -> Tensor:
    """Return how splines `(A, M, …, n)` answer to constant inputs, on average over elements."""
    return samples.reshape(*samples.shape[:2], -1, samples.shape[-1]).sum(2).mean((0, 1))


def _recursion(x: Tensor, h: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the gains and shares of a `Start`, until they settle, on a torus a little larger than the window."""
    (elements, m, *size, _), n = x.shape, h.shape[2]
    size = [side + 2 if side > 1 else 1 for side in size] or [1]
    x = x if x.ndim > 3 else x.unsqueeze(2)
    spectra = torch.fft.rfftn(x, s=size, dim=tuple(range(2, x.ndim - 1))).flatten(2, -2)
    spectra = spectra.flatten(0, 1).transpose(0, 1)  # (W, A M, N_x)
    in_space = spectra @ spectra.mH
    on_h = h.flatten(0, 1).to(spectra)  # (A M, N, N_k)
    features = torch.ones(len(spectra), n, n).to(spectra)  # not expanded: MKL takes no stride of 0 in torch 2.6
    log_gains: list[float] = []
    shares = [0.0]
    while len(log_gains) < _DEPTH:
        read = [torch.einsum("abj,bc,dcj->ad", on_h, each, on_h) for each in features]
        out = (in_space * torch.stack(read)).unflatten(2, (elements, m)).unflatten(1, (elements, m)).sum((2, 4))
        lags = _lags(out, size)
        moment = lags[0].diagonal()
        gain = float(moment.mean() / _lags(features, size)[0].diagonal().mean())
        if gain < 1e-6:  # elements that read only elements that read nothing: deeper layers are zero
            break
        log_gains.append(math.log(gain))
        settled = len(log_gains) > 4 and abs(log_gains[-1] - log_gains[-2]) < 0.003
        if elements != n or settled:  # a layer that changes the grid has no second one like it
            break
        deviation = moment.clamp_min(1e-12 * moment.max()).sqrt()
        scale = torch.outer(deviation, deviation)
        c = (lags / scale).clamp(-1, 1)
        lags = scale / moment.mean() * ((1 - c * c).sqrt() + (math.pi - c.acos()) * c) / math.pi
        shares.append(float(lags.mean()))
        features = torch.fft.rfftn(lags.unflatten(0, size), dim=tuple(range(len(size)))).flatten(0, len(size) - 1)
    return tuple(log_gains), tuple(shares[: len(log_gains)])


def _lags(spectrum: Tensor, size: list[int]) -> Tensor:
    """Return covariances at every lag of a torus, `(*lags, A, A)`, lags in one axis."""
    half = [*size[:-1], size[-1] // 2 + 1]
    return torch.fft.irfftn(spectrum.unflatten(0, half), s=size, dim=tuple(range(len(size)))).flatten(0, len(size) - 1)


def _smooth_gain(x: Tensor, h: Tensor, width: int) -> float:
    """Return the mean gain of independent coefficients over ten layers, with one number for all correlations.

    Features have a second moment f_b on each element b, of which a share ρ is common to all samples and the rest
    independent. The recursion above is closer; stored configurations begin with these numbers.
    """
    alone = torch.einsum("amn,amnb->ab", torch.einsum("amyi,anyi->amn", x, x), torch.einsum("ambj,anbj->amnb", h, h))
    joint = torch.einsum("ami,ani->amn", x.sum(2), x.sum(2))
    moment, common, log_gain = torch.ones(h.shape[2], dtype=h.dtype), 0.0, 0.0
    depth = 0
    while depth < _SMOOTH_DEPTH:
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
        moment = total / total.mean() if len(x) == len(moment) else moment  # else no second such layer follows
    return math.exp(log_gain / max(depth, 1))
