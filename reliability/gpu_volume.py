"""Where the kernels for Hopper GPUs are wrong on volumes, if anywhere: `python reliability/gpu_volume.py out.json`.

Numbers are −1, 0 and 1, so that all sums are whole and exact in bfloat16: what differs from float64 at all is a fault,
never rounding. For each pass it says how many numbers differ and where along each axis they lie.
"""

import json
import sys
import time
import traceback
import warnings
from typing import Any

import torch
from torch import Tensor

import gpu_hopper
import liespline as ls
from liespline.models.kernels import h_basis
from liespline.ops.correlate.hopper import launch, operators, tiles

# channels, outputs, window, batch, side, whether the kernel for slabs of lines is taken wherever it can be
CASES = [
    (8, 16, 3, 3, 9, True),
    (8, 16, 3, 3, 9, False),
    (16, 16, 3, 2, 9, True),
    (8, 16, 5, 2, 9, True),
    (16, 8, 3, 3, 9, True),
    (8, 16, 3, 2, 8, True),
    (5, 7, 5, 2, 10, False),
    (12, 5, 5, 2, 10, False),
    (16, 16, 5, 2, 10, True),
]


def few(*shape: int) -> Tensor:
    """Whole numbers so few of which are not zero that no sum of them grows beyond 256."""
    return torch.randint(-1, 2, shape, device="cuda").to(torch.bfloat16) * (torch.rand(shape, device="cuda") < 0.3)


def slab_anywhere(batch: int, size: Any, window: Any, outputs: int, width: int) -> tiles.Slab | None:
    """The kernel for slabs wherever its shapes allow it."""
    if size[0] == 1 or width != 16 or outputs > 16 or window[1] not in (3, 5) or window[2] > 5:
        return None
    images = 2 if batch > 1 else 1
    return tiles.Slab(8 // images, images, min((6, 5, 4), key=lambda pairs: tiles._filled(size[1], 2 * pairs)))


def where(found: Tensor, right: Tensor, axes: str) -> dict[str, Any]:
    """How many numbers differ, by how much, and how many at each place of each axis."""
    wrong = found.double() != right
    told: dict[str, Any] = {"wrong": int(wrong.sum()), "of": wrong.numel()}
    if told["wrong"]:
        told["most"] = float((found.double() - right).abs().max())
        told["relative"] = float((found.double() - right).norm() / right.norm())
        for axis, name in enumerate(axes):
            others = [i for i in range(wrong.ndim) if i != axis]
            told[name] = wrong.sum(others).tolist()
    return told


def check(channels: int, outputs: int, k: int, batch: int, side: int) -> dict[str, Any]:
    """All three passes of a layer with three local neighbours of 24 rotations on every side."""
    grid = ls.uniform(ls.SO3(), 24)
    plan = ls.GConv(1, 1, k, grid, h_basis=h_basis(grid, "local", 7, degree=2)).plan
    lines = plan.parts[0].tables[0].lines
    x, kernel = few(batch, side, side, side, 24, channels), few(outputs, 24, channels, 7, k, k, k).float()
    table = operators._table(lines, (outputs, 24, channels), 24, x.device)
    grad = few(batch, side, side, side, 24, outputs)
    border = [k // 2] * 3
    exact_x, exact_kernel = x.double().requires_grad_(), kernel.double().requires_grad_()
    out = operators.plain(exact_x, exact_kernel, lines, border)
    dx, dw = torch.autograd.grad(out, (exact_x, exact_kernel), grad.double())
    told: dict[str, Any] = {}
    for turn in range(2):
        found = launch.forward(x, kernel, table, lines, [side] * 3, border)
        told[f"forward {turn}"] = where(found, out.detach(), "BDHWRC")
        found = launch.input_gradient(grad, kernel, table, lines, [side] * 3, 24, border)
        told[f"input {turn}"] = where(found, dx, "BDHWRC")
        found = torch.empty_like(kernel)
        launch.weight_gradient(x, grad, found, table, lines, border)
        told[f"weight {turn}"] = where(found, dw, "OACTZYX")
    told["largest"] = max(float(t.abs().max()) for t in (out.detach(), dx))
    return told


def layer() -> str:
    """The whole layer, with fields that are mixed first, against the CPU."""
    taken, tiles._takes = tiles._takes, lambda *_: True
    try:
        case = next(case for case in gpu_hopper.cases() if case.name.startswith("volume, C 8 to 16"))
        return gpu_hopper._compare(case._replace(path="hopper")) or "right"
    except Exception:
        return traceback.format_exc(limit=-4)
    finally:
        tiles._takes = taken


def main(path: str) -> None:
    """Check, write what is known after every case."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    told: list[dict[str, Any]] = []
    strict = launch.slab
    for *sizes, anywhere in CASES:
        begin = time.time()
        launch.slab = slab_anywhere if anywhere else (lambda *_: None)
        row: dict[str, Any] = {"case": sizes, "slab": anywhere}
        try:
            row |= check(*sizes)
        except Exception:
            row["error"] = traceback.format_exc(limit=-4)
        if sizes[:3] == [8, 16, 3] and sizes[3] == 3:
            row["layer"] = layer()
        launch.slab = strict
        told.append(row | {"seconds": round(time.time() - begin, 1)})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(told, file, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
