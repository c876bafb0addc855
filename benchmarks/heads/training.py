"""One run: AdamW with a one-cycle schedule, bf16 and torch.compile on a GPU, all data on the device."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from liespline import Lift
from liespline.nn import shift
from liespline.optim import SpectralAdamW

from .digits import Digits, turn
from .variants import Variant

TEST = 30
"""Seconds kept for the test."""
WARM_UP = 0.25
"""The part of a run in which the rate rises."""


@dataclass(frozen=True)
class Settings:
    """What all runs have in common."""

    data: Path
    epochs: int = 40
    batch: int = 64
    lr: float = 4e-3
    limit: int | None = None
    """Digits to learn from, if fewer; as many to test, or `test`."""
    test: int | None = None
    compiled: bool = True
    keep: Path | None = None
    """File for the trained weights."""


def train(variant: Variant, seed: int, settings: Settings, deadline: float) -> dict[str, float] | None:
    """Train and test a network; None if the deadline came first."""
    begun = time.time()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(seed)
    torch.compiler.reset()  # compiled code is counted per function, and this process had other networks in it before
    torch._dynamo.config.suppress_errors = True  # what a compiler cannot take runs as it is: parts of escnn
    torch.backends.cudnn.benchmark = True
    digits = Digits(settings.data, device, settings.limit, settings.test)
    images, labels = digits.turned("train", variant.about, side=variant.side)
    stored = digits.pixels[digits.rows["train"]]
    if variant.upright:
        images = stored
    net = variant.network().to(device).train()  # escnn has other buffers in evaluation mode
    batches = len(labels) // settings.batch
    epochs = round(settings.epochs * variant.longer)
    fused = device.type == "cuda"
    optimiser = torch.optim.AdamW(net.parameters(), lr=settings.lr, fused=fused)
    if variant.in_modes:
        optimiser = SpectralAdamW(net, settings.lr, fused=fused)
    averaged = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(variant.average), use_buffers=True)

    def loss_of(x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            scores = net(x)
        return nn.functional.cross_entropy(scores.float(), y, label_smoothing=variant.smoothing)

    compiled = torch.compile(loss_of, dynamic=False) if settings.compiled and device.type == "cuda" else loss_of
    started, step, epoch, done = 0.0, 0, 0, 0.0
    while epoch < epochs:
        net.train()
        total = torch.zeros((), device=device)
        for number, rows in enumerate(torch.randperm(len(labels), device=device).split(settings.batch)[:batches]):
            x = images[rows]
            if variant.augment:
                angles = 2 * math.pi * torch.rand(len(rows), device=device)
                x = turn(stored[rows], angles, variant.about, variant.stretch, variant.elastic, variant.side)
            if variant.shifted and step % variant.shifted == 0:
                shift(net, 2 * math.pi * torch.rand(1))
            step += 1
            # The rest of the schedule is shared by the steps that are left: a run that is cut short anneals sooner.
            done += (1 - done) / ((epochs - epoch) * batches - number)
            optimiser.param_groups[0]["lr"] = settings.lr * rate(done)
            loss = compiled(x, labels[rows])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            averaged.update_parameters(net)
            total += loss.detach()
        last = float(total) / batches  # waits for the device
        epoch += 1
        started = started or time.time()
        per_epoch = (time.time() - started) / max(epoch - 1, 1)
        if per_epoch and epoch < epochs:
            epochs = min(epochs, epoch + max(1, int((deadline - TEST - time.time()) / per_epoch)))
        if time.time() > deadline:
            return None
    if variant.average:
        net = averaged.module
    if settings.keep:
        torch.save(net.state_dict(), settings.keep)
    shift(net.eval(), None)
    measured = between(net, digits, variant.upright) if variant.upright else measures(net, digits, variant)
    return {
        **measured,
        "loss": last,
        "epochs": epochs,
        "weights": sum(p.numel() for p in net.parameters()),
        "seconds": time.time() - begun,
        "epoch_seconds": per_epoch,
    }


def rate(done: float) -> float:
    """One cycle of the learning rate, over its highest value: up and down on two half waves of a cosine."""
    if done < WARM_UP:
        return 0.04 + 0.96 * (1 - math.cos(math.pi * done / WARM_UP)) / 2
    return (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP))) / 2


@torch.no_grad()
def between(net: nn.Module, digits: Digits, step: float) -> dict[str, float]:
    """Test error of a network that learned upright digits: at the angles of its grid, and half-way between them."""
    errors = []
    for first in (0.0, step / 2):
        images, labels = digits.turned("test", "image", 1, step, first)
        with torch.autocast(images.device.type, torch.bfloat16, enabled=images.is_cuda):
            found = torch.cat([net(part).argmax(-1) for part in images.split(500)])
        errors.append(100 * float((found != labels).double().mean()))
    return {"error": errors[0], "half-way": errors[1], "change": math.nan}


@torch.no_grad()
def measures(net: nn.Module, digits: Digits, variant: Variant) -> dict[str, float]:
    """Test error in per cent, and by how much of its spread the output changes between two turns of the same digit.

    The same again for the mean of two answers: on the grid of our networks, and on the grid moved by half a step.
    """
    tests = [digits.turned("test", variant.about, seed, side=variant.side) for seed in (1, 2)]
    labels, grids = tests[0][1], [layer.grid for layer in net.modules() if isinstance(layer, Lift)]

    def scores() -> Tensor:
        with torch.autocast(labels.device.type, torch.bfloat16, enabled=labels.is_cuda):
            return torch.stack([torch.cat([net(x).float() for x in images.split(500)]) for images, _ in tests])

    def measured(scores: Tensor) -> tuple[float, float]:
        error = 100 * float((scores[0].argmax(-1) != labels).double().mean())
        return error, 100 * float((scores[1] - scores[0]).norm() / (scores[0] - scores[0].mean(0)).norm())

    found = scores()
    result = dict(zip(("error", "change"), measured(found), strict=True))
    if grids and len(grids[0]) > 1:
        with shift(net, grids[0].group.exp(torch.tensor([grids[0].spacing / 2]))):
            result |= zip(("error, two grids", "change, two grids"), measured((found + scores()) / 2), strict=True)
    return result
