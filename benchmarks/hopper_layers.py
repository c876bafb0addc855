"""Single layers by the path that is chosen against the dense path of the same shape, for `hopper_integrated.py`."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import liespline as ls
from liespline import ops
from liespline.models.kernels import h_basis
from liespline.ops.correlate.hopper import operators
from timing import captured

Ready = Callable[[], dict[str, Any]]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = DEVICE == "cpu"  # sizes that only show that everything runs


def so2(c: int, n_h: int, degree: int = 1) -> ls.GConv:
    grid = ls.uniform(ls.SO2(), n_h)
    return ls.GConv(c, c, 5, grid, h_basis=h_basis(grid, "local", 3, degree=degree), bias=False)


def separable(c: int) -> nn.Module:
    grid = ls.uniform(ls.SO2(), 16)
    return ls.nn.SeparableGConv(c, c, 5, grid, h_basis=h_basis(grid, "local", 3, degree=1), bias=False)


def se3() -> ls.GConv:
    grid = ls.uniform(ls.SO3(), 24)
    return ls.GConv(16, 16, 5, grid, h_basis=h_basis(grid, "local", 7, degree=2), bias=False)


def _step(layer: nn.Module, c: int, space: tuple[int, ...], batch: int, path: str, inner: bool) -> Callable[[], Any]:
    """Forward and backward from the layout that the path itself leaves."""
    batch, space = (2, tuple(min(n, 9) for n in space)) if SMALL else (batch, space)
    x = torch.randn(batch, c, len(layer.grid), *space, device=DEVICE).bfloat16()
    order = ((2, 1), (-2, -1)) if inner else ((1, 2), (-2, -1))
    x = x.movedim(*order).contiguous().movedim(order[1], order[0]).requires_grad_()

    def forward() -> Tensor:
        with ops.use(path), torch.autocast(DEVICE, torch.bfloat16):
            return layer(x)

    with torch.no_grad():
        direction = torch.randn_like(forward())
    weights = [p for p in layer.parameters() if p.requires_grad]

    def step() -> None:
        torch.autograd.grad(forward(), (x, *weights), direction)

    return step


def layer(
    make: Callable[[], nn.Module], dense: Callable[[], nn.Module], c: int, space: tuple[int, ...], batch: int
) -> Ready:
    """The layer by the path that is chosen against the dense path of the same shape, both replayed as graphs."""
    taken, correlate = [], operators.correlate
    operators.correlate = lambda *arguments: (taken.append(1), correlate(*arguments))[1]
    own = _step(make().to(DEVICE), c, space, batch, "auto", True)
    own()

    def measure() -> dict[str, Any]:
        plain = _step(dense().to(DEVICE), c, space, batch, "dense", False)
        before = operators.available
        operators.available = lambda device, dtype: False
        plain()
        sides = {"dense": replayed(plain)}
        operators.available = before
        sides["own"] = replayed(own)
        found = turns(sides)
        return found | {"ratio": found["own"][1] / found["dense"][1], "kernels": bool(taken)}

    return measure


def depthwise(c: int, side: int) -> Ready:
    """A depthwise layer against the time to read and write what it must, by the bandwidth of a copy."""
    module = ls.nn.Depthwise(c, 5, ls.uniform(ls.SO2(), 16), bias=False).to(DEVICE)
    own = _step(module, c, (side, side), 64, "auto", True)
    own()

    def measure() -> dict[str, Any]:
        numel = (1 if SMALL else 64) * c * 16 * (side**2 + (side - 4) ** 2)
        a = torch.randn(3 * numel // 2, device=DEVICE, dtype=torch.bfloat16)
        b = torch.empty_like(a)
        found = turns({"own": replayed(own), "copy of equal bytes": replayed(lambda: b.copy_(a))})
        floor = 3 * 2 * numel / 4.3e12 * 1e3  # three passes, each reads and writes both maps
        return found | {"bytes_ms": floor, "against bytes": found["own"][1] / floor}

    return measure


def replayed(step: Callable[[], Any]) -> Callable[[], Any]:
    """The step as a graph, where there are graphs."""
    return captured(step) if DEVICE == "cuda" else step


def turns(steps: dict[str, Callable[[], Any]], seconds: float = 0.8, least: int = 8) -> dict[str, list[float]]:
    """10 %, median and 90 % of each step's milliseconds; steps take turns."""
    seconds, least = (0.1, 2) if SMALL else (seconds, least)
    for step in steps.values():
        for _ in range(1 if SMALL else 3):
            step()
    seen: dict[str, list[float]] = {name: [] for name in steps}
    begin = time.monotonic()
    while time.monotonic() - begin < seconds or len(next(iter(seen.values()))) < least:
        for name, step in steps.items():
            seen[name].append(once(step))
    return {name: [round(v, 4) for v in _spread(values)] for name, values in seen.items()}


def once(step: Callable[[], Any]) -> float:
    """Milliseconds of one step."""
    if DEVICE == "cpu":
        begin = time.perf_counter()
        step()
        return 1e3 * (time.perf_counter() - begin)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    step()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def _spread(values: list[float]) -> list[float]:
    values = sorted(values)
    return [values[len(values) // 10], statistics.median(values), values[-1 - len(values) // 10]]
