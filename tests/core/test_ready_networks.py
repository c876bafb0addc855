"""The ready networks: any group and dimension, budgets of parameters, options, what they are made of."""

import math

import pytest
import torch
from scipy import ndimage
from torch import nn

import liespline as ls
from exported import distance, stirred
from liespline import models
from liespline.models.kit import DiscMean, Kit, Layers
from liespline.models.resnet import Residual
from liespline.models.widths import in_lanes
from liespline.nn import FieldDropout
from networks import AXIAL, CUBE, SPHERE, TRIVIAL, TURNS

WIDTHS = {"classifier": (3, 4, 4, 5, 4, 12), "resnet": (3, 3, 4, 12), "unet": (3, 4, 5)}
every_model = pytest.mark.parametrize("name", WIDTHS)
TWO = {d: ls.uniform(ls.Scale(d), 2, spacing=0.5 * math.log(2)) for d in (1, 2, 3)}
GRIDS = {
    "Trivial(1)": (ls.uniform(ls.Trivial(1), 1), (21,)),
    "Scale(1)": (TWO[1], (24,)),
    "Trivial(2)": (TRIVIAL, (17, 20)),
    "Scale(2)": (TWO[2], (17, 20)),
    "Trivial(3)": (ls.uniform(ls.Trivial(3), 1), (9, 8, 10)),
    "Scale(3)": (TWO[3], (9, 8, 10)),
    "SO3": (CUBE, (9, 8, 10)),
    "Sphere": (SPHERE, (8, 8, 8)),
}


def ready(name: str, grid: ls.Grid = TURNS, **options: object) -> nn.Module:
    return getattr(models, name)(2, 3, grid, **{"widths": WIDTHS[name]} | options)


