"""Compile the Hopper kernels for such a GPU on a machine without one: `python benchmarks/hopper_compile.py C32 …`.

Prints grid, shared memory, registers, spilled bytes and whether ptxas serialises wgmma, which costs more than half the
speed and is said nowhere else; and whether it moved instructions that touch sums before the wait for them, which makes
results wrong: `early`. Needs the Triton that will run them: their language still changes between versions.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from liespline.ops.correlate.hopper import launch, line_kernels, pack_kernels, slab_kernels, tiles, weight_kernels

PTXAS = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
MOST_SHARED = 232_448
LAYERS = {  # batch, channels, elements, space, window
    "C23": (64, 23, 16, (1, 42, 42), (1, 5, 5)),
    "C32": (64, 32, 16, (1, 42, 42), (1, 5, 5)),
    "C64": (64, 64, 16, (1, 32, 32), (1, 5, 5)),
    "C16": (64, 16, 16, (1, 42, 42), (1, 5, 5)),
    "K7": (32, 16, 16, (1, 30, 30), (1, 7, 7)),
    "small": (9, 24, 8, (1, 7, 9), (1, 3, 3)),
    "volume": (2, 32, 16, (12, 12, 12), (3, 3, 3)),
    "SE3": (2, 16, 24, (24, 24, 24), (5, 5, 5)),
}


def early(code: str) -> int:
    """How many instructions of a disassembled kernel touch sums that products may still write: asynchronously."""
    pending: list[set[int]] = []  # registers of each group of products, the latest last
    found = 0
    for line in re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*);", code, re.MULTILINE):
        registers = {int(n) for n in re.findall(r"\bR(\d+)\b", line)}
        if product := re.search(r"HGMMA\.64x(\d+)x16\S* R(\d+),", line):
            first, count = int(product[2]), int(product[1]) // 2
            pending.append(set(range(first, first + count)))
        elif wait := re.search(r"WARPGROUP\.DEPBAR\.LE gsb0, 0x(\w+)", line):
            left = int(wait[1], 16)
            pending = pending[max(len(pending) - left, 0) :]
        elif registers & set().union(*pending):
            found += 1
    return found


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

    def __init__(self, module: Any, name: str) -> None:
        self.kernel, self.name = getattr(module, name), f"{module.__name__.rpartition('.')[2]}.{name}"
        setattr(module, name, self)

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        """What stands for a launch."""

        def launched(*arguments: Any, **options: Any) -> None:
            found = self.kernel.warmup(*arguments, grid=(1,), **options)
            with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
                file.write(found.asm["ptx"])
                file.flush()
                command = [str(PTXAS), "-v", "-arch=sm_90a", file.name, "-o", file.name + ".cubin"]
                said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
                shown = [str(PTXAS.with_name("nvdisasm")), "-c", file.name + ".cubin"]
                code = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
                Path(file.name + ".cubin").unlink()
            facts = [part.strip() for line in said.splitlines() for part in line.split(",")]
            kept = [f for f in facts if ("registers" in f and "Used" in f) or "spill stores" in f]
            large = " TOO LARGE" if found.metadata.shared > MOST_SHARED else ""
            print(f"  {self.name} {grid}: {found.metadata.shared} bytes shared{large};", "; ".join(kept), end="")
            print(" SERIALISED" if "serialized" in said else "", end="")
            print(f" {early(code)} TOO EARLY" if early(code) else "", flush=True)

        return launched


def main(names: list[str]) -> None:
    """All three passes of each layer."""
    driver.set_active(Hopper())
    torch.cuda.get_device_properties = lambda _: SimpleNamespace(multi_processor_count=132)
    Compiled(line_kernels, "correlate")
    Compiled(slab_kernels, "correlate")
    Compiled(weight_kernels, "correlate_weight")
    Compiled(pack_kernels, "pack")
    Compiled(pack_kernels, "unpack")
    for name in names or LAYERS:
        batch, channels, elements, space, window = LAYERS[name]
        print(name, flush=True)
        step, count = (7, 7) if name == "SE3" else (1, 3)  # fields apart, or neighbours
        lines = tuple((a + step * j) % elements for a in range(elements) for j in range(count))
        size = [n - k + 1 for n, k in zip(space, window, strict=True)]
        x = torch.zeros(batch, *space, elements, channels, dtype=torch.bfloat16)
        grad = torch.zeros(batch, *size, elements, channels, dtype=torch.bfloat16)
        kernel = torch.zeros(channels, elements, channels, count, *window)
        table = torch.tensor(tiles.tables(lines, elements, elements, channels, channels), dtype=torch.int32)
        launch.forward(x, kernel, table, lines, size, [0, 0, 0])
        launch.input_gradient(grad, kernel, table, lines, list(space), elements, [0, 0, 0])
        launch.weight_gradient(x, grad, torch.empty_like(kernel), table, lines, [0, 0, 0])


if __name__ == "__main__":
    main(sys.argv[1:])
