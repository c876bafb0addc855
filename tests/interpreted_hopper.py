"""The Triton kernels around the Hopper kernels, in Triton's interpreter; `test_paths_triton.py` runs this too.

The Gluon kernels themselves run on a GPU only (`reliability/gpu_hopper.py`). Here their part is played by loops that
read and write packed memory as they do.
"""

import itertools

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from liespline.hopper import depthwise, launch, operators, pack_kernels, tiles

CASES = [
    # outputs, elements, channels, lines, window, output lines of a tile
    (5, 4, 24, ((0, 1, 3), (0, 1, 2), (1, 2, 3), (0, 2, 3)), (1, 3, 3), 2),
    (16, 3, 16, ((0, -1), (2, 1), (1, -1)), (2, 3, 2), 4),
    (7, 2, 23, ((0, 1, 2), (1, 2, -1)), (1, 2, 3), 1),
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


def packed(
    kernel: Tensor, placed: launch.Placed, count: int, lines: int, outputs: int, stride: int, flip: bool
) -> Tensor:
    """What `pack` makes: (A, KD, KH + lines − 1, S, KW, lines, OP, KC)."""
    flat, (kd, kh, kw) = kernel.flatten(4), kernel.shape[4:]
    spans, op, kc = placed.starts.shape[1], tiles.padded(outputs), placed.width
    out = torch.full((count, kd, kh + lines - 1, spans, kw, lines, op, kc), torch.nan, dtype=kernel.dtype)
    pack_kernels.pack[(count * kd * (kh + lines - 1) * spans, kw)](
        flat, placed.offsets, out, flat.stride(4), stride, out.stride(1), out.stride(2), out.stride(3),
        S=spans, KD=kd, KH=kh, KW=kw, LINES=lines, OUT=outputs, OP=op, KC=kc, FLIP=flip,
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
    flat, outputs = kernel.flatten(4), len(kernel)
    assert flat.data_ptr() == kernel.data_ptr()
    placed = launch._placed(lines, flat.shape, flat.stride(), x.device)
    right = truth(x, kernel, lines)
    taps = packed(kernel, placed, kernel.shape[1], case[-1], outputs, flat.stride(0), False)
    found = correlated(x, taps, placed.starts, list(right.shape[1:4]), outputs)
    torch.testing.assert_close(found, right, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(operators._plain(x, kernel, list(lines), [0, 0, 0]), right, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_packed_the_other_way_they_are_the_input_gradient(case: tuple) -> None:
    x, kernel, lines = drawn(case)
    x.requires_grad_()
    out = truth(x, kernel, lines)
    grad = torch.randn_like(out)
    (right,) = torch.autograd.grad(out, x, grad)
    flat, channels = kernel.flatten(4), kernel.shape[2]
    placed = launch._placed_back(lines, x.shape[4], flat.shape, flat.stride(), x.device)
    taps = packed(kernel, placed, x.shape[4], case[-1], channels, flat.stride(2), True)
    borders = [n for k in reversed(kernel.shape[4:]) for n in (k - 1, k - 1)]
    wide = F.pad(grad, (0, 0, 0, 0, *borders))
    found = correlated(wide, taps, placed.starts, list(x.shape[1:4]), channels)
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
    placed = launch._placed(lines, flat.shape, flat.stride(), x.device)
    blocks = launch._blocks(lines, placed.width, flat.shape, flat.stride(), x.device)
    spans, kc, op, mb = placed.starts.shape[1], placed.width, tiles.padded(outputs), 4
    groups, splits = -(-window[0] * window[1] * spans // mb), 2
    partial = torch.full((splits, elements, groups, window[2], mb, kc, op), torch.nan)
    wide, size = F.pad(x.flatten(4), (0, kc)), out.shape[1:4]
    for a, z, y, s, w in itertools.product(*map(range, (elements, *window[:2], spans, window[2]))):
        block, first = (z * window[1] + y) * spans + s, int(placed.starts[a, s])
        seen = wide[:, z : z + size[0], y : y + size[1], w : w + size[2], first : first + kc]
        for half in range(splits):  # the sum over images is split
            product = seen[half].flatten(0, 2).T @ grad[half, ..., a, :].flatten(0, 2)
            partial[half, a, block // mb, w, block % mb, :, :outputs] = product.float()
    count = blocks.places.shape[1]
    pack_kernels.unpack[(elements * window.numel(), -(-count // 32))](
        partial, blocks.places, blocks.offsets, flat, splits, partial.stride(0), flat.stride(4), flat.stride(0), count,
        S=spans, LINES=window[0] * window[1], KW=window[2], GROUPS=groups, MB=mb, KC=kc, OUT=outputs, OP=op, BK=32,
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
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    kernel = torch.randn(shape[1], *window, dtype=torch.float64, requires_grad=True)
    right = F.conv2d(x, kernel[:, None], padding=padding, groups=shape[1])
    found = depthwise.convolve(x, kernel, padding)
    torch.testing.assert_close(found, right, rtol=1e-11, atol=1e-11)
    assert found.stride(1) == 1
    direction = torch.randn_like(right)
    gradients, expected = (torch.autograd.grad(y, (x, kernel), direction) for y in (found, right))
    for gradient, one in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, one, rtol=1e-11, atol=1e-11)


def test_depthwise_operators_follow_torch_rules() -> None:
    x = torch.randn(2, 5, 6, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 3, 8, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(depthwise.correlate, (x, weight, [1, 0]))
    torch.autograd.gradgradcheck(
        lambda x, w: depthwise.correlate(x, w, [0, 1]),
        (x[:1, :3, :3, :2].contiguous(), weight[..., :2]),
        fast_mode=True,
    )
