"""The library on a Hopper GPU, right and how fast: `python benchmarks/hopper_integrated.py --out DIR`.

Every measurement prepares itself in a process of its own, all at once, since compiling takes longest. Then they take
turns on the device, the most decisive first; eager networks come last, when the host has nothing else to do. Rows are
written as they come. On a CPU sizes are small and only show that everything runs.
"""

import argparse
import json
import os
import signal
import subprocess
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

import torch  # noqa: E402

import liespline as ls  # noqa: E402
from hopper_layers import DEVICE, Ready, depthwise, layer, se3, separable, so2  # noqa: E402
from hopper_networks import celeba, pcam, resnet, sixteen, volumes  # noqa: E402

JOBS: dict[str, Callable[[], Ready]] = {
    "PCam (16,3) compiled": lambda: pcam(16, 3, "local", "compiled"),
    "PCam (12,12) compiled": lambda: pcam(12, 12, "dense", "compiled"),
    "SE(3) C=16": lambda: layer(se3, se3, 16, (24, 24, 24), 2),
    "local C=23": lambda: layer(lambda: so2(23, 16), lambda: so2(23, 16), 23, (42, 42), 64),
    "local C=23 mixed": lambda: layer(lambda: so2(23, 16, 2), lambda: so2(23, 16, 2), 23, (42, 42), 64),
    "local C=32": lambda: layer(lambda: so2(32, 16), lambda: so2(32, 16), 32, (42, 42), 64),
    "local C=64": lambda: layer(lambda: so2(64, 16), lambda: so2(64, 16), 64, (32, 32), 64),
    "local N=32": lambda: layer(lambda: so2(32, 32), lambda: so2(32, 32), 32, (42, 42), 64),
    "CelebA compiled": lambda: celeba("compiled"),
    "U-Net SE(3) 64³ batch 2": lambda: volumes(ls.SO3(), 24, 2, 64, False),
    "U-Net plain 64³ batch 2": lambda: volumes(ls.Trivial(3), 1, 2, 64, False),
    "ResNet-18 compiled": lambda: resnet("ResNet-18", "compiled"),
    "ResNet SO(2) 8 compiled": lambda: resnet("local", "compiled"),
    "ResNet SO(2) 8 smooth compiled": lambda: resnet("smooth", "compiled"),
    "ResNet SO(2) 8 of 0.2 compiled": lambda: resnet("0.2", "compiled"),
    "ResNet SO(2) 8 two compiled": lambda: resnet("two", "compiled"),
    "ResNet SO(2) 8 mild compiled": lambda: resnet("mild", "compiled"),
    "ResNet SO(2) 8 three compiled": lambda: resnet("three", "compiled"),
    "U-Net SE(3) 96³ batch 1": lambda: volumes(ls.SO3(), 24, 1, 96, False),
    "U-Net plain 96³ batch 1": lambda: volumes(ls.Trivial(3), 1, 1, 96, False),
    "ResNet-18 eager": lambda: resnet("ResNet-18", "eager"),
    "ResNet SO(2) 8 eager": lambda: resnet("local", "eager"),
    "depthwise C=32": lambda: depthwise(32, 42),
    "C_16 escnn eager": lambda: sixteen("escnn", "eager"),
    "C_16 escnn, our norm eager": lambda: sixteen("escnn, our norm", "eager"),
    "C_16 liespline eager": lambda: sixteen("liespline", "eager"),
    "C_16 escnn compiled": lambda: sixteen("escnn", "compiled"),
    "C_16 liespline compiled": lambda: sixteen("liespline", "compiled"),
    "separable C=16": lambda: layer(lambda: separable(16), lambda: so2(16, 16), 16, (42, 42), 64),
    "separable C=32": lambda: layer(lambda: separable(32), lambda: so2(32, 16), 32, (42, 42), 64),
    "separable C=64": lambda: layer(lambda: separable(64), lambda: so2(64, 16), 64, (32, 32), 64),
    "ResNet SO(2) 16 compiled": lambda: resnet("local", "compiled", 16),
    "ResNet SO(2) 16 eager": lambda: resnet("local", "eager", 16),
    "U-Net SE(3) 64³ batch 2, checkpoint": lambda: volumes(ls.SO3(), 24, 2, 64, True),
    "U-Net SE(3) 96³ batch 1, checkpoint": lambda: volumes(ls.SO3(), 24, 1, 96, True),
    "CelebA eager": lambda: celeba("eager"),
    "ResNet SO(2) 8 separable eager": lambda: resnet("separable", "eager"),
    "ResNet plain eager": lambda: resnet("plain", "eager"),
    "ResNet SO(2) 8 converted eager": lambda: resnet("converted", "eager"),
    "PCam (12,12) eager": lambda: pcam(12, 12, "dense", "eager"),
    "PCam (16,3) eager": lambda: pcam(16, 3, "local", "eager"),
}
LAST = ("PCam (12,12) eager", "PCam (16,3) eager")
RESERVED = 16.0  # seconds for these
CHECKS = ("norm", "network", "C 32, batch 33", "C 23, 16", "volume, C 16, batch 2", "depthwise")


