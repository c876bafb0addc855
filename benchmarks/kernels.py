"""Compile all GPU kernels for compute capability 9.0 on a machine without a GPU, with several versions of Triton.

`make kernels` fetches each version into build/triton and writes results/kernels.json. With names of layers, such as
`python benchmarks/kernels.py C32`, it compiles their Hopper kernels with the Triton installed, and prints grid, shared
memory, registers and spilled bytes; whether ptxas serialises wgmma, which costs more than half the speed and is said
nowhere else; and how many instructions that touch sums it moved before the wait for them, which makes results wrong.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from liespline.ops import trust

HERE = Path(__file__).resolve().parent
RESULT, BUILD = HERE / "results" / "kernels.json", HERE.parent / "build" / "triton"
VERSIONS = ("3.2.0", "3.3.0", "3.4.0", "3.5.1", "3.6.0", "3.7.1", "3.8.0", "3.9.0")
KINDS = ("norm", "depthwise", "triton", "hopper")
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


class Compiled:
    """A kernel whose launch compiles it and remembers what came out."""

    found: list[dict[str, Any]]

    def __init__(self, module: Any, name: str) -> None:
        self.kernel, self.name = getattr(module, name), f"{module.__name__.rpartition('.')[2]}.{name}"
        setattr(module, name, self)

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        """What stands for a launch."""

        def launched(*arguments: Any, **options: Any) -> None:
            made = self.kernel.warmup(*arguments, grid=(1,), **options)
            fact = {"kernel": self.name, "grid": list(grid), "shared": made.metadata.shared}
            fact |= assembled(made.asm["ptx"])
            Compiled.found.append(fact)
            print("  " + ", ".join(f"{key} {value}" for key, value in fact.items()), flush=True)
            if fact["shared"] > MOST_SHARED:
                raise ValueError(f"{fact['shared']} bytes of shared memory: there are {MOST_SHARED}")

        return launched


def assembled(ptx: str) -> dict[str, Any]:
    """What ptxas says of a kernel: of two that Triton may bring, the one that it takes for such a GPU."""
    import triton

    tools = Path(triton.__file__).parent / "backends/nvidia/bin"
    ptxas = tools / ("ptxas" if trust.installed() < (3, 9) else "ptxas-blackwell")
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        command = [str(ptxas), "-v", "-arch=sm_90a", str(source), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        shown = subprocess.run([str(tools / "nvdisasm"), "-c", str(cubin)], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    facts = [part.strip() for line in said.splitlines() for part in line.split(",")]
    numbers = [int(f.split()[-2]) for f in facts if "Used" in f and "registers" in f]
    spilled = [int(f.split()[0]) for f in facts if "spill stores" in f]
    if done.returncode or not numbers:
        raise ValueError(f"ptxas: {said[:300]}")
    serialised = "serialized" in said
    return {"registers": max(numbers), "spilled": sum(spilled), "serialised": serialised, "early": early(shown.stdout)}


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


# ---- the launches of each kind ----


def norms() -> None:
    """Forward and backward, for planes and for channels that lie innermost."""
    from liespline.ops.norm import fused, kernels

    for name in ("moments", "finish_moments", "apply", "gradient_sums", "finish_gradient", "gradient"):
        Compiled(kernels, name)
    x = torch.zeros(8, 32, 8, 16, 16, dtype=torch.bfloat16)
    for lies in (x, x.movedim((2, 1), (-2, -1)).contiguous().movedim((-2, -1), (2, 1))):
        for name, pool in (("relu", 1), ("silu", 2)):
            out, facts = fused._forward(lies, torch.ones(32), torch.zeros(32), 1e-5, name, pool)
            fused._backward(out, lies, facts, name, pool)


def depthwise() -> None:
    """Windows of 3 and 5, whole tiles and others."""
    from liespline.ops.depthwise import hopper, hopper_kernels

    for name in ("correlate", "correlate_weight"):
        Compiled(hopper_kernels, name)
    for batch, fields, side in ((8, 128, 5), (6, 24, 3)):
        x, weight = torch.zeros(batch, 20, 20, fields, dtype=torch.bfloat16), torch.zeros(side, side, fields)
        hopper._launch(x, weight, [side // 2] * 2)
        hopper._to_weight(x, x, [side, side], [side // 2] * 2)


def portable() -> None:
    """The correlation for GPUs since Ampere, as tensor cores take it and exactly."""
    from liespline.ops.correlate import triton, triton_kernels

    for name in ("correlate", "correlate_weight"):
        Compiled(triton_kernels, name)
    fields, counts = (torch.arange(8)[:, None] + torch.arange(3)) % 8, torch.full((8,), 3)
    for dtype, channels, side in ((torch.bfloat16, 64, 5), (torch.float32, 24, 3)):
        x = torch.zeros(4, 8, 1, 20, 20, channels, dtype=dtype)
        blocks = torch.zeros(8, 3, 1, side, side, channels, channels, dtype=dtype)
        size, border = [1, 20, 20], [0, side // 2, side // 2]
        triton._launch(x, blocks, fields, counts, size, [1, 1, 1], border)
        triton._launch_weight(x, x, fields, [1, side, side], [1, 1, 1], border)


def hopper(names: tuple[str, ...] = tuple(LAYERS)) -> None:
    """All three passes of each layer."""
    from liespline.ops.correlate.hopper import launch, line_kernels, pack_kernels, slab_kernels, tiles, weight_kernels

    torch.cuda.get_device_properties = lambda _: SimpleNamespace(multi_processor_count=132)
    for module, name in (
        (line_kernels, "correlate"), (slab_kernels, "correlate"), (weight_kernels, "correlate_weight"),
        (pack_kernels, "pack"), (pack_kernels, "unpack"),
    ):  # fmt: skip
        Compiled(module, name)
    for name in names:
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


CALLS: dict[str, Callable[[], None]] = {"norm": norms, "depthwise": depthwise, "triton": portable, "hopper": hopper}


# ---- with one version, with all ----


def compiled(kind: str) -> dict[str, Any]:
    """What comes of one kind of kernels with the Triton that is installed."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    target = GPUTarget("cuda", 90, 32)  # of a device that is not there
    driver.set_active(
        SimpleNamespace(get_current_target=lambda: target, get_current_device=lambda: 0, get_current_stream=lambda _: 0)
    )
    Compiled.found = []
    try:
        CALLS[kind]()
        wrong = ""
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        wrong = f"{type(error).__name__}: {lines[-1] if lines else ''}"
    return {"kind": kind, "wrong": wrong, "kernels": Compiled.found}


