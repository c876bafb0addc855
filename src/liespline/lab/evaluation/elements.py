"""By which elements of a group images are transformed to test a network, and which of them its grid has."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import roma
import torch
from torch import Tensor, nn

from ...grids import Grid
from ...groups import GL2, O2, O3, SO2, SO3, Group, Product, Scale
from ...nn import GConv, Lift
from ..runs.trained import Trained

AS_DATA = {"scaled": "scale", "rotated-scaled": "sim2"}
"""The group by which a generated set transforms its images."""
BASE = 11.0
"""Degrees by which copies in the plane are rotated before all else."""
ANGLES = (0.0, 22.5, 30.0, 45.0, 60.0, 67.5, 90.0, 112.5, 120.0, 135.0, 150.0, 157.5, 180.0)
"""The multiples of 22.5° and of 30° up to half a turn."""
FEW = (0.0, 22.5, 30.0, 45.0, 90.0)
ROTATIONS = "angle of the rotation"
"""The axis of rotations that have axes of their own too, in 3-D."""
SAME = 1e-4
"""How far apart the entries of two matrices of one element may be."""


class Elements(NamedTuple):
    """Group elements that images are transformed by, with the words that name them on a plot."""

    group: Group
    values: Tensor
    """(N, *element_shape)"""
    labels: tuple[str, ...]
    axis: str


def transforms_of(trained: Trained) -> Elements:
    """The elements under which accuracy is measured, the first one the identity.

    Those that the network's data are transformed by, where these say so; else all kinds that its group has. Networks of
    no group are tested by rotations. So networks of one set are tested on the same images, or on their mirror images
    too: rotated, in 3-D about every axis, reflected or not; shrunk for scales; squeezed for GL(2). Those trained on
    upright images that are equivariant to small transforms are tested by small rotations.
    """
    d, group = len(trained.signature.space), _how(trained)
    if group == "a little":
        return _a_little()
    if group == "scale":
        return _shrunk(d, torch.arange(9))
    if d == 3:
        # Drawn, and the same for all: even grids may be rotations of the voxels, where nothing is interpolated.
        return _in_space(group, torch.cat([SO3().identity(dtype=torch.float64).unsqueeze(0), _drawn(12)]))
    # Many lie between the orientations of a grid, which alone would be optimistic: half of them for 12 or 8.
    count = 16 if group in ("sim2", "gl2") else 24
    return _in_the_plane(group, [360 / count * i for i in range(count)])


def copies_of(trained: Trained, few: bool = False) -> Elements:
    """The elements that make the copies of an image which a network's outputs are compared on, each interpolated once.

    None is upright, and by none do samples meet samples. In the plane they are rotations by 11° and on from there by
    every 22.5° and 30° up to 180°: of 4, 6, 8, 12, 16 and 24 orientations, some pairs differ by a step on the grid and
    many by one between. In space they are drawn rotations, each also followed by a half or a third of a turn that the
    grids of 12, 24 and 60 rotations have. Scales are ⅛ of an octave apart. Maps are compared on `few`
    copies, and masks on rotated ones whatever the group.
    """
    d, group = len(trained.signature.space), _how(trained)
    if few and trained.signature.kind == "masks" and group not in ("o2", "o3"):
        group = "so2" if d == 2 else "so3"
    if group == "a little":
        return _a_little(2.5)
    if group == "scale":
        return _shrunk(d, torch.arange(8) + 0.5)
    if d == 3:
        half, third = torch.diag(torch.tensor([-1.0, -1, 1])), torch.eye(3).roll(1, 0)
        drawn = _drawn(6)
        if few:
            return _in_space(group, torch.cat([drawn[:2], half.double() @ drawn[:1]]))
        more = torch.cat([half.double() @ drawn[:3], third.double() @ drawn[3:]])
        return _in_space(group, torch.cat([drawn, more]))
    degrees = FEW if few or group in ("sim2", "gl2") else ANGLES
    found, base = _in_the_plane(group, degrees), _in_the_plane(group, (BASE,)).values[0]
    return found._replace(values=found.group.product(found.values, base))


def _how(trained: Trained) -> str:
    """The name of the group that images are transformed by."""
    if trained.config.transformation == "affine" or trained.config.network.max_angle is not None:
        return "a little"
    return AS_DATA.get(trained.config.transformation, str(trained.config.network.group))


def _a_little(more: float = 0.0) -> Elements:
    """Rotations by at most 20°, as far as affNIST goes: for networks that are upright otherwise."""
    degrees = [angle + more for angle in (0, -20, -15, -10, -5, 5, 10, 15, 20) if angle + more <= 20]
    values = torch.tensor(degrees, dtype=torch.float64).deg2rad().unsqueeze(-1)
    return Elements(SO2(), values, tuple(f"{angle:g}°" for angle in degrees), "angle")


def _shrunk(d: int, eighths: Tensor) -> Elements:
    """Scales by so many eighths of an octave."""
    values = (-math.log(2) * eighths.double() / 8).exp().unsqueeze(-1)
    return Elements(Scale(d), values, tuple(f"{float(e):.2f}" for e in values[:, 0]), "scale")


def _drawn(count: int) -> Tensor:
    """Rotations of space, the same ones in every run."""
    quaternions = torch.randn(count, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return roma.unitquat_to_rotmat(torch.nn.functional.normalize(quaternions, dim=-1))


def _in_space(group: str, values: Tensor) -> Elements:
    """These rotations, and reflected too for O(3)."""
    labels = [f"{float(a):.0f}°" for a in SO3().log(values).norm(dim=-1) * 180 / math.pi]
    if group == "o3":
        values, labels = torch.cat([values, -values]), [*labels, *(f"{label}, reflected" for label in labels)]
    return Elements(O3() if group == "o3" else SO3(), values, tuple(labels), ROTATIONS)


def _in_the_plane(group: str, degrees: Sequence[float]) -> Elements:
    """Rotations by these angles, the same ones whatever the network, and those again reflected, shrunk or squeezed."""
    angles, count = torch.tensor(degrees, dtype=torch.float64).deg2rad().unsqueeze(-1), len(degrees)
    found: Group = SO2()
    names, each = [""], [angles]
    match group:
        case "o2":
            o2, names = O2(), ["", ", reflected"]
            rotations = torch.cat([angles, torch.ones_like(angles)], 1)
            found, each = o2, [o2.product(rotations, r) for r in o2.representatives(dtype=torch.float64)]
        case "sim2":
            sim2, scales = Product(SO2(), Scale(2)), (1.0, 0.5**0.5, 0.5)
            names = ["", *(f", at scale {s:.2g}" for s in scales[1:])]
            found, each = sim2, [sim2.join(angles, torch.full((count, 1), s, dtype=torch.float64)) for s in scales]
        case "gl2":
            names = ["", ", squeezed along an axis", ", squeezed along a diagonal"]
            squeezes = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.3]], dtype=torch.float64)
            found, each = GL2(), [GL2().exp(torch.cat((s.expand(count, 3), angles), 1)) for s in squeezes]
    labels = (f"{angle:g}°{name}" for name in names for angle in degrees)
    return Elements(found, torch.cat(each), tuple(labels), "angle")


def grid_of(network: nn.Module) -> Grid | None:
    """The grid of a network's first layer on a group."""
    return next((layer.grid for layer in network.modules() if isinstance(layer, Lift | GConv)), None)


def on_grid(grid: Grid | None, copies: Elements) -> Tensor:
    """Which pairs of copies differ by an element that leads from one of the grid to another one: booleans (K, K)."""
    between = _steps(copies.group, copies.values)  # (K, K, d, d)
    if grid is None or len(grid) == 1:
        return torch.zeros(between.shape[:2], dtype=torch.bool)
    known = _steps(grid.group, grid.elements).flatten(0, 1)
    off = torch.stack([(known.flatten(1) - step).abs().amax(1).min() for step in between.flatten(0, 1).flatten(1)])
    return off.view(between.shape[:2]) < SAME


def _steps(group: Group, elements: Tensor) -> Tensor:
    """The matrices of h_j h_i⁻¹: (N, N, d, d), at [i, j]."""
    matrices = group.matrix(elements.double())
    return matrices @ torch.linalg.inv(matrices).unsqueeze(1)


def defined(value: float) -> float | None:
    """A number, or None for NaN, which is undefined and which JSON does not know."""
    return None if math.isnan(value) else value
