"""Bad input gets one clear ValueError, with what was given and what would be right."""

from __future__ import annotations

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
FAR = torch.tensor([[40.0, 40.0]])
LIFT, GCONV = ls.Lift(2, 3, 5, SO2), ls.GConv(3, 4, 5, SO2)


CASES: dict[str, tuple[Callable[[], object], str]] = {
    "rank": (lambda: LIFT(torch.zeros(2, 9, 9)), r"\(2, 9, 9\); expected \(B, 2, S, S\)"),
    "rank of a feature map": (lambda: GCONV(torch.zeros(1, 3, 9, 9)), r"\(1, 3, 9, 9\); expected \(B, 3, 4, S, S\)"),
    "channels": (lambda: LIFT(torch.zeros(1, 3, 9, 9)), r"\(1, 3, 9, 9\); expected \(B, 2, S, S\)"),
    "elements": (lambda: GCONV(torch.zeros(1, 3, 8, 9, 9)), r"\(1, 3, 8, 9, 9\); expected \(B, 3, 4, S, S\)"),
    "dtype": (lambda: LIFT(torch.zeros(1, 2, 9, 9, dtype=torch.float64)), "float64.*float32"),
    "device": (lambda: LIFT(torch.zeros(1, 2, 9, 9, device="meta")), "meta.*cpu"),
    "image too small": (lambda: LIFT(torch.zeros(1, 2, 4, 9)), "axis 0 of x has 4 samples.*window's 5"),
    "image too small with its padding": (
        lambda: ls.Lift(2, 3, 7, SO2, padding=1)(torch.zeros(1, 2, 9, 4)),
        r"axis 1 of x has 4 samples, 6 with its padding, fewer than the window's 7: x has shape \(1, 2, 9, 4\)",
    ),
    "too small to be reflected": (
        lambda: ls.GConv(1, 1, 5, GROWING, padding="same", padding_mode="reflect")(torch.zeros(1, 1, 3, 6, 9)),
        r'padding_mode = "reflect" cannot add 6 samples to the 6 of space axis 0, at most 5: windows grow',
    ),
    "too small to be repeated": (
        lambda: ls.Lift(1, 1, 5, GROWING, padding="same", padding_mode="circular")(torch.zeros(1, 1, 9, 5)),
        r'"circular" cannot add 6 samples to the 5 of space axis 1, at most 5',
    ),
    "grid of another group": (lambda: ls.GConv(1, 1, 5, SO2, out_grid=SO3), r"SO2\(\).*SO3\(\)"),
    "basis of another group": (
        lambda: ls.GConv(1, 1, 5, SO2, h_basis=ls.SplineBasis(SO3)),
        r"h_basis.*SO3\(\).*SO2\(\)",
    ),
    "spatial basis of another space": (
        lambda: ls.Lift(1, 1, 5, SO2, x_basis=ls.SplineBasis(ls.disc(3, 3))),
        r"x_basis.*space_dim=3.*space_dim=2",
    ),
    "centres outside the window": (
        lambda: ls.Lift(1, 1, 5, SO2, x_basis=ls.SplineBasis(ls.Grid(ls.Translation(2), FAR, torch.ones(1), 1.0))),
        "no spline of x_basis reaches the window; move its centres",
    ),
    "centres off the grid": (
        lambda: ls.GConv(1, 1, 5, SCALES, h_basis=ls.SplineBasis(ls.Grid(ls.Scale(2), FAR[:, :1], torch.ones(1), 1.0))),
        "no spline of h_basis reaches the elements h⁻¹h̃",
    ),
    "spatial basis without space": (
        lambda: ls.GConv(1, 1, None, SO3, x_basis=ls.SplineBasis(ls.disc(3, 3))),
        "x_basis is given, but kernel_size = None leaves no space for it",
    ),
    "no grid": (lambda: ls.Lift(1, 1, 5, 12), "grid is a int, must be a Grid"),  # type: ignore[arg-type]
    "stride": (lambda: ls.Lift(1, 1, 5, SO2, stride=0), "stride = 0, must be a whole number ≥ 1"),
    "strides": (lambda: ls.Lift(1, 1, 5, SO2, stride=(1, 2, 3)), r"stride = \(1, 2, 3\).*or 2 of them"),
    "padding": (lambda: ls.Lift(1, 1, 5, SO2, padding=-1), "padding = -1, must be a whole number ≥ 0"),
    "padding word": (lambda: ls.Lift(1, 1, 5, SO2, padding="full"), "'full'.*\"same\""),
    "same with stride": (lambda: ls.Lift(1, 1, 5, SO2, padding="same", stride=2), r"\"same\".*stride = \(2, 2\)"),
    "padding mode": (lambda: ls.Lift(1, 1, 5, SO2, padding_mode="wrap"), "'wrap', must be one of zeros"),
    "window": (lambda: ls.GConv(1, 1, 0, SO2), "kernel_size = 0"),
    "channels of a layer": (lambda: ls.GConv(1, 0, 5, SO2), "out_channels = 0"),
    "lifting nothing": (lambda: ls.Lift(1, 1, None, SO2), "kernel_size = None"),  # type: ignore[arg-type]
    "projection": (lambda: ls.Project("min", SO2), "'min', must be"),
    "projection of the wrong grid": (
        lambda: ls.Project("max", SO2)(torch.zeros(1, 1, 5, 3, 3)),
        r"\(1, 1, 5, 3, 3\).*4",
    ),
    "sphere to SO(3) with space": (
        lambda: ls.GConv(1, 1, 3, ls.uniform(ls.Sphere(), 6), out_grid=SO3),
        "kernel_size=None",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case: str) -> None:
    call, says = CASES[case]
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


def test_a_users_group_gets_the_same_messages() -> None:
    grid = ls.local(Triangular(), 7, 0.3)
    with pytest.raises(ValueError, match=r"expected \(B, 1, 7, S, S\)"):
        ls.GConv(1, 1, 5, grid)(torch.zeros(1, 1, 3, 9, 9))
    with pytest.raises(ValueError, match=r"Triangular.log: h has shape \(3, 3\)"):
        Triangular().log(torch.eye(3))
