"""What is measured of depthwise layers, and the machine's two ceilings."""

from collections.abc import Callable

import torch
from shapes import BANDWIDTH, RATE
from torch import Tensor
from torch.nn import functional as F
from variants import Made, Variant

DEPTHWISE = {"D32": (512, 42), "D64": (1024, 32), "D16": (256, 42)}


def _maps(channels: int, side: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator("cuda").manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw, device="cuda", dtype=torch.bfloat16)

    return random(64, side, side, channels), random(5, 5, channels), random(64, side - 4, side - 4, channels)


def depthwise(channels: int, side: int, what: str, /, **tile: int) -> Callable[[int], Made]:
    """Our depthwise kernels, and cuDNN's where no tile is given; the check is float64 on 16 channels."""

    def make(seed: int) -> Made:
        import depthwise as ours

        x, weight, grad = _maps(channels, side, seed)

        def truth() -> Tensor:
            xs, ws = x[..., -16:].double().requires_grad_(), weight[..., -16:].double().requires_grad_()
            n = side - 4
            y = sum(xs[:, i : i + n, j : j + n] * ws[i, j] for i in range(5) for j in range(5))
            if what == "forward":
                return y.detach()
            return torch.autograd.grad(y, xs if what == "input" else ws, grad[..., -16:].double())[0]

        def check(out: Tensor) -> float:
            want = truth()
            return float((out[..., -16:].double() - want).norm() / want.norm())

        size = ours.Tile(**tile)
        if tile and what == "forward":
            return (lambda: ours.correlate(x, weight, (0, 0), size)), check
        if tile and what == "input":
            return (lambda: ours.input_gradient(grad, weight, (0, 0), size)), check
        if tile:
            return (lambda: ours.weight_gradient(x, grad, (5, 5), (0, 0), size)), check
        plain, back = x.movedim(-1, 1), grad.movedim(-1, 1)
        taps = weight.movedim(-1, 0)[:, None].contiguous()
        if what == "forward":
            return (lambda: F.conv2d(plain, taps, groups=channels).movedim(1, -1)), check
        mask = [what == "input", what == "weight", False]

        def backward() -> Tensor:
            found = torch.ops.aten.convolution_backward(
                back, plain, taps, None, [1, 1], [0, 0], [1, 1], False, [0, 0], channels, mask
            )
            return found[0].movedim(1, -1) if what == "input" else found[1][:, 0].movedim(0, -1)

        return backward, check

    return make


def mix(channels: int, side: int) -> Callable[[int], Made]:
    """The 1×1 mix before a depthwise layer, as one product over all elements and channels."""

    def make(seed: int) -> Made:
        x, _, _ = _maps(channels, side, seed)
        weight = torch.randn(channels, channels, device="cuda", dtype=torch.bfloat16)
        return (lambda: F.linear(x, weight)), None

    return make


def copy(numel: int) -> Callable[[int], Made]:
    """A copy that reads and writes as many bytes."""

    def make(seed: int) -> Made:
        source = torch.randn(numel, device="cuda").bfloat16()
        target = torch.empty_like(source)
        return (lambda: target.copy_(source)), None

    return make


def product(n: int) -> Callable[[int], Made]:
    """A square matrix product."""

    def make(seed: int) -> Made:
        a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        return (lambda: a @ b), None

    return make


def baselines() -> list[Variant]:
    """The machine's two ceilings."""
    return [
        Variant("ceilings", "8192³ product", "torch", 2 * 8192**3 / RATE, product(8192)),
        Variant("ceilings", "copy of 512 MB", "torch", 2 * 2**29 / BANDWIDTH, copy(2**28)),
    ]


def separable(name: str, tiles: dict[str, list[dict[str, int]]]) -> list[Variant]:
    """The depthwise layer of one name: its floor is its bytes."""
    channels, side = DEPTHWISE[name]
    numel = 64 * channels * (side**2 + (side - 4) ** 2)
    floor = 2 * numel / BANDWIDTH
    found = [Variant(name, "copy of equal bytes", "torch", floor, copy(numel // 2))]
    flops = 2 * 64 * side**2 * channels**2
    found.append(Variant(name, "1×1 mix", "cuBLAS", flops / RATE, mix(channels, side)))
    for what, choices in tiles.items():
        found.append(Variant(name, what, "cuDNN", floor, depthwise(channels, side, what)))
        for tile in choices:
            label = "walk " + " ".join(f"{k[0]}{v}" for k, v in tile.items())
            found.append(Variant(name, what, label, floor, depthwise(channels, side, what, **tile), True))
    return found
