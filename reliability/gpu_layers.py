"""Layers, norms, pools and networks on a device against the same on the CPU in float64, forward and backward."""

import contextlib
import copy
import math
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import torch
import torch._inductor.config
from torch import Tensor, nn

from gpu_cases import Case, cases, stirred
from gpu_share import share
from liespline import ops

# By precision: how far outputs and gradients may be from the truth, relative to their size.
TOLERANCES = {"float32": (2e-4, 1e-3), "tf32": (1e-2, 4e-2), "bfloat16": (6e-2, 0.25), "float16": (1e-2, 0.1)}
ROUNDING = {"float32": torch.finfo(torch.float32).eps, "tf32": 2**-11}
Reference = tuple[list[Tensor], dict[str, float]]


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


def run(module: nn.Module, x: Tensor, path: str, backend: str = "") -> list[Tensor]:
    """The output, then the gradients of the input and of all parameters."""
    torch.compiler.reset()
    x = x.detach().clone().requires_grad_()
    with ops.use(path):
        out = (torch.compile(module, backend=backend) if backend else module)(x)
        torch.manual_seed(1)
        direction = torch.randn(out.shape).to(out)
        parameters = [p for p in module.parameters() if p.requires_grad]
        return [t.detach() for t in (out, *torch.autograd.grad(out, (x, *parameters), direction))]


