"""check_group passes on every group, and names each axiom that is broken, and by how much."""

import pytest
import torch

from liespline import GL2, O2, O3, SO2, SO3, Group, Product, Scale, Sphere, Translation, Trivial
from liespline.testing import axioms as axioms_of
from liespline.testing import check_group
from own_group import BUILT, REACH, SPACES, Triangular, name, planted


@pytest.mark.parametrize("group", [*SPACES, *BUILT, Trivial(3), Translation(1), Scale(3)], ids=name)
def test_every_group_passes(group):
    """As far out as Log undoes Exp: a compact group is covered nearly whole."""
    check_group(group, n=3000, radius=0.9 * REACH.get(type(group), 2.0))


def by_angle(self: Group, h: torch.Tensor) -> torch.Tensor:
    """Return Log R by the arc cosine of its trace, which has few digits left at small angles."""
    angle = ((h.diagonal(dim1=-1, dim2=-2).sum(-1) - 1) / 2).clamp(-1, 1).acos().unsqueeze(-1)
    skew = torch.stack((h[..., 2, 1] - h[..., 1, 2], h[..., 0, 2] - h[..., 2, 0], h[..., 1, 0] - h[..., 0, 1]), -1)
    return angle * skew / skew.norm(dim=-1, keepdim=True).clamp_min(1e-30)


def sign(h: torch.Tensor) -> torch.Tensor:
    """Return 1 for rotations and −1 for the others, `(*batch, 1, 1)`."""
    return torch.linalg.det(h).sign().unsqueeze(-1).unsqueeze(-1)


LOWER = torch.tensor([[0.0, 0.0], [1.0, 0.0]])


