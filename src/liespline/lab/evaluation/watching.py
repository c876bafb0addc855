"""What a trained network is shown, image by image, whatever pieces it is cut into."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..data.value_range import Comparison, statistics
from ..runs.trained import Trained


class Watch:
    """The images that a network was shown, compared with those of training; call `next` after each."""

    def __init__(self, trained: Trained) -> None:
        self.compared = Comparison(trained.value_range)
        self.parts: list[tuple[int, Tensor]] = []  # samples and statistics (1, 3, C) of each piece

    def see(self, network: nn.Module, inputs: tuple[Any, ...]) -> None:
        """Look at a piece of one image, (1, C, *space)."""
        self.parts.append((math.prod(inputs[0].shape[2:]), statistics(inputs[0]).cpu()))

    def next(self) -> None:
        """Count the image that these pieces made."""
        if self.parts:
            samples = torch.tensor([count for count, _ in self.parts]).double()
            low, mean, high = torch.cat([found for _, found in self.parts]).unbind(1)  # (pieces, C) each
            mean = (mean * samples.unsqueeze(1)).sum(0) / samples.sum()
            self.compared.add(torch.stack([low.amin(0), mean, high.amax(0)]).unsqueeze(0))
        self.parts = []


@contextmanager
def watching(trained: Trained) -> Iterator[Watch]:
    """Watch what a network is shown."""
    watch = Watch(trained)
    hook = trained.register_forward_pre_hook(watch.see)
    try:
        yield watch
    finally:
        hook.remove()
