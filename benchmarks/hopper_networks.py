"""Training steps of whole networks, for `hopper_integrated.py`: time, images a second, and memory."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import escnn_network
import liespline as ls
from hopper_layers import DEVICE, SMALL, Ready, turns


def training(make: Callable[[], nn.Module], images: tuple[int, ...], target: Callable[[Tensor], Tensor], loss: Any,
             how: str, burst: int = 5, trying: bool = True) -> Ready:  # fmt: skip
    """A training step in bfloat16 autocast with AdamW, compiled or eager: milliseconds, images a second, memory.

    `trying` lets cuDNN try its algorithms.
    """
    torch.manual_seed(0)
    images = (2, *images[1:2], *(min(n, 88 if len(images) == 4 else 8) for n in images[2:])) if SMALL else images
    network = make().to(DEVICE).train()
    optimiser = torch.optim.AdamW(network.parameters(), fused=True)
    x = torch.randn(images, device=DEVICE)
    y = target(x)

    def cost(x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast(DEVICE, torch.bfloat16):
            return loss(network(x), y)

    mode = "default" if SMALL else "reduce-overhead"
    compute = cost if how == "eager" else torch.compile(cost, mode=mode)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        compute(x, y).backward()
        optimiser.step()

    step()  # what is compiled is compiled here; cuDNN tries its algorithms later, when it is alone

    def measure() -> dict[str, Any]:
        torch.backends.cudnn.benchmark = trying
        cost(x, y).backward()  # algorithms are found outside graphs
        for _ in range(1 if SMALL else 3):
            step()
        weights = sum(p.numel() for p in network.parameters())
        return {"weights": weights, "batch": len(x)} | _measured(step, burst, len(x), how == "eager")

    return measure


def _measured(step: Callable[[], None], burst: int, batch: int, eager: bool) -> dict[str, Any]:
    def steps() -> None:
        for _ in range(burst):
            step()

    if DEVICE == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    ms = [v / burst for v in turns({"ms": steps}, 1.0, 5)["ms"]]
    found: dict[str, Any] = {"ms": ms, "images/s": batch * 1e3 / ms[1]}
    if DEVICE == "cuda" and eager:  # what a graph holds is not counted
        found |= {"GiB": torch.cuda.max_memory_allocated() / 2**30, "share": _profile(step)}
    return found


def _profile(step: Callable[[], None]) -> dict[str, float]:
    """Milliseconds on the device by kernel, the largest."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        step()
        torch.cuda.synchronize()
    kernels = sorted(seen.key_averages(), key=lambda e: -e.device_time_total)
    total = sum(e.device_time_total for e in kernels)
    return {f"{i} {e.key[:80]}": round(e.device_time_total / 1e3, 3) for i, e in enumerate(kernels[:20])} | {
        "all": round(total / 1e3, 3), "launches": sum(e.count for e in kernels)
    }  # fmt: skip


def _classes(x: Tensor) -> Tensor:
    return torch.zeros(len(x), dtype=torch.long, device=x.device)


def pcam(n_h: int, n_k: int, kind: str, how: str, batch: int = 256) -> Ready:
    """The paper's network."""
    make = lambda: ls.models.pcam(n_h, n_k, kind)  # noqa: E731
    return training(make, (batch, 3, 88, 88), _classes, F.cross_entropy, how)


def sixteen(library: str, how: str) -> Ready:
    """The same network of ten channels on 16 rotations, here and in escnn."""
    make = {
        "escnn": lambda: escnn_network.PeerPCam("escnn", 16, 10),
        "escnn, our norm": lambda: escnn_network.PeerPCam("escnn", 16, 10, own_norm=False),
        "liespline": lambda: ls.models.pcam(16, 16, "dense"),
        "local": lambda: escnn_network.local(16, 10),
    }[library]
    loss = lambda out, y: F.cross_entropy(out.float(), y)  # noqa: E731
    return training(make, (256, 3, 88, 88), _classes, loss, how)


def celeba(how: str) -> Ready:
    """The landmark network on five scales."""
    maps = lambda x: torch.rand(len(x), 5, *x.shape[2:], device=x.device)  # noqa: E731
    make = lambda: ls.models.celeba(5, 3, "local")  # noqa: E731
    return training(make, (16, 3, 128, 128), maps, F.binary_cross_entropy_with_logits, how)


def volumes(group: Any, n: int, batch: int, side: int, checkpoint: bool) -> Ready:
    """A U-Net of 150,000 weights on volumes."""
    options = {"kernel": "local", "n_k": 7} if n > 1 else {}
    weights = 3_000 if SMALL else 150_000
    make = lambda: ls.models.unet(  # noqa: E731
        1, 2, ls.uniform(group, n), parameters=weights, checkpoint=checkpoint, **options
    )
    target = lambda x: torch.zeros(len(x), *x.shape[2:], dtype=torch.long, device=x.device)  # noqa: E731
    # Trying cuDNN's algorithms takes seconds in large volumes: the plain network alone may.
    return training(make, (batch, 1, side, side, side), target, F.cross_entropy, "eager", 1, n == 1)


class Block(nn.Module):
    """Of a plain ResNet-18."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        same = inputs == outputs and stride == 1
        self.skip = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the branch finds."""
        return F.relu(self.skip(x) + self.branch(x))


def plain_resnet(width: int) -> nn.Module:
    """ResNet-18 of four stages, its first `width` channels wide."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    inputs = width
    for stage in range(4):
        for block in range(2):
            layers.append(Block(inputs, width * 2**stage, 2 if stage and not block else 1))
            inputs = width * 2**stage
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))
    return network.to(memory_format=torch.channels_last)


WIDTHS = {"two": (16, 16, 32, 32), "mild": (16, 16, 24, 24, 32, 32), "three": (8, 8, 16, 16, 32, 32)}
"""Of the residual networks that studies/pcam.py compares."""


def resnet(kind: str, how: str, n: int = 8) -> Ready:
    """Residual networks of about 700,000 weights on images of 96 × 96."""
    grid = ls.uniform(ls.SO2(), n)
    options = {"parameters": 20_000 if SMALL else 700_000, "dropout": 0.0, "version": 2}
    local = {"kernel": "local", "n_k": 3}

    def shaped(widths: tuple[int, ...]) -> Callable[[], nn.Module]:
        return lambda: ls.models.resnet(3, 10, grid, widths=widths, **local, **options)

    make = {
        "ResNet-18": lambda: plain_resnet(16),
        "plain": lambda: ls.models.resnet(3, 10, ls.uniform(ls.Trivial(2), 1), **options),
        "local": lambda: ls.models.resnet(3, 10, grid, **local, **options),
        "smooth": lambda: ls.models.resnet(3, 10, grid, smooth=True, **local, **options),
        "0.2": lambda: ls.models.resnet(3, 10, grid, **local, **options | {"version": 1}),
        **{name: shaped(widths) for name, widths in WIDTHS.items()},
        "3 × 3": lambda: ls.models.resnet(3, 10, grid, kernel_size=3, **local, **options),
        "separable": lambda: ls.models.resnet(3, 10, grid, separable=True, **local, **options),
        "converted": lambda: converted(n),
    }[kind]
    return training(make, (64, 3, 96, 96), _classes, F.cross_entropy, how)


def converted(n: int) -> nn.Module:
    """ResNet-18 itself, each layer exchanged for that on n rotations; narrower, so that it has as many weights."""
    return ls.convert(plain_resnet(round(16 / n**0.5)), ls.uniform(ls.SO2(), n))