def child(name: str, ready: Any, go: Any, out: Path) -> None:
    """Prepare, wait for the device, measure, write."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    os.nice(0 if name.endswith("compiled") else 4)
    begin = time.time()
    row: dict[str, Any] = {"name": name}
    try:
        measure = JOBS[name]()
        if DEVICE == "cuda":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        row["prepared_s"] = round(time.time() - begin, 1)
        ready.set()
        go.wait()
        torch.backends.cudnn.benchmark = True
        begin = time.time()
        row |= measure()
    except BaseException:
        row["error"] = traceback.format_exc(limit=-6)
    row["measured_s"] = round(time.time() - begin, 1)
    with (out / "rows.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    os._exit(0)


class Clock:
    """Seconds since the beginning."""

    def __init__(self) -> None:
        self.begin = time.time()

    def __call__(self) -> float:
        """Now."""
        return time.time() - self.begin


def main() -> None:
    """Check and prepare side by side, then measure one at a time, alone on the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--seconds", type=float, default=166)
    parser.add_argument("--prepare", type=float, default=88, help="seconds; who is not ready then is left out")
    parser.add_argument("--only", default="", help="parts of names, by semicolons")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--no-checks", action="store_true")
    options = parser.parse_args()
    clock, context, out = Clock(), get_context("spawn"), options.out
    out.mkdir(parents=True, exist_ok=True)
    (out / "rows.jsonl").unlink(missing_ok=True)
    names = [name for name in JOBS if any(part in name for part in options.only.split(";"))]
    events = {name: (context.Event(), context.Event()) for name in names}
    children = {name: context.Process(target=child, args=(name, *events[name], out)) for name in names}
    for process in children.values():
        process.start()
    side = [] if options.no_checks else beside(out, 0.7 * options.prepare)
    waiting = True
    while waiting and clock() < options.prepare:
        time.sleep(0.2)
        waiting = any(children[n].is_alive() and not events[n][0].is_set() for n in names)
        waiting |= any(process.poll() is None for process in side)
    for process in side:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    for name in names:
        if not events[name][0].is_set():
            children[name].kill()
    print(f"prepared in {clock():.0f} s", flush=True)
    for name in names:
        end = options.seconds - (0.0 if name in LAST else RESERVED)
        if children[name].is_alive() and clock() < end - 3:
            events[name][1].set()
            children[name].join(max(0.1, min(14.0, end - clock())))
        if name not in LAST:
            children[name].kill()
    for process in children.values():
        process.kill()
    report(out, names, options.commit, clock())


def beside(out: Path, seconds: float) -> list[Any]:
    """Checks that run while others prepare, in processes of their own."""
    if DEVICE == "cpu":
        return []
    code = (
        "import json, sys; from gpu_hopper import check_hopper; "
        f"found = check_hopper({seconds}, 4, {CHECKS!r}); "
        f"json.dump(found, open({str(out / 'checks.json')!r}, 'w'), indent=1)"
    )
    paths = [str(HERE.parent / "src"), str(HERE.parent / "reliability"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": ":".join(paths)}
    (out / "side.py").write_text(f"if __name__ == '__main__':\n    {code}\n")
    commands = [
        [sys.executable, str(HERE.parent / "reliability" / "gpu_volume.py"), str(out / "volume.json")],
        [sys.executable, str(out / "side.py")],
    ]
    return [subprocess.Popen(command, env=environment, start_new_session=True) for command in commands]


def report(out: Path, names: list[str], commit: str, seconds: float) -> None:
    """All rows in one file, with the facts; and printed, short."""
    lines = (out / "rows.jsonl").read_text().splitlines() if (out / "rows.jsonl").exists() else []
    rows = [json.loads(line) for line in lines]
    facts = {"commit": commit, "torch": torch.__version__, "seconds": round(seconds)}
    if DEVICE == "cuda":
        import triton

        facts |= {"gpu": torch.cuda.get_device_name(), "triton": triton.__version__}
    (out / "hopper_integrated.json").write_text(json.dumps({"facts": facts, "rows": rows}, indent=1))
    for row in rows:
        row.pop("share", None)
        print(json.dumps(row)[:700], flush=True)
    print("left out:", ", ".join(sorted(set(names) - {row["name"] for row in rows})), f"{seconds:.0f} s")


if __name__ == "__main__":
    main()
