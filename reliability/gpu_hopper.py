"""The kernels for Hopper GPUs against the CPU's float64 numbers: outputs, gradients of the input and of the weights.

PYTHONPATH=src python reliability/gpu_hopper.py
"""

import contextlib
import copy
import queue
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import liespline as ls
from liespline import ops
from liespline.models.kernels import h_basis
from liespline.ops import trust
from liespline.ops.correlate.hopper import operators
from liespline.ops.layout import Order, order_of

TOLERANCE = 1e-2  # relative; operands and results are rounded to 8 bits, sums are float32


class Case(NamedTuple):
    """A module, the shape of its input, the path, how the input lies in memory, and whether it is compiled."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    path: str = "hopper"
    layout: str = "innermost"
    compiled: bool = False


def _layer(c: int, o: int, n: int, k: Any = 5, degree: int = 1, **options: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        grid = ls.uniform(ls.SO2(), n)
        return ls.GConv(c, o, k, grid, h_basis=h_basis(grid, "local", 3, degree=degree), **options)

    return make


def _volume(c: int, o: int, k: int = 5, degree: int = 2, **options: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        grid = ls.uniform(ls.SO3(), 24)
        return ls.GConv(c, o, k, grid, h_basis=h_basis(grid, "local", 7, degree=degree), **options)

    return make


def _depthwise(c: int, n: int, k: int = 5, **options: Any) -> Callable[[], nn.Module]:
    return lambda: ls.nn.Depthwise(c, k, ls.uniform(ls.SO2(), n), **options)


def _network() -> nn.Module:
    grid = ls.uniform(ls.SO2(), 8)
    local = h_basis(grid, "local", 3, degree=2)
    return nn.Sequential(
        ls.Lift(3, 12, 5, grid),
        ls.nn.NormReLU(12, 2),
        ls.GConv(12, 16, 5, grid, h_basis=local, padding="same"),
        ls.nn.NormReLU(16),
        ls.nn.Downsample(2),
        ls.nn.SeparableGConv(16, 16, 3, grid, h_basis=local, padding=1),
        ls.nn.MaxPool(2),
        ls.Project("mean", grid),
    )


def cases() -> list[Case]:
    """Odd sizes, few images, borders of every kind, wrapped and mixed fields, volumes, and what lies around a layer."""
    return [
        Case("C 23, 16 elements, mixed, batch 32", _layer(23, 23, 16, degree=2), (32, 23, 16, 19, 11)),
        Case("C 23, batch 9", _layer(23, 23, 16), (9, 23, 16, 9, 8)),
        Case("C 32, batch 33", _layer(32, 32, 16), (33, 32, 16, 9, 14)),
        Case("C 64, batch 8", _layer(64, 64, 16), (8, 64, 16, 9, 11)),
        Case("C 32, 32 elements, batch 8", _layer(32, 32, 32), (8, 32, 32, 9, 9)),
        Case("network", _network, (8, 3, 26, 26), path="auto", layout="contiguous"),
        Case("network, compiled", _network, (8, 3, 26, 26), path="auto", layout="contiguous", compiled=True),
        Case("volume, C 16, batch 2", _volume(16, 16), (2, 16, 24, 10, 11, 12)),
        Case("norm", lambda: ls.nn.NormReLU(23), (4, 23, 16, 9, 7), path="auto"),
        Case("norm with pooling", lambda: ls.nn.NormReLU(23, 3), (4, 23, 16, 9, 6), path="auto"),
        Case("norm with SiLU", lambda: ls.nn.NormAct(23, "silu", 3), (4, 23, 16, 9, 6), path="auto"),
        Case("norm with GELU", lambda: ls.nn.NormAct(23, "gelu"), (4, 23, 16, 9, 6), path="auto"),
        Case("norm of volumes", lambda: ls.nn.NormReLU(5), (2, 5, 24, 4, 5, 6), path="auto"),
        Case("depthwise, C 16", _depthwise(16, 16), (4, 16, 16, 21, 18), path="auto"),
        Case("depthwise, C 5, same, batch 3", _depthwise(5, 8, padding="same"), (3, 5, 8, 9, 7), path="auto"),
        Case("C 24, compiled", _layer(24, 24, 8, degree=2), (8, 24, 8, 9, 9), compiled=True),
        Case("C 5 to 11, 8 elements, batch 9", _layer(5, 11, 8, degree=2), (9, 5, 8, 11, 10)),
        Case("C 16, batch 5, 7 × 9", _layer(16, 16, 16), (5, 16, 16, 7, 9)),
        Case("C 16, 7 × 7, same", _layer(16, 16, 8, 7, padding="same"), (8, 16, 8, 9, 14)),
        Case("C 40 to 24, 12 elements, 3 × 3, same", _layer(40, 24, 12, 3, padding="same"), (17, 40, 12, 9, 15)),
        Case("C 32 to 64, same", _layer(32, 64, 8, padding="same"), (16, 32, 8, 10, 11)),
        Case("C 24, reflected", _layer(24, 24, 8, padding="same", padding_mode="reflect"), (8, 24, 8, 9, 9)),
        Case("C 24, as large as its window", _layer(24, 24, 8), (8, 24, 8, 5, 5)),
        Case("C 24, any memory", _layer(24, 24, 8), (8, 24, 8, 9, 9), layout="contiguous"),
        Case("volume, C 16, batch 1, same", _volume(16, 16, padding="same"), (1, 16, 24, 9, 8, 7)),
        Case("volume, C 8 to 16, 3³, batch 3", _volume(8, 16, 3, padding=1), (3, 8, 24, 9, 9, 9), path="auto"),
        Case("volume, C 24, 3³, batch 2", _volume(24, 24, 3, padding=1), (2, 24, 24, 7, 9, 8)),
        Case("depthwise, 3 × 3, any memory", _depthwise(8, 8, 3), (2, 8, 8, 5, 4), path="auto", layout="contiguous"),
        Case("depthwise, compiled", _depthwise(8, 8, 3, padding=1), (2, 8, 8, 9, 9), path="auto", compiled=True),
        Case("separable", lambda: ls.nn.SeparableGConv(16, 24, 5, ls.uniform(ls.SO2(), 8)), (4, 16, 8, 9, 9), "auto"),
        Case("one image goes on as before", _layer(24, 24, 8), (1, 24, 8, 9, 9), path="auto"),
    ]


def groups() -> list[list[Case]]:
    """What shares a process: each of the new kernels has its own, since what crashes on the device takes it along."""
    apart = [[case] for case in cases() if not case.name.startswith(("norm", "depthwise", "sep", "one image"))]
    both = [[c for c in cases() if c.name.startswith(names)] for names in (("norm", "one image"), ("depthwise", "sep"))]
    return apart[:5] + both + apart[5:]


def check(index: int, told: Any) -> None:
    """Tell what is wrong with each case of a group, None if nothing."""
    torch.set_num_threads(1)
    for case in groups()[index]:
        told.put((index, *_checked(case)))


def _checked(case: Case) -> tuple[str, str | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return case.name, _compare(case)
    except Exception:
        return case.name, traceback.format_exc(limit=-8)


def _compare(case: Case) -> str | None:
    torch.manual_seed(0)
    module = case.make().train()
    x = torch.randn(case.shape).bfloat16()
    for p in module.parameters():
        p.data += 0.1 * torch.randn(p.shape)
    with ops.use("banded"):  # on the CPU in float64, shown right by the tests, and faster than the dense path
        slow = copy.deepcopy(module).double()
        right = _run(slow, x.double())
    moved = copy.deepcopy(module).cuda()
    x = x.cuda()
    if case.layout == "innermost":
        x = x.movedim((2, 1), (-2, -1)).contiguous().movedim((-2, -1), (2, 1))
    by = torch.compile(moved) if case.compiled else moved
    with ops.use(case.path), torch.autocast("cuda", torch.bfloat16) if x.ndim > 3 else contextlib.nullcontext():
        found = _run(by, x, moved)
    deep = 8 if case.name.startswith("network") else 1
    if (
        case.layout == "innermost"
        and order_of(found[0]) is not Order.FIELDS
        and case.name.startswith(("C ", "norm", "vol"))
    ):
        return f"fields lie apart: strides {found[0].stride()}"
    names = ("output", "gradient of x", *dict(module.named_parameters()))
    sizes = sorted(float(g.detach().norm()) / g.numel() ** 0.5 for g in right[1:])
    for index, (name, one, other) in enumerate(zip(names, found, right, strict=True)):
        one, other = one.detach().double().cpu(), other.detach()
        # A gradient that is zero but for rounding, as of a bias before a norm, is compared with the others' size.
        least = 0.1 * sizes[len(sizes) // 2] * other.numel() ** 0.5 if index else 1e-6
        error = float((one - other).norm() / other.norm().clamp_min(least))
        if one.shape != other.shape or not error < TOLERANCE * deep:
            return f"{name} off by {error:.2g}"
    remembered = dict(moved.named_buffers())
    for name, value in slow.named_buffers():
        if "running" in name or "tracked" in name:
            error = float((remembered[name].double().cpu() - value).norm() / value.double().norm())
            if not error < TOLERANCE * deep:
                return f"{name} off by {error:.2g}"
    return None


def _run(by: Callable[[Tensor], Tensor], x: Tensor, module: nn.Module | None = None) -> list[Tensor]:
    x = x.detach().requires_grad_()
    out = by(x)
    torch.manual_seed(1)
    direction = torch.randn(out.shape).bfloat16().to(out)
    weights = list((module or by).parameters())
    return [out, *torch.autograd.grad(out, (x, *weights), direction)]


def compared() -> dict[str, str | None]:
    """The comparison that kernels have to pass with a Triton that they never ran with, passed with this one."""
    device, found = torch.device("cuda"), dict[str, str | None]()
    for kind, kernels in trust.KINDS.items():
        if not trust.off(kind, device, torch.bfloat16):
            for i, call in enumerate(kernels.calls):
                far = trust.distance(*call(device, torch.bfloat16))
                found[f"{kernels.name}, compared once, {i}"] = None if far < trust._FAR else f"off by {far:.2g}"
    return found


def check_hopper(seconds: float, jobs: int, only: tuple[str, ...] = ("",)) -> dict[str, Any]:
    """All cases whose names begin so, in processes of their own; what has not ended in time counts as a failure."""
    if not operators.available(torch.device("cuda"), torch.bfloat16):
        return {"counts": {}, "failures": []}
    context, end, found = get_context("spawn"), time.monotonic() + seconds, dict[str, str | None]()
    told: Any = context.Queue()
    left = [(index, group) for index, group in enumerate(groups()) if any(c.name.startswith(only) for c in group)]
    wanted = [case.name for _, group in left for case in group]
    running: dict[int, Any] = {}
    while (left or running) and time.monotonic() < end:
        while left and len(running) < jobs:
            index, _ = left.pop(0)
            running[index] = context.Process(target=check, args=(index, told))
            running[index].start()
        with contextlib.suppress(queue.Empty):
            while True:
                _, name, problem = told.get(timeout=0.2)
                found[name] = problem
        running = {index: process for index, process in running.items() if process.is_alive()}
    for process in running.values():
        process.kill()
    own = compared()
    found, wanted = found | own, [*wanted, *own]
    passed = [name for name, problem in found.items() if problem is None]
    failures = [
        {"check": f"Hopper: {name}", "problem": found.get(name, "did not end")} for name in wanted if name not in passed
    ]
    for failure in failures:
        print(f"FAILED {failure['check']}: {failure['problem']}", flush=True)
    return {"counts": {"hopper": len(passed) + len(failures)}, "failures": failures, "passed": passed}


if __name__ == "__main__":
    print(check_hopper(170, 12))
