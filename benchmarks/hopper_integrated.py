"""The Hopper kernels inside the library, right and how fast: `python benchmarks/hopper_integrated.py --out DIR`.

Every measurement prepares itself in a process of its own, all at once, since compiling takes longest. Then they take
turns on the device, the most decisive first. Rows are written as they come.
"""

import argparse
import json
import math
import os
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src"), str(HERE.parent / "reliability")]
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "2")
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import liespline as ls  # noqa: E402
from liespline import paths  # noqa: E402
from liespline.hopper import operators, tiles  # noqa: E402
from liespline.models.kernels import h_basis  # noqa: E402
from timing import captured  # noqa: E402

Ready = Callable[[], dict[str, Any]]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def old() -> None:
    """In this process, decide as if the kernels did not exist."""
    operators.available = lambda device, dtype: False


# ---- layers ----


def _so2(c: int, n_h: int, degree: int = 1) -> ls.GConv:
    grid = ls.uniform(ls.SO2(), n_h)
    return ls.GConv(c, c, 5, grid, h_basis=h_basis(grid, "local", 3, degree=degree), bias=False)


def _separable(c: int) -> nn.Module:
    grid = ls.uniform(ls.SO2(), 16)
    return ls.nn.SeparableGConv(c, c, 5, grid, h_basis=h_basis(grid, "local", 3, degree=1), bias=False)


def _se3() -> ls.GConv:
    grid = ls.uniform(ls.SO3(), 24)
    return ls.GConv(16, 16, 5, grid, h_basis=h_basis(grid, "local", 7, degree=2), bias=False)


def _step(layer: nn.Module, c: int, space: tuple[int, ...], batch: int, path: str, inner: bool) -> Callable[[], Any]:
    """Forward and backward from the layout that the path itself leaves."""
    x = torch.randn(batch, c, len(layer.grid), *space, device=DEVICE).bfloat16()
    order = ((2, 1), (-2, -1)) if inner else ((1, 2), (-2, -1))
    x = x.movedim(*order).contiguous().movedim(order[1], order[0]).requires_grad_()

    def forward() -> Tensor:
        with paths.use(path), torch.autocast(DEVICE, torch.bfloat16):
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
    taken, gathered = [], operators.gathered
    operators.gathered = lambda *arguments: (taken.append(1), gathered(*arguments))[1]
    own = _step(make().to(DEVICE), c, space, batch, "auto", True)
    own()

    def measure() -> dict[str, Any]:
        plain = _step(dense().to(DEVICE), c, space, batch, "dense", False)
        before = operators.available
        operators.available = lambda device, dtype: False
        plain()
        sides = {"dense": captured(plain)}
        operators.available = before
        sides["own"] = captured(own)
        found = _turns(sides)
        return found | {"ratio": found["own"][1] / found["dense"][1], "kernels": bool(taken)}

    return measure