def distances(found: list[Tensor], right: list[Tensor]) -> list[float]:
    """How far each tensor is from the truth, relative to its size."""
    sizes = sorted(float(g.norm()) / math.sqrt(g.numel()) for g in right[1:])
    errors = []
    for index, (one, other) in enumerate(zip(found, right, strict=True)):
        # A gradient that is zero but for rounding, as of a bias before a norm, is compared with the others' size.
        least = 0.1 * sizes[len(sizes) // 2] * math.sqrt(other.numel()) if index else 1e-6
        errors.append(float((one.double().cpu() - other).norm() / other.norm().clamp_min(least)))
    return errors


def drawn(case: Case, training: bool) -> tuple[nn.Module, Tensor]:
    """The same module and input in every process."""
    torch.manual_seed(0)
    x = torch.randn(case.shape)
    return stirred(case.make()).train(training), x


def truth(case: Case, training: bool, folder: Path) -> Reference:
    """The numbers in float64, and by precision how far roundings alone may bring gradients from them.

    A rounding decides which of two nearly equal samples is the maximum of a pooling window, and where a ReLU begins:
    pcam (8, 3) has gradients that are 4.5e-3 off in float32, by one sample in a late layer that sends them elsewhere,
    and classifier 1-D some that are 0.14 off where inputs and weights have the ten bits of TF32.
    """
    file = folder / f"{case.subject}, {training}.pt"
    if file.is_file():
        found: Reference = torch.load(file)
        return found
    module, x = drawn(case, training)
    right, own = run(copy.deepcopy(module).double(), x.double(), "dense"), {}
    for kind, size in ROUNDING.items() if case.deep else ():
        errors = [distances(run(*rounded(module, x, size, seed), "dense"), right) for seed in range(3)]
        own[kind] = max(max(error[1:]) for error in errors)
    unfinished = file.with_suffix(f".{time.monotonic_ns()}")
    torch.save((right, own), unfinished)
    unfinished.rename(file)  # another process may make the same
    return right, own


@torch.no_grad()
def rounded(module: nn.Module, x: Tensor, size: float, seed: int) -> tuple[nn.Module, Tensor]:
    """The same module and input in float64, each number moved at random by about this share of itself."""
    draw = torch.Generator().manual_seed(seed)
    copied = copy.deepcopy(module).double()
    for parameter in copied.parameters():
        parameter *= 1 + size * torch.randn(parameter.shape, generator=draw)
    return copied, (x * (1 + size * torch.randn(x.shape, generator=draw))).double()


def check(case: Case, device: str, training: bool, kind: str, backend: str, folder: Path) -> str | None:
    """What is wrong with a module on the device, None if it gives the right numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice of compilers, and about the paper's windows
        right, own = truth(case, training, folder)
        module, x = drawn(case, training)
        moved = copy.deepcopy(module).to(device)
        try:
            with torch.device(device):  # it can be made there too
                case.make()
            with precision(kind, device):
                found = run(moved, x.to(device), case.path, backend)
                for index, error in enumerate(distances(found, right)):
                    allowed = TOLERANCES[kind][index > 0] * (3 if case.deep else 1)
                    if not error <= (max(allowed, 2 * own.get(kind, 0.0)) if index else allowed):
                        where = "" if math.isfinite(error) else source(moved, x.to(device), case.path, backend)
                        return f"{'output' if index == 0 else f'gradient {index}'} off by {error:.2g}{where}"
        except Exception:
            return traceback.format_exc(limit=-4)
    for (name, one), other in zip(moved.named_buffers(), module.buffers(), strict=True):
        if not training and not torch.equal(one.cpu(), other):
            return f"eval mode changed {name}"
    return None


def source(module: nn.Module, x: Tensor, path: str, backend: str) -> str:
    """The shortest end of a chain of layers whose gradients are not finite, in words."""
    if not isinstance(module, nn.Sequential):
        return ""
    inputs = [x]
    with torch.no_grad():
        for layer in module:
            inputs.append(layer(inputs[-1]))
    for start in reversed(range(len(module))):
        if not all(t.isfinite().all() for t in run(module[start:], inputs[start], path, backend)):
            names = [type(layer).__name__ for layer in module]
            return f"; not finite from layer {start} on: {', '.join(names[start:])}"
    return "; finite in every part"


@cache
def combinations(device: str, inductor: bool) -> list[tuple[Case, bool, str, str]]:
    """Module, training or not, precision, back end: networks are compiled by inductor, layers traced alone.

    Less is compiled where it would be the same code: in float16 only the training of layers and small networks, in
    float32 only the evaluation of large ones; our Triton kernels without TF32, which nothing chooses and which take
    half a minute to compile, in 2-D. What is long is spread over the rest, so that none of it begins at the end.
    """
    both, kinds = (True, False), ["bfloat16", "float32", "float16"]
    every, compiled = list(cases(device)), [case for case in cases(device) if case.path in ("auto", "triton")]

    def small(case: Case) -> bool:
        return case.name.startswith("network")

    def wanted(case: Case, kind: str) -> bool:
        return (case.path, kind) != ("triton", "float32") or "2-D" in case.name

    long, short = [], []
    for kind in kinds:
        for mode in both if kind != "float16" else (True,):
            every_size = kind == "bfloat16" or (kind, mode) == ("float32", False)
            deep = [case for case in compiled if case.deep and (every_size or small(case))]
            long += [(case, mode, kind, "inductor") for case in deep if inductor]
            short += [(case, mode, kind, "aot_eager") for case in compiled if not case.deep and wanted(case, kind)]
    eager = ["float32", *(["tf32"] if device == "cuda" else []), "bfloat16", "float16"]
    short[:0] = [(case, mode, kind, "") for kind in eager for mode in both for case in every if wanted(case, kind)]
    # The maximum over H compiled in evaluation, whose gradient once was not a number, comes first.
    first = [
        one for one in long if one[0].name.startswith(("classifier 2-D", "pcam")) and one[1:3] == (False, "bfloat16")
    ]
    rest = [one for one in long if one not in first]
    step = max(1, 2 * len(short) // (3 * max(1, len(rest))))
    spread = [one for i, some in enumerate(rest) for one in (some, *short[i * step : (i + 1) * step])]
    return first + spread + short[len(rest) * step :]


def name_of(case: Case, training: bool, kind: str, backend: str) -> str:
    """How a check is called."""
    return f"{case.name}, {'training' if training else 'evaluation'}, {kind}, {backend or 'eager'}"


def _one(device: str, inductor: bool, folder: Path, index: int) -> tuple[str, str, str | None, float]:
    torch.set_num_threads(1)
    torch._inductor.config.triton.autotune_pointwise = False  # compiles half as much, for the same numbers
    case, training, kind, backend = combinations(device, inductor)[index]
    start = time.monotonic()
    problem = check(case, device, training, kind, backend, folder)
    name = name_of(case, training, kind, backend)
    return f"{kind}, {backend or 'eager'}", name, problem, time.monotonic() - start


def check_all(
    device: str, folder: Path, seconds: float, jobs: int, only: str, inductor: bool, note: Callable[[dict], None]
) -> None:
    """Note counts of checks by kind and what went wrong, as it comes; after so many seconds the rest is left out."""
    wanted = [i for i, one in enumerate(combinations(device, inductor)) if re.search(only, name_of(*one))]
    start, counts, failures, slowest = time.monotonic(), {}, [], []
    left_out = len(wanted)
    note({"counts": {}, "failures": [], "left_out": left_out})
    for found in share(partial(_one, device, inductor, folder), wanted, jobs, seconds):
        if isinstance(found, str):
            failures.append({"check": "layers", "problem": found})
        else:
            kind, name, problem, took = found
            counts[kind], left_out = counts.get(kind, 0) + 1, left_out - 1
            slowest = sorted([*slowest, (round(took, 1), name)], reverse=True)[:12]
            if problem:
                failures.append({"check": name, "problem": problem})
                print(f"FAILED {name}: {problem}", flush=True)
        took = round(time.monotonic() - start)
        note({"counts": counts, "failures": failures, "left_out": left_out, "seconds": took, "slowest": slowest})
