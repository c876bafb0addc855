"""Training steps of the paper's PCam network: images per second, eager and compiled, and the memory they take."""

from collections.abc import Callable

import torch
from torch.nn import functional as F

import liespline as ls
from liespline import ops
from timing import Row, times

BURST = 5  # steps in a row, as in training: the device need not wait for the host between them
NETWORKS = {"(12, 12) dense": (12, 12, "dense", 30_000), "(16, 3) local": (16, 3, "local", 20_000)}


def pcam_rows(batch: int, compiled: bool = True) -> list[Row]:
    """Steps in bfloat16 autocast with AdamW, on random images."""
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
