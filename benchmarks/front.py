"""The numbers of the front page, from the result files: `python benchmarks/page.py` puts them into README.md."""

from statistics import fmean
from textwrap import wrap
from typing import Any

LIBRARIES = ("liespline", "escnn", "e2cnn")
CPU = "cpu, float32, batch 16, eager"
INSTALLS = {
    "liespline": "torch, numpy, roma; no compiler",
    "escnn": "stops without a Fortran compiler (its dependency py3nj)",
    "e2cnn": "works",
}
GROUPS = {
    "liespline": "rotations, reflections, scalings and affine maps, in 1-D, 2-D and 3-D; "
    "your own by five methods or by generators",
    "escnn": "rotations and reflections in 2-D and 3-D",
    "e2cnn": "rotations and reflections in 2-D",
}


def table(documents: dict[str, Any]) -> str:
    """Four rows: equivariance, speed, installation, groups."""
    rows = {
        "equivariance error at the 12 angles of the grid / half-way between": equivariance(documents),
        "training the same network, images per second: H200 / H200, compiled / one CPU core": speed(documents),
        "`pip install`": INSTALLS,
        "groups": GROUPS,
    }
    head = ["", "liespline", "escnn 1.0.11", "e2cnn 0.2.3"]
    lines = [head, ["---"] * 4, *([what, *(cells[name] for name in LIBRARIES)] for what, cells in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def equivariance(documents: dict[str, Any]) -> dict[str, str]:
    """The error at the grid's angles, and half-way between them."""
    head, *rows = documents["peers"]["tables"]["equivariance"]
    found = {row[0]: dict(zip(head[1:], map(float, row[1:]), strict=True)) for row in rows}
    near, between = found["5×5, at multiples of 30°"], found["5×5, half-way between, the maximum over orientations"]
    return {name: f"{percent(near[name])} / {percent(between[name])}" for name in LIBRARIES}


def percent(share: float) -> str:
    """Two digits, as `benchmarks/results` has them."""
    return f"{100 * share:.2g} %"


def speed(documents: dict[str, Any]) -> dict[str, str]:
    """Images per second on a GPU, 16 orientations, and on a CPU core, 12; "not run" where a library was not."""
    gpu = {row["name"]: f"{row['images/s']:,.0f}" for row in documents["hopper-h200"]["raw"] if "images/s" in row}
    cells = {}
    for name in LIBRARIES:
        found = [gpu.get(f"C_16 {name} {how}", "not run") for how in ("eager", "compiled")]
        cells[name] = " / ".join([*found, rate(documents["escnn-cpu"], name, CPU)])
    return cells


def rate(document: dict[str, Any], name: str, how: str) -> str:
    """One number of a table of speeds."""
    values = [row["value"] for row in document["rows"] if row["what"] == f"{name}, {how}: images/s"]
    return f"{values[0]:,.0f}" if values else "not run"


def angles(documents: dict[str, Any]) -> str:
    """What the picture of accuracy against angle says, in words."""
    document, parts = documents["angles"], []
    for name, network in document["networks"].items():
        by_angle = [100 * fmean(column) for column in zip(*network["accuracy"], strict=True)]
        parts.append(f"{name.split(',')[0]} {by_angle[0]:.1f} % and {min(by_angle):.1f} %")
    parameters = round(fmean(network["weights"] for network in document["networks"].values()), -3)
    seeds = min(len(network["accuracy"]) for network in document["networks"].values())
    text = (
        f"Networks of {parameters:,.0f} parameters were trained on upright digits and tested on rotated ones. Their "
        f"accuracy on upright digits and at the worst angle: {', '.join(parts)}. (`python benchmarks/angles.py`: "
        f"MNIST, the rotated digits generated from it, means of {seeds} seeds.)"
    )
    return "\n".join(wrap(text, 120))
