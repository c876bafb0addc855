"""The table of the speed page from a run of `hopper_integrated.py`: `python benchmarks/hopper_rows.py DIR [--onto]`.

DIR holds hopper_integrated.json, and checks.json and volume.json where checks were made. Behind each row stands its
spread: the least and the most of the middle 80 % of all repeats. With `--onto`, the run replaces its own rows of the
table that is there, each with its commit.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from timing import Row

RESULT = Path(__file__).parent / "results" / "hopper-h200.json"
LAYERS = {
    "local C=23": ("local N_k = 3 of N_h = 16 / dense, C = 23, degree 1", "≤ 0.55"),
    "local C=23 mixed": ("the same, degree 2: fields are mixed first", ""),
    "local C=32": ("local N_k = 3 of N_h = 16 / dense, C = 32, degree 1", "≤ 0.35"),
    "local C=64": ("local N_k = 3 of N_h = 16 / dense, C = 64, degree 1", "≤ 0.28"),
    "local N=32": ("local N_k = 3 of N_h = 32 / dense, C = 32, degree 1", "≤ 0.2"),
    "SE(3) C=16": ("SE(3), 24 elements, N_k = 7, 5³, 24³, C = 16 / dense", "≤ 0.35"),
    "separable C=16": ("separable / dense, C = 16, N_h = 16", "≤ 0.3"),
    "separable C=32": ("separable / dense, C = 32, N_h = 16", "≤ 0.15"),
    "separable C=64": ("separable / dense, C = 64, N_h = 16", "≤ 0.1"),
}
RATES = {
    "PCam (16,3) compiled": ("PCam (16, 3) local, compiled, images/s", "≥ 20000"),
    "PCam (16,3) eager": ("PCam (16, 3) local, eager, images/s", "≥ 14000"),
    "PCam (12,12) compiled": ("PCam (12, 12) dense, compiled, images/s", "≥ 34000"),
    "PCam (12,12) eager": ("PCam (12, 12) dense, eager, images/s", "≥ 20000"),
    "CelebA compiled": ("CelebA (5, 3) local, batch 16, compiled, images/s", "≥ 1000"),
    "CelebA eager": ("CelebA (5, 3) local, batch 16, eager, images/s", ""),
}
BESIDE = {  # network: the one it is compared with, the reach of time and of memory
    "ResNet SO(2) 8 compiled": ("ResNet-18 compiled", "≤ 3", ""),
    "ResNet SO(2) 8 of 0.2 compiled": ("ResNet-18 compiled", "", ""),
    "ResNet SO(2) 8 two compiled": ("ResNet-18 compiled", "", ""),
    "ResNet SO(2) 8 mild compiled": ("ResNet-18 compiled", "", ""),
    "ResNet SO(2) 8 three compiled": ("ResNet-18 compiled", "", ""),
    "ResNet SO(2) 8 eager": ("ResNet-18 eager", "≤ 3", "≤ 2"),
    "ResNet SO(2) 16 compiled": ("ResNet-18 compiled", "≤ 3", ""),
    "ResNet SO(2) 16 eager": ("ResNet-18 eager", "≤ 3", "≤ 2"),
    "ResNet SO(2) 8 separable eager": ("ResNet-18 eager", "≤ 3", "≤ 2"),
    "ResNet SO(2) 8 converted eager": ("ResNet-18 eager", "≤ 3", "≤ 2"),
    "ResNet plain eager": ("ResNet-18 eager", "", ""),
    "U-Net SE(3) 64³ batch 2": ("U-Net plain 64³ batch 2", "≤ 12", ""),
    "U-Net SE(3) 64³ batch 2, checkpoint": ("U-Net plain 64³ batch 2", "≤ 12", ""),
    "U-Net SE(3) 96³ batch 1": ("U-Net plain 96³ batch 1", "≤ 12", ""),
    "U-Net SE(3) 96³ batch 1, checkpoint": ("U-Net plain 96³ batch 1", "≤ 12", ""),
}
MEMORY = {"64³": "≤ 16", "96³": "≤ 40"}


def table(found: dict[str, dict[str, Any]]) -> list[Row]:
    """All rows of which there are numbers."""
    rows = []
    for name, (what, reach) in LAYERS.items():
        if name in found:
            own, dense = found[name]["own"], found[name]["dense"]
            rows.append(Row(what, found[name]["ratio"], reach, f"{_spread(own)} / {_spread(dense)} ms"))
    if "depthwise C=32" in found:
        row = found["depthwise C=32"]
        what = "depthwise layer / its bytes at 4.3 TB/s, C = 32, N_h = 16"
        rows.append(Row(what, row["against bytes"], "≤ 2", f"{_spread(row['own'])} / {row['bytes_ms']:.3f} ms"))
    for name, (what, reach) in RATES.items():
        if name in found:
            rows.append(
                Row(what, found[name]["images/s"], reach, f"{_spread(found[name]['ms'])} ms{_tree(found[name])}")
            )
    for name, (plain, reach, memory) in BESIDE.items():
        if name in found and plain in found:
            one, other = found[name], found[plain]
            note = f"{_spread(one['ms'])} / {_spread(other['ms'])} ms; "
            note += f"{one['weights']:,} and {other['weights']:,} parameters"
            note += _tree(one)
            rows.append(Row(f"{name} / {plain}, time of a step", one["ms"][1] / other["ms"][1], reach, note))
            if "GiB" in one and name.startswith("ResNet"):
                note = f"{one['GiB']:.2f} / {other['GiB']:.2f} GiB"
                rows.append(Row(f"{name} / {plain}, memory", one["GiB"] / other["GiB"], memory, note))
            elif "GiB" in one:
                limit = next(limit for side, limit in MEMORY.items() if side in name)
                rows.append(Row(f"{name}, GiB of a step", one["GiB"], limit, f"plain {other['GiB']:.2f}"))
    for theirs, how, reach in (
        ("escnn", "eager", "≥ 5"), ("escnn", "compiled", "≥ 5"), ("escnn, our norm", "eager", ""),
    ):  # fmt: skip
        if (one := found.get(f"C_16 liespline {how}")) and (other := found.get(f"C_16 {theirs} {how}")):
            note = f"{one['images/s']:,.0f} / {other['images/s']:,.0f} images/s; "
            note += f"{one['weights']:,} and {other['weights']:,} parameters"
            what = f"liespline / {theirs}, C_16, equal widths, {how}: times as fast"
            rows.append(Row(what, one["images/s"] / other["images/s"], reach, note))
    return rows


def _spread(ms: list[float]) -> str:
    digits = 3 if ms[1] < 10 else 1
    return f"{ms[1]:.{digits}f} ({ms[0]:.{digits}f} to {ms[2]:.{digits}f})"


def _tree(row: dict[str, Any]) -> str:
    """The commit of a row, if it is not that of the table."""
    return f"; commit {row['commit']}" if "commit" in row else ""


def main(folder: Path, onto: bool = False) -> None:
    """Write the result file; the page is made by `page.py`."""
    run = json.loads((folder / "hopper_integrated.json").read_text(encoding="utf-8"))
    document: dict[str, Any] = {"facts": run["facts"], "rows": [], "series": []}
    if onto:
        document = json.loads(RESULT.read_text(encoding="utf-8"))
        later = {row["name"]: row | {"commit": run["facts"]["commit"]} for row in run["rows"]}
        run["rows"] = [row for row in document["raw"] if row["name"] not in later] + list(later.values())
    found = {row["name"]: row for row in run["rows"] if "error" not in row}
    document["rows"] = [asdict(row) for row in table(found)]
    for name in ("checks", "volume"):
        if (folder / f"{name}.json").exists():
            document[name] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    document["raw"] = run["rows"]
    RESULT.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), onto="--onto" in sys.argv)
