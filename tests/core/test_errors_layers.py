"""Bad input of layers and networks gets one clear ValueError, with what was given and what would be right."""

import warnings
from collections.abc import Callable

import pytest
import torch

import liespline as ls
from liespline.nn import arguments
from own_group import Triangular

SO2, SO3 = ls.uniform(ls.SO2(), 4), ls.uniform(ls.SO3(), 12)
TWELVE, SCALES = ls.uniform(ls.SO2(), 12), ls.uniform(ls.Scale(2), 2, spacing=0.3)
GROWING = ls.uniform(ls.Scale(2), 3, spacing=0.4)
TINY = ls.Grid(ls.Scale(2), torch.tensor([[1e-25], [1.0]]).double(), torch.ones(2), 1.0)
FAR = torch.tensor([[40.0, 40.0]])
LIFT, GCONV = ls.Lift(2, 3, 5, SO2), ls.GConv(3, 4, 5, SO2)


MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: LIFT(torch.zeros(2, 9, 9)), r"\(2, 9, 9\); expected \(B, 2, S, S\)"),
    (lambda: GCONV(torch.zeros(1, 3, 9, 9)), r"\(1, 3, 9, 9\); expected \(B, 3, 4, S, S\)"),
    (lambda: LIFT(torch.zeros(1, 3, 9, 9)), r"\(1, 3, 9, 9\); expected \(B, 2, S, S\)"),
    (lambda: GCONV(torch.zeros(1, 3, 8, 9, 9)), r"\(1, 3, 8, 9, 9\); expected \(B, 3, 4, S, S\)"),
    (lambda: LIFT(torch.zeros(1, 2, 9, 9, dtype=torch.float64)), "float64.*float32"),
    (lambda: LIFT(torch.zeros(1, 2, 9, 9, device="meta")), "meta.*cpu"),
    (lambda: LIFT(torch.zeros(1, 2, 4, 9)), "axis 0 of x has 4 samples.*window's 5"),
    (
        lambda: ls.Lift(2, 3, 7, SO2, padding=1)(torch.zeros(1, 2, 9, 4)),
        r"axis 1 of x has 4 samples, 6 with its padding, fewer than the window's 7: x has shape \(1, 2, 9, 4\)",
    ),
    (
        lambda: ls.GConv(1, 1, 5, GROWING, padding="same", padding_mode="reflect")(torch.zeros(1, 1, 3, 6, 9)),
        r'padding_mode = "reflect" cannot add 6 samples to the 6 of space axis 0, at most 5: windows grow',
    ),
    (
        lambda: ls.Lift(1, 1, 5, GROWING, padding="same", padding_mode="circular")(torch.zeros(1, 1, 9, 5)),
        r'"circular" cannot add 6 samples to the 5 of space axis 1, at most 5',
    ),
    (lambda: ls.GConv(1, 1, 5, SO2, out_grid=SO3), r"SO2\(\).*SO3\(\)"),
    (lambda: ls.GConv(1, 1, 5, SO2, h_basis=ls.SplineBasis(SO3)), r"h_basis.*SO3\(\).*SO2\(\)"),
    (lambda: ls.Lift(1, 1, 5, SO2, x_basis=ls.SplineBasis(ls.disc(3, 3))), r"x_basis.*space_dim=3.*space_dim=2"),
    (
        lambda: ls.Lift(1, 1, 5, SO2, x_basis=ls.SplineBasis(ls.Grid(ls.Translation(2), FAR, torch.ones(1), 1.0))),
        "no spline of x_basis reaches the window; move its centres",
    ),
    (
        lambda: ls.GConv(1, 1, 5, SCALES, h_basis=ls.SplineBasis(ls.Grid(ls.Scale(2), FAR[:, :1], torch.ones(1), 1.0))),
        "no spline of h_basis reaches the elements h⁻¹h̃",
    ),
    (
        lambda: ls.GConv(1, 1, None, SO3, x_basis=ls.SplineBasis(ls.disc(3, 3))),
        "x_basis is given, but kernel_size = None leaves no space for it",
    ),
    (lambda: ls.models.unet(1, 1, SO2, kernel="wide"), "'wide', must be one of dense, local, .*pointwise"),
    (lambda: ls.models.unet(1, 1, SO2, kernel="apart"), "'apart', is called \"pointwise\" now"),
    (lambda: ls.Lift(1, 1, 5, 12), "grid is a int, must be a Grid"),
    (lambda: ls.Lift(1, 1, 5, SO2, stride=0), "stride = 0, must be a whole number ≥ 1"),
    (lambda: ls.Lift(1, 1, 5, SO2, stride=(1, 2, 3)), r"stride = \(1, 2, 3\).*or 2 of them"),
    (lambda: ls.Lift(1, 1, 5, SO2, padding=-1), "padding = -1, must be a whole number ≥ 0"),
    (lambda: ls.Lift(1, 1, 5, SO2, padding="full"), "'full'.*\"same\""),
    (lambda: ls.Lift(1, 1, 5, SO2, padding="same", stride=2), r"\"same\".*stride = \(2, 2\)"),
    (lambda: ls.Lift(1, 1, 5, SO2, padding_mode="wrap"), "'wrap', must be one of zeros"),
    (lambda: ls.GConv(1, 1, 0, SO2), "kernel_size = 0"),
    (lambda: ls.GConv(1, 0, 5, SO2), "out_channels = 0"),
    (lambda: ls.Lift(1, 1, None, SO2), "kernel_size = None"),
    (lambda: ls.Project("min", SO2), "'min', must be"),
    (lambda: ls.Project("max", SO2)(torch.zeros(1, 1, 5, 3, 3)), r"\(1, 1, 5, 3, 3\).*4"),
    (lambda: ls.GConv(1, 1, 3, ls.uniform(ls.Sphere(), 6), out_grid=SO3), "kernel_size=None"),
    (lambda: ls.models.pcam(8, 7), "n_k = 7.*1, 3, 4"),
    (lambda: ls.models.pcam(8, 8, "dence"), "'dence'.*dense"),
    (lambda: ls.models.pcam(8, 8, kernel_size=6), "kernel_size = 6.*5.*7"),
    (lambda: ls.models.celeba(0, 1), "n_h = 0"),
    (lambda: ls.models.celeba(6, 6), "n_k = 6.*1, 2, 3, 4, 5"),
    (lambda: ls.models.celeba(3, 2, "deformable"), "'deformable', must be"),
    (lambda: ls.models.celeba(3, 2, "dense", scale=-1.0), "scale = -1.0"),
    (lambda: ls.models.celeba(3, 3, preset="published"), "'published', must be"),
    (lambda: ls.models.celeba(6, 3, preset="released"), "n_h = 6.*1, 2, 3, 4, 5"),
    (lambda: ls.models.celeba(3, 2, "atrous", preset="released"), "no such network"),
    (lambda: ls.models.celeba(1, 3, preset="released"), "no such network"),
    (lambda: ls.nn.MaxPool(2)(torch.zeros(2, 3, 4)), r"\(2, 3, 4\)"),
    (lambda: ls.nn.Downsample(2)(torch.zeros(2, 3, 4)), r"\(2, 3, 4\)"),
    (lambda: ls.nn.Upsample(2)(torch.zeros(2, 3, 4)), r"\(2, 3, 4\)"),
    (lambda: ls.nn.Downsample(0), "factor = 0"),
    (lambda: ls.nn.BatchNorm(3)(torch.zeros(3, 2, 4, 5, 5, 5)), r"\(3, 2, 4, 5, 5, 5\).*3"),
    (lambda: ls.nn.BatchNorm(2)(torch.zeros(1, 2, 1)), "one value per channel"),
    (lambda: ls.GConv(4, 6, 5, SO2, groups=3), "GConv: groups = 3, must"),
    (lambda: ls.GConv(4, 6, 5, SO2, groups=0), "GConv: groups = 0, must"),
    (
        lambda: ls.nn.SeparableGConv(2, 2, 5, SO2)[1](torch.randn(1, 3, 4, 9, 9)),
        r"Depthwise: x has shape \(1, 3, 4, 9, 9\)",
    ),
    (lambda: ls.models.resnet(1, 2, SO2, widths=()), r"resnet: widths = \(\)"),
    (lambda: ls.models.unet(1, 2, SO2, widths=(3, 0)), r"unet: widths = \(3, 0\)"),
    (lambda: ls.models.classifier(1, 2, SO2, widths=(3,)), r"\(3,\)"),
    (lambda: ls.models.classifier(1, 2, SO2, kernel="fuzzy"), "fuzzy"),
    (lambda: ls.nn.FieldDropout(1.5), r"p = 1\.5"),
    (lambda: ls.nn.shift(ls.Lift(1, 1, 5, SCALES), -torch.ones(1)), r"shift: h = \[-1.0\] is not an element of Scale"),
    (lambda: ls.nn.shift(ls.Lift(1, 1, 5, SCALES), torch.ones(2, 1)), r"h has shape \(2, 1\)"),
    (lambda: ls.nn.GridAverage(LIFT, 0), "count = 0, must be at least 1"),
    (
        lambda: ls.nn.GridAverage(ls.models.classifier(1, 2, ls.uniform(ls.Trivial(2), 1), widths=(2, 3))),
        "no layer of this .* has a grid",
    ),
    (lambda: ls.nn.Ensemble([]), "Ensemble: no networks"),
    (lambda: ls.Lift(1, 1, 3, TINY), r"Lift: 1/\|det h\| times the basis reaches 4e\+49"),
    (
        lambda: ls.GConv(1, 1, 5, ls.local(Triangular(), 7, 0.3))(torch.zeros(1, 1, 3, 9, 9)),
        r"expected \(B, 1, 7, S, S\)",
    ),
    *(
        (lambda n=n: ls.nn.Upsample(2)(torch.zeros(1, 1, 2, 5, 5), n), rf"size = \({n[0]},.*but x has \(5, 5\)")
        for n in ((9, 11), (9,), (8, 9))
    ),
    (
        lambda: ls.optim.SpectralAdamW(LIFT.parameters(), lr=0.1),
        r"SpectralAdamW: network is a generator, must be a module: SpectralAdamW\(net, lr=1e-3\)",
    ),
    (lambda: ls.ops.use("fast").__enter__(), "unknown path 'fast': use one of auto, dense"),
]


