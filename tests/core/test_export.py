"""An exported network is plain torch and computes what the network computes, in torch.export and ONNX too."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from cases import CASES, Case
from exported import Residual, distance, same, stirred
from liespline import GConv, Grid, Lift, Project, SplineBasis, export, models

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")

SO2 = ls.uniform(ls.SO2(), 4)
SCALES = ls.uniform(ls.Scale(2), 3, spacing=0.5 * math.log(2))
SMALL_SCALES = Grid(ls.Scale(2), torch.tensor([[0.4], [0.5]]), torch.ones(2), 0.3)  # windows below kernel_size
CUBE = ls.uniform(ls.SO3(), 12)
LINE = ls.uniform(ls.Scale(1), 3, spacing=0.5 * math.log(2))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{case.kind}")
def test_every_group_dimension_and_kernel(case: Case) -> None:
    net = nn.Sequential(
        Lift(2, 3, 3, case.grid, x_basis=case.x_basis(), padding="same"),
        nn.ReLU(),
        GConv(3, 2, 3, case.grid, x_basis=case.x_basis(), h_basis=case.h_basis(), padding=1),
    )
    same(net, torch.randn(2, 2, *(6, 5, 4)[: case.d]))


OPTIONS = [
    {"kernel_size": 5, "padding": 2, "stride": 2},
    {"kernel_size": 4, "padding": "same"},
    {"kernel_size": (3, 6), "padding": (1, 0), "stride": (1, 3)},
    {"kernel_size": (6, 3), "padding": "same", "padding_mode": "circular"},
    {"kernel_size": 5, "padding": 2, "padding_mode": "reflect", "stride": (2, 1)},
    {"kernel_size": 5, "padding": 1, "padding_mode": "circular"},
    {"kernel_size": 5, "padding": 2, "padding_mode": "replicate", "bias": False},
    {"kernel_size": 4, "padding": "same", "padding_mode": "reflect"},
    {"kernel_size": 5, "padding": 0, "padding_mode": "replicate"},
    {"kernel_size": 5, "padding": 2, "padding_mode": "disc"},
    {"kernel_size": (4, 5), "padding": 0, "padding_mode": "disc", "stride": 2},
    {"kernel_size": 1, "stride": 2},
]


@pytest.mark.parametrize("grid", [SO2, SCALES, SMALL_SCALES], ids=["SO2", "growing", "shrinking"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_windows_strides_and_paddings(grid: Grid, options: dict) -> None:
    h_basis = SplineBasis(ls.local(grid.group, 3, grid.spacing))
    net = nn.Sequential(Lift(2, 2, grid=grid, **options), nn.Tanh(), GConv(2, 3, grid=grid, h_basis=h_basis, **options))
    same(net, torch.randn(2, 2, 23, 26))


def test_between_grids_and_without_space() -> None:
    sphere = ls.uniform(ls.Sphere(), 6)
    same(nn.Sequential(Lift(1, 2, 3, sphere), nn.ReLU(), GConv(2, 2, 3, sphere)), torch.randn(2, 1, 6, 6, 6))
    functions = nn.Sequential(
        *(GConv(1, 2, None, sphere, out_grid=CUBE), nn.BatchNorm1d(2), nn.ReLU()),
        *(GConv(2, 3, None, CUBE), Project("max", CUBE)),
    )
    plain = same(functions, torch.randn(3, 1, 6))
    assert [type(m) for m in plain.modules() if isinstance(m, nn.Linear | nn.Conv1d)] == [nn.Linear, nn.Linear]
    finer = ls.uniform(ls.SO2(), 8)
    same(nn.Sequential(Lift(1, 2, 5, SO2), GConv(2, 2, 5, SO2, out_grid=finer)), torch.randn(2, 1, 12, 12))


def test_what_cannot_be_exported_says_why() -> None:
    net = nn.Sequential(Lift(1, 2, 3, SO2), nn.ReLU(), GConv(2, 2, 3, SO2))
    with torch.no_grad():
        net[2].weight[0, 0, :2] = math.nan
    with pytest.raises(ValueError, match=r"8 of the 144 numbers in '2.weight' are NaN or infinite"):
        export(net)

    class Wrapped(Lift):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).relu()

    with pytest.raises(ValueError, match=r"layer '0' is a Wrapped with a forward of its own.*hold a Lift"):
        export(nn.Sequential(Wrapped(1, 2, 3, SO2)))
    hooked = Lift(1, 2, 3, SO2)
    hooked.register_forward_hook(lambda module, args, output: output + 1)
    with pytest.raises(ValueError, match=r"layer '0' has forward hooks"):
        export(nn.Sequential(hooked))
    with pytest.raises(ValueError, match=r"net is a list, must be an nn.Module"):
        export([Lift(1, 2, 3, SO2)])  # type: ignore[arg-type]


def test_double_precision_and_parametrised_weights() -> None:
    net = nn.Sequential(Lift(2, 3, 5, SO2), nn.BatchNorm3d(3), GConv(3, 2, 3, SO2, padding=1)).double()
    nn.utils.parametrizations.weight_norm(net[2])
    stirred(net)
    assert distance(net, export(net), torch.randn(2, 2, 8, 8, dtype=torch.float64)) < 1e-13


def test_planted_faults_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("liespline.exporting")
    net = stirred(nn.Sequential(Lift(1, 2, 5, SCALES, padding=2), nn.BatchNorm3d(2), GConv(2, 2, 5, SCALES, padding=2)))
    x = torch.randn(1, 1, 18, 18)
    assert distance(net, export(net), x) < 1e-5
    right = net(x).shape
    with monkeypatch.context() as patch:  # as if windows did not grow: the output comes out smaller
        for layer in (net[0], net[2]):
            patch.setattr(layer, "borders", layer.padding)
        with torch.no_grad():
            assert export(net)(x).shape != right
    with monkeypatch.context() as patch:  # the bias of channel o laid out as if it were that of element a
        patch.setattr(Tensor, "repeat_interleave", Tensor.repeat)
        swapped = export(net)
    assert distance(net, swapped, x) > 1e-2
    with monkeypatch.context() as patch:
        patch.setattr(module, "_with_norm", lambda kernel, bias, norm: (kernel, bias))
        assert distance(net, export(net), x) > 1e-2


def line() -> nn.Module:
    return nn.Sequential(
        *(Lift(2, 3, 5, LINE, padding="same"), nn.BatchNorm2d(3), nn.ReLU(), ls.nn.MaxPool(2)),
        *(GConv(3, 3, 4, LINE, padding="same"), nn.GELU(), Project("sum", LINE)),
        *(nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(3, 2)),
    )


def volume() -> nn.Module:
    local = SplineBasis(ls.local(ls.SO3(), 7, CUBE.spacing))
    return nn.Sequential(
        *(Lift(1, 2, 3, CUBE), ls.nn.BatchNorm(2), nn.ReLU(), ls.nn.MaxPool(2)),
        GConv(2, 2, 3, CUBE, h_basis=local, padding=1, padding_mode="circular", stride=2),
        *(Project("max", CUBE), nn.Flatten()),
    )


class Sums(Residual):
    """ONNX wants no dictionary keys in names, and the paper's own pooling."""

    def __init__(self) -> None:
        super().__init__(SO2)
        self.pool = nn.MaxPool3d((1, 2, 2))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "1-D": (line, (2, 22)),
    "2-D residual": (Sums, (2, 12, 12)),
    "2-D scale": (lambda: models.celeba(2, 2), (3, 16, 16)),
    "3-D": (volume, (1, 10, 10, 10)),
    "classifier": (lambda: models.classifier(1, 3, SO2, widths=(3, 4, 4, 5)), (1, 18, 21)),
    "resnet": (lambda: models.resnet(1, 3, SO2, widths=(3, 4, 5)), (1, 18, 21)),
    "unet": (lambda: models.unet(1, 3, SO2, widths=(3, 4, 5)), (1, 18, 21)),
}


