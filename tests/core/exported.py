"""What the tests of export share: how networks are compared, and one with a forward of its own."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

import liespline as ls
from liespline import GConv, Grid, Lift, Project, export


def stirred(net: nn.Module) -> nn.Module:
    """Give everything that starts at zero or one a value that shows when it is lost or misplaced."""
    with torch.no_grad():
        for name, tensor in (*net.named_parameters(), *net.named_buffers()):
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 2)
            elif name.endswith(("bias", "running_mean")):
                tensor.normal_()
    return net.eval()


def settled(net: nn.Module, x: Tensor) -> nn.Module:
    """Give norms the statistics of these inputs, so that outputs differ as much as trained ones do."""
    for module in net.modules():
        if isinstance(module, _BatchNorm):
            module.momentum = None
    with torch.no_grad():
        net.train()(x)
    return net.eval()


def quarter_turn(x: Tensor) -> Tensor:
    return torch.rot90(x, 1, (-2, -1))


def rotated(x: Tensor, h: Tensor) -> Tensor:
    """The values of x at h⁻¹y, for a signed permutation h of the last three axes."""
    axes, lead = h.abs().argmax(1), x.ndim - 3
    flips = [lead + i for i in range(3) if h[i, axes[i]] < 0]
    return x.permute(*range(lead), *(lead + axes).tolist()).flip(flips)


@torch.no_grad()
def change(net: nn.Module, x: Tensor, move: Callable[[Tensor], Tensor] = quarter_turn) -> float:
    """The largest change of the output when the input is moved, over how much it differs between inputs."""
    still, moved = net(x), net(move(x))
    still = move(still) if still.ndim > 2 else still
    return float((moved - still).abs().max() / (still - still.mean(0)).std())


def distance(net: nn.Module, plain: nn.Module, x: Tensor) -> float:
    """The largest difference of outputs over their size."""
    with torch.no_grad():
        expected, found = net(x), plain(x)
    assert found.shape == expected.shape
    return float((found - expected).abs().max() / expected.abs().max())


def same(net: nn.Module, x: Tensor) -> nn.Module:
    """Export, check that nothing but plain layers is left and that the outputs agree; return the plain network."""
    plain = export(stirred(net))
    assert not any(isinstance(module, Lift | GConv) for module in plain.modules())
    assert distance(net, plain, x) < 1e-5
    return plain


class Residual(nn.Module):
    """A forward of its own: additions, a layer used twice, lists and dictionaries of layers, a reused pool."""

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.stem = Lift(2, 4, 3, grid, padding="same")
        self.norms = nn.ModuleList([nn.BatchNorm3d(4), ls.nn.BatchNorm(4)])
        self.twice = GConv(4, 4, 3, grid, padding=1)
        self.block = nn.Sequential(nn.SiLU(), GConv(4, 4, 3, grid, padding=1), nn.BatchNorm3d(4), self.twice)
        self.heads = nn.ModuleDict({"max": Project("max", grid), "mean": Project("mean", grid)})
        self.pool = nn.MaxPool3d((1, 3, 2), stride=(1, 2, 1), padding=(0, 1, 1), ceil_mode=True)
        self.reduce = ls.nn.Downsample(2)
        self.enlarge = ls.nn.Upsample(2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norms[0](self.stem(x))
        x = x + self.block(x)
        x = self.norms[1](x + self.twice(x).relu_())
        x = self.enlarge(self.reduce(self.pool(x)))
        return torch.cat([self.heads[name](x) for name in ("max", "mean")], 1)