@pytest.mark.filterwarnings("ignore:.*energy falls outside")
@pytest.mark.parametrize(("call", "says"), MISTAKES, ids=[says for _, says in MISTAKES])
def test_bad_input(call: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


def test_layers_with_the_same_trainable_basis_learn_centres_of_their_own() -> None:
    basis = ls.SplineBasis(ls.disc(3), trainable=True)
    one, other = (ls.Lift(1, 1, 5, SO2, x_basis=basis) for _ in range(2))
    with torch.no_grad():
        one.x_centres += 0.3
    torch.testing.assert_close(other.x_centres.double(), basis.grid.elements)


def test_a_basis_that_does_not_fit_is_told_once_with_its_cost() -> None:
    arguments._told.clear()
    basis = ls.SplineBasis(ls.disc(5), degree=2)
    with pytest.warns(UserWarning, match=r"up to \d+% of a basis function's energy falls outside the 5×5 window"):
        ls.Lift(1, 1, 5, TWELVE, x_basis=basis)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ls.Lift(1, 1, 5, TWELVE, x_basis=basis)
        ls.GConv(1, 1, 7, TWELVE, x_basis=basis)  # fits
        ls.GConv(1, 1, 5, TWELVE)  # the default fits
        ls.Lift(1, 1, 3, ls.uniform(ls.Trivial(2), 1))  # nothing turns
