"""Less symmetry where it is wanted: restriction to subgroups, and biases seen from a frame."""

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline import GConv, Lift, Project, testing
from liespline.grids.grid import same
from liespline.models.kit import Kit, Layers
from liespline.nn import FrameBias, InFrame, NormReLU, Restrict, in_frame, shift
from networks import close

X64 = torch.float64
TURNS, FLIPS = ls.uniform(ls.SO2(), 4), ls.uniform(ls.O2(), 8)
EIGHT, ROTATIONS = ls.uniform(ls.SO2(), 8), ls.uniform(ls.SO3(), 24)
ZOOMS = ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (4, 3), spacing=(None, 0.4))
HALVES = ls.Grid(ls.SO3(), torch.stack([torch.eye(3), torch.diag(torch.tensor([1.0, -1, -1]))]), torch.ones(2), 1.0)
PAIRS = {
    "C8 to C4": (EIGHT, TURNS),
    "D4 to C4": (FLIPS, TURNS),
    "D4 to itself": (FLIPS, FLIPS),
    "D4 to nothing": (FLIPS, ls.uniform(ls.Trivial(2), 1)),
    "cube to a half turn": (ROTATIONS, HALVES),
    "full cube to rotations": (ls.uniform(ls.O3(), 48), ROTATIONS),
    "rotations and scales to rotations": (ZOOMS, TURNS),
}


@pytest.mark.parametrize("name", PAIRS)
def test_restriction_is_a_sum_of_cosets(name):
    """F′_{(c, i)}(x, k) = F_c(x, k r_i), by loops over matrices; every value is there once."""
    grid, subgrid = PAIRS[name]
    layer = Restrict(grid, subgrid)
    x = torch.randn(2, 3, len(grid), 5)
    found = layer(x)
    count = len(grid) // len(subgrid)
    assert found.shape == (2, 3 * count, len(subgrid), 5)
    own, wanted = grid.group.matrix(grid.elements), subgrid.group.matrix(subgrid.elements)
    close(layer.out_grid.group.matrix(layer.out_grid.elements), wanted, 1e-12)
    (identity,) = [k for k, m in enumerate(wanted) if torch.allclose(m, torch.eye(len(m), dtype=X64))]
    for c, i in itertools.product(range(3), range(count)):
        (start,) = [h for h in range(len(grid)) if torch.equal(x[:, c, h], found[:, c * count + i, identity])]
        for k, matrix in enumerate(wanted):
            (h,) = [h for h, m in enumerate(own) if torch.allclose(m, matrix @ own[start])]
            assert torch.equal(found[:, c * count + i, k], x[:, c, h])
    assert sorted(found.flatten().tolist()) == sorted(x.flatten().tolist())


def test_what_cannot_be_restricted_to():
    for grid, subgrid, words in (
        (EIGHT, ls.uniform(ls.SO2(), 3), "no union of cosets"),
        (EIGHT, ls.uniform(ls.SO2(), 16), "no union of cosets"),
        (TURNS, FLIPS, "has elements that"),
        (ROTATIONS, TURNS, "acts on another space"),
        (ls.uniform(ls.Sphere(), 6), ls.uniform(ls.Trivial(3), 1), "is a quotient"),
    ):
        with pytest.raises(ValueError, match=words):
            Restrict(grid, subgrid)
    with pytest.raises(ValueError, match=r"\(2, 3, 4, 5\); expected \(B, C, 8, "):
        Restrict(EIGHT, TURNS)(torch.zeros(2, 3, 4, 5))


def turned(x: Tensor) -> Tensor:
    """By a quarter, as (row, column) points turn by +90°."""
    return torch.rot90(x, 1, (-2, -1))


def flipped(x: Tensor) -> Tensor:
    return x.flip(-1)


