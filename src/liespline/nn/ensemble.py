"""Several networks that answer as one."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class Ensemble(nn.Module):
    """The mean of several networks' answers, out = 1/n Σ_k net_k(x).

    To train them, give each a loss of its own by `each`: a loss of the mean would let them lean on each other.
    """

    def __init__(self, networks: Iterable[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        if not self.networks:
            raise ValueError("Ensemble: no networks, must be at least one")

    def forward(self, x: Tensor) -> Tensor:
        """What the networks give for x, averaged."""
        return self.each(x).mean(0)

    def each(self, x: Tensor) -> Tensor:
        """What each of them gives for x: (n, B, …)."""
        return torch.stack([network(x) for network in self.networks])
