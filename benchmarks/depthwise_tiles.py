"""Which tiles suit the depthwise kernels of a Hopper GPU: `python benchmarks/depthwise_tiles.py out.json`.

Each choice compiles in a process of its own, all at once; then they take turns on the device. Milliseconds of the three
passes of a layer with 32 channels on 16 rotations, 42² samples, batch 64, beside those that its bytes take at 4.3 TB/s.
"""

import contextlib
import json
import sys
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import torch  # noqa: E402

from hopper_layers import DEVICE, SMALL, replayed, turns  # noqa: E402
from liespline.hopper import depthwise  # noqa: E402

# columns, images and channels of a program, warps, registers of a thread
CHOICES = [
    (4, 4, 64, 4, 128),
    (4, 2, 64, 2, 128),
    (4, 8, 64, 8, 128),
    (4, 2, 128, 4, 128),
    (6, 4, 64, 4, 168),
    (6, 2, 64, 4, 128),
    (7, 2, 64, 2, 255),
    (8, 2, 64, 4, 128),
    (8, 4, 64, 4, 255),
    (2, 4, 64, 4, 96),
    (4, 4, 64, 8, 64),
    (3, 4, 64, 4, 128),
    (4, 2, 64, 4, 96),
]


def child(choice: tuple[int, ...], barrier: Any, lock: Any, out: str) -> None:
    """Compile, wait for the others, measure."""
    depthwise._COLUMNS, depthwise._IMAGES, depthwise._CHANNELS, warps, registers = choice
    before = depthwise._constants
    depthwise._constants = lambda *a: before(*a) | {"num_warps": warps, "maxnreg": registers}
    row: dict[str, Any] = {"choice": choice}
    try:
        torch.manual_seed(0)
        batch = 1 if SMALL else 64
        x = torch.randn(batch, 42, 42, 512, device=DEVICE).bfloat16()
        grad = torch.randn(batch, 38, 38, 512, device=DEVICE).bfloat16()
        weight = torch.randn(5, 5, 512, device=DEVICE)
        passes = {
            "forward": lambda: depthwise._launch(x, weight, [0, 0]),
            "input": lambda: depthwise._to_input(grad, weight, [0, 0]),
            "weight": lambda: depthwise._to_weight(x, grad, [5, 5], [0, 0]),
        }
        graphs = {name: replayed(step) for name, step in passes.items()}
    except Exception as error:
        row["error"], graphs = repr(error)[:300], {}
    with contextlib.suppress(Exception):
        barrier.wait(40)
    with lock:
        if graphs:
            row |= turns(graphs, 0.4)
            row["all"] = sum(row[name][1] for name in passes)
            row["bytes"] = 3 * 2 * (x.numel() + grad.numel()) / 4.3e9
        with open(out, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def main(out: str) -> None:
    """All choices."""
    context, begin = get_context("spawn"), time.time()
    barrier, lock = context.Barrier(len(CHOICES)), context.Lock()
    children = [context.Process(target=child, args=(choice, barrier, lock, out)) for choice in CHOICES]
    for process in children:
        process.start()
    for process in children:
        process.join(max(1, begin + 58 - time.time()))
        process.kill()
    print(Path(out).read_text(), f"{time.time() - begin:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
