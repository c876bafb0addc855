"""Networks that differ in one thing: the last window, where and how H is projected, dropout, depth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from torch import nn

import liespline as ls
from liespline import O2, SO2, GConv, Lift, Project, Trivial, models, uniform
from liespline.models.kernels import h_basis
from liespline.nn import BatchNorm, Downsample, FieldDropout, NormReLU

from . import rivals
from .discs import in_discs

SMALL = (8, 12, 12, 12, 20, 32)


def chain(
    *,
    n_h: int = 16,
    mirror: bool = False,
    widths: tuple[int, ...] = SMALL,
    halve_before: tuple[int, ...] = (2, 4),
    last: int = 5,
    padded: bool = False,
    project: str = "max",
    early: bool = False,
    space: str = "mean",
    linear: int = 2,
    dropout: float = 0.3,
    fields: float = 0.0,
    kernel: str = "dense",
    n_k: int | None = None,
    smooth: bool = False,
) -> nn.Module:
    """A chain as in `models.classifier`, with everything that is varied an argument."""

    def norm(channels: int) -> nn.Module:
        return nn.Sequential(BatchNorm(channels), nn.SiLU()) if smooth else NormReLU(channels)

    grid = uniform(O2(), 2 * n_h) if mirror else uniform(SO2(), n_h)
    layers: list[nn.Module] = [Lift(1, widths[0], 7, grid, padding=3, bias=False)]
    for i, (a, b) in enumerate(pairwise(widths), 1):
        layers.append(norm(a))
        if fields:
            layers.append(FieldDropout(fields))
        if i in halve_before:
            layers.append(Downsample(2))
        final = i == len(widths) - 1
        size, padding = (last, 0 if not padded else last // 2) if final else (5, 2)
        if final and early:  # H is gone before the last positions meet
            one = uniform(Trivial(2), 1)
            layers += [Project(project, grid), nn.Unflatten(1, (a, 1)), GConv(a, b, size, one, padding=padding)]
            grid = one
        else:
            basis = h_basis(grid, kernel, n_k)
            layers.append(GConv(a, b, size, grid, h_basis=basis, padding=padding, bias=False))
    pool = nn.AdaptiveAvgPool2d(1) if space == "mean" else nn.AdaptiveMaxPool2d(1)
    c = widths[-1]
    mlp = [nn.Linear(c, c), nn.ReLU(), nn.Dropout(dropout)] if linear == 2 else []
    return nn.Sequential(*layers, norm(c), Project(project, grid), pool, nn.Flatten(), *mlp, nn.Linear(c, 10))


@dataclass(frozen=True)
class Variant:
    """A network and how it is trained where that differs."""

    network: Callable[[], nn.Module]
    about: str = "image"
    side: int = 28
    """Points per side of the images, about the same centre."""
    augment: bool = False
    stretch: float = 0.0
    """Deviation of the random matrices that scale, shear and squeeze the digits in training, if augmented."""
    elastic: float = 0.0
    """Deviation of the smooth displacements that bend the digits in training, in pixels, if augmented."""
    smoothing: float = 0.0
    average: float = 0.0
    """If not 0: the weights scored are a running mean that forgets at this rate."""
    longer: float = 1.0
    """Epochs over those of the other variants."""
    upright: float = 0.0
    """If not 0: trained on upright digits, tested at steps of this angle and half-way between them."""
    shifted: int = 0
    """If not 0: all grids are moved by a common random angle, drawn anew after this many steps of training."""
    in_modes: bool = False
    """Whether AdamW takes its steps in the modes of the splines."""
    cost: float = 1.0
    """Time of a run over that of the small chain, roughly."""


def _so2(n: int) -> ls.Grid:
    return uniform(SO2(), n)


def _classifier(n: int = 16, **options: Any) -> Callable[[], nn.Module]:
    return lambda: models.classifier(1, 10, _so2(n), **options)


def _resnet(**options: Any) -> Callable[[], nn.Module]:
    return lambda: models.resnet(1, 10, _so2(16), **options)


RECIPE: dict[str, Any] = {"augment": True, "stretch": 0.1, "smoothing": 0.1, "average": 0.995}
BENT: dict[str, Any] = {**RECIPE, "elastic": 1.0}

ROTATIONS: Any = (
    ("ours, SO(2), 16", lambda: chain(last=7), 28, 1.0),
    ("escnn, C_16", lambda: rivals.Escnn((8, 12, 12, 12, 21, 32)), rivals.SIDE, 1.6),
)
MIRRORS: Any = (
    ("ours, O(2), 2×16", lambda: chain(last=7, mirror=True, widths=(6, 9, 9, 9, 14, 22)), 28, 1.3),
    ("escnn, D_16", lambda: rivals.Escnn((6, 9, 9, 9, 14, 23), mirror=True), rivals.SIDE, 2.2),
)
QUARTER: Any = (  # 76,846 and 77,072 weights, for one CPU core
    ("ours, SO(2), 77k", lambda: chain(last=7, widths=(4, 6, 6, 6, 10, 16)), 28, 1.0),
    ("escnn, C_16, 77k", lambda: rivals.Escnn((4, 6, 6, 6, 10, 17)), rivals.SIDE, 1.6),
)
TINY = (4, 6, 6, 6, 10, 16)  # 38,734 weights; escnn's have 37,378
STEPS: dict[str, Variant] = {
    f"8 orientations, tiny, steps in {basis}": Variant(
        partial(chain, n_h=8, last=7, widths=TINY),
        **{**RECIPE, "average": 0.99},
        in_modes=basis == "modes",
        cost=0.2,
    )
    for basis in ("modes", "splines")
} | (
    {
        "escnn, C_8, tiny": Variant(
            lambda: rivals.Escnn(TINY, orientations=8), side=rivals.SIDE, **{**RECIPE, "average": 0.99}, cost=0.3
        )
    }
    if rivals.installed()
    else {}
)
# Networks of 306,472 to 307,196 weights, trained alike. In the order in which they are run: what decides first. escnn's
# kernels are written in waves; "modes" are steps of ours that suit splines as torch's own suit waves.
BESIDE: dict[str, Variant] = {
    f"{name}{', modes' if modes else ''}, {'no cue' if about == 'mass' else 'cue'}": Variant(
        network, about, side, **RECIPE, in_modes=modes, cost=cost
    )
    for pair in (ROTATIONS, MIRRORS, QUARTER)
    for about in ("image", "mass")
    for modes in (True, False)
    for name, network, side, cost in pair
    if "escnn" not in name or (rivals.installed() and not modes)
}

VARIANTS: dict[str, Variant] = {
    **BESIDE,
    **STEPS,
    "ours, SO(2), 16, in discs, cue": Variant(lambda: in_discs(chain(last=7)), **RECIPE),
    "classifier, 16 orientations, in discs": Variant(lambda: in_discs(_classifier()()), **RECIPE, cost=4),
    "classifier, 16 orientations, full recipe": Variant(_classifier(), **RECIPE, cost=4),
    "resnet, full recipe": Variant(_resnet(), **RECIPE, cost=3.5),
    "classifier, 8 orientations, full recipe": Variant(_classifier(8), **RECIPE, longer=1.5, cost=2),
    "8 orientations, bent, three times as long": Variant(_classifier(8), **BENT, longer=4.5, cost=6),
    "8 orientations, not bent, three times as long": Variant(_classifier(8), **RECIPE, longer=4.5, cost=6),
    "12 orientations, bent": Variant(_classifier(12), **BENT, longer=1.5, cost=4),
    "8 orientations, bent": Variant(_classifier(8), **BENT, longer=1.5, cost=2),
    "8 orientations, bent more": Variant(_classifier(8), **{**BENT, "elastic": 1.6}, longer=1.5, cost=2),
    "8 orientations, bent, grids shifted": Variant(_classifier(8), **BENT, longer=1.5, shifted=4, cost=2),
    "small (7×7), recipe": Variant(lambda: chain(last=7), **RECIPE),
    "small (7×7), recipe, smooth activation": Variant(lambda: chain(last=7, smooth=True), **RECIPE),
    "small (7×7), recipe, grids shifted": Variant(lambda: chain(last=7), **RECIPE, shifted=4),
    "small, separable of as many weights, recipe": Variant(
        _classifier(separable=True, parameters=307_000), **RECIPE, cost=1.5
    ),
    "classifier, full recipe, no cue": Variant(_classifier(), **RECIPE, about="mass", cost=4),
    "classifier as it comes": Variant(_classifier(), cost=2),
    "resnet as it comes": Variant(_resnet(), cost=2),
    "classifier as it comes, augmented": Variant(_classifier(), augment=True, cost=2),
    "resnet as it comes, augmented": Variant(_resnet(), augment=True, cost=2),
    "window sees all (7×7)": Variant(lambda: chain(last=7)),
    "window sees all (7×7), smooth activation": Variant(lambda: chain(last=7, smooth=True)),
    "separable, as many weights": Variant(_classifier(separable=True, parameters=307_000), cost=1.5),
    "classifier, separable": Variant(_classifier(separable=True, widths=(48, 64, 72, 72, 96, 128)), cost=2),
    "window sees all (7×7), no cue": Variant(lambda: chain(last=7), about="mass"),
    "field dropout 0.1": Variant(lambda: chain(fields=0.1)),
    "4 layers": Variant(lambda: chain(widths=(12, 16, 24, 32), halve_before=(1, 2))),
    "8 layers": Variant(lambda: chain(widths=(8, 10, 10, 12, 12, 12, 16, 32), halve_before=(2, 5)), cost=1.3),
    "plain, as many weights, augmented": Variant(
        lambda: models.classifier(1, 10, uniform(Trivial(2), 1), parameters=307_000), augment=True, cost=0.5
    ),
    "classifier as it comes, no cue": Variant(_classifier(), about="mass", cost=2),
    "resnet as it comes, no cue": Variant(_resnet(), about="mass", cost=2),
    **{
        f"{n} orientations, upright digits, {'shifted' if every else 'fixed'} grids": Variant(
            partial(chain, n_h=n, last=7), upright=2 * math.pi / n, shifted=every
        )
        for n in (4, 8)
        for every in (0, 4)
    },
    "chain": Variant(chain),
    "window padded": Variant(lambda: chain(padded=True)),
    "H projected before the last window": Variant(lambda: chain(early=True)),
    "mean over H": Variant(lambda: chain(project="mean")),
    "maximum over space": Variant(lambda: chain(space="max")),
    "one linear layer": Variant(lambda: chain(linear=1)),
    "no dropout": Variant(lambda: chain(dropout=0.0)),
    "chain, augmented": Variant(chain, augment=True),
    "chain, local N_k = 5": Variant(lambda: chain(kernel="local", n_k=5)),
    "chain, 8 orientations": Variant(lambda: chain(n_h=8), cost=0.7),
}
