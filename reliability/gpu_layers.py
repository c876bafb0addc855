"""Layers, norms, pools and networks on a device against the same on the CPU, forward and backward."""

import contextlib
import copy
import math
import time
import traceback
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

import liespline as ls
from liespline import paths
from liespline.models.kernels import h_basis

# By precision: how far outputs and gradients may be from the CPU's float32, relative to their size.
TOLERANCES = {"float32": (2e-4, 1e-3), "tf32": (1e-2, 4e-2), "bfloat16": (6e-2, 0.25), "float16": (1e-2, 6e-2)}


class Case(NamedTuple):
    """A module and the shape of its input."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    path: str = "auto"


def grids() -> dict[int, ls.Grid]:
    """A grid in one, two and three dimensions."""
    return {
        1: ls.uniform(ls.Scale(1), 3, spacing=0.35),
        2: ls.uniform(ls.SO2(), 8),
        3: ls.uniform(ls.SO3(), 12),
    }


def cases(device: str) -> Iterator[Case]:
    """Every layer in 1, 2 and 3 dimensions by every path that takes it, every norm and pool, every model."""
    forced = ["auto", "dense", "banded", "separable", *(["triton"] if device == "cuda" else [])]
    for d, grid in grids().items():
        space = {1: (24,), 2: (16, 14), 3: (8, 7, 9)}[d]
        features = (2, 6, len(grid), *space)
        yield Case(f"Lift {d}-D", lambda g=grid: ls.Lift(3, 4, 5, g, padding="same"), (2, 3, *space))
        yield Case(f"deformable GConv {d}-D", lambda g=grid: _deformable(g), features)
        for kind in ("dense", "local"):
            n = len(grid) if kind == "dense" else 2 * grid.group.dim + 1
            for path in forced:
                yield Case(
                    f"{kind} GConv {d}-D, {path}",
                    lambda g=grid, k=kind, n=n: ls.GConv(6, 8, 5, g, h_basis=h_basis(g, k, n), padding="same"),
                    features, path,
                )  # fmt: skip
        yield Case(f"strided GConv {d}-D", lambda g=grid: ls.GConv(6, 8, 3, g, stride=2, padding=1), features)
        yield Case(f"BatchNorm {d}-D", lambda: ls.nn.BatchNorm(6), features)
        yield Case(f"NormReLU {d}-D", lambda: ls.nn.NormReLU(6), features)
        yield Case(f"NormReLU with pooling {d}-D", lambda: ls.nn.NormReLU(6, pool=2), features)
        yield Case(f"MaxPool {d}-D", lambda: ls.nn.MaxPool(2), features)
        yield Case(f"Downsample {d}-D", lambda: ls.nn.Downsample(2), features)
        yield Case(f"Upsample {d}-D", lambda: ls.nn.Upsample(2), features)
        for reduce in ("max", "mean", "sum"):
            yield Case(f"Project {reduce} {d}-D", lambda g=grid, r=reduce: ls.Project(r, g), features)
        yield Case(f"network {d}-D", lambda g=grid: network(g), (4, 3, *space))
        sides = {1: 32, 2: 28, 3: 14}[d]
        yield Case(f"classifier {d}-D", lambda g=grid: ls.models.classifier(1, 4, g), (4, 1, *(sides,) * d))
    sphere = ls.uniform(ls.Sphere(), 6)
    yield Case("GConv on R³⋊S²", lambda: ls.GConv(2, 3, 3, sphere, padding=1), (2, 2, 6, 6, 5, 7))
    yield Case("GConv on H alone", lambda: ls.GConv(4, 4, None, ls.uniform(ls.SO3(), 24)), (2, 4, 24))
    yield Case("pcam (8, 8)", lambda: ls.models.pcam(8, 8, "dense"), (4, 3, 88, 88))
    yield Case("pcam (8, 3) local", lambda: ls.models.pcam(8, 3, "local"), (4, 3, 88, 88))
    yield Case("celeba", lambda: ls.models.celeba(), (2, 3, 64, 64))


def network(grid: ls.Grid) -> nn.Module:
    """Every part in one chain."""
    local = h_basis(grid, "local", 2 * grid.group.dim + 1)
    return nn.Sequential(
        ls.Lift(3, 4, 5, grid, padding="same"),
        ls.nn.NormReLU(4),
        ls.GConv(4, 6, 5, grid, padding="same"),
        ls.nn.NormReLU(6),
        ls.nn.Downsample(2),
        ls.GConv(6, 6, 3, grid, h_basis=local, padding="same"),
        ls.nn.BatchNorm(6),
        nn.SiLU(),
        ls.Project("mean", grid),
    )


def _deformable(grid: ls.Grid) -> nn.Module:
    return ls.GConv(6, 4, 3, grid, h_basis=ls.SplineBasis(grid, trainable=True), padding="same")


def stirred(module: nn.Module) -> nn.Module:
    """Norms that have seen something, so that eval mode is not the identity."""
    for part in module.modules():
        if isinstance(part, ls.nn.BatchNorm):
            nn.init.uniform_(part.running_mean, -0.3, 0.3)
            nn.init.uniform_(part.running_var, 0.5, 2.0)
            nn.init.uniform_(part.weight, 0.5, 1.5)
    return module


@contextlib.contextmanager
def precision(name: str, device: str) -> Iterator[None]:
    """Compute in float32 without or with TF32, or by autocast."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    half = name in ("bfloat16", "float16")
    try:
        with torch.autocast(device, getattr(torch, name) if half else torch.bfloat16, enabled=half):
            yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def run(module: nn.Module, x: Tensor, path: str, by: Callable[[nn.Module], Callable[[Tensor], Tensor]]) -> list[Tensor]:
    """The output, then the gradients of the input and of all parameters."""
    x = x.clone().requires_grad_()
    with paths.use(path):
        out = by(module)(x)
        torch.manual_seed(1)
        direction = torch.randn(out.shape).to(out)
        parameters = [p for p in module.parameters() if p.requires_grad]
        return [out, *torch.autograd.grad(out, (x, *parameters), direction)]


