"""What is checked on a device: every layer, norm and pool in 1, 2 and 3 dimensions by every path, and every network."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import nn

import liespline as ls
from liespline.models.kernels import h_basis


class Case(NamedTuple):
    """A module and the shape of its input."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    path: str = "auto"

    @property
    def deep(self) -> bool:
        """Whether it is a whole network, in which rounding adds up."""
        return self.name.startswith(("network", "classifier", "broken", "restricted", "U-Net", "pcam", "celeba"))

    @property
    def subject(self) -> str:
        """The module, whatever path computes it."""
        return self.name.removesuffix(f", {self.path}")


def grids() -> dict[int, ls.Grid]:
    """A grid in one, two and three dimensions."""
    return {
        1: ls.uniform(ls.Scale(1), 3, spacing=0.35),
        2: ls.uniform(ls.SO2(), 8),
        3: ls.uniform(ls.SO3(), 12),
    }


def cases(device: str) -> Iterator[Case]:
    """Every layer in 1, 2 and 3 dimensions by every path that takes it, every norm and pool, every model."""
    forced = ["auto", "dense", "banded", "separable", *(["triton"] if device == "cuda" else [])]
    for d, grid in grids().items():
        space = {1: (24,), 2: (16, 14), 3: (8, 7, 9)}[d]
        features = (2, 6, len(grid), *space)
        yield Case(f"Lift {d}-D", lambda g=grid: ls.Lift(3, 4, 5, g, padding="same"), (2, 3, *space))
        yield Case(f"deformable GConv {d}-D", lambda g=grid: _deformable(g), features)
        for kind in ("dense", "local"):
            n = len(grid) if kind == "dense" else 2 * grid.group.dim + 1
            for path in forced:
                yield Case(
                    f"{kind} GConv {d}-D, {path}",
                    lambda g=grid, k=kind, n=n: ls.GConv(6, 8, 5, g, h_basis=h_basis(g, k, n), padding="same"),
                    features, path,
                )  # fmt: skip
        yield Case(f"strided GConv {d}-D", lambda g=grid: ls.GConv(6, 8, 3, g, stride=2, padding=1), features)
        yield Case(f"BatchNorm {d}-D", lambda: ls.nn.BatchNorm(6), features)
        yield Case(f"NormReLU {d}-D", lambda: ls.nn.NormReLU(6), features)
        yield Case(f"NormReLU with pooling {d}-D", lambda: ls.nn.NormReLU(6, pool=2), features)
        yield Case(f"InstanceNorm {d}-D", lambda g=grid: ls.nn.NormReLU(6, norm="instance", grid=g), features)
        yield Case(f"BatchNorm with Haar's weights {d}-D", lambda g=grid: ls.nn.BatchNorm(6, grid=uneven(g)), features)
        yield Case(f"LayerNorm with Haar's weights {d}-D", lambda g=grid: ls.nn.LayerNorm(6, grid=uneven(g)), features)
        yield Case(
            f"Lift of vectors {d}-D", lambda g=grid: ls.Lift(3, 4, 5, g, in_type="vector", padding="same"),
            (2, 3, d, *space),
        )  # fmt: skip
        for boundary in ("renormalise", "replicate") if d == 1 else ():
            yield Case(
                f"{boundary}d GConv {d}-D",
                lambda g=grid, b=boundary: ls.GConv(6, 8, 5, g, h_boundary=b, padding="same"), features,
            )  # fmt: skip
        if d > 1:
            yield Case(f"ToIrreps {d}-D", lambda g=grid: ls.nn.ToIrreps(g, 1), features)
        yield Case(f"MaxPool {d}-D", lambda: ls.nn.MaxPool(2), features)
        yield Case(f"Downsample {d}-D", lambda: ls.nn.Downsample(2), features)
        yield Case(f"Upsample {d}-D", lambda: ls.nn.Upsample(2), features)
        for reduce in ("max", "mean", "sum"):
            yield Case(f"Project {reduce} {d}-D", lambda g=grid, r=reduce: ls.Project(r, g), features)
        yield Case(f"network {d}-D", lambda g=grid: network(g), (4, 3, *space))
        sides = {1: 32, 2: 28, 3: 12}[d]
        shape = (2 if d == 3 else 16, 1, *(sides,) * d)
        yield Case(f"classifier {d}-D", lambda g=grid: ls.models.classifier(1, 4, g, parameters=40_000), shape)
    yield from less_symmetry()
    sphere = ls.uniform(ls.Sphere(), 6)
    yield Case("GConv on R³⋊S²", lambda: ls.GConv(2, 3, 3, sphere, padding=1), (2, 2, 6, 6, 5, 7))
    yield Case("GConv on H alone", lambda: ls.GConv(4, 4, None, ls.uniform(ls.SO3(), 24)), (2, 4, 24))
    yield Case("pcam (8, 8)", lambda: ls.models.pcam(8, 8, "dense"), (16, 3, 88, 88))
    yield Case("pcam (8, 3) local", lambda: ls.models.pcam(8, 3, "local"), (16, 3, 88, 88))
    yield Case("celeba", lambda: ls.models.celeba(), (8, 3, 64, 64))


