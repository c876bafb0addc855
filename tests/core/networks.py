"""Small networks of every layer, group and kind, which tests of the whole share."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from exported import Residual
from liespline import GConv, Grid, Lift, Project, SplineBasis, models
from liespline.nn import Ensemble, GridAverage, NormReLU, SeparableGConv
from liespline.nn.base import Correlation

_Pair = tuple[SplineBasis | None, SplineBasis | None]
SO2 = ls.uniform(ls.SO2(), 8)
SCALES = ls.uniform(ls.Scale(2), 3, spacing=0.5 * math.log(2))
LINE = ls.uniform(ls.Scale(1), 3, spacing=0.5 * math.log(2))
CUBE = ls.uniform(ls.SO3(), 12)
SPHERE = ls.uniform(ls.Sphere(), 6)
FLIPS = ls.uniform(ls.O2(), 8)
AXIAL = ls.uniform(ls.Axial(ls.SO2(), 0), 4)
ZOOMS = ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (4, 2), spacing=(None, 0.4))
SQUEEZES = ls.local(ls.GL2(), 9, (0.3, 0.4, 0.4, 1.5))
TRIVIAL = ls.uniform(ls.Trivial(2), 1)
TURNS = ls.uniform(ls.SO2(), 4)
FIFTHS = ls.uniform(ls.SO2(), 5)


def _near(grid: Grid, *, trainable: bool = False) -> SplineBasis:
    return SplineBasis(ls.local(grid.group, 2 * grid.group.dim + 1, grid.spacing), trainable=trainable)


def _moving(d: int) -> SplineBasis:
    return SplineBasis(ls.disc(3, d), trainable=True)


def _network(grid: Grid, h_basis: SplineBasis | None = None, x_bases: _Pair = (None, None)) -> nn.Module:
    size = 3 if grid.group.space_dim == 3 else 5
    return nn.Sequential(
        Lift(2, 3, size, grid, x_basis=x_bases[0], padding="same"),
        ls.nn.BatchNorm(3),
        nn.ReLU(),
        GConv(3, 4, size, grid, x_basis=x_bases[1], h_basis=h_basis),
        Project("mean", grid),
    )


@dataclass(frozen=True)
class Network:
    """A network and the shape of its inputs, without the batch."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    on_meta: bool = True  # whether it can be made there
    traced: bool = True  # whether it is compiled: not where that would be long, and the same code again
    in_onnx: bool = True  # likewise

    def __call__(self) -> nn.Module:
        """Return the network, with other parameters each time."""
        return self.make()

    def image(self, batch: int = 2, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return an input."""
        return torch.randn(batch, *self.shape, dtype=dtype)


def _of_layers(*given: object, traced: bool = True) -> Network:
    grid: Grid = given[0]  # type: ignore[assignment]
    space = {1: (16,), 2: (14, 14), 3: (6, 6, 6)}[grid.group.space_dim]
    return Network(lambda: _network(*given), (2, *space), traced=traced, in_onnx=False)  # type: ignore[arg-type]


def _line() -> nn.Module:
    return nn.Sequential(
        *(Lift(2, 3, 5, LINE, padding="same"), nn.BatchNorm2d(3), nn.ReLU(), ls.nn.MaxPool(2)),
        *(
            GConv(3, 3, 4, LINE, padding="same", h_basis=_near(LINE, trainable=True), h_boundary="renormalise"),
            nn.GELU(),
        ),
        Project("sum", LINE),
        *(nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(3, 2)),
    )


def _volume() -> nn.Module:
    return nn.Sequential(
        *(Lift(1, 2, 3, CUBE), ls.nn.BatchNorm(2), nn.ReLU(), ls.nn.MaxPool(2)),
        GConv(2, 2, 3, CUBE, h_basis=_near(CUBE), padding=1, padding_mode="circular", stride=2),
        *(Project("max", CUBE), nn.Flatten()),
    )


def _functions() -> nn.Module:
    first = GConv(1, 2, None, SPHERE, out_grid=CUBE)
    return nn.Sequential(first, nn.BatchNorm1d(2), nn.ReLU(), GConv(2, 3, None, CUBE), Project("max", CUBE))


def _groups() -> nn.Module:
    lift = Lift(2, 4, 5, TURNS, groups=2, padding="same", padding_mode="disc")
    return nn.Sequential(lift, NormReLU(4), GConv(4, 8, 3, TURNS, groups=4), nn.BatchNorm3d(8), Project("max", TURNS))


def _separable() -> nn.Module:
    return nn.Sequential(
        *(Lift(1, 3, 5, TURNS, padding=2), ls.nn.BatchNorm(3), nn.ReLU()),
        *(SeparableGConv(3, 4, 5, TURNS, padding="same", padding_mode="circular", x_basis=_moving(2)), NormReLU(4)),
        *(SeparableGConv(4, 2, 4, TURNS, stride=2, padding=1), Project("vector", TURNS), nn.Flatten(1, 2)),
    )


def _norms() -> nn.Module:
    """On a grid whose elements stand for unequal parts of the group."""
    grid = SQUEEZES
    return nn.Sequential(
        *(Lift(1, 4, 3, grid), NormReLU(4, norm="instance", grid=grid), GConv(4, 4, 1, grid)),
        *(ls.nn.BatchNorm(4, grid=grid), nn.SiLU(), GConv(4, 4, 1, grid), ls.nn.GroupNorm(2, 4, grid=grid)),
        *(nn.SiLU(), GConv(4, 3, 1, grid), ls.nn.LayerNorm(3, grid=grid), Project("max", grid)),
    )


def _irreps() -> nn.Module:
    to, back = ls.nn.ToIrreps(CUBE, 1), ls.nn.FromIrreps(CUBE, 1)
    return nn.Sequential(Lift(1, 2, 3, CUBE), nn.ReLU(), to, back, nn.ReLU(), Project("max", CUBE))


def _frames() -> nn.Module:
    """With biases on the group, from its reflections to its rotations and to nothing."""
    turns = ls.nn.Restrict(FLIPS, TURNS)
    one = ls.nn.Restrict(turns.out_grid, TRIVIAL)
    net = nn.Sequential(
        *(Lift(1, 2, 3, FLIPS), ls.nn.FrameBias(2, FLIPS), NormReLU(2), turns),
        *(GConv(4, 2, 3, turns.out_grid), ls.nn.FrameBias(2, turns.out_grid, _near(turns.out_grid)), nn.SiLU(), one),
        *(GConv(8, 3, 3, one.out_grid), Project("max", one.out_grid)),
    )
    for layer in net:
        if isinstance(layer, ls.nn.FrameBias):
            nn.init.normal_(layer.weight)
    return net


def _vectors() -> nn.Module:
    """Vectors in and out, twice."""
    options = {"in_type": "vector", "padding": "same"}
    return nn.Sequential(
        *(Lift(2, 4, 5, SO2, groups=2, **options), NormReLU(4), Project("vector", SO2)),
        *(Lift(4, 3, 3, SO2, x_basis=_moving(2), **options), nn.ReLU(), Project("max", SO2)),
    )


def _tensors() -> nn.Module:
    return nn.Sequential(Lift(1, 2, 3, CUBE, in_type="tensor"), nn.ReLU(), Project("vector", CUBE), nn.Flatten(1, 2))


class _Sums(Residual):
    """With the paper's own pooling, which ONNX has, and no layer twice, which `torch.func` does not give back."""

    def __init__(self) -> None:
        super().__init__(TURNS)
        self.pool, self.block[3] = nn.MaxPool3d((1, 2, 2)), GConv(4, 4, 3, TURNS, padding=1)


NETWORKS: dict[str, Network] = {
    "SO2 dense": _of_layers(SO2, traced=False),
    "SO2 local": _of_layers(SO2, _near(SO2)),
    "SO2 deformable": _of_layers(SO2, _near(SO2, trainable=True), (_moving(2), _moving(2))),
    "Scale 2-D": _of_layers(SCALES),
    "Scale 1-D deformable": _of_layers(LINE, _near(LINE, trainable=True), (_moving(1), None)),
    "SO3 local": _of_layers(CUBE, _near(CUBE), traced=False),
    "SO3 deformable": _of_layers(CUBE, _near(CUBE, trainable=True), (None, _moving(3))),
    "Sphere": _of_layers(SPHERE),
    "O2 dense": _of_layers(FLIPS, traced=False),
    "O2 deformable": _of_layers(FLIPS, SplineBasis(FLIPS, trainable=True)),
    "SIM2 local": _of_layers(ZOOMS, _near(ZOOMS), traced=False),
    "GL2 dense": _of_layers(SQUEEZES, traced=False),
    "Trivial": _of_layers(TRIVIAL, traced=False),
    "1-D": Network(_line, (2, 22)),
    "3-D": Network(_volume, (1, 10, 10, 10)),
    "axial": Network(
        lambda: nn.Sequential(
            Lift(1, 2, (1, 5, 5), AXIAL),
            NormReLU(2),
            ls.nn.Downsample((1, 2, 2)),
            GConv(2, 3, 3, AXIAL),
            Project("max", AXIAL),
        ),
        (1, 4, 12, 13),
    ),
    "functions on groups": Network(_functions, (1, 6)),
    "channel groups": Network(_groups, (2, 13, 14)),
    "norms": Network(_norms, (1, 7, 8)),
    "vectors": Network(_vectors, (2, 2, 9, 8)),
    "tensors": Network(_tensors, (1, 3, 3, 5, 5, 5), traced=False),
    "irreps": Network(_irreps, (1, 6, 6, 6)),
    "frames": Network(_frames, (1, 8, 9)),
    "separable": Network(_separable, (1, 14, 15), on_meta=False),
    "bispectrum": Network(
        lambda: nn.Sequential(Lift(1, 3, 3, FIFTHS), nn.SiLU(), Project("bispectrum", FIFTHS), nn.Conv2d(21, 2, 1)),
        (1, 8, 9),
    ),
    "residual": Network(_Sums, (2, 12, 12)),
    "CelebA": Network(lambda: models.celeba(2, 2, preset="released"), (3, 16, 16), on_meta=False, traced=False),
    "classifier": Network(lambda: models.classifier(1, 3, TURNS, widths=(3, 4, 4, 5), dropout=0.0), (1, 18, 21)),
    "resnet": Network(lambda: models.resnet(1, 3, TURNS, widths=(3, 4), dropout=0.0), (1, 18, 21), traced=False),
    "smooth": Network(lambda: models.classifier(1, 3, FLIPS, widths=(3, 4), smooth=True, dropout=0.0), (1, 18, 21)),
    "smooth unet": Network(
        lambda: models.unet(1, 3, ZOOMS, widths=(3, 4), smooth=True), (1, 18, 21), on_meta=False, traced=False
    ),
    "GELU": Network(
        lambda: models.resnet(1, 3, TURNS, widths=(3, 4), activation="gelu", dropout=0.0), (1, 18, 21), traced=False
    ),
    "unet": Network(lambda: models.unet(1, 3, TURNS, widths=(3, 4), separable=True), (1, 18, 21), on_meta=False),
    "restricted": Network(
        lambda: models.resnet(1, 3, FLIPS, widths=(2, 3), dropout=0.0, restrict={0: TURNS, 1: TRIVIAL}),
        (1, 18, 21),
        traced=False,
    ),
    "restricted unet": Network(
        lambda: models.unet(1, 3, FLIPS, widths=(2, 3), restrict={1: TURNS}), (1, 18, 21), on_meta=False
    ),
    "broken": Network(
        lambda: models.classifier(1, 3, TURNS, widths=(3, 4, 8), dropout=0.0, activation="silu", breaking=True),
        (1, 14, 15),
        traced=False,
    ),
    "ensemble": Network(lambda: Ensemble(_network(SO2) for _ in range(2)), (2, 14, 14), traced=False),
    "several grids": Network(lambda: GridAverage(_network(SO2)), (2, 14, 14), on_meta=False, traced=False),
}
every_network = pytest.mark.parametrize("name", NETWORKS)


def layers(net: nn.Module) -> list[Correlation]:
    """Return the layers of a network that hold samples."""
    return [module for module in net.modules() if isinstance(module, Correlation)]


def gradients(net: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """Return the gradient of every parameter."""
    names, parameters = zip(*net.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    """Compare relative to the size of what is expected, or to 1 if that is larger."""
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * max(1.0, float(expected.detach().abs().max())))