def numbers(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


@every_model
@pytest.mark.parametrize("grid", GRIDS)
def test_every_group_and_dimension_trains_and_exports(name: str, grid: str) -> None:
    elements, shape = GRIDS[grid]
    net = ready(name, elements, kernel="local" if grid == "SO3" else "dense")
    x = torch.randn(2, 2, *shape)
    out = net(x)
    assert out.shape == (2, 3) if name != "unet" else (2, 3, *shape)
    out.square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
    assert distance(stirred(net), ls.export(net), x) < 1e-5


@every_model
@pytest.mark.parametrize(
    "options", [{}, {"kernel": "local"}, {"kernel": "deformable"}, {"features": True}, {"separable": True}], ids=str
)
@pytest.mark.parametrize("grid", [TURNS, TWO[2], CUBE], ids=repr)
def test_what_is_counted_is_what_is_built(name: str, options: dict, grid: ls.Grid, monkeypatch: pytest.MonkeyPatch):
    if name == "classifier" and "features" in options:
        options = {"stride": 2}
    kits: list[Kit] = []
    init = Kit.__init__
    monkeypatch.setattr(Kit, "__init__", lambda self, *a, **k: kits.append(self) or init(self, *a, **k))
    built = numbers(ready(name, grid, **options))
    assert [kit.parameters for kit in kits] == [built]


@pytest.mark.parametrize("grid", [TRIVIAL, ls.uniform(ls.SO2(), 8)], ids=repr)
@pytest.mark.parametrize(
    ("name", "widths", "targets", "within"),
    [
        *((name, {}, (30_000, 300_000), 0.15) for name in WIDTHS),
        ("classifier", {"widths": (8, 12, 16, 24)}, (2_000, 20_000, 200_000), 0.12),
    ],
)
def test_widths_follow_from_a_budget(name: str, widths: dict, targets: tuple[int, ...], within: float, grid: ls.Grid):
    for target in targets:
        net = getattr(models, name)(1, 10, grid, parameters=target, **widths)
        assert numbers(net) == pytest.approx(target, rel=within)


def test_widths_of_a_budget_are_in_lanes_where_that_costs_little() -> None:
    """Multiples of eight within 3 % of the budget and a third of the plan; small networks keep their proportions."""
    grid = ls.uniform(ls.SO2(), 8)

    plan = (8, 8, 16, 16, 32, 32, 64, 64)

    def widths(parameters: int, version: int = 2) -> list[int]:
        net = models.resnet(
            3, 10, grid, widths=plan, kernel="local", parameters=parameters, features=False, version=version
        )
        assert numbers(net) == pytest.approx(parameters, rel=0.03)
        return [block.branch[-1].out_channels for block in net.modules() if isinstance(block, Residual)]

    assert widths(700_000) == [8, 8, 16, 16, 40, 40, 56, 56]
    assert widths(700_000, version=1) == [8, 8, 15, 15, 30, 30, 60, 60]
    assert widths(110_000) == [3, 3, 6, 6, 12, 12, 24, 24]
    for version, exact in ((1, True), (2, False)):
        net = models.unet(1, 2, grid, parameters=700_000, version=version)
        assert any(norm.num_features % 8 for norm in net.modules() if isinstance(norm, ls.nn.BatchNorm)) is exact
    with pytest.raises(ValueError, match="version = 3: this liespline makes ready networks of versions 1 to 2"):
        models.classifier(1, 2, grid, version=3)
    assert in_lanes((8, 15)) == [(8, 16)]
    assert in_lanes((7, 30))[:2] == [(8, 32), (8, 40)]
    assert in_lanes((5, 60)) == []


@torch.no_grad()
def test_the_first_layer_of_a_resnet_halves_without_aliasing() -> None:
    """At 45° of a texture its error is that of a common layer with `Downsample` behind it; a stride alone has twice."""
    torch.manual_seed(0)
    grid = ls.uniform(ls.SO2(), 8)
    kit = Kit(grid, Layers(5, "local", None, False))
    stems = {
        "halving": lambda: kit.halving(3, 4),
        "two layers": lambda: nn.Sequential(kit.lift(3, 4), ls.nn.Downsample(2)),
        "stride": lambda: nn.Sequential(ls.nn.Centre(2), kit.lift(3, 4, stride=2)),
    }
    texture = ndimage.gaussian_filter(torch.randn(6, 3, 140, 140).numpy(), (0, 0, 0.8, 0.8))
    rotated = ndimage.rotate(texture, 45, (2, 3), reshape=False, order=5)
    upright, rotated = (torch.from_numpy(x[:, :, 38:102, 38:102] / texture.std()) for x in (texture, rotated))
    errors = {}
    for name, make in stems.items():
        changes = []
        for _ in range(3):
            net = make()
            one, other = (DiscMean()(net(x).relu().amax(2)[..., 4:-4, 4:-4]) for x in (upright, rotated))
            changes.append(float((other - one).norm() / (one - one.mean(0)).norm()))
        errors[name] = sum(changes) / 3
    assert errors["halving"] < 1.3 * errors["two layers"]
    assert errors["halving"] < 0.75 * errors["stride"]


def test_a_seed_gives_one_network_whatever_was_built_before() -> None:
    grid, drawn = ls.uniform(ls.SO2(), 7), []  # a grid of which no other test counts the splines
    for _ in range(2):
        torch.manual_seed(0)
        net = models.classifier(1, 2, grid, widths=(3, 4), parameters=3000)
        drawn.append(torch.cat([p.flatten() for p in net.parameters()]))
    assert torch.equal(*drawn)


def test_the_pyramid_is_one_feature_map_per_stage() -> None:
    for version in (1, 2):
        net = models.resnet(2, 3, TURNS, widths=(3, 3, 4, 5), features=True, version=version)
        shapes = [tuple(f.shape) for f in net(torch.randn(2, 2, 29, 32))]
        assert shapes == [(2, 3, 4, 15, 16), (2, 4, 4, 8, 8), (2, 5, 4, 4, 4)]
    assert models.unet(2, 3, TURNS, widths=(3, 4), features=True)(torch.randn(1, 2, 9, 9)).shape == (1, 3, 4, 9, 9)
    budgeted = models.resnet(2, 3, TURNS, widths=(3, 3, 4, 5), features=True, parameters=20_000)
    widths = [f.shape[1] for f in budgeted(torch.randn(2, 2, 29, 32))]
    assert widths == [norm[0].num_features for norm in budgeted.norms]
    assert widths != [3, 4, 5]


def test_a_unet_puts_the_skip_before_what_comes_up() -> None:
    """Stored parameters of its layers are in this order."""
    net, x = ready("unet", widths=(2, 3, 4)).eval(), torch.randn(2, 2, 13, 16)
    skips = [net.down[0](x)]
    for stage in net.down[1:]:
        skips.append(stage(skips[-1]))
    found = skips.pop()
    for stage, finer in zip(net.up, net.finer, strict=True):
        skip = skips.pop()
        found = stage(torch.cat([skip, finer(found, skip.shape[3:])], 1))
    assert torch.allclose(net(x), net.head(found), atol=1e-6)


def test_deep_supervision_is_a_map_of_every_size_but_the_coarsest() -> None:
    """Windows and factors of each size their own; all maps rotate with the volume, and the switch leaves the finest."""
    options = {"kernel_size": [(1, 5, 5), (3, 5, 5), 3], "factor": [(1, 2, 2), (2, 3, 3)], "deep_supervision": True}
    net = models.unet(1, 3, AXIAL, widths=(2, 3, 4), **options).double().eval()
    x = torch.randn(2, 1, 4, 12, 12).double()
    maps = net(x)
    assert [tuple(m.shape) for m in maps] == [(2, 3, 4, 12, 12), (2, 3, 4, 6, 6)]
    assert net.down[2](net.down[1](net.down[0](x))).shape == (2, 4, 4, 2, 2, 2)
    for turned, upright in zip(net(x.rot90(1, (3, 4))), maps, strict=True):
        assert torch.allclose(turned, upright.rot90(1, (3, 4)), atol=1e-9)
    for head, found in zip(net.seg_layers, maps, strict=True):
        assert set(torch.autograd.grad(found.sum(), head.parameters(), retain_graph=True)) != {None}
    net.deep_supervision = False
    assert torch.equal(net(x), maps[0])
    with pytest.raises(ValueError, match=r"factor = .* has 1 entries, must have 2, one for each of the steps"):
        models.unet(1, 3, AXIAL, widths=(2, 3, 4), factor=[(1, 2, 2)])
    with pytest.raises(ValueError, match=r"widths = \(4,\): needs two sizes"):
        models.unet(1, 3, AXIAL, widths=(4,), deep_supervision=True)


def test_checkpoints_are_the_same_when_compiled() -> None:
    """Maps, gradients, and what batch norm remembers of one batch."""
    options = {"widths": (2, 3), "kernel_size": 3, "deep_supervision": True}
    net = ready("unet", checkpoint=True, **options).double()
    same, x = ready("unet", **options).double(), torch.randn(2, 2, 6, 7).double()
    same.load_state_dict(net.state_dict())
    for run in (torch.compile(net, backend="aot_eager"), same):
        sum(found.square().sum() for found in run(x)).backward()
    for one, other in zip(net.state_dict().values(), same.state_dict().values(), strict=True):
        assert torch.allclose(one, other)
    for one, other in zip(net.parameters(), same.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad)


class Labelled(torch.Tensor):
    """As MONAI's: a tensor that carries something, and computes as any other."""


def test_checkpoints_take_tensors_of_other_classes() -> None:
    net = models.unet(1, 2, CUBE, widths=(2, 3), kernel_size=3, checkpoint=True)
    x = torch.randn(1, 1, 16, 16, 16)
    net(x).square().sum().backward()
    expected = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x.as_subclass(Labelled)).square().sum().backward()
    for p, grad in zip(net.parameters(), expected, strict=True):
        assert torch.allclose(p.grad, grad, atol=1e-5)
    with torch.no_grad():
        assert type(net(x.as_subclass(Labelled))) is Labelled


