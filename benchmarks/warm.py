"""What a small warm layer takes over `nn.Conv2d` of its size, on one thread of a CPU, and one image of a ResNet.

python benchmarks/warm.py
"""

import warnings

import torch
from torch import nn

import liespline as ls
from liespline.ops.correlate import whole
from timing import Row, Step, times

REPEATS = 50  # of a step that takes microseconds, for each reading of the clock


def steps(layer: nn.Module, x: torch.Tensor) -> tuple[Step, Step]:
    """Forward, and forward with backward."""
    wanted = (x, *layer.parameters())

    def forward() -> None:
        for _ in range(REPEATS):
            layer(x)

    def both() -> None:
        for _ in range(REPEATS):
            torch.autograd.grad(layer(x).sum(), wanted)

    return forward, both


def rows() -> list[Row]:
    """Two channels and eight rotations at 8²: GConv and SeparableGConv against a convolution of 16 channels."""
    grid, x = ls.uniform(ls.SO2(), 8), torch.randn(1, 2, 8, 8, 8, requires_grad=True)
    flat = x.detach().flatten(1, 2).requires_grad_()
    made = {"Conv2d": steps(nn.Conv2d(16, 16, 3), flat)}
    made |= {kind.__name__: steps(kind(2, 2, 3, grid), x) for kind in (ls.GConv, ls.nn.SeparableGConv)}
    found = []
    for index, what in enumerate(("forward", "forward and backward")):
        seconds = times({name: both[index] for name, both in made.items()}, "cpu", 2.0)
        for name, reach in (("GConv", (3, 2)), ("SeparableGConv", (5, 5 / 3))):
            note = ", ".join(f"{side} {1e6 * seconds[side] / REPEATS:.1f} µs" for side in (name, "Conv2d"))
            ratio = seconds[name] / seconds["Conv2d"]
            found.append(Row(f"{name}, {what}, over Conv2d", ratio, f"≤ {reach[index]:.3g}", note))
    return found


def one_image() -> list[Row]:
    """An image of 96² in evaluation, with kernels kept from the one before over kernels sampled anew."""
    torch.manual_seed(0)
    grid, x = ls.uniform(ls.SO2(), 8), torch.randn(1, 3, 96, 96)
    found = []
    for version in (1, 2):
        net = ls.models.resnet(3, 2, grid, version=version, parameters=700_000).eval()

        def sampled(net: nn.Module = net) -> None:
            whole._evaluated.clear()
            net(x)

        with torch.no_grad():
            seconds = times({"sampled": sampled, "kept": lambda net=net: net(x)}, "cpu")
        note = ", ".join(f"{name} {1e3 * seconds[name]:.1f} ms" for name in ("kept", "sampled"))
        what = f"resnet of SO(2) 8, version {version}, one image, evaluation: kept / sampled kernels"
        found.append(Row(what, seconds["kept"] / seconds["sampled"], "", note))
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for row in [*rows(), *one_image()]:
        reach = f"  ({row.reach})" if row.reach else ""
        print(f"{row.value:5.2f}{reach}  {row.what}: {row.note}")
