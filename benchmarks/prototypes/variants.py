"""What is measured: for every layer and pass the baselines and the prototypes with several tiles."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from shapes import Layer, check_correlation, check_weight, cube, cyclic
from torch import Tensor
from torch.nn import functional as F

Run = Callable[[], Tensor]
Check = Callable[[Tensor], float]
Made = tuple[Run, Check | None]


@dataclass
class Variant:
    """One timed thing: made anew for a seed, with a floor in seconds."""

    layer: str
    what: str  # forward, input, weight, …
    label: str
    floor: float
    make: Callable[[int], Made]
    compiles: bool = False  # whether a first launch compiles a kernel


def _plane(name: str, channels: int, elements: int, side: int, stored: int = 0) -> Layer:
    lines = tuple(map(tuple, cyclic(elements)))
    return Layer(name, 64, channels, lines, (1, side, side), (1, 5, 5), stored)


LAYERS = {
    "C32": _plane("C32", 32, 16, 42),
    "C64": _plane("C64", 64, 16, 32),
    "C23": _plane("C23", 23, 16, 42, stored=24),
    "SE3": Layer("SE3", 2, 16, tuple(map(tuple, cube())), (24, 24, 24), (5, 5, 5)),
    "N32": _plane("N32", 32, 32, 42),
    "C16": _plane("C16", 16, 16, 42),
}


def _dense(layer: Layer, what: str) -> Callable[[int], Made]:
    def make(seed: int) -> Made:
        x, kernel, grad = layer.tensors(seed)
        c, a, flat = layer.channels, len(layer.fields), layer.space[0] == 1
        x, grad = x[..., :c].flatten(4).movedim(-1, 1), grad[..., :c].flatten(4).movedim(-1, 1)
        weight = torch.zeros(a, c, a, c, *layer.window, device="cuda", dtype=torch.bfloat16)
        for i, line in enumerate(layer.fields):
            for t, field in enumerate(line):
                weight[i, :, field] = kernel[i, t, ..., :c, :c].permute(4, 3, 0, 1, 2)
        weight = weight.flatten(2, 3).flatten(0, 1)
        if flat:
            x, grad, weight = x[:, :, 0], grad[:, :, 0], weight[:, :, 0]
        form = torch.channels_last if flat else torch.channels_last_3d
        x, grad, weight = (v.contiguous(memory_format=form) for v in (x, grad, weight))
        d = 2 if flat else 3
        if what == "forward":
            return (lambda: (F.conv2d if flat else F.conv3d)(x, weight)), None
        mask = [what == "input", what == "weight", False]

        def backward() -> Tensor:
            found = torch.ops.aten.convolution_backward(
                grad, x, weight, None, [1] * d, [0] * d, [1] * d, False, [0] * d, 1, mask
            )
            return found[0] if what == "input" else found[1]

        return backward, None

    return make


def _existing(layer: Layer, what: str) -> Callable[[int], Made]:
    def make(seed: int) -> Made:
        from liespline.paths.plan import Table
        from liespline.paths.triton import launch

        x, kernel, grad = layer.tensors(seed)
        table, (readers, entries) = layer.table.cuda(), (i.cuda() for i in layer.readers)
        x, grad = x.movedim(4, 1).contiguous(), grad.movedim(4, 1).contiguous()
        counts = torch.full((len(table),), table.shape[1], device="cuda")
        whole = Table(table, counts, readers, readers * table.shape[1] + entries, counts)
        if what == "forward":
            return (
                lambda: launch.correlate(x, kernel, table, counts, layer.size, (1, 1, 1), (0, 0, 0)),
                lambda out: check_correlation(x.movedim(1, 4), kernel, layer.table, (0, 0, 0), out.movedim(1, 4)),
            )
        if what == "input":
            back = tuple(k - 1 for k in layer.window)
            return (
                lambda: launch.input_gradient(grad, kernel, whole, layer.space, (1, 1, 1), (0, 0, 0)),
                lambda out: check_correlation(
                    grad.movedim(1, 4), layer.turned(kernel), readers.cpu(), back, out.movedim(1, 4)
                ),
            )
        return (
            lambda: launch.weight_gradient(x, grad, table, layer.window, (1, 1, 1), (0, 0, 0)),
            lambda out: check_weight(x.movedim(1, 4), grad.movedim(1, 4), layer.table, out),
        )

    return make


def _ends(layer: Layer, what: str, seed: int) -> tuple[Tensor, Tensor, Tensor, tuple, tuple]:
    # The input gradient is the same correlation of gradients with turned kernels.
    x, kernel, grad = layer.tensors(seed)
    if what == "forward":
        return x, kernel, layer.table, layer.size, (0, 0, 0)
    return grad, layer.turned(kernel), layer.readers[0], layer.space, tuple(k - 1 for k in layer.window)


def line(layer: Layer, what: str, **tile: int) -> Callable[[int], Made]:
    """The Gluon kernels."""

    def make(seed: int) -> Made:
        import line_launch
        from spans import pack, spans

        if what == "weight":
            x, _, grad = layer.tensors(seed)
            cover = spans(layer.table.cuda(), x.shape[-1], tile["channels"])
            size = line_launch.WeightTile(**tile)
            return (
                lambda: line_launch.weight_gradient(x, grad, cover, layer.window, (0, 0, 0), size),
                lambda out: check_weight(x, grad, layer.table, out),
            )
        x, kernel, table, space, padding = _ends(layer, what, seed)
        size = line_launch.Tile(**tile)
        cover = spans(table.cuda(), x.shape[-1], size.channels)
        outputs = kernel.shape[-1]
        packed = pack(kernel, cover, size.lines, line_launch.padded(outputs))
        return (
            lambda: line_launch.correlate(x, packed, cover, space, padding, outputs, size),
            lambda out: check_correlation(x, kernel, table, padding, out),
        )

    return make


def slab(layer: Layer, what: str, **tile: int) -> Callable[[int], Made]:
    """The Gluon kernel whose steps hold all lines a slab reads."""

    def make(seed: int) -> Made:
        import slab_launch
        from spans import pack, spans

        x, kernel, table, space, padding = _ends(layer, what, seed)
        cover = spans(table.cuda(), x.shape[-1], 16)
        packed = slab_launch.pack(pack(kernel, cover, 2, 16))
        outputs, window = kernel.shape[-1], layer.window
        return (
            lambda: slab_launch.correlate(x, packed, cover, space, padding, outputs, window, **tile),
            lambda out: check_correlation(x, kernel, table, padding, out),
        )

    return make


def box(layer: Layer, what: str, channels: int, boxes: bool, **tile: int) -> Callable[[int], Made]:
    """The plain Triton kernel, with tensor descriptors or with pointers."""

    def make(seed: int) -> Made:
        import box_launch
        from spans import pack, spans

        x, kernel, table, space, padding = _ends(layer, what, seed)
        cover = spans(table.cuda(), x.shape[-1], channels)
        outputs = kernel.shape[-1]
        packed = pack(kernel, cover, tile["lines"], max(16, 1 << (outputs - 1).bit_length()))
        return (
            lambda: box_launch.correlate(x, packed, cover, space, padding, outputs, boxes=boxes, **tile),
            lambda out: check_correlation(x, kernel, table, padding, out),
        )

    return make


def packing(layer: Layer, channels: int, lines: int) -> Callable[[int], Made]:
    """What packing a kernel for the Gluon kernels takes."""

    def make(seed: int) -> Made:
        from spans import pack, spans

        _, kernel, _ = layer.tensors(seed)
        cover = spans(layer.table.cuda(), kernel.shape[-1], channels)
        op = max(16, 1 << (kernel.shape[-1] - 1).bit_length())
        return (lambda: pack(kernel, cover, lines, op)), None

    return make


def banded(layer: Layer, what: str, tiles: list[dict[str, int]], slabs: list[dict] = ()) -> list[Variant]:
    """Dense, existing, and the prototypes of one pass."""
    floor = layer.floors[what]
    found = [
        Variant(layer.name, what, "dense cuDNN", floor, _dense(layer, what)),
        Variant(layer.name, what, "existing Triton", floor, _existing(layer, what), True),
    ]
    for tile in tiles:
        label = "line " + " ".join(f"{k[0]}{v}" for k, v in tile.items())
        found.append(Variant(layer.name, what, label, floor, line(layer, what, **tile), True))
    for tile in slabs:
        label = "slab " + " ".join(f"{k[0]}{v}" for k, v in tile.items())
        found.append(Variant(layer.name, what, label, floor, slab(layer, what, **tile), True))
    return found