def depthwise(c: int, side: int) -> Ready:
    """A depthwise layer against the time to read and write what it must, by the bandwidth of a copy."""
    module = ls.nn.Depthwise(c, 5, ls.uniform(ls.SO2(), 16), bias=False).to(DEVICE)
    own = _step(module, c, (side, side), 64, "auto", True)
    own()

    def measure() -> dict[str, Any]:
        numel = 64 * c * 16 * (side**2 + (side - 4) ** 2)
        a = torch.randn(3 * numel // 2, device=DEVICE, dtype=torch.bfloat16)
        b = torch.empty_like(a)
        found = _turns({"own": captured(own), "copy of equal bytes": captured(lambda: b.copy_(a))})
        floor = 3 * 2 * numel / 4.3e12 * 1e3  # three passes, each reads and writes both maps
        return found | {"bytes_ms": floor, "against bytes": found["own"][1] / floor}

    return measure


def _turns(steps: dict[str, Callable[[], Any]], seconds: float = 0.8) -> dict[str, list[float]]:
    """10 %, median and 90 % of each step's milliseconds; steps take turns."""
    for step in steps.values():
        for _ in range(3):
            step()
    seen: dict[str, list[float]] = {name: [] for name in steps}
    begin = time.monotonic()
    while time.monotonic() - begin < seconds or len(next(iter(seen.values()))) < 8:
        for name, step in steps.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            step()
            end.record()
            end.synchronize()
            seen[name].append(start.elapsed_time(end))
    return {name: [round(v, 4) for v in _spread(values)] for name, values in seen.items()}


def _spread(values: list[float]) -> list[float]:
    values = sorted(values)
    return [values[len(values) // 10], statistics.median(values), values[-1 - len(values) // 10]]


# ---- networks ----


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

        found = _turns({"ms": steps}, 1.5)
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


JOBS: dict[str, Callable[[], Ready]] = {
    "PCam (16,3) compiled": lambda: pcam(16, 3, "local", True),
    "PCam (16,3) compiled, old": lambda: (old(), pcam(16, 3, "local", True))[1],
    "local C=23": lambda: layer(lambda: _so2(23, 16), lambda: _so2(23, 16), 23, (42, 42), 64),
    "local C=23 mixed": lambda: layer(lambda: _so2(23, 16, 2), lambda: _so2(23, 16, 2), 23, (42, 42), 64),
    "local C=32": lambda: layer(lambda: _so2(32, 16), lambda: _so2(32, 16), 32, (42, 42), 64),
    "local C=64": lambda: layer(lambda: _so2(64, 16), lambda: _so2(64, 16), 64, (32, 32), 64),
    "local N=32": lambda: layer(lambda: _so2(32, 32), lambda: _so2(32, 32), 32, (42, 42), 64),
    "SE(3) C=16": lambda: layer(_se3, _se3, 16, (24, 24, 24), 2),
    "SE(3) C=16, samples in registers": lambda: (_keep(), layer(_se3, _se3, 16, (24, 24, 24), 2))[1],
    "separable C=16": lambda: layer(lambda: _separable(16), lambda: _so2(16, 16), 16, (42, 42), 64),
    "separable C=32": lambda: layer(lambda: _separable(32), lambda: _so2(32, 16), 32, (42, 42), 64),
    "separable C=64": lambda: layer(lambda: _separable(64), lambda: _so2(64, 16), 64, (32, 32), 64),
    "PCam (16,3) eager": lambda: pcam(16, 3, "local", False),
    "PCam (12,12) compiled": lambda: pcam(12, 12, "dense", True),
    "PCam (12,12) eager": lambda: pcam(12, 12, "dense", False),
    "depthwise C=32": lambda: depthwise(32, 42),
    "U-Net SE(3) 64³ batch 2": lambda: volumes(ls.SO3(), 24, 2, 64, True),
    "U-Net plain 64³ batch 2": lambda: volumes(ls.Trivial(3), 1, 2, 64, False),
    "U-Net SE(3) 96³ batch 1": lambda: volumes(ls.SO3(), 24, 1, 96, True),
    "ResNet plain": lambda: resnet("plain"),
    "ResNet local": lambda: resnet("local"),
    "ResNet separable": lambda: resnet("separable"),
    "U-Net SE(3) 64³ batch 2, kept": lambda: volumes(ls.SO3(), 24, 2, 64, False),
    "CelebA compiled": celeba,
}
LATE = ("U-Net", "ResNet", "CelebA")  # left out unless asked for


def _keep() -> None:
    tiles.KEEP_SLAB = True


# ---- taking turns ----


def child(name: str, ready: Any, go: Any, out: Path) -> None:
    """Prepare, wait for the device, measure, write."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    os.nice(0 if name.startswith("PCam (16,3) compiled") else 5)
    begin = time.time()
    row: dict[str, Any] = {"name": name}
    try:
        measure = JOBS[name]()
        torch.cuda.synchronize()
        row["prepared_s"] = round(time.time() - begin, 1)
        ready.set()
        go.wait()
        torch.backends.cudnn.benchmark = "U-Net" not in name
        row |= measure()
    except BaseException:
        row["error"] = traceback.format_exc(limit=-6)
    with (out / "rows.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    os._exit(0)


def main() -> None:
    """Check and prepare side by side, then measure one at a time, alone on the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--seconds", type=float, default=138)
    parser.add_argument("--prepare", type=float, default=84, help="seconds; who is not ready then is left out")
    parser.add_argument("--only", default="", help="parts of names, by commas")
    parser.add_argument("--no-checks", action="store_true")
    options = parser.parse_args()
    begin, context = time.time(), get_context("spawn")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "rows.jsonl").unlink(missing_ok=True)
    wanted = options.only.split(",")
    names = [n for n in JOBS if any(part in n for part in wanted) and (options.only or not n.startswith(LATE))]
    events = {name: (context.Event(), context.Event()) for name in names}
    children = {n: context.Process(target=child, args=(n, *events[n], options.out)) for n in names}
    for process in children.values():
        process.start()
    if not options.no_checks and DEVICE == "cuda":
        from gpu_hopper import check_hopper

        checks = check_hopper(options.prepare - 4, 10)
        (options.out / "checks.json").write_text(json.dumps(checks, indent=1))
        print(
            f"{len(checks['passed'])} right, {len(checks['failures'])} failures, {time.time() - begin:.0f} s",
            flush=True,
        )
    waiting = True
    while waiting and time.time() < begin + options.prepare:
        time.sleep(0.2)
        waiting = any(children[n].is_alive() and not events[n][0].is_set() for n in names)
    for name in names:
        if not events[name][0].is_set():
            children[name].kill()
    print(f"prepared in {time.time() - begin:.0f} s", flush=True)
    for name in names:
        if children[name].is_alive() and time.time() < begin + options.seconds - 4:
            events[name][1].set()
            children[name].join(max(0.1, min(12.0, begin + options.seconds - time.time())))
            children[name].kill()
    for process in children.values():
        process.kill()
    lines = (options.out / "rows.jsonl").read_text().splitlines() if (options.out / "rows.jsonl").exists() else []
    rows = [json.loads(line) for line in lines]
    (options.out / "hopper_integrated.json").write_text(json.dumps(rows, indent=1))
    for row in rows:
        shown = {k: round(v, 3) if isinstance(v, float) and math.isfinite(v) else v for k, v in row.items()}
        shown.pop("share", None)
        print(json.dumps(shown)[:600], flush=True)
    print("left out:", ", ".join(sorted(set(names) - {row["name"] for row in rows})), f"{time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
