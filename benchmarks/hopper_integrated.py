"""The Hopper kernels inside the library, right and how fast: `python benchmarks/hopper_integrated.py --out DIR`.

Every measurement prepares itself in a process of its own, all at once, since compiling takes longest. Then they take
turns on the device, the most decisive first. Rows are written as they come.
"""

import argparse
import json
import math
import os
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
from hopper_networks import celeba, pcam, resnet, volumes  # noqa: E402
from liespline.hopper import operators  # noqa: E402


def old() -> None:
    """In this process, decide as if the kernels did not exist."""
    operators.available = lambda device, dtype: False


JOBS: dict[str, Callable[[], Ready]] = {
    "PCam (16,3) compiled": lambda: pcam(16, 3, "local", True),
    "PCam (16,3) compiled, old": lambda: (old(), pcam(16, 3, "local", True))[1],
    "local C=23": lambda: layer(lambda: so2(23, 16), lambda: so2(23, 16), 23, (42, 42), 64),
    "local C=23 mixed": lambda: layer(lambda: so2(23, 16, 2), lambda: so2(23, 16, 2), 23, (42, 42), 64),
    "local C=32": lambda: layer(lambda: so2(32, 16), lambda: so2(32, 16), 32, (42, 42), 64),
    "local C=64": lambda: layer(lambda: so2(64, 16), lambda: so2(64, 16), 64, (32, 32), 64),
    "local N=32": lambda: layer(lambda: so2(32, 32), lambda: so2(32, 32), 32, (42, 42), 64),
    "SE(3) C=16": lambda: layer(se3, se3, 16, (24, 24, 24), 2),
    "separable C=16": lambda: layer(lambda: separable(16), lambda: so2(16, 16), 16, (42, 42), 64),
    "separable C=32": lambda: layer(lambda: separable(32), lambda: so2(32, 16), 32, (42, 42), 64),
    "separable C=64": lambda: layer(lambda: separable(64), lambda: so2(64, 16), 64, (32, 32), 64),
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