def one_version(version: str) -> list[dict[str, Any]]:
    """Compile all kinds with a version that is fetched first, each in a process of its own: a compiler may abort."""
    folder, rows = BUILD / version, []
    if not (folder / "triton").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
        subprocess.run([*pip, f"triton=={version}"], check=True)
    environment = os.environ | {"PYTHONPATH": f"{folder}:{HERE.parent / 'src'}"}
    for kind in KINDS:
        command = [sys.executable, __file__, "--kind", kind]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        found = [line for line in done.stdout.splitlines() if line.startswith('{"kind"')]
        said = {"kind": kind, "wrong": f"stopped with {done.returncode}: {done.stderr[-200:]}", "kernels": []}
        rows.append({"triton": version} | (json.loads(found[-1]) if found else said))
        print(version, kind, len(rows[-1]["kernels"]), rows[-1]["wrong"][:100], flush=True)
    return rows


def outcome(row: dict[str, Any]) -> str:
    """How many launches were compiled, and what to know of them; or why one was not."""
    if row["wrong"]:
        return f"no: {row['wrong'].replace('|', '/')[:120]}"
    spilled = [kernel["spilled"] for kernel in row["kernels"] if kernel["spilled"]]
    notes = [f"{len(row['kernels'])} launches"]
    notes += [f"{len(spilled)} spill up to {max(spilled)} bytes"] if spilled else []
    slow = sum(kernel["serialised"] for kernel in row["kernels"])
    notes += [f"{slow} serialised"] if slow else []
    early = sum(kernel["early"] > 0 for kernel in row["kernels"])
    return ", ".join([*notes, f"{early} read too early"] if early else notes)


def main(arguments: list[str]) -> None:
    """See above."""
    if arguments[:1] == ["--kind"]:
        print(json.dumps(compiled(arguments[1])))
    elif arguments:
        CALLS["hopper"] = lambda: hopper(tuple(arguments))
        print(compiled("hopper")["wrong"])
    else:
        from timing import write_tables  # here, since tests import `early` from elsewhere

        rows = {version: one_version(version) for version in VERSIONS}
        lines = [[version, *map(outcome, found)] for version, found in rows.items()]
        head = ["Triton", "norms", "depthwise", "correlations", "Hopper"]
        about = "`make kernels`: launches compiled for compute capability 9.0, assembled by Triton's own ptxas"
        write_tables(str(RESULT), {"versions": [head, *lines]}, about)


if __name__ == "__main__":
    main(sys.argv[1:])
