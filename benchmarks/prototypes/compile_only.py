"""Compile the Gluon kernels for a Hopper GPU on a machine without one: `python compile_only.py C32 C64 …`.

Prints grid, shared memory, registers, spilled bytes and whether ptxas serialises wgmma, which costs more than half the
speed and is said nowhere else. Needs the Triton that will run them: their language still changes between versions.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import line_kernels
import line_launch
import line_weight
import plan
import slab_kernels
import slab_launch
import stream_kernels
import stream_weight
import torch
import triton
from spans import pack, spans
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from variants import LAYERS

PTXAS = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
MOST_SHARED = 232_448


class Hopper:
    """A driver for a device that is not there."""

    def get_current_target(self) -> GPUTarget:
        """Compute capability 9.0."""
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def get_current_stream(self, _: int) -> int:
        """The default one."""
        return 0


class Compiled:
    """A kernel whose launch compiles it and prints what came out."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        """What stands for a launch."""

        def launch(*arguments: Any, **options: Any) -> None:
            found = self.kernel.warmup(*arguments, grid=(1,), **options)
            with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
                file.write(found.asm["ptx"])
                file.flush()
                command = [str(PTXAS), "-v", "-arch=sm_90a", file.name, "-o", "/dev/null"]
                said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
            facts = [part.strip() for line in said.splitlines() for part in line.split(",")]
            kept = [f for f in facts if ("registers" in f and "Used" in f) or "spill stores" in f]
            large = " TOO LARGE" if found.metadata.shared > MOST_SHARED else ""
            print(f"  {grid[0]} programs, {found.metadata.shared} bytes shared{large};", "; ".join(kept), end="")
            print(" SERIALISED" if "serialized" in said else "", flush=True)

        return launch


def main(names: list[str]) -> None:
    """Every tile of the plan."""
    driver.set_active(Hopper())
    for module, name in (
        (line_kernels, "correlate"), (stream_kernels, "correlate"), (slab_kernels, "correlate"),
        (line_weight, "correlate_weight"), (stream_weight, "correlate_weight"),
    ):  # fmt: skip
        setattr(module, name, Compiled(getattr(module, name)))
    line_launch.unpack = lambda *_: None
    for layer in (LAYERS[name] for name in names or LAYERS):
        a, t, c = len(layer.fields), len(layer.fields[0]), layer.memory_channels
        x = torch.zeros(layer.batch, *layer.space, a, c, dtype=torch.bfloat16)
        grad = torch.zeros(layer.batch, *layer.size, a, c, dtype=torch.bfloat16)
        kernel = torch.zeros(a, t, *layer.window, c, c, dtype=torch.bfloat16)
        none, full = (0, 0, 0), tuple(k - 1 for k in layer.window)
        ends = {
            "forward": (x, kernel, layer.table, layer.size, none, plan.FORWARD),
            "input": (grad, layer.turned(kernel), layer.readers[0], layer.space, full, plan.INPUT),
        }
        for what, (source, weights, table, size, padding, tiles) in ends.items():
            for tile in tiles[layer.name]:
                print(layer.name, what, tile, flush=True)
                cover = spans(table, c, tile["channels"])
                packed = pack(weights, cover, tile["lines"], line_launch.padded(c))
                line_launch.correlate(source, packed, cover, size, padding, c, line_launch.Tile(**tile))
            for tile in plan.SLABS.get((layer.name, what), []):
                print(layer.name, what, "slab", tile, flush=True)
                cover = spans(table, c, 16)
                packed = slab_launch.pack(pack(weights, cover, 2, 16))
                slab_launch.correlate(source, packed, cover, size, padding, c, layer.window, **tile)
        for tile in plan.WEIGHT[layer.name]:
            print(layer.name, "weight", tile, flush=True)
            cover = spans(layer.table, c, tile["channels"])
            chosen = line_launch.WeightTile(**tile | {"splits": 1})
            line_launch.weight_gradient(x, grad, cover, layer.window, none, chosen)


if __name__ == "__main__":
    main(sys.argv[1:])
