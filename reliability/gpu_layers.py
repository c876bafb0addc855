"""Layers, norms, pools and networks on a device against the same on the CPU, forward and backward."""

import contextlib
import copy
import math
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context
from typing import NamedTuple

import torch
from torch import Tensor, nn

import liespline as ls
from liespline import paths
from liespline.models.kernels import h_basis

# By precision: how far outputs and gradients may be from the CPU's float32, relative to their size.
TOLERANCES = {"float32": (2e-4, 1e-3), "tf32": (1e-2, 4e-2), "bfloat16": (6e-2, 0.25), "float16": (1e-2, 0.1)}


class Case(NamedTuple):
    """A module and the shape of its input."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    path: str = "auto"

    @property
    def deep(self) -> bool:
        """Whether it is a whole network, in which rounding adds up."""
        return self.name.startswith(("network", "classifier", "pcam", "celeba"))


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
        shape = (16, 1, *(sides,) * d)
        yield Case(f"classifier {d}-D", lambda g=grid: ls.models.classifier(1, 4, g, parameters=40_000), shape)
    sphere = ls.uniform(ls.Sphere(), 6)
    yield Case("GConv on R³⋊S²", lambda: ls.GConv(2, 3, 3, sphere, padding=1), (2, 2, 6, 6, 5, 7))
    yield Case("GConv on H alone", lambda: ls.GConv(4, 4, None, ls.uniform(ls.SO3(), 24)), (2, 4, 24))
    yield Case("pcam (8, 8)", lambda: ls.models.pcam(8, 8, "dense"), (16, 3, 88, 88))
    yield Case("pcam (8, 3) local", lambda: ls.models.pcam(8, 3, "local"), (16, 3, 88, 88))
    yield Case("celeba", lambda: ls.models.celeba(), (8, 3, 64, 64))


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
    """Norms that have seen something, so that eval mode is not the identity; no dropout, which draws."""
    for part in module.modules():
        if isinstance(part, nn.Dropout | ls.nn.FieldDropout):
            part.p = 0.0
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
    x = torch.randn(case.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice of compilers, and about the paper's windows
        module = stirred(case.make()).train(training)
        right = run(copy.deepcopy(module), x, "dense", lambda m: m)
        moved = copy.deepcopy(module).to(device)
        torch.compiler.reset()
        by = (lambda m: m) if not compiled else (lambda m: torch.compile(m, backend=compiled))
        try:
            with precision(kind, device):
                found = run(moved, x.to(device), case.path, by)
        except Exception:
            return traceback.format_exc(limit=-4)
    sizes = sorted(float(g.detach().norm()) / math.sqrt(g.numel()) for g in right[1:])
    typical = sizes[len(sizes) // 2]
    for index, (one, other) in enumerate(zip(found, right, strict=True)):
        one, other = one.detach().double().cpu(), other.detach().double()
        # A gradient that is zero but for rounding, as of a bias before a norm, is compared with the others' size.
        least = 0.1 * typical * math.sqrt(other.numel()) if index else 1e-6
        error = float((one - other).norm() / other.norm().clamp_min(least))
        if not error <= TOLERANCES[kind][index > 0] * (3 if case.deep else 1):
            return f"{'output' if index == 0 else f'gradient {index}'} off by {error:.2g}"
    for (name, one), other in zip(moved.named_buffers(), copy.deepcopy(module).buffers(), strict=True):
        if not training and not torch.equal(one.cpu(), other):
            return f"eval mode changed {name}"
    return None


@cache
def combinations(device: str, inductor: bool) -> list[tuple[Case, bool, str, str]]:
    """Module, training or not, precision, back end: eager ones first, then compiled ones, networks by inductor."""
    kinds = ["float32", *(["tf32"] if device == "cuda" else []), "bfloat16", "float16"]
    found = [(case, mode, kind, "") for kind in kinds for mode in (True, False) for case in cases(device)]
    compiled = [case for case in cases(device) if case.path in ("auto", "triton")]
    for kind in ("bfloat16", "float32", "float16"):
        for mode in (True, False):
            found += [(case, mode, kind, "aot_eager") for case in compiled if not case.deep]
            if inductor:
                found += [(case, mode, kind, "inductor") for case in compiled if case.deep]
    return found


def _one(index: int, device: str, inductor: bool) -> tuple[str, str, str | None]:
    torch.set_num_threads(1)
    case, training, kind, compiled = combinations(device, inductor)[index]
    name = f"{case.name}, {'training' if training else 'evaluation'}, {kind}, {compiled or 'eager'}"
    return f"{kind}, {compiled or 'eager'}", name, check(case, device, training, kind, compiled)


def check_all(device: str, seconds: float, jobs: int, only: str = "", inductor: bool = True) -> dict[str, object]:
    """Counts of checks by kind, and what went wrong; after so many seconds the rest is left out and counted."""
    begin, counts, failures = time.monotonic(), {}, []
    wanted = [i for i, (case, *_) in enumerate(combinations(device, inductor)) if only in case.name]
    left_out = len(wanted)
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    running = {pool.submit(_one, index, device, inductor) for index in wanted}
    try:
        for done in as_completed(running, timeout=seconds):
            left_out -= 1
            key, name, problem = done.result()
            counts[key] = counts.get(key, 0) + 1
            if problem:
                failures.append({"check": name, "problem": problem})
                print(f"FAILED {name}: {problem}", flush=True)
    except TimeoutError:
        print(f"{left_out} checks left out after {seconds:.0f} s", flush=True)
    except BrokenProcessPool as error:
        failures.append({"check": "layers", "problem": f"a process died: {error}"})
    for process in list((pool._processes or {}).values()):
        process.terminate()
    pool.shutdown(wait=False, cancel_futures=True)
    return {"counts": counts, "failures": failures, "left_out": left_out, "seconds": round(time.monotonic() - begin)}