def less_symmetry() -> Iterator[Case]:
    """Biases on the group, subgroups, groups about an axis, and the bispectrum."""
    flips, turns, axial = ls.uniform(ls.O2(), 8), ls.uniform(ls.SO2(), 8), ls.uniform(ls.Axial(ls.SO2(), 0), 8)
    yield Case("FrameBias", lambda: ls.nn.FrameBias(6, flips), (4, 6, 8, 14, 14))
    yield Case("Restrict", lambda: ls.nn.Restrict(flips, ls.uniform(ls.SO2(), 4)), (4, 6, 8, 14, 14))
    yield Case("Project bispectrum", lambda: ls.Project("bispectrum", turns), (4, 6, 8, 14, 14))
    small = {"parameters": 40_000, "activation": "silu"}
    yield Case("broken classifier", lambda: ls.models.classifier(1, 4, flips, breaking=True, **small), (16, 1, 28, 28))
    yield Case(
        "restricted ResNet", lambda: ls.models.resnet(1, 4, flips, restrict={1: ls.uniform(ls.SO2(), 4)}, **small),
        (16, 1, 64, 64),
    )  # fmt: skip
    thick = {"widths": (4, 6), "kernel_size": (1, 5, 5), "factor": (1, 2, 2)}
    yield Case("U-Net of thick slices", lambda: ls.models.unet(1, 2, axial, **thick), (2, 1, 6, 24, 24))


def uneven(grid: ls.Grid) -> ls.Grid:
    """The same elements, which stand for unequal parts of the group."""
    return ls.Grid(
        grid.group, grid.elements, grid.weights * torch.linspace(0.5, 1.5, len(grid), device="cpu"), grid.spacing
    )


def network(grid: ls.Grid) -> nn.Module:
    """Every part in one chain."""
    local = h_basis(grid, "local", 2 * grid.group.dim + 1)
    return nn.Sequential(
        ls.Lift(3, 4, 5, grid, padding="same"),
        ls.nn.NormReLU(4),
        ls.GConv(4, 6, 5, grid, padding="same"),
        ls.nn.NormReLU(6),
        ls.nn.Downsample(2),
        ls.GConv(6, 6, 3, grid, h_basis=local, padding="same"),
        ls.nn.BatchNorm(6),
        nn.SiLU(),
        ls.Project("mean", grid),
    )


def _deformable(grid: ls.Grid) -> nn.Module:
    return ls.GConv(6, 4, 3, grid, h_basis=ls.SplineBasis(grid, trainable=True), padding="same")


def stirred(module: nn.Module) -> nn.Module:
    """Norms that have seen something, so that eval mode is not the identity; no dropout, which draws."""
    for part in module.modules():
        if isinstance(part, nn.Dropout | ls.nn.FieldDropout):
            part.p = 0.0
        if isinstance(part, ls.nn.FrameBias):
            nn.init.normal_(part.weight, std=0.3)
        if isinstance(part, ls.nn.BatchNorm):
            nn.init.uniform_(part.running_mean, -0.3, 0.3)
            nn.init.uniform_(part.running_var, 0.5, 2.0)
            nn.init.uniform_(part.weight, 0.5, 1.5)
    return module