def restricted(subgrid: ls.Grid) -> nn.Module:
    first = Restrict(FLIPS, subgrid)
    return nn.Sequential(
        *(Lift(1, 3, 3, FLIPS, padding="same"), NormReLU(3), first),
        *(GConv(3 * first.factor, 4, 3, first.out_grid, padding="same"), nn.SiLU(), Project("max", first.out_grid)),
    ).double()


def test_a_restricted_network_keeps_its_subgroup_and_no_more():
    x = torch.randn(2, 1, 9, 9, dtype=X64)
    for subgrid, keeps_turns in ((TURNS, True), (ls.uniform(ls.Trivial(2), 1), False)):
        net = restricted(subgrid)
        net(x)  # in training: statistics of the norm
        net.eval()
        kept, lost = (float((net(g(x)) - g(net(x))).detach().abs().max()) for g in (turned, flipped))
        assert (kept < 1e-10) == keeps_turns
        assert lost > 1e-3


def test_a_shift_of_a_restricted_network_rotates_all_of_it():
    """net(x; h·H) = net(h⁻¹x; H), as without a restriction."""
    net, x = restricted(TURNS).eval(), torch.randn(2, 1, 9, 9, dtype=X64)
    expected = net(turned(x))
    with shift(net, torch.tensor([-math.pi / 2, 1.0], dtype=X64)):  # the cyclic order of C4 is no longer the same
        found = net(x)
    close(turned(found), expected, 1e-10)


def test_a_frame_bias_is_its_formula():
    """Σ_j β_j B((h − g − h_j)/s) on the circle, with its images, in float64."""
    layer = FrameBias(2, EIGHT, ls.SplineBasis(ls.local(ls.SO2(), 3, 0.5), degree=3)).double()
    x = torch.randn(3, 2, 8, 4, dtype=X64)
    assert torch.equal(layer(x), x)
    nn.init.normal_(layer.weight)
    frames = torch.tensor([[0.0], [0.4], [-2.5]], dtype=X64)
    with in_frame(layer, frames):
        found = layer(x)
    centres = layer.basis.grid.elements[:, 0].tolist()
    for b, c, h in itertools.product(range(3), range(2), range(8)):
        bias = 0.0
        for beta, centre in zip(layer.weight[c].tolist(), centres, strict=True):
            angle = float(EIGHT.elements[h, 0]) - float(frames[b, 0]) - centre
            for turn in (-2, -1, 0, 1, 2):
                bias += beta * float(ls.bspline(torch.tensor((angle + turn * 2 * math.pi) / 0.5, dtype=X64), 3))
        close(found[b, c, h], x[b, c, h] + bias, 1e-10)
    with in_frame(layer, frames[1]):
        close(layer(x)[1], found[1], 1e-12)


def broken(grid: ls.Grid) -> nn.Module:
    d = grid.group.space_dim
    net = nn.Sequential(
        *(Lift(1, 3, 3, grid, padding="same"), FrameBias(3, grid), nn.SiLU()),
        *(GConv(3, 4, 3, grid, padding="same"), FrameBias(4, grid), nn.SiLU(), Project("max", grid)),
        *(nn.Flatten(2), nn.AdaptiveAvgPool1d(1)),
    )
    for layer in net:
        if isinstance(layer, FrameBias):
            nn.init.normal_(layer.weight, std=0.3)
    assert d in (2, 3)
    return InFrame(net).double().eval()


