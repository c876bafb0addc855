"""The Triton kernels around the Hopper kernels, in Triton's interpreter; `test_versions.py` runs this too.

The Gluon kernels themselves run on a GPU only (`reliability/gpu_hopper.py`). Here their part is played by loops that
read and write packed memory as they do.
"""

import itertools

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from liespline.ops.correlate.hopper import launch, operators, pack_kernels, tiles
from liespline.ops.depthwise import hopper as depthwise

from .path_cases import assert_same

CASES = [
    # outputs, elements, channels, lines, window, output lines of a tile
    (5, 4, 24, ((0, 1, 3), (0, 1, 2), (1, 2, 3), (0, 2, 3)), (1, 3, 3), 2),
    (16, 3, 16, ((0, -1), (2, 1), (1, -1)), (2, 3, 2), 4),
    (13, 2, 23, ((0, 1, 2), (1, 2, -1)), (1, 2, 3), 1),
]


def drawn(case: tuple) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """Fields (B, D, H, W, R, C), a kernel (O, A, C, T, *W) in an order of its own in memory, and its flat lines."""
    torch.manual_seed(0)
    outputs, elements, channels, lines, window, _ = case
    fields = 1 + max(itertools.chain(*lines))
    x = torch.randn(2, window[0] + 1, 5, 4, fields, channels, dtype=torch.float64)
    kernel = torch.randn(outputs, channels, elements, *window, len(lines[0]), dtype=torch.float64)
    return x, kernel.movedim((2, -1), (1, 3)), tuple(itertools.chain(*lines))


def truth(x: Tensor, kernel: Tensor, lines: tuple[int, ...]) -> Tensor:
    """Σ over taps and fields, one at a time -> (B, *size, A, O)."""
    window = kernel.shape[4:]
    size = [n - k + 1 for n, k in zip(x.shape[1:4], window, strict=True)]
    out = x.new_zeros(len(x), *size, kernel.shape[1], len(kernel))
    for a, (t, field) in itertools.product(range(kernel.shape[1]), enumerate(range(kernel.shape[3]))):
        field = lines[a * kernel.shape[3] + t]
        for z, y, w in itertools.product(*map(range, window)):
            if field >= 0:
                seen = x[:, z : z + size[0], y : y + size[1], w : w + size[2], field]
                out[..., a, :] = out[..., a, :] + seen @ kernel[:, a, :, t, z, y, w].T
    return out


Found = tuple[launch.Placed, launch.Placed, launch.Placed, Tensor]


def placed(x: Tensor, kernel: Tensor, lines: tuple[int, ...]) -> Found:
    """What the kernels look up, as they are given it."""
    table = operators._table(lines, tuple(kernel.shape[:3]), x.shape[4], x.device)
    return launch.views(table, lines, x.shape[4], *kernel.shape[:3])


def packed(kernel: Tensor, covered: launch.Placed, lines: int, back: bool) -> Tensor:
    """What `pack` makes: (A, KD, KH + lines − 1, S, KW, lines, OP, KC)."""
    flat, (kd, kh, kw) = kernel.flatten(4), kernel.shape[4:]
    assert flat.data_ptr() == kernel.data_ptr()
    inner, outer = (0, 2) if back else (2, 0)
    (count, spans), kc, outputs = covered.starts.shape, covered.width, kernel.shape[outer]
    op = tiles.padded(outputs)
    out = torch.full((count, kd, kh + lines - 1, spans, kw, lines, op, kc), torch.nan, dtype=kernel.dtype)
    pack_kernels.pack[(count * kd * (kh + lines - 1) * spans, kw)](
        flat, covered.entries, out,
        flat.stride(1), flat.stride(3), flat.stride(inner), flat.stride(4), flat.stride(outer),
        out.stride(1), out.stride(2), out.stride(3),
        T=kernel.shape[3], C=kernel.shape[inner], S=spans, KD=kd, KH=kh, KW=kw, LINES=lines, OUT=outputs, OP=op, KC=kc,
        FLIP=back,
    )  # fmt: skip
    return out


