"""The rows of the speed table for any device: forward + backward of one path over another, and an exported network."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import liespline as ls
from liespline import export, functional, ops
from liespline.models.kernels import h_basis
from liespline.ops.choose import choose
from timing import Row, Series, Step, captured, times


class Bench:
    """Layers of one device, dtype and batch."""

    def __init__(self, device: str, dtype: torch.dtype, batch: int, size: int) -> None:
        self.device, self.dtype, self.batch, self.size = device, dtype, batch, size

    def layer(self, grid: ls.Grid, channels: int, n_k: int, kind: str = "local", window: int = 5, degree: int = 1):
        """A group correlation without bias, on this device."""
        h = h_basis(grid, kind, n_k, degree=degree)
        return ls.GConv(channels, channels, window, grid, h_basis=h, bias=False, device=self.device)

    def input(self, layer: ls.GConv, size: int, banded: bool, batch: int | None = None) -> Tensor:
        """A feature map in the layout the path before would have left it in: channels innermost on a GPU."""
        shape = (batch or self.batch, layer.in_channels, len(layer.grid), *(size,) * layer.grid.group.space_dim)
        x = torch.randn(shape, device=self.device, dtype=self.dtype)
        if self.device == "cuda" and banded:
            x = x.movedim(1, -1).contiguous().movedim(-1, 1)
        elif self.device == "cuda":
            x = x.movedim((1, 2), (-2, -1)).contiguous().movedim((-2, -1), (1, 2))
        return x.requires_grad_()

    def step(self, layer: ls.GConv, path: str, size: int | None = None, batch: int | None = None) -> Step:
        """Forward and backward by one path, from the layout in which a layer before it would leave its output."""
        dense = path == "dense" or (path == "auto" and self.chooses_dense(layer, size, batch))
        x = self.input(layer, size or self.size, banded=not dense, batch=batch)
        return self.repeat(lambda: layer(x), (x, layer.weight), path)

    def chooses_dense(self, layer: ls.GConv, size: int | None = None, batch: int | None = None) -> bool:
        """Whether the cost model takes the dense path, and not by Fourier either."""
        x = self.input(layer, size or self.size, banded=True, batch=batch)
        with torch.autocast(self.device, self.dtype, enabled=self.dtype != torch.float32):
            d = layer.grid.group.space_dim
            choice = choose(x, layer.weight, layer.window.sizes, (1,) * d, layer.borders.before, layer.plan)
            return choice.whole and "fourier" not in choice.methods

    def repeat(self, compute: Callable[[], Tensor], leaves: tuple[Tensor, ...], path: str = "auto") -> Step:
        """Forward and backward of a computation, with a gradient drawn once in its output's own layout."""
        half = self.dtype != torch.float32
        with torch.no_grad(), ops.use(path), torch.autocast(self.device, self.dtype, enabled=half):
            gradient = torch.randn_like(compute())

        def run() -> None:
            for leaf in leaves:
                leaf.grad = None
            with ops.use(path), torch.autocast(self.device, self.dtype, enabled=half):
                out = compute()
            out.backward(gradient)

        return captured(run) if self.device == "cuda" else run

    def ratio(self, layer: ls.GConv, size: int | None = None, batch: int | None = None, seconds: float = 1.0) -> float:
        """What is chosen against dense."""
        steps = {name: self.step(layer, name, size, batch) for name in ("auto", "dense")}
        found = times(steps, self.device, seconds)
        return found["auto"] / found["dense"]

    def growth(self, what: str, values: Sequence[int], **base: int) -> Series:
        """Local kernels, with `what` (channels, n_h, n_k, size or batch) going through values and the rest at base."""
        seconds: dict[str, list[float]] = {"auto": [], "dense": []}
        for value in values:
            now = base | {what: value}
            layer = self.layer(ls.uniform(ls.SO2(), now["n_h"]), now["channels"], now["n_k"])
            steps = {name: self.step(layer, name, now["size"], now["batch"]) for name in seconds}
            for name, found in times(steps, self.device, seconds=0.2).items():
                seconds[name].append(found)
        return Series(what, list(values), seconds)

    def against_plain(self, channels: int, n_h: int, path: str = "dense") -> Row:
        """The dense kernel, sampling included, against torch's convolution with a weight of that size."""
        layer = self.layer(ls.uniform(ls.SO2(), n_h), channels, n_h, "dense")
        x = self.input(layer, self.size, banded=False)
        weight = torch.randn(channels * n_h, channels * n_h, 5, 5, device=self.device, requires_grad=True)
        plain = self.repeat(lambda: F.conv2d(x.flatten(1, 2), weight), (x, weight))
        found = times({"layer": self.step(layer, path), "plain": plain}, self.device)
        name = f"dense layer / conv2d, C = {channels}, N_h = {n_h}, {path} path"
        asked = path == "auto" or self.device == "cuda"  # what a user gets, who forces nothing
        return Row(name, found["layer"] / found["plain"], "≤ 1.05" if asked else "")

    def local(self, channels: int, n_h: int, reach: str, degree: int = 1, size: int | None = None) -> Row:
        """Three splines on H against the dense path."""
        layer = self.layer(ls.uniform(ls.SO2(), n_h), channels, 3, degree=degree)
        name = f"local N_k = 3 of N_h = {n_h} / dense, C = {channels}, degree {degree}"
        return Row(name, self.ratio(layer, size), reach)

    def exponent(self, channels: int, batch: int) -> Row:
        """How time grows with N_h at N_k = 3."""
        counts = (8, 16, 32, 64)
        layers = {n: self.layer(ls.uniform(ls.SO2(), n), channels, 3) for n in counts}
        found = times({str(n): self.step(layers[n], "auto", batch=batch) for n in counts}, self.device)
        growth = math.log(found["64"] / found["8"]) / math.log(8)
        return Row(f"exponent of time in N_h, 8 to 64, N_k = 3, C = {channels}", growth, "≤ 1.15")

    def scale(self, batch: int, size: int, degree: int = 2) -> Row:
        """The CelebA layer against all scales in the largest window."""
        grid = ls.uniform(ls.Scale(2), 5, spacing=0.5 * math.log(2))
        h = h_basis(grid, "local", 3, degree=degree)
        layer = ls.GConv(17, 17, 5, grid, h_basis=h, padding="same", bias=False, device=self.device)
        samples, window = layer.samples(), layer.window.largest
        x = self.input(layer, size, banded=False, batch=batch)

        def largest() -> Tensor:
            same = tuple(k // 2 for k in window)
            return functional.correlate(x, layer.weight, *samples, padding=same)

        steps = {
            "own": self.step(layer, "auto", size, batch),
            "largest": self.repeat(largest, (x, layer.weight), "dense"),
        }
        found = times(steps, self.device)
        return Row(
            f"scale layer, C = 17, {size}² / all in the largest window", found["own"] / found["largest"], "≤ 0.25"
        )

    def volumes(self, batch: int) -> Row:
        """SE(3) with the 24 rotations of the cube."""
        layer = self.layer(ls.uniform(ls.SO3(), 24), 16, 7, degree=2)
        return Row("SE(3), 24 elements, N_k = 7, 5³, 24³, C = 16 / dense", self.ratio(layer, 24, batch), "≤ 0.4")

    def grid(self, shapes: list[tuple[int, int, int, str, int, int]]) -> Row:
        """The worst ratio to dense over many shapes."""
        worst, where = 0.0, ""
        for channels, n_h, n_k, kind, window, size in shapes:
            layer = self.layer(ls.uniform(ls.SO2(), n_h), channels, n_k, kind, window, degree=2)
            # Where dense itself is chosen there is nothing to measure.
            ratio = 1.0 if self.chooses_dense(layer, size) else self.ratio(layer, size, seconds=0.3)
            print(f"  C {channels} N_h {n_h} N_k {n_k} {kind} window {window} size {size}: {ratio:.3f}", flush=True)
            if ratio > worst:
                worst, where = ratio, f"C = {channels}, N_h = {n_h}, N_k = {n_k} {kind}, {window}², {size}²"
        return Row("worst of the grid / dense", worst, "≤ 1.05", where)


class Plain(nn.Module):
    """What someone who only knows torch would write for (12, 12), batch norms already in the convolutions."""

    def __init__(self, width: int = 11, n_h: int = 12) -> None:
        super().__init__()
        c, self.n_h = width * n_h, n_h
        self.features = nn.Sequential(
            nn.Conv2d(3, c, 5), nn.MaxPool2d(2), nn.ReLU(inplace=True),
            nn.Conv2d(c, c, 5), nn.MaxPool2d(2), nn.ReLU(inplace=True),
            nn.Conv2d(c, c, 5), nn.MaxPool2d(3), nn.ReLU(inplace=True),
            nn.Conv2d(c, c, 5), nn.ReLU(inplace=True),
            nn.Conv2d(c, 64 * n_h, 1), nn.ReLU(inplace=True),
        )  # fmt: skip
        self.classes = nn.Sequential(nn.Conv2d(64, 16, 1), nn.ReLU(inplace=True), nn.Conv2d(16, 2, 1), nn.Flatten())

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, 88, 88) to (B, 2)."""
        return self.classes(self.features(x).unflatten(1, (-1, self.n_h)).amax(2))


@torch.no_grad()
def exported_row(device: str, dtype: torch.dtype, batch: int) -> Row:
    """Seconds of one over seconds of the other; both with channels innermost on a GPU."""
    images = torch.randn(batch, 3, 88, 88, device=device, dtype=dtype)
    ours = export(ls.models.pcam(12, 12, "dense").eval())
    steps = {}
    for name, network in (("exported", ours), ("plain", Plain().eval())):
        network = network.to(device, dtype)
        if device == "cuda":
            network = network.to(memory_format=torch.channels_last)
        steps[name] = lambda f=network: f(images)
        steps[name] = captured(steps[name]) if device == "cuda" else steps[name]
    found = times(steps, device, seconds=2)
    return Row("exported network / plain convolutions, inference", found["exported"] / found["plain"], "≤ 1.02")