@pytest.mark.parametrize("grid", [FLIPS, ls.uniform(ls.O3(), 48)], ids=["square", "cube"])
def test_image_and_frame_are_rotated_together(grid):
    """f(g·x, g·frame) = f(x, frame) for every element of the grid and any frame; not if one of them alone moves."""
    net, group = broken(grid), grid.group
    x = torch.randn(2, 1, *(7,) * group.space_dim, dtype=X64)
    frames = group.exp(torch.randn(2, group.dim, dtype=X64))
    expected, alone = net(x, frame=frames).detach(), []
    for g in grid.elements[:: max(1, len(grid) // 8)]:
        moved = transformed(x, group.matrix(g))
        close(net(moved, frame=group.product(g, frames)), expected, 1e-10)
        others = net(moved, frame=frames) - expected, net(moved) - net(x)
        alone += [float(other.detach().abs().max()) for other in others]
    assert max(alone) > 1e-3
    close(net(x, frame=group.identity(dtype=X64)), net(x), 1e-12)


def transformed(x: Tensor, matrix: Tensor) -> Tensor:
    """x(M⁻¹u), for matrices that permute axes with signs."""
    order = matrix.abs().argmax(1).tolist()
    back = [axis for axis, row in enumerate(matrix.round()) if row.sum() < 0]
    return x.permute(0, 1, *(2 + axis for axis in order)).flip([2 + axis for axis in back])


def test_what_is_left_is_said():
    """A bias that is even in the angle keeps the reflection in axis 0; one that is constant keeps all."""
    net = nn.Sequential(Lift(1, 1, 3, FLIPS, padding="same"), FrameBias(1, FLIPS)).double()
    x = torch.randn(4, 1, 9, 9, dtype=X64)
    (found,) = testing.breaking(net, x)
    assert (found.layer, found.broken, found.kept) == ("1", 0, list(range(8)))
    layer = net[1]
    nn.init.constant_(layer.weight, 0.7)
    assert testing.breaking(net, x)[0].broken < 1e-12
    mirror = FLIPS.elements[4]
    images = same(FLIPS, FLIPS.group.product(mirror, FLIPS.elements)).int().argmax(1)
    with torch.no_grad():
        drawn = torch.randn(8, dtype=X64)
        layer.weight.copy_((drawn + drawn[images]).unsqueeze(0))
    (found,) = testing.breaking(net, x)
    assert found.kept == [0, 4]
    varies = layer.bias().detach().std(unbiased=False)
    assert found.broken == pytest.approx(float(varies / net(x).detach().std()))
    close(layer.penalty(), varies**2, 1e-12)
    with pytest.raises(ValueError, match="no FrameBias"):
        testing.breaking(net[0], x)


def test_frames_under_compile_and_on_the_sphere():
    net, x = broken(TURNS).float(), torch.randn(2, 1, 6, 6)
    frames = torch.tensor([[0.3], [1.2]])
    torch.compiler.reset()
    close(torch.compile(net, backend="aot_eager")(x, frame=frames), net(x, frame=frames))
    sphere = ls.uniform(ls.Sphere(), 6)
    layer = FrameBias(1, sphere).double()
    nn.init.normal_(layer.weight)
    turn = ls.SO3().exp(torch.randn(3, dtype=X64))
    back = ls.SO3().act(ls.SO3().inverse(turn), sphere.elements)
    close(layer.bias(turn), layer.weight @ layer.basis(back).T, 1e-12)
    for frame in (torch.zeros(2, 4, 1), torch.zeros(3)):
        with pytest.raises(ValueError, match=r"elements of SO2\(\) are \(1\) or \(B, 1\)"):
            net(x, frame=frame)
    with pytest.raises(ValueError, match="has no FrameBias"), in_frame(nn.Identity(), frames):
        pass


READY = {
    "classifier": lambda **options: ls.models.classifier(
        1, 3, FLIPS, widths=(2, 3, 3), dropout=0.0, activation="silu", **options
    ),
    "resnet": lambda **options: ls.models.resnet(1, 3, FLIPS, widths=(2, 3), dropout=0.0, activation="silu", **options),
    "unet": lambda **options: ls.models.unet(1, 3, FLIPS, widths=(2, 3), activation="silu", **options),
}


@pytest.mark.parametrize("model", READY)
def test_ready_networks_break_and_take_a_frame(model):
    """Equivariant at first; broken when biases are drawn; together with the frame equivariant again."""
    net, x = READY[model](breaking=True).double(), torch.randn(4, 1, 16, 16, dtype=X64)
    plain = READY[model]()
    biases = [layer for layer in net.modules() if isinstance(layer, FrameBias)]
    layers = [layer for layer in net.modules() if isinstance(layer, Lift | GConv)]
    assert len(biases) == len(layers)
    added = sum(parameter.numel() for parameter in net.parameters()) - sum(p.numel() for p in plain.parameters())
    assert added == sum(layer.weight.numel() for layer in biases)
    net(x)  # in training: statistics of the norms
    net.eval()
    frames, back = FLIPS.elements[torch.tensor([0, 1, 5, 6])], turned if model == "unet" else (lambda t: t)
    turn = FLIPS.elements[1]
    with torch.no_grad():
        close(net(turned(x)), back(net(x)), 1e-9)
        for layer in biases:
            nn.init.normal_(layer.weight, std=0.3)
        assert (net(turned(x)) - back(net(x))).abs().max() > 1e-3
        close(net(turned(x), frame=FLIPS.group.product(turn, frames)), back(net(x, frame=frames)), 1e-9)
        assert all(found.kept == [0] for found in testing.breaking(net, x))


def test_ready_networks_are_restricted():
    one = ls.uniform(ls.Trivial(2), 1)
    for kernel in ("dense", "local", "pointwise"):
        nets = {
            "classifier": (READY["classifier"](kernel=kernel, restrict={2: TURNS}), True),
            "resnet": (READY["resnet"](kernel=kernel, restrict={0: TURNS}), True),
            "to nothing": (READY["resnet"](kernel=kernel, restrict={0: TURNS, 1: one}), False),
        }
        for net, keeps in nets.values():
            x = torch.randn(3, 1, 16, 16, dtype=X64)
            net.double()(x)
            net.eval()
            with torch.no_grad():
                expected = net(x)
                assert ((net(turned(x)) - expected).abs().max() < 1e-9) == keeps
                assert (net(flipped(x)) - expected).abs().max() > 1e-5
    with pytest.raises(ValueError, match="restrict names stage 2, must be a whole number from 0 to 1"):
        READY["resnet"](restrict={2: TURNS})
    with pytest.raises(ValueError, match="restrict names stage 0, must be a whole number from 1 to 2"):
        READY["classifier"](restrict={0: TURNS})
    for name in ("unet", "resnet"):
        with pytest.raises(ValueError, match="checkpoint = True with breaking"):
            READY[name](breaking=True, checkpoint=True)


@pytest.mark.parametrize("kernel", ["dense", "local", "pointwise"])
def test_a_restricted_unet_keeps_its_subgroup_and_no_more(kernel):
    one = ls.uniform(ls.Trivial(2), 1)
    for restrict, keeps in (({1: TURNS}, True), ({2: TURNS}, True), ({1: TURNS, 2: one}, False)):
        net = ls.models.unet(
            1, 3, FLIPS, widths=(2, 3, 4), activation="silu", kernel=kernel, restrict=restrict, parameters=3000
        )
        assert sum(p.numel() for p in net.parameters()) == pytest.approx(3000, rel=0.2)
        x = torch.randn(2, 1, 16, 16, dtype=X64)
        net.double()(x)
        net.eval()
        with torch.no_grad():
            expected = net(x)
            assert ((net(turned(x)) - turned(expected)).abs().max() < 1e-9) == keeps
            assert (net(flipped(x)) - flipped(expected)).abs().max() > 1e-5


def test_what_is_counted_is_what_is_built():
    """Biases, and layers behind a restriction."""
    kit, dry = (Kit(FLIPS, Layers(3, "local", None, False, breaking=True), dry=dry) for dry in (False, True))
    built = []
    for one in (kit, dry):
        first, restriction = one.conv(2, 3), one.restrict(TURNS)
        built += [one.lift(1, 2), first, one.conv(3 * restriction.factor, 4), one.halving(1, 2)]
    assert kit.parameters == dry.parameters == sum(p.numel() for layer in built[:4] for p in layer.parameters())
