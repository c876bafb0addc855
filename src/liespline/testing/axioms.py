"""Checks for users' own groups: are the axioms true?"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from ..groups import Group

_Measure = Callable[[Tensor, Tensor], float]
_Measures = Iterator[tuple[str, Callable[[], float]]]  # what should hold, and by how much it does not

_TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5}


def check_group(group: Group, *, n: int = 1000, radius: float = 1.0, seed: int = 0) -> None:
    """Check that five methods make a Lie group, in float64 and float32; raise AssertionError naming what is broken.

    The n elements tried are Exp of algebra vectors up to `radius` long, on every component of the group; keep it so
    small that products of two of them stay where Log undoes Exp. A quotient such as the sphere is checked for what
    holds on one, and a chart for all but the one axiom that only Exp itself satisfies.
    """
    broken = []
    for dtype, tolerance in _TOLERANCES.items():
        axioms = _quotient_axioms if group.quotient_of is not None else _axioms
        for name, measure in axioms(group, n, radius, dtype, torch.Generator().manual_seed(seed)):
            try:
                error = measure()
            except (RuntimeError, ValueError) as problem:
                broken.append(f"{name}: fails in {dtype} with {problem}")
                continue
            if not error <= tolerance:  # NaN counts as broken
                broken.append(f"{name}: off by {error:.2g} in {dtype} (allowed {tolerance:.0e})")
    if broken:
        raise AssertionError(f"{group!r} is not a Lie group acting on R^{group.space_dim}:\n  " + "\n  ".join(broken))


def _axioms(group: Group, n: int, radius: float, dtype: torch.dtype, generator: torch.Generator) -> _Measures:
    a, b, c = (_vectors(group.dim, n, radius, dtype, generator) for _ in range(3))
    x = _vectors(group.space_dim, n, radius, dtype, generator)
    # g, h and k run through all triples of components
    r, which = group.representatives(dtype=dtype), torch.arange(n)
    g, h, k = (
        group.product(group.exp(v), r[which // len(r) ** i % len(r)]) if len(r) > 1 else group.exp(v)
        for i, v in enumerate((a, b, c))
    )
    e, gh = group.identity(dtype=dtype), group.product(g, h)
    product, inverse, act, det, gap = group.product, group.inverse, group.act, group.det, partial(_gap, group)
    yield "closure, Exp(Log(g h)) = g h", lambda: gap(_rebuilt(group, gh), gh)
    yield "associativity, (g h) k = g (h k)", lambda: gap(product(gh, k), product(g, product(h, k)))
    yield "identity, e h = h", lambda: gap(product(e, h), h)
    yield "identity, h e = h", lambda: gap(product(h, e), h)
    yield "inverse, h⁻¹ h = e", lambda: gap(product(inverse(h), h), e)
    yield "inverse, h h⁻¹ = e", lambda: gap(product(h, inverse(h)), e)
    yield "the action is a homomorphism, g ⊙ (h ⊙ x) = (g h) ⊙ x", lambda: _apart(act(g, act(h, x)), act(gh, x))
    yield "det is multiplicative, det(g h) = det g · det h", lambda: _apart(det(gh) / det(g), det(h))
    yield "e ⊙ x = x", lambda: _apart(act(e, x), x)
    yield "components are numbered 0, 1, … as their representatives (1 means not)", lambda: _misnumbered(group, r, g, h)
    yield "Exp and Log keep to a component, Log(Exp(a) r) = a", lambda: _apart(group.log(g), a)
    if not group.chart:
        line = "Exp of a line is a subgroup, Exp(a/4) Exp(3a/4) = Exp a"
        yield line, lambda: gap(product(group.exp(0.25 * a), group.exp(0.75 * a)), group.exp(a))
    yield "Exp(a + period) = Exp a", lambda: _unperiodic(group, gap, a)
    yield from _common(group, gap, a, x)


def _quotient_axioms(group: Group, n: int, radius: float, dtype: torch.dtype, generator: torch.Generator) -> _Measures:
    a, b = (_vectors(group.dim, n, radius, dtype, generator) for _ in range(2))
    x = _vectors(group.space_dim, n, radius, dtype, generator)
    g, h, e = group.exp(a), group.exp(b), group.identity(dtype=dtype)
    gap = partial(_gap, group)
    yield "g carries the reference point to itself, g e = g", lambda: gap(group.product(g, e), g)
    yield "relative undoes product, g⁻¹(g h) = h", lambda: gap(group.relative(g, group.product(g, h)), h)
    yield "pull undoes act, g⁻¹ ⊙ (g ⊙ x) = x", lambda: _apart(group.pull(g, group.act(g, x)), x)
    yield from _common(group, gap, a, x)


def _common(group: Group, gap: _Measure, a: Tensor, x: Tensor) -> _Measures:
    exp, log, act, h = group.exp, group.log, group.act, group.exp(a)
    yield "Exp(Log h) = h", lambda: gap(exp(log(h)), h)
    yield "Log(Exp a) = a", lambda: _apart(log(h), a)
    # A Log that loses digits near e would spoil every local kernel.
    yield "Log near the identity, Log(Exp εa) / ε = a", lambda: 1e-3 * _apart(1e3 * log(exp(1e-3 * a)), a)
    yield "the action is linear (or affine), h ⊙ x = M x + t", lambda: _apart(act(h, x), _affine(group, h, x))
    yield "batch dimensions broadcast", lambda: _apart(act(h[:4].unsqueeze(1), x[:3]), _looped(act, h[:4], x[:3]))
    yield "results keep the dtype (1 means they do not)", lambda: _other_dtypes(group, a, x)
    yield "gradients are finite (1 means they are not)", lambda: _bad_gradients(group, a, x)


def _gap(group: Group, g: Tensor, h: Tensor) -> float:
    """How far two elements are apart, measured without the product and inverse that are on trial."""
    g, h = torch.broadcast_tensors(g, h)
    gap = _each(g, h, len(group.element_shape))
    if group.quotient_of is None:
        # One element may be written in several ways, such as an angle: then Log and action tell that they agree.
        matrices = _each(group.matrix(g), group.matrix(h), 2)
        same = _each(group.log(g), group.log(h), 1).maximum(matrices)
        gap = gap.minimum(torch.where(group.component(g) == group.component(h), same, torch.inf))
    return float(gap.max())


def _rebuilt(group: Group, h: Tensor) -> Tensor:
    back = group.exp(group.log(h))
    r = group.representatives(dtype=h.dtype)
    return group.product(back, r[group.component(h)]) if len(r) > 1 else back


def _misnumbered(group: Group, r: Tensor, g: Tensor, h: Tensor) -> float:
    in_order = torch.equal(group.component(r), torch.arange(len(r)))
    table = group.component(group.product(r.unsqueeze(1), r))  # the component of a product is that of any members
    of_product = table[group.component(g), group.component(h)] if in_order else torch.tensor(-1)
    return float(not in_order or not torch.equal(group.component(group.product(g, h)), of_product))


def _unperiodic(group: Group, gap: _Measure, a: Tensor) -> float:
    worst = 0.0
    for axis, period in enumerate(group.periods):
        if period is not None:
            later = a.clone()
            later[:, axis] += period
            # 2π itself is rounded: one turn is as exact as an angle of that size can be
            worst = max(worst, gap(group.exp(later), group.exp(a)) / max(1.0, period))
    return worst


def _apart(left: Tensor, right: Tensor) -> float:
    return float(_each(left, right, 0).max()) if left.numel() else 0.0


def _each(left: Tensor, right: Tensor, axes: int) -> Tensor:
    """Return the largest difference over the last axes, relative to the size of it all where that is over 1."""
    if left.numel() == 0:
        return torch.zeros(left.shape[: left.ndim - axes])
    gap = (left - right).abs() / right.abs().max().clamp_min(1)
    return gap.flatten(gap.ndim - axes).amax(-1) if axes else gap


def _looped(act: Callable[[Tensor, Tensor], Tensor], h: Tensor, x: Tensor) -> Tensor:
    return torch.stack([torch.stack([act(one, point) for point in x]) for one in h])


def _affine(group: Group, h: Tensor, x: Tensor) -> Tensor:
    return (group.matrix(h) @ x.unsqueeze(-1)).squeeze(-1) + group.act(h, torch.zeros_like(x))


def _other_dtypes(group: Group, a: Tensor, x: Tensor) -> float:
    h = group.exp(a)
    results = (h, group.log(h), group.inverse(h), group.product(h, h), group.act(h, x))
    return float(any(t.dtype != a.dtype for t in results))


def _bad_gradients(group: Group, a: Tensor, x: Tensor) -> float:
    with torch.enable_grad():
        a = torch.cat([torch.zeros_like(a[:1]), a]).requires_grad_()  # at the identity too
        h = group.exp(a)
        moved = group.act(h, x[:1])
        total = group.log(h).sum() + group.inverse(h).sum() + group.product(h, h).sum() + moved.sum()
        (gradient,) = torch.autograd.grad(total, a)
    return float(not gradient.isfinite().all())


def _vectors(dim: int, n: int, radius: float, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Return n vectors spread over the ball of that radius, small ones among them."""
    v = torch.randn(n, dim, dtype=torch.float64, generator=generator)
    length = radius * torch.rand(n, 1, dtype=torch.float64, generator=generator)
    return (length * v / v.norm(dim=-1, keepdim=True).clamp_min(1e-12)).to(dtype)
