"""The speed table on a CUDA device: `python benchmarks/gpu.py [result.json]`."""

import sys
import warnings
from collections.abc import Callable

import torch
from torch.nn import functional as F

import liespline as ls
from layers import Bench, exported_row
from liespline import ops
from timing import Row, report, times

GRID = [
    (channels, n_h, n_k, kind, window, size)
    for channels, size in ((8, 32), (16, 42), (23, 38), (40, 19), (64, 16))
    for n_h, n_k, kind in ((8, 8, "dense"), (12, 4, "atrous"), (16, 3, "local"), (16, 8, "dense"))
    for window in (3, 5)
] + [(32, 16, 3, "local", 7, 32), (11, 12, 12, "dense", 5, 42)]


GROWTH = {
    "n_h": (8, 16, 32, 64),
    "n_k": (1, 3, 5, 9),
    "channels": (16, 32, 64),
    "size": (16, 32, 64),
    "batch": (16, 64, 256),
}
BURST = 5  # steps in a row, as in training: the device need not wait for the host between them
NETWORKS = {"(12, 12) dense": (12, 12, "dense", 30_000), "(16, 3) local": (16, 3, "local", 20_000)}


def main(path: str) -> None:
    """Measure, print, write."""
    warnings.filterwarnings("ignore", message=".*energy falls outside.*")
    torch.backends.cudnn.benchmark = True
    bench = Bench("cuda", torch.bfloat16, batch=64, size=42)
    rows: list[Row] = [
        bench.against_plain(32, 12),
        bench.local(32, 16, "≤ 0.6"),
        bench.local(64, 16, "≤ 0.4", size=32),
        bench.local(32, 32, "≤ 0.3"),
        bench.local(32, 16, "≤ 0.6", degree=2),
        bench.local(64, 16, "≤ 0.4", degree=2, size=32),
        bench.exponent(32, batch=32),
        bench.scale(batch=8, size=128),
        bench.volumes(batch=2),
        exported_row("cuda", torch.bfloat16, batch=256),
    ]
    rows += pcam_rows(batch=256)
    report(rows, "cuda", path)
    rows.append(bench.grid(GRID))
    report(rows, "cuda", path)
    base = {"channels": 32, "n_h": 16, "n_k": 3, "size": 32, "batch": 64}
    series = [bench.growth(what, values, **base) for what, values in GROWTH.items()]
    report(rows, "cuda", path, series)


def pcam_rows(batch: int, compiled: bool = True) -> list[Row]:
    """Steps of the paper's network with AdamW in bfloat16, on random images: images per second, and peak memory."""
    rows = []
    for name, (n_h, n_k, kind, reach) in NETWORKS.items():
        peak = {}
        for path in ("auto", "dense") if kind == "local" else ("auto",):
            with ops.use(path):
                step = _step(n_h, n_k, kind, batch, compiled=False)
                step()  # cuDNN tries its algorithms, some with much memory
                torch.cuda.reset_peak_memory_stats()
                seconds = _seconds(step)
                peak[path] = torch.cuda.max_memory_allocated()
            target = "≥ 12000" if path == "auto" else ""
            rows.append(Row(f"PCam {name}, {path} path, eager, images/s", batch / seconds, target))
        if "dense" in peak:
            rows.append(Row(f"PCam {name}, peak memory / dense path", peak["auto"] / peak["dense"], "≤ 1.0"))
        if compiled:
            seconds = _seconds(_step(n_h, n_k, kind, batch, compiled=True))
            rows.append(Row(f"PCam {name}, compiled, images/s", batch / seconds, f"≥ {reach}"))
    return rows


def _seconds(step: Callable[[], None]) -> float:
    def steps() -> None:
        for _ in range(BURST):
            step()

    return times({"steps": steps}, "cuda")["steps"] / BURST


def _step(n_h: int, n_k: int, kind: str, batch: int, compiled: bool) -> Callable[[], None]:
    torch.manual_seed(0)
    network = ls.models.pcam(n_h, n_k, kind).cuda().train()
    optimiser = torch.optim.AdamW(network.parameters(), fused=True)
    images = torch.randn(batch, 3, 88, 88, device="cuda")
    labels = torch.randint(2, (batch,), device="cuda")

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return F.cross_entropy(network(x), y)

    compute = torch.compile(loss, mode="reduce-overhead") if compiled else loss

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        compute(images, labels).backward()
        optimiser.step()

    return step


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/gpu.json")
