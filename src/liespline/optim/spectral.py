"""Adam for kernels made of splines: `SpectralAdamW(net, lr=5e-3)` for `torch.optim.AdamW(net.parameters(), lr=5e-3)`.

Adam scales the step of every parameter by itself, so it matters in which basis a kernel is written. Splines overlap
with their neighbours, and their coefficients pull together. The modes of a basis, from smooth to rough, do not overlap,
and each gets the step it needs. On uniform grids of SO(2) they are waves around the circle. Networks fit faster and
make fewer errors; their output changes more under rotations between the grid's angles, least so where smooth modes take
the longer steps. Parameters and their files are those of torch's own AdamW.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from ..nn.base import Correlation

Modes = tuple[Tensor, ...]
"""A matrix with orthogonal modes as rows, of the splines in space and, for a `GConv`, one of those on H."""


class SpectralAdamW(torch.optim.AdamW):
    """torch's AdamW, taking its steps in the modes of the splines of every layer; other parameters as always.

    With `smoothness` = s, a mode that is a function of norm √λ takes steps in proportion to λ^s, and their geometric
    mean is what it was: with 0 all modes take equal steps. `params` are parameters or groups of them as in
    torch, by default all of the network's; further options are torch's. Weight decay is the same in either basis.
    """

    def __init__(
        self,
        network: nn.Module,
        lr: float | Tensor = 1e-3,
        *,
        smoothness: float = 0.25,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(network, nn.Module):
            raise ValueError(
                f"SpectralAdamW: network is a {type(network).__name__}, must be a module: SpectralAdamW(net, lr=1e-3)"
            )
        super().__init__(network.parameters() if params is None else params, lr=lr, **options)
        layers = [layer for layer in network.modules() if isinstance(layer, Correlation)]
        self._modes: dict[Tensor, Modes] = {layer.weight: modes(layer, smoothness) for layer in layers}

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take one step; a closure is called first, for its loss and gradients."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        trained = [weight for group in self.param_groups for weight in group["params"] if weight.grad is not None]
        kept = []
        for weight in (weight for weight in trained if weight in self._modes):
            known, before = self._modes_of(weight), weight.clone()
            weight.copy_(to_modes(weight, known))
            kept.append((weight, weight.grad, before, weight.clone()))
            weight.grad = spectral_gradient(weight.grad, known)
        super().step()
        for weight, gradient, before, at in kept:
            # Only the change is transformed back, so that what does not change stays as it is, to the last bit.
            weight.copy_(before + from_modes(weight - at, self._modes_of(weight)))
            weight.grad = gradient
        return loss

    def _modes_of(self, weight: Tensor) -> Modes:
        """The modes on the device and in the dtype that a weight has now."""
        found = self._modes[weight]
        if found[0].device != weight.device or found[0].dtype != weight.dtype:
            found = self._modes[weight] = tuple(matrix.to(weight) for matrix in found)
        return found


def modes(layer: Correlation, smoothness: float = 0.0) -> Modes:
    """The eigenvectors of the inner products of a layer's splines over all that it samples, the smoothest last."""
    samples = [part for part in layer.samples() if part is not None]
    return tuple(_scaled(part.detach().double().cpu().flatten(0, -2), smoothness) for part in samples)


def from_modes(weight: Tensor, modes: Modes) -> Tensor:
    """Write coefficients of the modes as those of splines (…, N_x[, N_k])."""
    return spectral_gradient(weight, tuple(matrix.T for matrix in modes))


def to_modes(weight: Tensor, modes: Modes) -> Tensor:
    """Write coefficients of splines as those of the modes."""
    return spectral_gradient(weight, tuple(matrix / matrix.square().sum(1, keepdim=True) for matrix in modes))


def spectral_gradient(gradient: Tensor, modes: Modes) -> Tensor:
    """The gradient by coefficients of the modes, from that by coefficients of splines."""
    space, *group = modes
    return space @ gradient @ group[0].T if group else gradient @ space.T


def _scaled(values: Tensor, smoothness: float) -> Tensor:
    """Modes as long as the steps that they take, where Adam's are all the same."""
    found = torch.linalg.eigh(values.T @ values)
    log = found.eigenvalues.clamp_min(
        1e-3 * found.eigenvalues[-1]
    ).log()  # what hardly anything is read of still learns
    return (found.eigenvectors * (smoothness * (log - log.mean())).exp()).T.contiguous()
