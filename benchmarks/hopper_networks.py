"""Training steps of whole networks, for `hopper_integrated.py`: time, images a second, and memory."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import liespline as ls
from hopper_layers import DEVICE, Ready, turns


def training(make: Callable[[], nn.Module], images: tuple[int, ...], target: Callable[[Tensor], Tensor], loss: Any,
             compiled: bool, burst: int = 5) -> Ready:  # fmt: skip
    """A training step in bfloat16 autocast with AdamW: milliseconds, images a second, and memory at its peak."""
    torch.manual_seed(0)
    network = make().to(DEVICE).train()
    optimiser = torch.optim.AdamW(network.parameters(), fused=DEVICE == "cuda")
    x = torch.randn(images, device=DEVICE)
    y = target(x)

    def cost(x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast(DEVICE, torch.bfloat16):
            return loss(network(x), y)

    compute = torch.compile(cost, mode="reduce-overhead") if compiled else cost

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        compute(x, y).backward()
        optimiser.step()

    step()  # the compiler's; cuDNN tries its algorithms later, when it is alone

    def measure() -> dict[str, Any]:
        if compiled:
            cost(x, y).backward()  # algorithms are found outside graphs
        for _ in range(4):
            step()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()

        def steps() -> None:
            for _ in range(burst):
                step()

        found = turns({"ms": steps}, 1.5)
        ms = [v / burst for v in found["ms"]]
        return {
            "ms": ms, "images/s": images[0] * 1e3 / ms[1], "GiB": torch.cuda.max_memory_allocated() / 2**30,
            "GiB before": before / 2**30, "weights": sum(p.numel() for p in network.parameters()),
            "share": _profile(step) if not compiled else None,
        }  # fmt: skip

    return measure


def _profile(step: Callable[[], None]) -> dict[str, float]:
    """Milliseconds on the device by kernel, the largest."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        step()
        torch.cuda.synchronize()
    kernels = sorted(seen.key_averages(), key=lambda e: -e.device_time_total)
    return {e.key[:60]: round(e.device_time_total / 1e3, 3) for e in kernels[:16]}


def _classes(x: Tensor) -> Tensor:
    return torch.zeros(len(x), dtype=torch.long, device=x.device)


def pcam(n_h: int, n_k: int, kind: str, compiled: bool, batch: int = 256) -> Ready:
    """The paper's network."""
    make = lambda: ls.models.pcam(n_h, n_k, kind)  # noqa: E731
    return training(make, (batch, 3, 88, 88), _classes, F.cross_entropy, compiled)


def celeba() -> Ready:
    """The landmark network on five scales."""
    maps = lambda x: torch.rand(len(x), 5, 128, 128, device=x.device)  # noqa: E731
    make = lambda: ls.models.celeba(5, 3, "local")  # noqa: E731
    return training(make, (16, 3, 128, 128), maps, F.binary_cross_entropy_with_logits, True)


def volumes(group: Any, n: int, batch: int, side: int, checkpoint: bool) -> Ready:
    """A U-Net of 150,000 weights on volumes."""
    options = {"kernel": "local", "n_k": 7} if n > 1 else {}
    make = lambda: ls.models.unet(  # noqa: E731
        1, 2, ls.uniform(group, n), parameters=150_000, checkpoint=checkpoint, **options
    )
    target = lambda x: torch.zeros(len(x), *x.shape[2:], dtype=torch.long, device=x.device)  # noqa: E731
    return training(make, (batch, 1, side, side, side), target, F.cross_entropy, False, burst=1)


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


def resnet(kind: str, compiled: bool = True) -> Ready:
    """Residual networks of about 700,000 weights on images of 96 × 96."""
    grid = ls.uniform(ls.SO2(), 8)
    options = {"kernel": "local", "n_k": 3, "parameters": 700_000, "dropout": 0.0}
    make = {
        "plain": lambda: plain_resnet(16),
        "local": lambda: ls.models.resnet(3, 10, grid, **options),
        "separable": lambda: ls.models.resnet(3, 10, grid, separable=True, **options),
    }[kind]
    return training(make, (64, 3, 96, 96), _classes, F.cross_entropy, compiled)