@pytest.mark.parametrize(("make", "shape"), NETWORKS.values(), ids=NETWORKS.keys())
def test_compact_networks_sample_their_kernels_and_give_the_same_numbers(
    make: Callable[[], nn.Module], shape: tuple[int, ...]
) -> None:
    net, x = make(), torch.randn(2, *shape)
    same(net, x)  # gives every norm statistics of its own
    compact, plain = export(net, compact=True), export(net)
    with torch.no_grad():
        torch.testing.assert_close(compact(x), plain(x), rtol=0, atol=1e-5 * float(plain(x).abs().max()))
    learned = sum(p.numel() for p in net.parameters())
    assert sum(p.numel() for p in compact.parameters()) <= 1.05 * learned + 200  # biases, once for each element
    assert sum(p.numel() for p in plain.parameters()) > 2 * learned


@pytest.mark.parametrize(("make", "shape"), NETWORKS.values(), ids=NETWORKS.keys())
# torch's own exporter trips over torch's own deprecations
@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.:FutureWarning")
def test_torch_export_and_onnx_runtime_agree(
    make: Callable[[], nn.Module], shape: tuple[int, ...], tmp_path: Path
) -> None:
    net = make()
    plain = same(net, torch.randn(2, *shape))
    batch = ({0: torch.export.Dim("batch")},)
    example = (torch.randn(2, *shape),)
    program = torch.export.export(plain, example, dynamic_shapes=batch)
    file = tmp_path / "net.onnx"
    torch.onnx.export(plain, example, file, dynamo=True, dynamic_shapes=batch, verbose=False)
    session = onnxruntime.InferenceSession(file)
    for size in (1, 5):
        x = torch.randn(size, *shape)
        with torch.no_grad():
            expected, found = net(x), program.module()(x)
        (by_onnx,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        scale = float(expected.abs().max())
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * scale)
        torch.testing.assert_close(torch.from_numpy(by_onnx), expected, rtol=0, atol=1e-5 * scale)
