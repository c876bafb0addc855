"""The measured layers: shapes, tables, random tensors, float64 truths, and floors by arithmetic and by bandwidth."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional as F

RATE, BANDWIDTH = 790e12, 4.3e12  # measured on an H200: bf16 products, bytes read and written


def cyclic(elements: int) -> list[list[int]]:
    """Each element reads its two neighbours and itself."""
    return [[(a - 1) % elements, a, (a + 1) % elements] for a in range(elements)]


def cube() -> list[list[int]]:
    """Each of the 24 rotations of the cube reads itself and what a quarter turn about each axis makes of it."""
    turn = [
        torch.tensor([[1, 0, 0], [0, 0, -1], [0, 1, 0]]),
        torch.tensor([[0, 0, 1], [0, 1, 0], [-1, 0, 0]]),
        torch.tensor([[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
    ]
    steps = [torch.eye(3, dtype=torch.long)] + [t for q in turn for t in (q, q.T)]
    found = [steps[0]]
    for g in found:
        for s in steps:
            if not any(torch.equal(g @ s, f) for f in found):
                found.append(g @ s)
    names = {tuple(g.flatten().tolist()): i for i, g in enumerate(found)}
    return [[names[tuple((g @ s).flatten().tolist())] for s in steps] for g in found]


@dataclass(frozen=True)
class Layer:
    """A local layer: C channels to as many, a window of k along each axis, no padding."""

    name: str
    batch: int
    channels: int
    fields: tuple[tuple[int, ...], ...]
    space: tuple[int, int, int]
    window: tuple[int, int, int]
    stored: int = 0  # channels a field has in memory, where more than C

    @property
    def memory_channels(self) -> int:
        """Channels a field has in memory."""
        return self.stored or self.channels

    @property
    def size(self) -> tuple[int, int, int]:
        """The output's space."""
        return tuple(n - k + 1 for n, k in zip(self.space, self.window, strict=True))

    @property
    def table(self) -> Tensor:
        """The fields each element reads."""
        return torch.tensor(self.fields)

    @property
    def readers(self) -> tuple[Tensor, Tensor]:
        """Who reads each field, and as which of its entries."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.fields]
        for a, line in enumerate(self.fields):
            for t, field in enumerate(line):
                found[field].append((a, t))
        pairs = torch.tensor(found)
        return pairs[..., 0].contiguous(), pairs[..., 1].contiguous()

    @cached_property
    def floors(self) -> dict[str, float]:
        """Seconds no pass can beat: its products at the measured rate, or its bytes at the measured bandwidth."""
        a, t, points = len(self.fields), len(self.fields[0]), _prod(self.size) * self.batch
        flops = 2 * points * a * t * self.channels**2 * _prod(self.window)
        ends = 2 * self.batch * a * self.channels * (_prod(self.space) + _prod(self.size))
        return dict.fromkeys(("forward", "input", "weight"), max(flops / RATE, ends / BANDWIDTH))

    def tensors(self, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """x (B, D, H, W, A, C), kernel (A, T, KD, KH, KW, C, O), gradient (B, *size, A, O), all bf16, drawn anew."""
        draw = torch.Generator("cuda").manual_seed(seed)
        a, t, c, m = len(self.fields), len(self.fields[0]), self.channels, self.memory_channels

        def random(*shape: int) -> Tensor:
            return torch.randn(shape, generator=draw, device="cuda", dtype=torch.bfloat16)

        x, grad = random(self.batch, *self.space, a, m), random(self.batch, *self.size, a, m)
        kernel = random(a, t, *self.window, m, m)
        if m > c:
            x[..., c:], grad[..., c:] = 0, 0
            kernel[..., c:, :], kernel[..., c:] = 0, 0
        return x, kernel, grad

    def turned(self, kernel: Tensor) -> Tensor:
        """The kernel of the input's gradient: (R, readers, KD, KH, KW, O, C)."""
        a, t = (i.to(kernel.device) for i in self.readers)
        return kernel[a, t].flip(2, 3, 4).mT


def _prod(numbers: tuple[int, ...]) -> int:
    product = 1
    for n in numbers:
        product *= n
    return product


def correlation(read: Tensor, kernel: Tensor, padding: tuple[int, ...]) -> Tensor:
    """Σ over taps and channels, one product per tap: read (B, D, H, W, K), kernel (KD, KH, KW, K, O)."""
    read = F.pad(read, [n for p in (0, *reversed(padding)) for n in (p, p)])
    window = kernel.shape[:3]
    size = [n - k + 1 for n, k in zip(read.shape[1:4], window, strict=True)]
    total = read.new_zeros(len(read), *size, kernel.shape[-1])
    for z in range(window[0]):
        for y in range(window[1]):
            for x in range(window[2]):
                box = read[:, z : z + size[0], y : y + size[1], x : x + size[2]]
                total = total + box @ kernel[z, y, x]
    return total


def check_correlation(x: Tensor, kernel: Tensor, fields: Tensor, padding: tuple[int, ...], out: Tensor) -> float:
    """Relative error against float64 on the first and last image and three elements."""
    worst = 0.0
    for a in {0, 1, len(fields) - 1}:
        read = x[[0, -1]][..., fields[a].tolist(), :].double().flatten(4)
        weight = kernel[a].double().permute(1, 2, 3, 0, 4, 5).flatten(3, 4)
        worst = max(worst, _error(out[[0, -1], ..., a, :], correlation(read, weight, padding)))
    return worst


def check_weight(x: Tensor, grad: Tensor, fields: Tensor, found: Tensor) -> float:
    """Relative error of (A, T, KD, KH, KW, C, O) against float64 for two elements, four taps of each."""
    window, size, worst = found.shape[2:5], grad.shape[1:4], 0.0
    draw = torch.Generator().manual_seed(1)
    for a in (0, len(fields) - 1):
        g = grad[..., a, :].double().flatten(0, 3)
        for _ in range(4):
            y = [int(torch.randint(k, (), generator=draw)) for k in window]
            t = int(torch.randint(fields.shape[1], (), generator=draw))
            box = x[:, y[0] : y[0] + size[0], y[1] : y[1] + size[1], y[2] : y[2] + size[2], fields[a, t]]
            worst = max(worst, _error(found[a, t, y[0], y[1], y[2]], box.double().flatten(0, 3).T @ g))
    return worst


def _error(found: Tensor, truth: Tensor) -> float:
    error = float((found.double() - truth).norm() / truth.norm())
    return error if error == error else float("inf")
