"""Bad input raises a ValueError that names the argument, repeats the value and says what would be right."""

import math
import re

import numpy as np
import pytest
import torch

import liespline as ls
from liespline.functional import left_regular
from liespline.grids import polyhedral
from liespline.groups import Element, Semidirect
from own_group import SL2, UPPER, J, Triangular

SO2, SO3, SCALE, SPHERE = ls.SO2(), ls.SO3(), ls.Scale(2), ls.Sphere()
SIM2 = ls.Product(SO2, SCALE)
CIRCLE = ls.uniform(SO2, 8)
MIRROR = torch.diag(torch.tensor([1.0, 1.0, -1.0]))
ONES = torch.ones
MOVE = Element(torch.zeros(2), torch.tensor([0.3]))
MINUS, SHEAR = torch.diag(torch.tensor([-2.0, -0.5])), torch.tensor([[-1.0, 1], [0, -1]])

# A call, and what the message has to hold: argument and value, then what would be right.
MISTAKES = [
    (lambda: SO3.log(ONES(2, 3)), "SO3.log: h has shape (2, 3)", "(*batch, 3, 3)"),
    (lambda: SPHERE.log(ONES(3, 4)), "h has shape (3, 4)", "(*batch, 3)"),
    (lambda: SCALE.product(g=ONES(1), h=ONES(2)), "h has shape (2,)", "(*batch, 1)"),
    (lambda: SO3.exp(ONES(4)), "a has shape (4,)", "(*batch, 3)"),
    (lambda: SO2.act(ONES(1), ONES(5, 3)), "x has shape (5, 3)", "(*batch, 2)"),
    (lambda: Triangular().log(ONES(2, 3)), "Triangular.log: h has shape (2, 3)", "(*batch, 2, 2)"),
    (lambda: SO2.exp(torch.ones(1, dtype=torch.long)), "a must be", "floating-point tensor, not torch.int64"),
    (lambda: SO2.exp(np.ones(1)), "a must be", "floating-point tensor, not ndarray"),
    (lambda: SCALE.log(torch.tensor([[1.0], [-2.0]])), "h[1] = [-2.0]", "positive and finite"),
    (lambda: SCALE.inverse(torch.zeros(1)), "h = [0.0]", "positive and finite"),
    (lambda: SO3.log(2 * torch.eye(3)), "h = [[2.0, 0.0, 0.0]", "orthonormal columns and determinant +1"),
    (lambda: SO3.act(MIRROR, ONES(3)), "h = [[1.0, 0.0, 0.0]", "determinant +1"),
    (lambda: SPHERE.log(torch.zeros(3)), "h = [0.0, 0.0, 0.0]", "length 1"),
    (lambda: SO2.log(torch.tensor([math.nan])), "h = [nan]", "finite"),
    (lambda: ls.Scale(0), "space_dim = 0", "whole number ≥ 1"),
    (lambda: ls.Translation(1.5), "space_dim = 1.5", "whole number ≥ 1"),
    (lambda: ls.uniform(SO2, 0), "n = 0", "whole number ≥ 1"),
    (lambda: ls.repulsion(SO3, -3), "n = -3", "whole number ≥ 1"),
    (lambda: ls.local(SO2, 2.5, 1.0), "n = 2.5", "whole number ≥ 1"),
    (lambda: ls.lattice(2, 0), "n = 0", "whole number ≥ 1"),
    (lambda: ls.lattice(2, (3, 0)), "n = 0", "whole number ≥ 1"),
    (lambda: ls.lattice(2, 2.5), "n = 2.5", "whole number ≥ 1"),
    (lambda: ls.lattice(3, (3, 3)), "n = (3, 3) has 2 numbers", "must have 3"),
    (lambda: ls.disc(0), "disc: n = 0", "whole number ≥ 1"),
    (lambda: ls.local(SO3, (3, 3), 0.5), "n = (3, 3) has 2 numbers", "must have 3"),
    (lambda: ls.local(SO3, 9, 0.5), "n = 9 cuts a shell", "take 7 or 19"),
    (lambda: ls.local(SO2, 3, -0.1), "spacing = -0.1", "positive"),
    (lambda: ls.lattice(2, 3, spacing=0.0), "spacing = 0.0", "positive"),
    (lambda: ls.uniform(SCALE, 5), "no spacing", "spacing=0.5*math.log(2)"),
    (lambda: ls.uniform(SO2, 5, spacing=0.3), "spacing = 0.3", "takes none"),
    (lambda: ls.uniform(SO3, 48), "n = 48", "12, 24 or 60 (or repulsion for any n)"),
    (lambda: ls.uniform(SPHERE, 7), "n = 7", "4, 6, 8, 12 or 20"),
    (lambda: polyhedral(13), "order = 13", "12, 24 or 60"),
    (lambda: ls.uniform(Triangular(), 4), "n = 4 for Triangular()", "local(group, n, spacing)"),
    (lambda: ls.repulsion(SCALE, 4), "group = Scale(space_dim=2)", "use uniform or local"),
    (lambda: ls.repulsion(ls.O3(), 5), "n = 5", "a multiple of 2"),
    (lambda: ls.local(SO3, 7, (0.1, 0.2)), "spacing = (0.1, 0.2) has 2 entries", "must have 3"),
    (lambda: ls.local(SO3, 7, (0.1, 0.2, -1)), "spacing = (0.1, 0.2, -1)", "positive"),
    (lambda: ls.SplineBasis(CIRCLE, scale=(1.0, 2.0)), "scale = (1.0, 2.0) has 2 entries", "must have 1"),
    (lambda: ls.Product(SO2), "1 groups", "two or more"),
    (lambda: ls.Product(SO2, SO3), "SO3() acts on R^3", "another space"),
    (lambda: ls.Product(SO3, SPHERE), "Sphere() is not a group", "such as SO2()"),
    (lambda: ls.Product(ls.O2(), SO2), "O2() and SO2() do not commute", "no direct product"),
    (lambda: ls.uniform(SIM2, 8), "n = 8", "a tuple of 2, one entry per factor"),
    (lambda: ls.uniform(SIM2, (8, 3), spacing=0.3), "spacing = 0.3", "one entry per factor, None where it takes none"),
    (lambda: ls.uniform(SIM2, (8, 3), spacing=(0.3, 0.3)), "spacing = 0.3 for SO2()", "takes none"),
    (lambda: ls.O2().log(torch.tensor([0.1, 0.5])), "h = [", "signs are 1 or −1"),
    (lambda: ls.O3().log(2 * torch.eye(3)), "h = [[2.0, 0.0, 0.0]", "orthonormal columns"),
    (lambda: ls.GL2().log(torch.diag(torch.tensor([1.0, -1.0]))), "h = [[1.0, 0.0]", "positive"),
    (lambda: ls.uniform(ls.O3(), 50), "n = 50", "24, 48 or 120"),
    (lambda: ls.Grid(SO3, ONES(2, 3), ONES(2), 1.0), "elements has shape (2, 3)", "(N, 3, 3)"),
    (lambda: ls.Grid(SO2, ONES(0, 1), ONES(0), 1.0), "elements has shape (0, 1)", "N ≥ 1"),
    (lambda: ls.Grid(SO3, MIRROR[None], ONES(1), 1.0), "elements[0] = [[1.0, 0.0, 0.0]", "determinant +1"),
    (lambda: ls.Grid(SCALE, -ONES(1, 1), ONES(1), 1.0), "elements[0] = [-1.0]", "positive"),
    (
        lambda: ls.Grid(Triangular(), ONES(1, 2, 2), ONES(1), 1.0),
        "elements[0] = [[1.0, 1.0], [1.0, 1.0]]",
        "Exp(Log h) ≠ h",
    ),
    (lambda: ls.Grid(SO2, ONES(2, 1), ONES(3), 1.0), "weights has shape (3,)", "2 finite numbers"),
    (lambda: ls.Grid(SO2, ONES(2, 1), ONES(2), 0.0), "spacing = 0.0", "positive"),
    (lambda: ls.bspline(ONES(3), -1), "degree = -1", "whole number ≥ 0"),
    (lambda: ls.bspline(ONES(3), 1.5), "degree = 1.5", "whole number ≥ 0"),
    (lambda: ls.bspline(torch.arange(3), 3), "x must be", "floating-point tensor, not torch.int64"),
    (lambda: ls.SplineBasis(CIRCLE, degree=-2), "degree = -2", "whole number ≥ 0"),
    (lambda: ls.SplineBasis(CIRCLE, scale=0.0), "scale = 0.0", "positive"),
    (lambda: ls.SplineBasis(SO2), "grid is a SO2", "Grid such as uniform(SO2(), 8)"),
    (lambda: ls.SplineBasis(CIRCLE)(ONES(5, 3)), "h has shape (5, 3)", "(*batch, 1)"),
    (lambda: ls.SplineBasis(ls.uniform(SO3, 12))(ONES(3)), "h has shape (3,)", "(*batch, 3, 3)"),
    (lambda: ls.SplineBasis(CIRCLE).fit(ONES(5, 1), ONES(4)), "h (5, 1) and values (4,)", "the same P ≥ 1"),
    (lambda: ls.uniform(ls.O2(), 3), "n = 3 for O2()", "must be even, such as 4: half of the elements are reflections"),
    (lambda: ls.uniform(ls.Product(ls.O2(), SCALE), (7, 2), spacing=(None, 0.3)), "n = 7 for O2()", "such as 8"),
    (lambda: Semidirect(SPHERE), "Semidirect: Sphere() is not a group", "such as SO2()"),
    (lambda: Semidirect(ls.Translation(2)), "Translation(space_dim=2) moves the origin of R^2", "act linearly"),
    (lambda: left_regular(MOVE, ONES(5), SO2), "f has shape (5,)", "expected (B, C, *space) with 2 space axes"),
    (lambda: left_regular(MOVE, ONES(1, 1, 3, 5, 5), SO2, CIRCLE), "f has 3 elements on axis 2", "has 8"),
    (lambda: ls.MatrixGroup(SL2.generators[1:]), "MatrixGroup: the bracket [G_0, G_1]", "leaves the span of the gen"),
    (lambda: ls.MatrixGroup([J, [[0, -2], [2, 0]]]), "the 2 generators depend on each other", "independent"),
    (lambda: ls.MatrixGroup(J), "generators have shape (2, 2)", "must be (dim, d, d) and finite"),
    (lambda: ls.MatrixGroup([[[0.0, 1, 2], [0, 0, 0]]]), "shape (1, 2, 3)", "must be (dim, d, d)"),
    (lambda: ls.MatrixGroup([[[math.nan]]]), "MatrixGroup: ", "and finite"),
    (lambda: SL2.log(torch.stack((torch.eye(2), MINUS))), "h[1] = [[-2.0, ", "has no logarithm: some eigenvalue is"),
    (lambda: SL2.log(SHEAR), "MatrixGroup.log: h = [[-1.0, 1.0]", "has no logarithm"),
    (lambda: UPPER.log(torch.diag(torch.tensor([-1.0, -1.0, 2.0]))), "h = [[-1.0, ", "has no logarithm"),
    (lambda: SL2.log(torch.diag(torch.tensor([1.0, -1.0]))), "h = [[1.0, ", "positive determinant"),
    (lambda: SL2.log(2 * torch.eye(2)), "is not an element", "its logarithm leaves the span of the generators"),
]


@pytest.mark.parametrize(("call", "value", "right"), MISTAKES, ids=[value for _, value, _ in MISTAKES])
def test_mistakes_are_named(call, value, right):
    with pytest.raises(ValueError, match=f"(?s){re.escape(value)}.*{re.escape(right)}"):
        call()