def test_a_checkpointed_resnet_learns_the_same_and_keeps_less() -> None:
    """Gradients, what batch norm remembers of one batch, and the bytes that wait for the backward pass."""
    net, same = (ready("resnet", widths=(2, 3), dropout=0.0, checkpoint=own).double() for own in (True, False))
    same.load_state_dict(net.state_dict())
    x, kept = torch.randn(2, 2, 20, 20).double(), []
    for run in (net, same):
        sizes: dict[int, int] = {}
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, sizes=sizes: sizes.update({t.data_ptr(): t.nbytes}) or t, lambda t: t
        ):
            out = run(x).square().sum()
        kept.append(sum(sizes.values()))
        out.backward()
    for one, other in zip(net.state_dict().values(), same.state_dict().values(), strict=True):
        assert torch.equal(one, other)
    for one, other in zip(net.parameters(), same.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad)
    assert kept[0] < 0.8 * kept[1]


def test_field_dropout_drops_whole_fields_in_training_only() -> None:
    layer, x = FieldDropout(0.4), torch.ones(400, 5, 3, 4, 4)
    fields = layer(x).flatten(2)
    assert (fields == fields[..., :1]).all()
    assert fields.unique().tolist() == pytest.approx([0, 1 / 0.6])
    assert float((fields[..., 0] == 0).double().mean()) == pytest.approx(0.4, abs=0.05)
    assert layer.eval()(x) is x


