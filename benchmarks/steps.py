"""Steps that every tree of the library can take, by public names alone: the rows of the speed tables in seconds."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

import liespline as ls
from liespline import ops
from liespline.models.kernels import h_basis
from timing import Step, captured

Make = Callable[[], Step]


@dataclass(frozen=True)
class Steps:
    """Several training steps of a network; one of them; and forward and backward alone, not compiled."""

    once: Step
    plainly: Step
    count: int

    def __call__(self) -> None:
        """Take the steps."""
        for _ in range(self.count):
            self.once()


def steps(device: str) -> dict[str, Make]:
    """What to measure on a device, made when it is first asked for."""
    return _gpu() if device == "cuda" else _cpu()


def _cpu() -> dict[str, Make]:
    found: dict[str, Make] = {
        "dense layer, C = 16, N_h = 12, dense path": lambda: _layer(_so2(16, 12, 12, "dense"), 4, 42, path="dense"),
        "dense layer, C = 16, N_h = 12, auto path": lambda: _layer(_so2(16, 12, 12, "dense"), 4, 42),
        "local N_k = 3 of N_h = 16, C = 16, degree 1": lambda: _layer(_so2(16, 16, 3), 4, 42),
        "local N_k = 3 of N_h = 16, C = 16, degree 2": lambda: _layer(_so2(16, 16, 3, degree=2), 4, 42),
        "local N_k = 3 of N_h = 16, C = 10, degree 1": lambda: _layer(_so2(10, 16, 3), 4, 42),
        "local N_k = 3 of N_h = 64, C = 16, degree 1": lambda: _layer(_so2(16, 64, 3), 1, 42),
        "scale layer, C = 17, 128²": lambda: _layer(_scale(), 1, 128),
        "SE(3), 24 elements, N_k = 7, 5³, 24³, C = 16": lambda: _layer(_volumes(), 1, 24),
        "exported PCam network, inference": lambda: _exported("cpu", torch.float32, 8),
        "the largest layer of (12, 12), batch 8": lambda: _layer(_so2(11, 12, 12, "dense"), 8, 42),
        "PCam (12, 12), batch 4, a training step": lambda: _network(12, 12, "dense", 4, "cpu", False),
        "PCam (16, 3) local, batch 4, a training step": lambda: _network(16, 3, "local", 4, "cpu", False),
    }
    for c, n_h, n_k, kind in ((4, 16, 3, "local"), (10, 12, 4, "atrous"), (23, 16, 3, "local"), (16, 16, 8, "dense")):
        name = f"C = {c}, N_h = {n_h}, N_k = {n_k} {kind}, 5², 16²"
        found[name] = lambda c=c, n_h=n_h, n_k=n_k, kind=kind: _layer(_so2(c, n_h, n_k, kind, 2), 4, 16)
    return found


def _gpu() -> dict[str, Make]:
    return {
        "dense layer, C = 32, N_h = 12": lambda: _layer(_so2(32, 12, 12, "dense"), 64, 42, last="elements"),
        "local N_k = 3 of N_h = 16, C = 32, degree 1": lambda: _layer(_so2(32, 16, 3), 64, 42),
        "local N_k = 3 of N_h = 16, C = 64, degree 1": lambda: _layer(_so2(64, 16, 3), 64, 32),
        "local N_k = 3 of N_h = 32, C = 32, degree 1": lambda: _layer(_so2(32, 32, 3), 64, 42),
        "local N_k = 3 of N_h = 16, C = 32, degree 2": lambda: _layer(_so2(32, 16, 3, degree=2), 64, 42),
        "local N_k = 3 of N_h = 16, C = 64, degree 2": lambda: _layer(_so2(64, 16, 3, degree=2), 64, 32),
        "scale layer, C = 17, 128²": lambda: _layer(_scale(), 8, 128),
        "SE(3), 24 elements, N_k = 7, 5³, 24³, C = 16": lambda: _layer(_volumes(), 2, 24),
        "exported PCam network, inference": lambda: _exported("cuda", torch.bfloat16, 256),
        "PCam (12, 12), eager": lambda: _network(12, 12, "dense", 256, "cuda", False),
        "PCam (16, 3) local, eager": lambda: _network(16, 3, "local", 256, "cuda", False),
        "PCam (12, 12), compiled": lambda: _network(12, 12, "dense", 256, "cuda", True),
        "PCam (16, 3) local, compiled": lambda: _network(16, 3, "local", 256, "cuda", True),
    }


def _so2(channels: int, n_h: int, n_k: int, kind: str = "local", degree: int = 1) -> ls.GConv:
    grid = ls.uniform(ls.SO2(), n_h)
    return ls.GConv(channels, channels, 5, grid, h_basis=h_basis(grid, kind, n_k, degree=degree), bias=False)


def _scale() -> ls.GConv:
    grid = ls.uniform(ls.Scale(2), 5, spacing=0.5 * math.log(2))
    return ls.GConv(17, 17, 5, grid, h_basis=h_basis(grid, "local", 3, degree=2), padding="same", bias=False)


def _volumes() -> ls.GConv:
    grid = ls.uniform(ls.SO3(), 24)
    return ls.GConv(16, 16, 5, grid, h_basis=h_basis(grid, "local", 7, degree=2), bias=False)


def _layer(layer: ls.GConv, batch: int, size: int, path: str = "auto", last: str = "channels") -> Step:
    """Forward and backward of a layer; on a GPU in bfloat16, replayed, from the layout that the path before leaves."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    half, layer = device == "cuda", layer.to(device)
    x = torch.randn(batch, layer.in_channels, len(layer.grid), *(size,) * layer.grid.group.space_dim, device=device)
    if half:
        inner, back = ((1,), (-1,)) if last == "channels" else ((1, 2), (-2, -1))
        x = x.bfloat16().movedim(inner, back).contiguous().movedim(back, inner)
    x.requires_grad_()

    def forward() -> Tensor:
        with ops.use(path), torch.autocast(device, torch.bfloat16, enabled=half):
            return layer(x)

    with torch.no_grad():
        gradient = torch.randn_like(forward())

    def step() -> None:
        x.grad = layer.weight.grad = None
        forward().backward(gradient)

    return captured(step) if half else step


def _exported(device: str, dtype: torch.dtype, batch: int) -> Step:
    network = ls.export(ls.models.pcam(12, 12, "dense").eval()).to(device, dtype)
    images = torch.randn(batch, 3, 88, 88, device=device, dtype=dtype)
    if device == "cuda":
        network, images = (t.to(memory_format=torch.channels_last) for t in (network, images))

    @torch.no_grad()
    def step() -> None:
        network(images)

    return captured(step) if device == "cuda" else step


def _network(n_h: int, n_k: int, kind: str, batch: int, device: str, compiled: bool) -> Step:
    torch.manual_seed(0)
    network = ls.models.pcam(n_h, n_k, kind).to(device).train()
    optimiser = torch.optim.AdamW(network.parameters(), fused=device == "cuda")
    images, labels = torch.randn(batch, 3, 88, 88, device=device), torch.randint(2, (batch,), device=device)

    def loss(x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            return F.cross_entropy(network(x), y)

    compute = torch.compile(loss, mode="reduce-overhead") if compiled else loss

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        compute(images, labels).backward()
        optimiser.step()

    # The device need not wait for the host between steps.
    return Steps(step, lambda: loss(images, labels).backward(), 5 if device == "cuda" else 1)
