"""Bad input raises a ValueError that names the argument, repeats the value and says what would be right."""

import math
import re

import numpy as np
import pytest
import torch

import liespline as ls
from liespline.grids import polyhedral
from own_group import Triangular

SO2, SO3, SCALE, SPHERE = ls.SO2(), ls.SO3(), ls.Scale(2), ls.Sphere()
SIM2 = ls.Product(SO2, SCALE)
CIRCLE = ls.uniform(SO2, 8)
MIRROR = torch.diag(torch.tensor([1.0, 1.0, -1.0]))
ONES = torch.ones

# What was done: the call, and what the message has to hold: argument and value, then what would be right.
MISTAKES = {
    "element without its last axis": (lambda: SO3.log(ONES(2, 3)), "h has shape (2, 3)", "(*batch, 3, 3)"),
    "element with a batch too many": (lambda: SPHERE.log(ONES(3, 4)), "h has shape (3, 4)", "(*batch, 3)"),
    "second factor of a product": (lambda: SCALE.product(g=ONES(1), h=ONES(2)), "h has shape (2,)", "(*batch, 1)"),
    "algebra vector": (lambda: SO3.exp(ONES(4)), "a has shape (4,)", "(*batch, 3)"),
    "point of another space": (lambda: SO2.act(ONES(1), ONES(5, 3)), "x has shape (5, 3)", "(*batch, 2)"),
    "a user's own group too": (lambda: Triangular().log(ONES(2, 3)), "h has shape (2, 3)", "(*batch, 2, 2)"),
    "whole numbers": (
        lambda: SO2.exp(torch.ones(1, dtype=torch.long)),
        "a must be",
        "floating-point tensor, not torch.int64",
    ),
    "no tensor": (lambda: SO2.exp(np.ones(1)), "a must be", "floating-point tensor, not ndarray"),
    "negative scale": (lambda: SCALE.log(torch.tensor([[1.0], [-2.0]])), "h[1] = [-2.0]", "positive and finite"),
    "scale zero": (lambda: SCALE.inverse(torch.zeros(1)), "h = [0.0]", "positive and finite"),
    "stretched rotation": (
        lambda: SO3.log(2 * torch.eye(3)),
        "h = [[2.0, 0.0, 0.0]",
        "orthonormal columns and determinant +1",
    ),
    "mirror": (lambda: SO3.act(MIRROR, ONES(3)), "h = [[1.0, 0.0, 0.0]", "determinant +1"),
    "point off the sphere": (lambda: SPHERE.log(torch.zeros(3)), "h = [0.0, 0.0, 0.0]", "length 1"),
    "angle that is no number": (lambda: SO2.log(torch.tensor([math.nan])), "h = [nan]", "finite"),
    "space without dimensions": (lambda: ls.Scale(0), "space_dim = 0", "whole number ≥ 1"),
    "space of half a dimension": (lambda: ls.Translation(1.5), "space_dim = 1.5", "whole number ≥ 1"),
    "empty circle": (lambda: ls.uniform(SO2, 0), "n = 0", "whole number ≥ 1"),
    "negative number of elements": (lambda: ls.repulsion(SO3, -3), "n = -3", "whole number ≥ 1"),
    "half an element": (lambda: ls.local(SO2, 2.5, 1.0), "n = 2.5", "whole number ≥ 1"),
    "empty lattice": (lambda: ls.lattice(2, 0), "n = 0", "whole number ≥ 1"),
    "empty axis": (lambda: ls.lattice(2, (3, 0)), "n = 0", "whole number ≥ 1"),
    "lattice of half points": (lambda: ls.lattice(2, 2.5), "n = 2.5", "whole number ≥ 1"),
    "axes too few": (lambda: ls.lattice(3, (3, 3)), "n = (3, 3) has 2 numbers", "must have 3"),
    "empty disc": (lambda: ls.disc(0), "disc: n = 0", "whole number ≥ 1"),
    "box of another dimension": (lambda: ls.local(SO3, (3, 3), 0.5), "n = (3, 3) has 2 numbers", "must have 3"),
    "half a shell": (lambda: ls.local(SO3, 9, 0.5), "n = 9 cuts a shell", "take 7 or 19"),
    "negative spacing": (lambda: ls.local(SO2, 3, -0.1), "spacing = -0.1", "positive"),
    "lattice without spacing": (lambda: ls.lattice(2, 3, spacing=0.0), "spacing = 0.0", "positive"),
    "scales without a step": (lambda: ls.uniform(SCALE, 5), "no spacing", "spacing=0.5*math.log(2)"),
    "circle with a step": (lambda: ls.uniform(SO2, 5, spacing=0.3), "spacing = 0.3", "takes none"),
    "no such polyhedron": (lambda: ls.uniform(SO3, 48), "n = 48", "12, 24 or 60 (or repulsion for any n)"),
    "no such solid": (lambda: ls.uniform(SPHERE, 7), "n = 7", "4, 6, 8, 12 or 20"),
    "no such rotation group": (lambda: polyhedral(13), "order = 13", "12, 24 or 60"),
    "uniform on an own group": (
        lambda: ls.uniform(Triangular(), 4),
        "n = 4 for Triangular()",
        "local(group, n, spacing)",
    ),
    "repulsion without end": (lambda: ls.repulsion(SCALE, 4), "group = Scale(space_dim=2)", "use uniform or local"),
    "repulsion on half a pair": (lambda: ls.repulsion(ls.O3(), 5), "n = 5", "a multiple of 2"),
    "steps for other axes": (lambda: ls.local(SO3, 7, (0.1, 0.2)), "spacing = (0.1, 0.2) has 2 entries", "must have 3"),
    "a step below zero": (lambda: ls.local(SO3, 7, (0.1, 0.2, -1)), "spacing = (0.1, 0.2, -1)", "positive"),
    "widths for other axes": (
        lambda: ls.SplineBasis(CIRCLE, scale=(1.0, 2.0)),
        "scale = (1.0, 2.0) has 2 entries",
        "must have 1",
    ),
    "product of one": (lambda: ls.Product(SO2), "1 groups", "two or more"),
    "product on two spaces": (lambda: ls.Product(SO2, SO3), "SO3() acts on R^3", "another space"),
    "product with a sphere": (lambda: ls.Product(SO3, SPHERE), "Sphere() is not a group", "such as SO2()"),
    "turns that do not commute": (
        lambda: ls.Product(ls.O2(), SO2),
        "O2() and SO2() do not commute",
        "no direct product",
    ),
    "one count for two factors": (lambda: ls.uniform(SIM2, 8), "n = 8", "a tuple of 2, one entry per factor"),
    "one step for two factors": (
        lambda: ls.uniform(SIM2, (8, 3), spacing=0.3),
        "spacing = 0.3",
        "one entry per factor, None where it takes none",
    ),
    "a step for a circle in a product": (
        lambda: ls.uniform(SIM2, (8, 3), spacing=(0.3, 0.3)),
        "spacing = 0.3 for SO2()",
        "takes none",
    ),
    "half a sign": (lambda: ls.O2().log(torch.tensor([0.1, 0.5])), "h = [", "signs are 1 or −1"),
    "a stretched mirror": (lambda: ls.O3().log(2 * torch.eye(3)), "h = [[2.0, 0.0, 0.0]", "orthonormal columns"),
    "a mirror in GL2": (lambda: ls.GL2().log(torch.diag(torch.tensor([1.0, -1.0]))), "h = [[1.0, 0.0]", "positive"),
    "no such solid's symmetries": (lambda: ls.uniform(ls.O3(), 50), "n = 50", "24, 48 or 120"),
    "grid of wrong elements": (
        lambda: ls.Grid(SO3, ONES(2, 3), ONES(2), 1.0),
        "elements has shape (2, 3)",
        "(N, 3, 3)",
    ),
    "grid of none": (lambda: ls.Grid(SO2, ONES(0, 1), ONES(0), 1.0), "elements has shape (0, 1)", "N ≥ 1"),
    "grid with a mirror": (
        lambda: ls.Grid(SO3, MIRROR[None], ONES(1), 1.0),
        "elements[0] = [[1.0, 0.0, 0.0]",
        "determinant +1",
    ),
    "grid with a negative scale": (
        lambda: ls.Grid(SCALE, -ONES(1, 1), ONES(1), 1.0),
        "elements[0] = [-1.0]",
        "positive",
    ),
    "grid of no group": (
        lambda: ls.Grid(Triangular(), ONES(1, 2, 2), ONES(1), 1.0),
        "elements[0] = [[1.0, 1.0], [1.0, 1.0]]",
        "Exp(Log h) ≠ h",
    ),
    "weights for others": (
        lambda: ls.Grid(SO2, ONES(2, 1), ONES(3), 1.0),
        "weights has shape (3,)",
        "2 finite numbers",
    ),
    "grid without spacing": (lambda: ls.Grid(SO2, ONES(2, 1), ONES(2), 0.0), "spacing = 0.0", "positive"),
    "negative degree": (lambda: ls.bspline(ONES(3), -1), "degree = -1", "whole number ≥ 0"),
    "half a degree": (lambda: ls.bspline(ONES(3), 1.5), "degree = 1.5", "whole number ≥ 0"),
    "spline of whole numbers": (
        lambda: ls.bspline(torch.arange(3), 3),
        "x must be",
        "floating-point tensor, not torch.int64",
    ),
    "basis of negative degree": (lambda: ls.SplineBasis(CIRCLE, degree=-2), "degree = -2", "whole number ≥ 0"),
    "basis without width": (lambda: ls.SplineBasis(CIRCLE, scale=0.0), "scale = 0.0", "positive"),
    "basis on a group": (lambda: ls.SplineBasis(SO2), "grid is a SO2", "Grid such as uniform(SO2(), 8)"),
    "basis at other elements": (lambda: ls.SplineBasis(CIRCLE)(ONES(5, 3)), "h has shape (5, 3)", "(*batch, 1)"),
    "basis at less than an element": (
        lambda: ls.SplineBasis(ls.uniform(SO3, 12))(ONES(3)),
        "h has shape (3,)",
        "(*batch, 3, 3)",
    ),
    "fit of unequal numbers": (
        lambda: ls.SplineBasis(CIRCLE).fit(ONES(5, 1), ONES(4)),
        "h (5, 1) and values (4,)",
        "the same P ≥ 1",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake):
    call, value, right = MISTAKES[mistake]
    with pytest.raises(ValueError, match=f"(?s){re.escape(value)}.*{re.escape(right)}"):
        call()


def test_the_method_is_named():
    with pytest.raises(ValueError, match=r"^SO3\.log: h has shape"):
        SO3.log(ONES(3))
    with pytest.raises(ValueError, match=r"^Triangular\.act: x has shape"):
        Triangular().act(torch.eye(2), ONES(3))