def check(case: Case, device: str, training: bool, kind: str, compiled: str) -> str | None:
    """What is wrong with a module on the device, None if it gives the CPU's numbers."""
    torch.manual_seed(0)
    module = stirred(case.make()).train(training)
    x = torch.randn(case.shape)
    with warnings_off():
        right = run(copy.deepcopy(module), x, "dense", lambda m: m)
        moved = copy.deepcopy(module).to(device)
        torch.compiler.reset()
        by = (lambda m: m) if not compiled else (lambda m: torch.compile(m, backend=compiled))
        try:
            with precision(kind, device):
                found = run(moved, x.to(device), case.path, by)
        except Exception:
            return traceback.format_exc(limit=-4)
    for index, (one, other) in enumerate(zip(found, right, strict=True)):
        one, other = one.detach().double().cpu(), other.detach().double()
        error = float((one - other).norm() / other.norm().clamp_min(1e-6 * math.sqrt(other.numel())))
        if not error <= TOLERANCES[kind][index > 0]:
            return f"{'output' if index == 0 else f'gradient {index}'} off by {error:.2g}"
    for (name, one), other in zip(moved.named_buffers(), copy.deepcopy(module).buffers(), strict=True):
        if not training and not torch.equal(one.cpu(), other):
            return f"eval mode changed {name}"
    return None


@contextlib.contextmanager
def warnings_off() -> Iterator[None]:
    """Without advice of compilers and about the paper's windows."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def combinations(device: str, inductor: bool) -> Iterator[tuple[Case, bool, str, str]]:
    """All of them eager; compiled by the fast back end, networks by the real one too where it is asked for."""
    kinds = ["float32", *(["tf32"] if device == "cuda" else []), "bfloat16", "float16"]
    for case in cases(device):
        big = case.name.startswith(("network", "classifier", "pcam", "celeba"))
        for training in (True, False):
            for kind in kinds:
                yield case, training, kind, ""
                if case.path in ("auto", "triton") and kind != "tf32":
                    yield case, training, kind, "aot_eager"
            if big and inductor:
                yield case, training, "bfloat16", "inductor"


def check_all(device: str, seconds: float, only: str = "", inductor: bool = True) -> dict[str, object]:
    """Counts of checks by kind, and what went wrong; after so many seconds the rest is left out and counted."""
    begin, counts, failures, left_out = time.monotonic(), {}, [], 0
    for case, training, kind, compiled in combinations(device, inductor):
        name = f"{case.name}, {'training' if training else 'evaluation'}, {kind}, {compiled or 'eager'}"
        if only not in name:
            continue
        if time.monotonic() - begin > seconds:
            left_out += 1
            continue
        problem = check(case, device, training, kind, compiled)
        key = f"{kind}, {compiled or 'eager'}"
        counts[key] = counts.get(key, 0) + 1
        if problem:
            failures.append({"check": name, "problem": problem})
            print(f"FAILED {name}: {problem}", flush=True)
    return {"counts": counts, "failures": failures, "left_out": left_out, "seconds": round(time.monotonic() - begin)}
