"""Optimisers and schedules of the tasks: AdamW for one's own data, the paper's decoupled SGD for its two."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, OneCycleLR

from ...nn import GConv, Lift
from ...optim import SpectralAdamW
from ..settings import Training

DECAYED = (Lift, GConv, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
HALVED_EVERY = 12  # per cent of all epochs: the paper halves it after every 12 of 100
WARM_UP = 0.2


class DecoupledSGD(torch.optim.SGD):
    """SGD with momentum whose weight decay bypasses the momentum: w ← (1 − lr·decay)·w − lr·m.

    torch's own `weight_decay` goes through the momentum buffer, which at 0.9 makes it ten times stronger.
    """

    def __init__(self, params: Any, lr: float, momentum: float, decay: float) -> None:
        groups = [{"decay": decay, **group} for group in params]
        super().__init__(groups, lr=lr, momentum=momentum)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take the gradient first, so that a closure's backward sees the parameters it computed with."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None and group["decay"]:
                    weight.mul_(1 - group["lr"] * group["decay"])
        super().step()
        return loss


def decayed(network: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The weights of all convolutions and linear layers, which decay, and all other parameters, which do not.

    Biases never decay, nor do the centres of deformable kernels: those are places, not weights.
    """
    yes: list[nn.Parameter] = []
    no: list[nn.Parameter] = []
    for module in network.modules():
        for name, parameter in module.named_parameters(recurse=False):
            (yes if name == "weight" and isinstance(module, DECAYED) else no).append(parameter)
    return yes, no


def optimiser(network: nn.Module, training: Training) -> torch.optim.Optimizer:
    """The optimiser that a configuration names."""
    yes, no = decayed(network)
    if training.optimiser == "sgd":
        groups: list[dict[str, Any]] = [{"params": yes}, {"params": no, "decay": 0.0}]
        return DecoupledSGD(groups, lr=training.lr, momentum=0.9, decay=training.weight_decay)
    groups = [{"params": yes}, {"params": no, "weight_decay": 0.0}]
    if training.optimiser == "spectral-adamw":
        options = {"smoothness": training.smoothness, "weight_decay": training.weight_decay}
        return SpectralAdamW(network, training.lr, params=groups, **options)
    return torch.optim.AdamW(groups, lr=training.lr, weight_decay=training.weight_decay)


def schedule(training: Training, steps_per_epoch: int) -> Callable[[int], float]:
    """The learning rate's factor at every step: halvings for SGD; for AdamW a rise, then a cosine to zero."""
    total = training.epochs * steps_per_epoch

    def halving(step: int) -> float:
        return float(0.5 ** (100 * step // (HALVED_EVERY * total)))

    def rise_and_fall(step: int) -> float:
        position = min(step, total) / total
        if position < WARM_UP:
            return (step + 1) / (WARM_UP * total + 1)
        return 0.5 * (1 + math.cos(math.pi * (position - WARM_UP) / (1 - WARM_UP)))

    return halving if training.optimiser == "sgd" else rise_and_fall


def rate(chosen: torch.optim.Optimizer, training: Training, steps_per_epoch: int) -> LRScheduler:
    """What moves the learning rate, and in one cycle the momentum against it, at every step."""
    if training.schedule == "one-cycle":
        return OneCycle(chosen, training.lr, total_steps=training.epochs * steps_per_epoch)
    return LambdaLR(chosen, schedule(training, steps_per_epoch))


class OneCycle(OneCycleLR):
    """torch's one cycle; resumed with more epochs, it continues at its place in the longer cycle."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the step, and keep the length."""
        length = {name: vars(self)[name] for name in ("total_steps", "_schedule_phases")}
        super().load_state_dict(state_dict | length)
