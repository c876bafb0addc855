"""Batch norm, pooling and resampling against torch's own and against closed forms."""

import pytest
import torch
from torch import nn

import liespline as ls

X64 = torch.float64


@pytest.mark.parametrize(
    "options",
    [{}, {"eps": 1e-3, "momentum": 0.3}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}],
    ids=str,
)
@pytest.mark.parametrize("shape", [(4, 5, 3, 6, 7), (2, 5, 2, 4, 4), (8, 5, 2, 3, 3)])
def test_batch_norm_is_batchnorm3d(shape: tuple[int, ...], options: dict[str, object]) -> None:
    theirs, ours = nn.BatchNorm3d(5, **options).double(), ls.nn.BatchNorm(5, **options).double()  # type: ignore[arg-type]
    if theirs.affine:
        nn.init.normal_(theirs.weight)
        nn.init.normal_(theirs.bias)
    ours.load_state_dict(theirs.state_dict())
    for _ in range(3):
        x = (3 * torch.randn(shape, dtype=X64) + 2).requires_grad_()
        y = x.detach().clone().requires_grad_()
        a, b = theirs(x), ours(y)
        (a**3).sum().backward()
        (b**3).sum().backward()
        assert (a - b).abs().max() < 1e-12
        assert (x.grad - y.grad).abs().max() < 1e-10 * x.grad.abs().max()
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, atol=1e-13, rtol=1e-13)
    theirs.eval(), ours.eval()
    assert (theirs(x) - ours(x)).abs().max() < 1e-12


@pytest.mark.parametrize("d", [0, 1, 2, 3])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_hands_on_no_more_axes_than_cudnn_takes(d: int, training: bool, monkeypatch: pytest.MonkeyPatch):
    ranks, theirs = [], nn.functional.batch_norm
    monkeypatch.setattr(nn.functional, "batch_norm", lambda x, *rest: ranks.append(x.ndim) or theirs(x, *rest))
    norm = ls.nn.NormReLU(3).double().train(training)
    nn.init.normal_(norm[0].weight)
    norm[0].running_mean += 0.3
    x = torch.randn(2, 3, 4, *(5, 4, 3)[:d], dtype=X64)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    mean, var = (x.mean(axes), x.var(axes, correction=0)) if training else (norm[0].running_mean, norm[0].running_var)
    mean, var, weight = (t.view(-1, *(1,) * (x.ndim - 2)) for t in (mean.clone(), var, norm[0].weight))
    torch.testing.assert_close(norm(x), ((x - mean) / (var + 1e-5).sqrt() * weight).relu())
    assert max(ranks) <= 5


def test_batch_norm_in_half_precision_has_float32_statistics() -> None:
    x = (torch.randn(8, 4, 4, 9, 9) + 100).bfloat16()
    norm = ls.nn.BatchNorm(4)
    out = norm(x)
    assert out.dtype == torch.bfloat16
    assert (norm.running_var - (0.9 + 0.1 * x.float().var((0, 2, 3, 4)))).abs().max() < 1e-4


def test_max_pool_is_maxpool3d_in_two_dimensions() -> None:
    x = torch.randn(2, 3, 4, 9, 9)
    assert torch.equal(ls.nn.MaxPool(2)(x), nn.MaxPool3d((1, 2, 2))(x))
    assert torch.equal(ls.nn.MaxPool(3, 2, 1)(x), nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))(x))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_resampling_keeps_constants_and_lines(d: int) -> None:
    down, up, pool = ls.nn.Downsample(2).double(), ls.nn.Upsample(2), ls.nn.MaxPool(2)
    x = torch.randn(2, 3, 4, *[9] * d, dtype=X64)
    assert down(x).shape == (2, 3, 4, *[5] * d)
    assert up(x).shape == (2, 3, 4, *[18] * d)
    assert pool(x).shape == (2, 3, 4, *[4] * d)
    assert (down(torch.ones_like(x)) - 1).abs().max() < 1e-12
    ramp = torch.arange(17, dtype=X64).expand(1, 1, 1, *[17] * d)
    middle = (0, 0, 0, *[slice(2, -2)] * d)  # away from the border
    assert (down(ramp)[middle] - ramp[..., ::2][(0, 0, 0, *[slice(2, 7)] * (d - 1), slice(2, -2))]).abs().max() < 1e-12


@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize(("d", "mode"), [(1, "linear"), (2, "bilinear"), (3, "trilinear")])
def test_upsampling_is_torchs(d: int, mode: str, factor: int) -> None:
    x = torch.randn(2, 3, 4, *(5, 4, 6)[:d], dtype=X64)
    right = nn.functional.interpolate(x.flatten(1, 2), scale_factor=factor, mode=mode, align_corners=False)
    torch.testing.assert_close(ls.nn.Upsample(factor)(x).flatten(1, 2), right, rtol=0, atol=1e-14)


def test_downsampling_keeps_the_equivariance_that_max_pooling_loses() -> None:
    grid = ls.uniform(ls.SO2(), 12)
    first = ls.Lift(1, 4, 5, grid, dtype=X64)
    errors = [
        ls.testing.equivariance_error(nn.Sequential(first, nn.ReLU(), pool.double()), grid, size=21, images=4)
        for pool in (ls.nn.Downsample(2), ls.nn.MaxPool(3, 2, 1))
    ]
    assert errors[0] < 1.3e-2
    assert errors[1] > 2 * errors[0]


@pytest.mark.parametrize("size", [(6, 8), (7, 5)])
@pytest.mark.parametrize("pool", [1, 2, 3])
def test_norm_relu_is_its_parts_in_the_usual_order(size: tuple[int, int], pool: int) -> None:
    ours = ls.nn.NormReLU(5, pool, eps=1e-3).double()
    theirs = nn.Sequential(nn.BatchNorm3d(5, eps=1e-3), nn.ReLU(), nn.MaxPool3d((1, pool, pool))).double()
    x = torch.randn(3, 5, 4, *size, dtype=X64, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    for _ in range(2):
        found, right = ours(x), theirs(y)
        assert (found - right).abs().max() < 1e-12
        found.square().sum().backward()
        right.square().sum().backward()
        assert (x.grad - y.grad).abs().max() < 1e-10
        ours.eval(), theirs.eval()
    assert set(ours.state_dict()) == {f"0.{name}" for name in nn.BatchNorm3d(5).state_dict()}


def test_norm_relu_calls_hooks_and_exchanged_children() -> None:
    layer, seen = ls.nn.NormReLU(2, 2), []
    layer[1].register_forward_hook(lambda module, inputs, output: seen.append(tuple(output.shape)))
    layer(torch.randn(2, 2, 3, 4, 4))
    assert seen == [(2, 2, 3, 2, 2)]
    layer[0] = nn.Identity()
    x = torch.rand(2, 2, 3, 4, 4)
    assert torch.equal(layer(x), x.unflatten(-1, (2, 2)).unflatten(-3, (2, 2)).amax((-1, -3)))
