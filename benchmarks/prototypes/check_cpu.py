"""Check packing, geometry and the plain Triton kernels on a CPU: `TRITON_INTERPRET=1 python check_cpu.py`.

The Gluon kernels cannot be interpreted. They share spans, packing and the order of steps with `box_kernels`, which
can; what they add is checked on the device by `hopper.py`.
"""

import box_launch
import depthwise
import torch
from shapes import Layer, correlation, cube, cyclic
from spans import pack, spans, unpack
from torch import Tensor
from torch.nn import functional as F


def truth(x: Tensor, kernel: Tensor, fields: Tensor, padding: tuple[int, ...]) -> Tensor:
    """Element by element, each from the fields it reads."""
    lines = zip(fields.tolist(), kernel, strict=True)
    return torch.stack(
        [
            correlation(x[..., f, :].flatten(4), k.permute(1, 2, 3, 0, 4, 5).flatten(3, 4), padding)
            for f, k in lines
        ],
        dim=-2,
    )  # fmt: skip


def check_boxes() -> None:
    """Forward and input gradient, with tensor descriptors and with pointers."""
    for channels, outputs, lines, depth in ((24, 7, 1, 1), (24, 24, 2, 1), (16, 16, 2, 3)):
        layer = Layer("", 3, channels, tuple(map(tuple, cyclic(4))), (depth, 5, 6), (min(depth, 2), 3, 3))
        x = torch.randn(layer.batch, *layer.space, 4, channels)
        kernel = torch.randn(4, 3, *layer.window, channels, outputs)
        wanted = truth(x, kernel, layer.table, (0, 0, 0))
        cover = spans(layer.table, channels, 16)
        packed = pack(kernel, cover, lines, max(16, 1 << (outputs - 1).bit_length()))
        for boxes in (False, True):
            found = box_launch.correlate(
                x,
                packed,
                cover,
                layer.size,
                (0, 0, 0),
                outputs,
                columns=4,
                images=4,
                lines=lines,
                boxes=boxes,
                programs=5,
            )
            report(f"boxes {boxes}, C = {channels}, {lines} lines, depth {depth}", found, wanted, 1e-5)


def check_weight_packing() -> None:
    """What `unpack` makes of sums over blocks."""
    table, window, channels, outputs = torch.tensor(cyclic(6)), (2, 3, 3), 24, 5
    x = torch.randn(2, 3, 6, 7, 6, channels, dtype=torch.float64)
    kernel = torch.randn(6, 3, *window, channels, outputs, dtype=torch.float64, requires_grad=True)
    out = truth(x, kernel, table, (0, 0, 0))
    grad = torch.randn_like(out)
    (wanted,) = torch.autograd.grad(out, kernel, grad)
    cover = spans(table, channels, 16)
    count = cover.starts.shape[1]
    blocks, (d, h, w) = 4, out.shape[1:4]
    groups = -(-window[0] * window[1] * count // blocks)
    wide = F.pad(x.flatten(4), (0, 16, 0, 8, 0, 8, 0, 8))
    sums = torch.zeros(6, groups, window[2], blocks * 16, 8, dtype=torch.float64)
    for a in range(6):
        for block in range(window[0] * window[1] * count):
            z, y, first = block // (window[1] * count), block // count % window[1], int(cover.starts[a, block % count])
            for t in range(window[2]):
                box = wide[:, z : z + d, y : y + h, t : t + w, first : first + 16]
                product = box.flatten(0, 3).T @ grad[..., a, :].flatten(0, 3)
                sums[a, block // blocks, t, (block % blocks) * 16 :][:16, :outputs] = product
    report("weight gradient unpacked", unpack(sums, cover, *window[:2], channels, outputs), wanted, 1e-12)


def check_depthwise() -> None:
    """All three passes, with and without padding, whole tiles and broken ones."""
    for batch, height, width, channels, k, padding, tile in (
        (4, 7, 9, 16, 3, (0, 0), depthwise.Tile(4, 2, 8, 1, 1)),
        (2, 5, 5, 8, 3, (0, 0), depthwise.Tile(4, 2, 8, 1, 1)),
        (3, 7, 6, 10, 3, (1, 0), depthwise.Tile(2, 2, 8, 1, 1)),
        (2, 9, 8, 16, 5, (2, 2), depthwise.Tile(4, 2, 16, 2, 1)),
    ):
        x = torch.randn(batch, height, width, channels, dtype=torch.float64, requires_grad=True)
        weight = torch.randn(k, k, channels, dtype=torch.float64, requires_grad=True)
        taps = weight.movedim(-1, 0)[:, None]
        out = F.conv2d(x.movedim(-1, 1), taps, padding=padding, groups=channels).movedim(1, -1)
        grad = torch.randn_like(out)
        wanted = torch.autograd.grad(out, (x, weight), grad)
        name = f"depthwise {height}×{width}, {channels} channels, {k}², padding {padding}"
        x, weight = x.detach(), weight.detach()
        report(name, depthwise.correlate(x, weight, padding, tile), out.detach(), 1e-12)
        report(name + ", input", depthwise.input_gradient(grad, weight, padding, tile), wanted[0], 1e-12)
        report(name + ", weight", depthwise.weight_gradient(x, grad, (k, k), padding, tile), wanted[1], 1e-12)


def report(name: str, found: Tensor, wanted: Tensor, most: float) -> None:
    """Print the relative error; stop where it is too large."""
    error = float((found.double() - wanted.double()).norm() / wanted.double().norm())
    print(f"{name}: {error:.1e}", flush=True)
    if not error < most:
        raise ValueError(f"{name}: relative error {error:.2e}, expected less than {most}")


if __name__ == "__main__":
    torch.manual_seed(0)
    print(f"the cube has {len(cube())} rotations")
    check_weight_packing()
    check_depthwise()
    check_boxes()
