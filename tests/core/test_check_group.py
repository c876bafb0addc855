"""check_group passes on every group, and names each axiom that is broken, and by how much."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from liespline import GL2, O2, O3, SO2, SO3, Group, MatrixGroup, Product, Scale, Sphere, Translation, Trivial
from liespline.testing import axioms as axioms_of
from liespline.testing import check_group
from own_group import BUILT, REACH, SPACES, Triangular, name, planted


@pytest.mark.parametrize("group", [*SPACES, *BUILT, Trivial(3), Translation(1), Scale(3)], ids=name)
def test_every_group_passes(group):
    """As far out as Log undoes Exp: a compact group is covered nearly whole."""
    check_group(group, n=3000, radius=0.9 * REACH.get(type(group), 2.0))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), radius=st.floats(1e-6, 1), group=st.sampled_from(SPACES))
def test_every_group_passes_whatever_the_elements(seed, radius, group):
    check_group(group, n=50, radius=radius, seed=seed)


def by_angle(self: Group, h: torch.Tensor) -> torch.Tensor:
    """Return Log R by the arc cosine of its trace, which has few digits left at small angles."""
    angle = ((h.diagonal(dim1=-1, dim2=-2).sum(-1) - 1) / 2).clamp(-1, 1).acos().unsqueeze(-1)
    skew = torch.stack((h[..., 2, 1] - h[..., 1, 2], h[..., 0, 2] - h[..., 2, 0], h[..., 1, 0] - h[..., 0, 1]), -1)
    return angle * skew / skew.norm(dim=-1, keepdim=True).clamp_min(1e-30)


def sign(h: torch.Tensor) -> torch.Tensor:
    """Return 1 for rotations and −1 for the others, `(*batch, 1, 1)`."""
    return torch.linalg.det(h).sign().unsqueeze(-1).unsqueeze(-1)


LOWER = torch.tensor([[0.0, 0.0], [1.0, 0.0]])

# What must be named: a group, and the methods that break it.
FAULTS = {
    "closure, Exp(Log(g h)) = g h": (Triangular(), {"product": lambda self, g, h: g @ h + 1e-3 * LOWER.to(g)}),
    "associativity, (g h) k = g (h k)": (Translation(2), {"product": lambda self, g, h: g + h + 1e-3 * g * h * h}),
    "identity, e h = h": (Translation(2), {"product": lambda self, g, h: g + 1.001 * h}),
    "identity, h e = h": (Translation(2), {"product": lambda self, g, h: 1.001 * g + h}),
    "inverse, h⁻¹ h = e": (Triangular(), {"inverse": lambda self, h: 1.001 * Triangular.inverse(self, h)}),
    "inverse, h h⁻¹ = e": (Scale(2), {"inverse": lambda self, h: 1.001 / h}),
    "the action is a homomorphism": (SO3(), {"act": lambda self, h, x: SO3.act(self, h.mT, x)}),
    "det is multiplicative": (Scale(2), {"det": lambda self, h: h[..., 0] ** 2 + 0.001}),
    "e ⊙ x = x": (Scale(2), {"act": lambda self, h, x: 1.001 * h * x}),
    "Exp(Log h) = h": (Scale(2), {"log": lambda self, h: 1.001 * h.log()}),
    "Log(Exp a) = a": (Translation(2), {"exp": lambda self, a: a + 1e-3 * a.roll(1, -1)}),
    "Log near the identity": (SO3(), {"log": by_angle}),
    "Exp of a line is a subgroup": (
        Scale(2),
        {"exp": lambda self, a: a.sinh().exp(), "log": lambda self, h: h.log().asinh()},
    ),
    "components are numbered": (O2(), {"component": lambda self, h: (h[..., 1] > 0).long()}),
    "Exp and Log keep to a component": (
        O3(),
        {"log": lambda self, h: O3.log(self, h) * torch.linalg.det(h).sign()[..., None]},
    ),
    "Exp(a + period) = Exp a": (SO2(), {"period": 6.0}),
    "the action is linear": (Scale(1), {"act": lambda self, h, x: x.sign() * x.abs() ** h}),
    "batch dimensions broadcast": (
        SO3(),
        {"act": lambda self, h, x: torch.einsum("bij,bj->bi", h, x.expand(len(h), 3))},
    ),
    "results keep the dtype": (Scale(2), {"act": lambda self, h, x: (h * x).double()}),
    "gradients are finite": (Translation(2), {"exp": lambda self, a: a + 0 * a.norm(dim=-1, keepdim=True).sqrt()}),
    "g carries the reference point": (Sphere(), {"product": lambda self, g, h: -Sphere.act(self, g, h)}),
    "relative undoes product": (Sphere(), {"relative": lambda self, g, h: Sphere.act(self, g, h)}),
    "pull undoes act": (Sphere(), {"pull": lambda self, h, x: Sphere.pull(self, h, x) * 1.001}),
}


@pytest.mark.parametrize("axiom", FAULTS)
def test_planted_faults_are_named(axiom):
    group, fault = FAULTS[axiom]
    check_group(group)
    with pytest.raises(AssertionError) as caught:
        check_group(planted(group, **fault))
    assert f"\n  {axiom}" in str(caught.value)
    assert f"Broken{type(group).__name__}" in str(caught.value)


def test_every_check_has_a_planted_fault():
    for group, axioms in ((SO3(), axioms_of._axioms), (Sphere(), axioms_of._quotient_axioms)):
        names = [name for name, _ in axioms(group, 3, 1.0, torch.float64, torch.Generator())]
        assert len(names) >= 10
        assert [name for name in names if not name.startswith(tuple(FAULTS))] == []


def test_a_chart_leaves_out_one_axiom_and_no_other():
    names = [
        [name for name, _ in axioms_of._axioms(group, 3, 1.0, torch.float64, torch.Generator())] for group in CHARTS
    ]
    assert [name for name in names[1] if name not in names[0]] == [LINE]
    assert [name for name in names[0] if name not in names[1]] == []
    with pytest.raises(AssertionError, match="Exp of a line is a subgroup") as caught:
        check_group(CHARTS[1])
    assert str(caught.value).count("\n") == 2, "in two precisions, and nothing else"


LINE = "Exp of a line is a subgroup, Exp(a/4) Exp(3a/4) = Exp a"
CHARTS = GL2(), planted(GL2(), chart=False)


def other_side(self: Group, g: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """Multiply rightly among rotations, and mirror images as if they did not turn the sense of rotation round."""
    mixed = torch.stack((g[..., 0] + h[..., 0], g[..., 1] * h[..., 1]), -1)
    return torch.where((g[..., 1:] > 0), O2.product(self, g, h), mixed)


# A fault in one component, or in one factor, and the axioms that must be named.
PARTS = {
    "product in a component": (planted(O2(), product=other_side), "inverse, h⁻¹ h = e"),
    "inverse in a component": (
        planted(O2(), inverse=lambda self, h: h * h.new_tensor([-1.0, 1.0])),
        "inverse, h⁻¹ h = e",
    ),
    "action in a component": (
        planted(O3(), act=lambda self, h, x: O3.act(self, h, x) * (1.0005 - 0.0005 * sign(h).squeeze(-1))),
        "the action is a homomorphism",
    ),
    "first factor": (Product(planted(SO2(), inverse=lambda self, h: h), Scale(2)), "inverse, h⁻¹ h = e"),
    "second factor": (Product(SO2(), planted(Scale(2), log=lambda self, h: 1.001 * h.log())), "Log(Exp a) = a"),
    "third factor": (
        Product(SO2(), SO2(), planted(Scale(2), product=lambda self, g, h: g * h * 1.001)),
        "identity, e h = h",
    ),
    "component of a factor": (
        Product(planted(O2(), component=lambda self, h: torch.zeros_like(h[..., 0]).long()), Scale(2)),
        "components are numbered",
    ),
}


@pytest.mark.parametrize("part", PARTS)
def test_planted_faults_in_a_part_are_caught(part):
    group, axiom = PARTS[part]
    with pytest.raises(AssertionError) as caught:
        check_group(group)
    assert f"\n  {axiom}" in str(caught.value)


@pytest.mark.parametrize("seed", range(10))
def test_random_matrix_groups_pass(seed):
    """Algebras of d×d matrices in random coordinates: triangular, rotations, squeezes, diagonal, nilpotent."""
    generator = torch.Generator().manual_seed(seed)
    d = 2 + seed % 3
    unit = [(i, j) for i in range(d) for j in range(d)]
    chosen = [
        [e for e in unit if e[0] <= e[1]],
        [e for e in unit if e[0] < e[1]],
        [e for e in unit if e[0] == e[1]],
        [e for e in unit if e[0] == 0],
        unit,
    ][seed // 2]
    plain = torch.zeros(len(chosen), d, d, dtype=torch.float64)
    for k, (i, j) in enumerate(chosen):
        plain[k, i, j] = 1
    mixed, frame = (
        torch.linalg.qr(torch.randn(n, n, dtype=torch.float64, generator=generator)).Q for n in (len(chosen), d)
    )
    generators = torch.einsum("kl,lij->kij", mixed, frame @ plain @ frame.T)
    check_group(MatrixGroup(generators), radius=0.5)


def test_the_size_of_the_fault_is_told():
    off = planted(Translation(1), product=lambda self, g, h: g + h + 0.25)
    with pytest.raises(
        AssertionError, match=r"identity, e h = h: off by 0.25 in torch.float64 \(allowed 1e-12\)"
    ) as caught:
        check_group(off)
    assert "off by 0.25 in torch.float32 (allowed 1e-05)" in str(caught.value)
    assert "BrokenTranslation(space_dim=1) is not a Lie group acting on R^1" in str(caught.value)


def test_float64_is_held_to_its_own_precision():
    rounded = planted(Scale(2), log=lambda self, h: h.float().log().to(h.dtype))
    with pytest.raises(AssertionError) as caught:
        check_group(rounded)
    assert "torch.float64" in str(caught.value)
    assert "torch.float32" not in str(caught.value)


def test_methods_that_raise_are_named_too():
    strict = planted(Scale(2), log=lambda self, h: h.log() / (h < 1.2))  # infinite, and refused by the next method
    with pytest.raises(AssertionError, match=r"fails in torch.float64 with .*Scale factors are positive and finite"):
        check_group(strict)


def test_a_group_that_answers_with_nan_is_none():
    with pytest.raises(AssertionError, match="off by nan"):
        check_group(planted(Translation(2), log=lambda self, h: torch.where(h > 0.3, torch.nan, h)))
