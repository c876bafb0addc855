"""The three layers of section 3.2 on plain tensors."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from .. import paths
from .sampling import Size, Window


def lift(
    x: Tensor,
    weight: Tensor,
    x_samples: Tensor,
    bias: Tensor | None = None,
    *,
    window: Window,
    stride: Size,
    padding: tuple[Size, Size],
    padding_mode: str = "zeros",
) -> Tensor:
    """Return the lifting correlation (eq. liftingcor): out(x, h) = 1/|det h| Σ_y k(h⁻¹(y − x)) f(y).

    x `(B, C, *space)`, weight `(O, C, N_x)`, x_samples `(A, *W, N_x)` → `(B, O, A, *space)`.
    """
    x, borders = _pad(x, window, padding, padding_mode)
    out = paths.lift(x, weight, x_samples, sizes=window.sizes, stride=stride, padding=borders)
    return _add_bias(out, bias)


def correlate(
    x: Tensor,
    weight: Tensor,
    x_samples: Tensor,
    h_samples: Tensor,
    bias: Tensor | None = None,
    *,
    window: Window,
    stride: Size,
    padding: tuple[Size, Size],
    padding_mode: str = "zeros",
    plan: paths.Plan | None = None,
) -> Tensor:
    """Return the group correlation (eq. gcor): out(x, h) = 1/|det h| Σ_h̃ w(h̃) Σ_y K(h⁻¹(y − x), h⁻¹h̃) F(y, h̃).

    x `(B, C, N, *space)`, weight `(O, C, N_x, N_k)`, x_samples `(A, M, *W, N_x)`, h_samples `(A, M, N, N_k)`
    → `(B, O, A, *space)`.
    """
    x, borders = _pad(x, window, padding, padding_mode)
    out = paths.correlate(
        x, weight, x_samples, h_samples, sizes=window.sizes, stride=stride, padding=borders, plan=plan
    )
    return _add_bias(out, bias)


def project(x: Tensor, reduce: str, weights: Tensor) -> Tensor:
    """Return the projection over H (eq. projection), `(B, C, N, *space)` → `(B, C, *space)`.

    "sum" is the integral with the Haar weights of the grid, "mean" the same over its volume, "max" the maximum;
    "vector" is the integral of F(h) h·e₀ over the volume, weights `(d, N)`, → `(B, C, d, *space)`.
    """
    if reduce == "max":
        return x.amax(2)
    if reduce == "mean":
        weights = weights / weights.sum()
    out = weights.to(x) @ x.reshape(*x.shape[:3], -1)
    return out.reshape(*out.shape[:-1], *x.shape[3:])


def _pad(x: Tensor, window: Window, padding: tuple[Size, Size], mode: str) -> tuple[Tensor, Size]:
    """Return x and the zero padding left to do, so that every window sits where `kernel_size` alone would."""
    before, after = window.borders(padding)
    if before == after and (mode == "zeros" or not any(before)):
        return x, before
    spread = [p for pair in zip(reversed(before), reversed(after), strict=True) for p in pair]
    if mode == "zeros":
        return F.pad(x, spread), (0,) * len(before)
    # F.pad wants (batch, channel, *space); a feature map's H axis is one more channel axis to it
    lead = x.ndim - len(before)
    padded = F.pad(x.flatten(1, lead - 1), spread, mode=mode)
    return padded.unflatten(1, x.shape[1:lead]), (0,) * len(before)


def _add_bias(out: Tensor, bias: Tensor | None) -> Tensor:
    return out if bias is None else out + bias.to(out.dtype).reshape(-1, *(1,) * (out.ndim - 2))
