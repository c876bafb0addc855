"""The PCam network in escnn and e2cnn against ours, a training step each.

    python benchmarks/escnn_network.py [result.json]

They want an environment of their own, where `PYTHONPATH=src` adds liespline; what is not installed is left out.
"""

import gc
import importlib
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from timing import Row, Step, report, times

ORIENTATIONS, WIDTH = 12, 11
HOWS = ("eager", "compiled")
PEERS = {"escnn": "rot2dOnR2", "e2cnn": "Rot2dOnR2"}  # what each calls the plane with N rotations


class OurNorm(nn.Module):
    """Batch norm, ReLU and pooling by liespline on fields of the peer: what is left of a ratio is correlation alone."""

    def __init__(self, fields: Any, wrap: Callable[..., Any], pool: int | None) -> None:
        super().__init__()
        from liespline.nn import NormReLU

        self.fields, self.wrap, self.orientations = fields, wrap, fields.representations[0].size
        self.norm = NormReLU(len(fields), pool or 1, eps=1e-3)

    def forward(self, x: Any) -> Any:
        """Fields (B, C·N, H, W)."""
        return self.wrap(self.norm(x.tensor.unflatten(1, (-1, self.orientations))).flatten(1, 2), self.fields)


class PeerPCam(nn.Module):
    """Layer for layer `liespline.models.pcam(12, 12, "dense")`, on regular fields of C_12, or of another C_n.

    `own_norm=False` takes liespline's batch norm and pooling in place of the peer's.
    """

    def __init__(
        self, library: str, orientations: int = ORIENTATIONS, width: int = WIDTH, own_norm: bool = True
    ) -> None:
        super().__init__()
        gspaces, enn = (importlib.import_module(f"{library}.{part}") for part in ("gspaces", "nn"))
        plane = getattr(gspaces, PEERS[library])(N=orientations)
        self.wrap = enn.GeometricTensor
        self.image = enn.FieldType(plane, 3 * [plane.trivial_repr])
        narrow = enn.FieldType(plane, width * [plane.regular_repr])
        wide = enn.FieldType(plane, 64 * [plane.regular_repr])

        def block(source: Any, target: Any, window: int, pool: int | None = None) -> list[nn.Module]:
            correlation = enn.R2Conv(source, target, kernel_size=window, bias=False)
            if not own_norm:
                return [correlation, OurNorm(target, enn.GeometricTensor, pool)]
            layers = [correlation, enn.InnerBatchNorm(target, eps=1e-3), enn.ReLU(target)]
            return [*layers, enn.PointwiseMaxPool(target, pool)] if pool else layers

        self.features = nn.Sequential(
            *block(self.image, narrow, 5, pool=2),  # 88 → 84 → 42
            *block(narrow, narrow, 5, pool=2),  # 42 → 38 → 19
            *block(narrow, narrow, 5, pool=3),  # 19 → 15 → 5
            *block(narrow, narrow, 5),  # 5 → 1
            *block(narrow, wide, 1),
            enn.GroupPooling(wide),
        )
        self.classes = nn.Sequential(
            nn.Conv2d(64, 16, 1, bias=False),
            nn.BatchNorm2d(16, eps=1e-3),
            nn.ReLU(),
            nn.Conv2d(16, 2, 1),
            nn.Flatten(),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(B, 3, 88, 88) to (B, 2)."""
        return self.classes(self.features(self.wrap(images, self.image)).tensor)


def networks() -> dict[str, Callable[[], nn.Module]]:
    """What can be built here, by name."""
    found: dict[str, Callable[[], nn.Module]] = {
        library: partial(PeerPCam, library) for library in PEERS if importlib.util.find_spec(library)
    }
    if importlib.util.find_spec("liespline"):
        from liespline.models import pcam

        found["liespline"] = lambda: pcam(ORIENTATIONS, ORIENTATIONS, "dense")
        found["liespline, three local splines on H"] = local
    return found


def local(orientations: int = ORIENTATIONS, width: int = WIDTH) -> nn.Module:
    """The same network with kernels that reach one orientation to either side, which escnn does not have."""
    import liespline as ls

    grid = ls.uniform(ls.SO2(), orientations)
    x_basis, point = ls.SplineBasis(ls.disc(5), degree=2), ls.SplineBasis(ls.disc(1), degree=2)
    h_basis = ls.SplineBasis(ls.local(ls.SO2(), 3, grid.spacing), degree=2)

    def correlation(pool: int = 1) -> list[nn.Module]:
        layer = ls.GConv(width, width, 5, grid, x_basis=x_basis, h_basis=h_basis, bias=False)
        return [layer, ls.nn.NormReLU(width, pool, eps=1e-3)]

    return nn.Sequential(
        ls.Lift(3, width, 5, grid, x_basis=x_basis, bias=False),
        ls.nn.NormReLU(width, 2, eps=1e-3),
        *correlation(2),
        *correlation(3),
        *correlation(),
        ls.GConv(width, 64, 1, grid, x_basis=point, h_basis=h_basis, bias=False),
        ls.nn.NormReLU(64, eps=1e-3),
        ls.Project("max", grid),
        nn.Conv2d(64, 16, 1, bias=False),
        ls.nn.NormReLU(16, eps=1e-3),
        nn.Conv2d(16, 2, 1),
        nn.Flatten(),
    )


def training_step(network: nn.Module, batch: int, device: str, dtype: torch.dtype, compiled: bool) -> Step:
    """Forward, backward and AdamW on random images."""
    network = network.to(device).train()
    optimiser = torch.optim.AdamW(network.parameters(), fused=device == "cuda")
    images = torch.randn(batch, 3, 88, 88, device=device)
    labels = torch.randint(2, (batch,), device=device)

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, dtype=dtype, enabled=dtype != torch.float32):
            return F.cross_entropy(network(x).float(), y)

    compute = torch.compile(loss, mode="reduce-overhead" if device == "cuda" else None) if compiled else loss

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        compute(images, labels).backward()
        optimiser.step()

    return step


def compare(batch: int, device: str, dtype: torch.dtype, how: str, reach: str) -> list[Row]:
    """Images per second of both, in turns, their ratio, and the peak memory of each where the device counts it."""
    label = f"{device}, {str(dtype).removeprefix('torch.')}, batch {batch}, {how}"
    steps, rows = {}, []
    for name, build in networks().items():
        torch.manual_seed(0)
        gc.collect()
        try:
            begin = time.process_time()
            network = build()
            rows.append(Row(f"{name}, {label}: seconds to build", time.process_time() - begin, ""))
            step = training_step(network, batch, device, dtype, compiled=how == "compiled")
            step()
        except Exception as error:  # a compiler that gives up on one of them is a finding, not the end of the run
            print(f"{name}, {label}: does not run: {str(error).strip().splitlines()[0][:300]}")
            torch._dynamo.reset()
            continue
        if device == "cuda":
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            step()
            peak = (torch.cuda.max_memory_allocated() - before) / 2**20
            rows.append(Row(f"{name}, {label}: MiB of a step at its peak", peak, ""))
        steps[name] = step
    seconds = times(steps, device, seconds=5 if device == "cpu" else 1)
    rows += [Row(f"{name}, {label}: images/s", batch / value, "") for name, value in seconds.items()]
    for name, value in seconds.items():
        for peer in [peer for peer in PEERS if peer in seconds and name not in PEERS]:
            rows.append(Row(f"{name} / {peer}, {label}: times as fast", seconds[peer] / value, reach))
    return rows


def main(path: str) -> None:
    """Measure, print, write."""
    warnings.filterwarnings("ignore")
    if torch.cuda.is_available():
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("high")  # tf32, for both alike
        torch.backends.cudnn.allow_tf32 = True
        device, cases = "cuda", [(256, dtype, how) for dtype in (torch.bfloat16, torch.float32) for how in HOWS]
    else:
        torch.set_num_threads(1)
        device, cases = "cpu", [(8, torch.float32, "eager"), (16, torch.float32, "eager")]
    rows: list[Row] = []
    for batch, dtype, how in cases:
        rows += compare(batch, device, dtype, how, "≥ 3" if device == "cuda" else "≥ 1.5")
        report(rows, device, path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/escnn.json")
