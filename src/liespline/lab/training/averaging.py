"""The moving average of a network's parameters, kept beside it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel


class Averaged(AveragedModel):
    """θ̄ ← d·θ̄ + (1 − d)·θ for all that is saved: parameters, and the statistics of norms.

    What a network derives from its grids is left alone, so that they may stand anywhere. And nothing is asked of the
    device: torch's own reads a counter back at every step, and a GPU has to be waited for then.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        super().__init__(network, use_buffers=True)
        self.decay = decay
        self.requires_grad_(False)
        self._begun = False
        self._pairs: tuple[list[Tensor], list[Tensor]] | None = None

    def update_parameters(self, model: nn.Module) -> None:
        """Take the network's new parameters in; the first ones as they are."""
        if self._pairs is None:
            self._begun = bool(self.n_averaged)  # it may have been resumed
            self._pairs = _saved(self.module), _saved(model)
        with torch.no_grad():
            if self._begun:
                torch._foreach_lerp_(*self._pairs, 1 - self.decay)
            else:
                torch._foreach_copy_(*self._pairs)
        self._begun = True
        self.n_averaged += 1


def _saved(network: nn.Module) -> list[Tensor]:
    """The numbers in a network's `state_dict`, as they are and not detached from it."""
    names = network.state_dict().keys()
    found = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    return [tensor for name, tensor in found.items() if name in names and tensor.is_floating_point()]