@pytest.mark.parametrize(
    ("name", "options", "fields", "single"),
    [
        ("classifier", {"dropout": 0.4}, 2, [0.4]),  # behind the norm of every layer but the last
        ("resnet", {"dropout": 0.4}, 3, [0.4]),  # once in each block
        ("unet", {}, 5, []),  # at every stage, three down and two up
    ],
)
def test_dropout_is_where_it_was_asked_for_and_as_strong(name: str, options: dict, fields: int, single: list) -> None:
    net = ready(name, widths=(2, 3, 4), field_dropout=0.2, **options)
    assert [m.p for m in net.modules() if isinstance(m, FieldDropout)] == [0.2] * fields
    assert [m.p for m in net.modules() if isinstance(m, nn.Dropout)] == single
    assert not any(isinstance(m, FieldDropout) for m in ready(name, widths=(2, 3, 4)).modules())


@torch.no_grad()
def test_the_classifier_takes_the_maximum_over_the_group_and_the_mean_over_space() -> None:
    maps: list[torch.Tensor] = []
    for grid in (TURNS, TRIVIAL):
        net = models.classifier(1, 3, grid, widths=(2, 3)).double().eval()
        last = [m for m in net.modules() if isinstance(m, ls.GConv)][-1]
        last.register_forward_hook(lambda module, args, out: maps.append(out))
        norm = list(net)[list(net).index(last) + 1]
        linear = net[-4:]  # two linear layers, ReLU and dropout between them
        logits = net(torch.rand(2, 1, 15, 15, dtype=torch.float64))
        fields = norm(maps.pop())  # (B, C, N_h, H, W)
        assert fields.shape[2] == len(grid)
        assert torch.allclose(logits, linear(fields.amax(2).mean((2, 3))))
        assert not torch.allclose(logits, linear(fields.mean((2, 3, 4)))) or len(grid) == 1


@torch.no_grad()
def test_the_unet_draws_from_the_maximum_over_the_group() -> None:
    net = models.unet(1, 2, TURNS, widths=(3, 4)).eval()
    features, seen = [], []
    net.up[-1].register_forward_hook(lambda module, args, out: features.append(out))
    (points,) = [m for m in net.modules() if isinstance(m, nn.Conv2d)]
    points.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    net(torch.rand(2, 1, 12, 14))
    assert features[0].shape == (2, 3, 4, 12, 14)
    assert torch.equal(seen[0], features[0].amax(2))
    assert not torch.allclose(seen[0], features[0].mean(2))