def correlated(x: Tensor, packed: Tensor, starts: Tensor, size: list[int], outputs: int) -> Tensor:
    """What the Gluon kernel does with packed weights: spans of channels, `lines` output lines at a time."""
    a, kd, high, spans, kw, lines, _, kc = packed.shape
    wide = F.pad(x.flatten(4), (0, kc, 0, 0, 0, high))  # beyond the tensor lie zeros
    out = x.new_zeros(len(x), size[0], -(-size[1] // lines) * lines, size[2], a, outputs)
    for e, z, y, s, w, line in itertools.product(*map(range, (a, kd, high, spans, kw, lines))):
        first = int(starts[e, s])
        for h in range(0, size[1], lines):
            seen = wide[:, z : z + size[0], h + y, w : w + size[2], first : first + kc]
            out[:, :, h + line, :, e] += seen @ packed[e, z, y, s, w, line, :outputs].T
    return out[:, :, : size[1]]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_packed_kernels_are_the_kernel(case: tuple) -> None:
    x, kernel, lines = drawn(case)
    covered, *_ = placed(x, kernel, lines)
    right = truth(x, kernel, lines)
    taps = packed(kernel, covered, case[-1], False)
    found = correlated(x, taps, covered.starts, list(right.shape[1:4]), len(kernel))
    torch.testing.assert_close(found, right, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(operators.plain(x, kernel, list(lines), [0, 0, 0]), right, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_packed_the_other_way_they_are_the_input_gradient(case: tuple) -> None:
    x, kernel, lines = drawn(case)
    x.requires_grad_()
    out = truth(x, kernel, lines)
    grad = torch.randn_like(out)
    (right,) = torch.autograd.grad(out, x, grad)
    _, covered, *_ = placed(x, kernel, lines)
    taps = packed(kernel, covered, case[-1], True)
    borders = [n for k in reversed(kernel.shape[4:]) for n in (k - 1, k - 1)]
    wide = F.pad(grad, (0, 0, 0, 0, *borders))
    found = correlated(wide, taps, covered.starts, list(x.shape[1:4]), kernel.shape[2])
    torch.testing.assert_close(found, right, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_unpacked_sums_are_the_kernel_s_gradient(case: tuple) -> None:
    x, kernel, lines = drawn(case)
    kernel.requires_grad_()
    out = truth(x, kernel, lines)
    grad = torch.randn_like(out)
    (right,) = torch.autograd.grad(out, kernel, grad)
    found, window, (outputs, elements) = operators._like(kernel.detach()), kernel.shape[4:], kernel.shape[:2]
    found.fill_(torch.nan)
    flat = found.flatten(4)
    *_, covered, places = placed(x, kernel.detach(), lines)
    spans, kc, op, mb = covered.starts.shape[1], covered.width, tiles.aligned(outputs), 4
    groups, splits = -(-window[0] * window[1] * spans // mb), 2
    partial = torch.full((splits, elements, groups, window[2], mb, kc, op), torch.nan)
    wide, size = F.pad(x.flatten(4), (0, kc)), out.shape[1:4]
    sent = F.pad(grad.flatten(4), (0, op))
    for a, z, y, s, w in itertools.product(*map(range, (elements, *window[:2], spans, window[2]))):
        block, first = (z * window[1] + y) * spans + s, int(covered.starts[a, s])
        seen = wide[:, z : z + size[0], y : y + size[1], w : w + size[2], first : first + kc]
        begin = a * outputs // 8 * 8  # where the copy engine can start
        for half in range(splits):  # the sum over images is split
            product = seen[half].flatten(0, 2).T @ sent[half, ..., begin : begin + op].flatten(0, 2)
            partial[half, a, block // mb, w, block % mb] = product.float()
    pack_kernels.unpack[(elements * window.numel(), -(-places.shape[1] // 32))](
        partial, places, flat, splits, partial.stride(0),
        flat.stride(1), flat.stride(3), flat.stride(2), flat.stride(4), flat.stride(0),
        T=kernel.shape[3], C=kernel.shape[2], S=spans, LINES=window[0] * window[1], KW=window[2], GROUPS=groups, MB=mb,
        KC=kc, OUT=outputs, OP=op, BK=32,
    )  # fmt: skip
    torch.testing.assert_close(found, right, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "window", "padding"),
    [
        ((4, 64, 7, 9), (3, 3), (0, 0)),
        ((3, 16, 7, 6), (3, 3), (1, 0)),
        ((2, 8, 9, 8), (5, 5), (2, 4)),
        ((1, 8, 4, 3), (3, 2), (1, 1)),
    ],
    ids=str,
)
def test_depthwise_kernels_are_a_convolution_of_single_channels(shape: tuple, window: tuple, padding: tuple) -> None:
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    kernel = torch.randn(shape[1], *window, dtype=torch.float64, requires_grad=True)
    right = F.conv2d(x, kernel[:, None], padding=padding, groups=shape[1])
    found = depthwise.convolve(x, kernel, (1, 1), padding)
    assert_same(found, right, (x, kernel))
    assert found.stride(1) == 1


def test_depthwise_operators_follow_torch_rules() -> None:
    x = torch.randn(2, 5, 6, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 3, 8, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(depthwise.correlate.op, (x, weight, [1, 0]))
    torch.autograd.gradgradcheck(
        lambda x, w: depthwise.correlate.op(x, w, [0, 1]),
        (x[:1, :3, :3, :2].contiguous(), weight[..., :2]),
        fast_mode=True,
    )
