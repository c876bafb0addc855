"""What one network can do in escnn, e2cnn and liespline: build, save, load, pickle, compile, export.

    python benchmarks/side_by_side.py benchmarks/results/side-by-side.json

escnn and e2cnn want an environment of their own, in which `PYTHONPATH=src` adds liespline. A minute or two on one core.
`python benchmarks/page.py` then writes the table of docs/guide/coming-from.md.
"""

from __future__ import annotations

import importlib
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import liespline as ls
from timing import write_tables

PLANES = {"escnn": "rot2dOnR2", "e2cnn": "Rot2dOnR2"}
LIBRARIES = ("liespline", "escnn", "e2cnn")
IMAGES = torch.randn(2, 3, 17, 17)


class Peer(nn.Module):
    """Two convolutions on regular fields of C_N with norm and ReLU, smoothing between them, the maximum over C_N."""

    def __init__(self, library: str, width: int, n: int, window: Any = 5) -> None:
        super().__init__()
        gspaces, enn = (importlib.import_module(f"{library}.{part}") for part in ("gspaces", "nn"))
        plane = getattr(gspaces, PLANES[library])(N=n)
        self.wrap, self.image = enn.GeometricTensor, enn.FieldType(plane, 3 * [plane.trivial_repr])
        field = enn.FieldType(plane, width * [plane.regular_repr])

        def block(source: Any) -> list[nn.Module]:
            conv = enn.R2Conv(source, field, kernel_size=window, padding=2)
            return [conv, enn.InnerBatchNorm(field), enn.ReLU(field)]

        smooth = enn.PointwiseAvgPoolAntialiased(field, sigma=0.66, stride=2)
        self.layers = enn.SequentialModule(*block(self.image), smooth, *block(field), enn.GroupPooling(field))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(B, 3, height, width) to (B, C, …)."""
        return self.layers(self.wrap(images, self.image)).tensor


def ours(width: int, n: int, window: Any = 5) -> nn.Module:
    """The same network."""
    grid = ls.uniform(ls.SO2(), n)
    first, second = ls.Lift(3, width, window, grid, padding=2), ls.GConv(width, width, window, grid, padding=2)
    norms = [ls.nn.BatchNorm(width) for _ in range(2)]
    middle = [norms[0], nn.ReLU(), ls.nn.Downsample(2)]
    return nn.Sequential(first, *middle, second, norms[1], nn.ReLU(), ls.Project("max", grid))


def seconds(build: Callable[..., nn.Module], *sizes: int) -> str:
    """How long it takes to build, in seconds of the processor."""
    begin = time.process_time()
    build(*sizes)
    return f"{time.process_time() - begin:.2g} s"


def loaded(build: Callable[..., nn.Module], saved_in_training: bool) -> str:
    """What becomes of a state that is saved in one mode and loaded in the other."""
    torch.manual_seed(0)
    net = build(4, 8)
    net(IMAGES)
    state = {key: value.clone() for key, value in net.train(saved_in_training).state_dict().items()}
    torch.manual_seed(1)
    other = build(4, 8).train(not saved_in_training)
    try:
        other.load_state_dict(state)
        how = ""
    except RuntimeError:
        other.load_state_dict(state, strict=False)
        how = "refused; with `strict=False` "
    with torch.no_grad():
        same = torch.equal(other.eval()(IMAGES), net.eval()(IMAGES))
    return how + ("the same outputs, to the bit" if same else "loaded, but other outputs")


def works(act: Callable[[], object]) -> str:
    """Whether something can be done at all."""
    try:
        act()
    except Exception as error:
        return f"fails ({type(error).__name__})"
    return "works"


def pieces(net: nn.Module) -> str:
    """Into how many graphs torch.compile takes a network apart."""
    count = torch._dynamo.explain(net)(IMAGES).graph_count
    torch._dynamo.reset()
    return "one graph" if count == 1 else f"{count} graphs"


def exported(library: str, net: nn.Module) -> str:
    """Whether a network can be exported to plain layers, its outputs unchanged."""
    if library == "liespline":
        return works(lambda: ls.export(net.eval()))
    whole = works(lambda: net.eval().layers.export())
    return whole if whole == "works" else f"not with `PointwiseAvgPoolAntialiased`: {whole}"


def column(library: str) -> dict[str, str]:
    """Every row of one library."""
    build = ours if library == "liespline" else lambda *sizes: Peer(library, *sizes)
    torch.manual_seed(0)
    net = build(4, 8).eval()
    whole = torch.compile(net, fullgraph=True, backend="eager")
    with torch.no_grad():
        return {
            "building the network, 16 channels, 8 rotations": seconds(build, 16, 8),
            "building it, 64 channels, 16 rotations": seconds(build, 64, 16),
            "state saved in training mode, loaded in evaluation mode": loaded(build, True),
            "state saved in evaluation mode, loaded in training mode": loaded(build, False),
            "`pickle` of a network": works(lambda: pickle.dumps(net)),
            "`torch.compile(net)`": pieces(net),
            "`torch.compile(net, fullgraph=True)`": works(lambda: whole(IMAGES)),
            "`torch.export.export(net, …)`": works(lambda: torch.export.export(net, (IMAGES,))),
            "export to plain convolutions": exported(library, build(4, 8)),
            "window of 3×5": works(lambda: build(4, 8, (3, 5))(IMAGES)),
            "bfloat16 autocast": works(lambda: autocast(net)),
        }


def autocast(net: nn.Module) -> torch.Tensor:
    """Compute in bfloat16."""
    with torch.autocast("cpu", torch.bfloat16):
        return net(IMAGES)


def main(path: str) -> None:
    """Try everything, print, write."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    columns = {library: column(library) for library in LIBRARIES}
    rows = [[what, *(columns[library][what] for library in LIBRARIES)] for what in columns["liespline"]]
    for row in rows:
        print(" | ".join(row))
    write_tables(path, {"seen": [["", *LIBRARIES], *rows]}, "escnn 1.0.11, e2cnn 0.2.3, numpy 1.26")


if __name__ == "__main__":
    main(sys.argv[1])
