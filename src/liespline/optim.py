"""Adam for kernels made of splines: `optim.AdamW(net, lr=5e-3)`, not `torch.optim.AdamW(net.parameters(), lr=5e-3)`.

Adam gives every number that is learned a step of its own, so it matters in which basis a kernel is written. Splines
overlap with their neighbours, and their coefficients pull together. The modes of a basis, from smooth to rough, do not
overlap, and each gets the step it needs. On uniform grids of SO(2) they are waves around the circle. Networks that
learn from turned images learn faster and end with fewer errors; those that learn from upright ones follow turns between
the grid's angles less. Weights and their files are those of torch's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from .nn.base import Correlation

Turns = tuple[Tensor, ...]


class AdamW(torch.optim.AdamW):
    """torch's AdamW, taking its steps in the modes of the splines of every layer; other parameters as always.

    `params` are parameters or groups of them as in torch, by default all of the network's; further options are torch's.
    Weight decay and anything that depends on norms only, such as clipping, is the same in either basis.
    """

    def __init__(
        self,
        network: nn.Module,
        lr: float | Tensor = 1e-3,
        *,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(network, nn.Module):
            raise ValueError(
                f"AdamW: network is a {type(network).__name__}, must be a module: optim.AdamW(net, lr=1e-3)"
            )
        super().__init__(network.parameters() if params is None else params, lr=lr, **options)
        layers = [layer for layer in network.modules() if isinstance(layer, Correlation)]
        self._turns: dict[Tensor, Turns] = {layer.weight: modes(layer) for layer in layers}

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take one step; a closure is called first, for its loss and gradients."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        learned = [weight for group in self.param_groups for weight in group["params"] if weight.grad is not None]
        kept = []
        for weight in (weight for weight in learned if weight in self._turns):
            both = torch.stack([weight, weight.grad])
            turned = turn(both, self._turns_of(weight))
            kept.append((weight, weight.grad, both[0], turned[0]))
            weight.copy_(turned[0])
            weight.grad = turned[1]
        super().step()
        for weight, gradient, before, at in kept:
            # Only the change is turned back, so that what does not change stays as it is, to the last bit.
            weight.copy_(before + turn(weight - at, self._turns_of(weight), back=True))
            weight.grad = gradient
        return loss

    def _turns_of(self, weight: Tensor) -> Turns:
        turns = self._turns[weight]
        if turns[0].device != weight.device or turns[0].dtype != weight.dtype:
            turns = self._turns[weight] = tuple(matrix.to(weight) for matrix in turns)
        return turns


def modes(layer: Correlation) -> Turns:
    """The orthogonal matrices, a mode per row, of a layer's splines in space and, if it has any, on H.

    Modes are the eigenvectors of the splines' inner products over all that the layer samples, the smoothest last.
    """
    samples = [part for part in layer.samples() if part is not None]
    return tuple(_eigenvectors(part.detach().double().cpu().flatten(0, -2)) for part in samples)


def turn(weight: Tensor, turns: Turns, back: bool = False) -> Tensor:
    """Write coefficients (…, N_x[, N_k]) as those of the modes, or modes as coefficients."""
    space, *group = (matrix.T for matrix in turns) if back else turns
    return space @ weight @ group[0].T if group else weight @ space.T


def _eigenvectors(values: Tensor) -> Tensor:
    return torch.linalg.eigh(values.T @ values).eigenvectors.T.contiguous()