def other_side(self: Group, g: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """Multiply rightly among rotations, and mirror images as if they did not turn the sense of rotation round."""
    mixed = torch.stack((g[..., 0] + h[..., 0], g[..., 1] * h[..., 1]), -1)
    return torch.where((g[..., 1:] > 0), O2.product(self, g, h), mixed)


def cubed(self: Group, g: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    return g + h + 1e-3 * g * h * h


# A method or attribute that breaks a group, in one component or factor too, and the axiom that must be named.
FAULTS = [
    ("closure, Exp(Log(g h)) = g h", planted(Triangular(), product=lambda self, g, h: g @ h + 1e-3 * LOWER.to(g))),
    ("associativity, (g h) k = g (h k)", planted(Translation(2), product=cubed)),
    ("identity, e h = h", planted(Translation(2), product=lambda self, g, h: g + 1.001 * h)),
    ("identity, h e = h", planted(Translation(2), product=lambda self, g, h: 1.001 * g + h)),
    ("inverse, h⁻¹ h = e", planted(Triangular(), inverse=lambda self, h: 1.001 * Triangular.inverse(self, h))),
    ("inverse, h h⁻¹ = e", planted(Scale(2), inverse=lambda self, h: 1.001 / h)),
    ("the action is a homomorphism", planted(SO3(), act=lambda self, h, x: SO3.act(self, h.mT, x))),
    ("det is multiplicative", planted(Scale(2), det=lambda self, h: h[..., 0] ** 2 + 0.001)),
    ("e ⊙ x = x", planted(Scale(2), act=lambda self, h, x: 1.001 * h * x)),
    ("Exp(Log h) = h", planted(Scale(2), log=lambda self, h: 1.001 * h.log())),
    ("Log(Exp a) = a", planted(Translation(2), exp=lambda self, a: a + 1e-3 * a.roll(1, -1))),
    ("Log near the identity", planted(SO3(), log=by_angle)),
    (
        "Exp of a line is a subgroup",
        planted(Scale(2), exp=lambda self, a: a.sinh().exp(), log=lambda self, h: h.log().asinh()),
    ),
    ("components are numbered", planted(O2(), component=lambda self, h: (h[..., 1] > 0).long())),
    ("Exp and Log keep to a component", planted(O3(), log=lambda self, h: O3.log(self, h) * sign(h).squeeze(-1))),
    ("Exp(a + period) = Exp a", planted(SO2(), period=6.0)),
    ("the action is linear", planted(Scale(1), act=lambda self, h, x: x.sign() * x.abs() ** h)),
    (
        "batch dimensions broadcast",
        planted(SO3(), act=lambda self, h, x: torch.einsum("bij,bj->bi", h, x.expand(len(h), 3))),
    ),
    ("results keep the dtype", planted(Scale(2), act=lambda self, h, x: (h * x).double())),
    ("gradients are finite", planted(Translation(2), exp=lambda self, a: a + 0 * a.norm(dim=-1, keepdim=True).sqrt())),
    ("g carries the reference point", planted(Sphere(), product=lambda self, g, h: -Sphere.act(self, g, h))),
    ("relative undoes product", planted(Sphere(), relative=lambda self, g, h: Sphere.act(self, g, h))),
    ("pull undoes act", planted(Sphere(), pull=lambda self, h, x: Sphere.pull(self, h, x) * 1.001)),
    ("inverse, h⁻¹ h = e", planted(O2(), product=other_side)),
    ("inverse, h⁻¹ h = e", planted(O2(), inverse=lambda self, h: h * h.new_tensor([-1.0, 1.0]))),
    (
        "the action is a homomorphism",
        planted(O3(), act=lambda self, h, x: O3.act(self, h, x) * (1.0005 - 0.0005 * sign(h).squeeze(-1))),
    ),
    ("inverse, h⁻¹ h = e", Product(planted(SO2(), inverse=lambda self, h: h), Scale(2))),
    ("Log(Exp a) = a", Product(SO2(), planted(Scale(2), log=lambda self, h: 1.001 * h.log()))),
    ("identity, e h = h", Product(SO2(), SO2(), planted(Scale(2), product=lambda self, g, h: g * h * 1.001))),
    (
        "components are numbered",
        Product(planted(O2(), component=lambda self, h: torch.zeros_like(h[..., 0]).long()), Scale(2)),
    ),
    (
        "identity, e h = h: off by 0.25 in torch.float64 (allowed 1e-12)",
        planted(Translation(1), product=lambda self, g, h: g + h + 0.25),
    ),
    ("Log(Exp a) = a: off by nan", planted(Translation(2), log=lambda self, h: torch.where(h > 0.3, torch.nan, h))),
    # Infinite, and refused by the next method.
    ("Exp(Log h) = h: fails in torch.float64 with", planted(Scale(2), log=lambda self, h: h.log() / (h < 1.2))),
]


@pytest.mark.parametrize(("axiom", "group"), FAULTS, ids=[f"{axiom}, {group}" for axiom, group in FAULTS])
def test_planted_faults_are_named(axiom, group):
    with pytest.raises(AssertionError) as caught:
        check_group(group)
    assert f"{group!r} is not a Lie group acting on R^{group.space_dim}:" in str(caught.value)
    assert f"\n  {axiom}" in str(caught.value)


def test_every_check_has_a_planted_fault():
    for group, axioms in ((SO3(), axioms_of._axioms), (Sphere(), axioms_of._quotient_axioms)):
        names = [name for name, _ in axioms(group, 3, 1.0, torch.float64, torch.Generator())]
        assert len(names) >= 10
        assert [name for name in names if not name.startswith(tuple(axiom for axiom, _ in FAULTS))] == []


def test_a_chart_leaves_out_one_axiom_and_no_other():
    names = [[n for n, _ in axioms_of._axioms(group, 3, 1.0, torch.float64, torch.Generator())] for group in CHARTS]
    assert [name for name in names[1] if name not in names[0]] == [LINE]
    assert [name for name in names[0] if name not in names[1]] == []
    with pytest.raises(AssertionError, match="Exp of a line is a subgroup") as caught:
        check_group(CHARTS[1])
    assert str(caught.value).count("\n") == 2, "in two precisions, and nothing else"


LINE = "Exp of a line is a subgroup, Exp(a/4) Exp(3a/4) = Exp a"
CHARTS = GL2(), planted(GL2(), chart=False)


def test_float64_is_held_to_its_own_precision():
    rounded = planted(Scale(2), log=lambda self, h: h.float().log().to(h.dtype))
    with pytest.raises(AssertionError) as caught:
        check_group(rounded)
    assert "torch.float64" in str(caught.value)
    assert "torch.float32" not in str(caught.value)
