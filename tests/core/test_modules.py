"""Every layer and network under all that a PyTorch user does to modules; then what needs a layer of its own."""

import io
import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter
from torch.nn.utils import parametrize

import checks
import checks_held
import liespline as ls
from liespline import GConv, Lift, SplineBasis
from networks import NETWORKS, TURNS, close, every_network, gradients

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    torch.set_default_dtype(torch.float32)
    torch.compiler.reset()


CHECKS = {check.__name__: check for check in (*checks.CHECKS, *checks_held.CHECKS)}


@every_network
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.:FutureWarning")  # and in its exporter
def test_every_module(check: str, name: str) -> None:
    CHECKS[check](NETWORKS[name])


# ---- torch.compile ----


def test_compiles_by_inductor() -> None:
    net, x = NETWORKS["channel groups"](), NETWORKS["channel groups"].image()
    compiled = torch.compile(net, fullgraph=True)
    close(compiled(x), net(x))
    compiled(x).square().mean().backward()
    wanted = gradients(net, net(x).square().mean())
    for key, parameter in net.named_parameters():
        close(parameter.grad, wanted[key])


def test_compiles_once_for_all_batch_sizes() -> None:
    torch.compiler.reset()  # torch 2.6 counts what other networks had compiled
    net, counted = NETWORKS["SO2 dense"]().eval(), CompileCounter()
    compiled = torch.compile(net, backend=counted, fullgraph=True, dynamic=True)
    for batch in (4, 3, 5):
        x = NETWORKS["SO2 dense"].image(batch)
        close(compiled(x), net(x))
    assert counted.frame_count == 1


# ---- precision ----


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_default_dtype(dtype: torch.dtype) -> None:
    torch.set_default_dtype(dtype)
    net = NETWORKS["SO2 deformable"]()
    assert {p.dtype for p in net.parameters()} == {dtype}
    assert net(NETWORKS["SO2 deformable"].image(dtype=dtype)).dtype == dtype


def test_state_of_another_dtype_can_be_assigned() -> None:
    case = NETWORKS["Scale 2-D"]
    truth, net = case().double(), case()
    net.load_state_dict(truth.state_dict(), assign=True)
    x = case.image(dtype=torch.float64)
    assert torch.equal(net[:4](x), truth[:4](x))


# ---- devices and memory ----


def test_grids_and_bases_made_under_another_default_device() -> None:
    with torch.device("meta"):
        grids = [ls.uniform(ls.SO2(), 7), ls.uniform(ls.Scale(2), 3, spacing=0.3), ls.uniform(ls.SO3(), 24)]
        grids += [ls.repulsion(ls.Sphere(), 5), ls.local(ls.SO3(), 7, 0.5), ls.lattice(2, 3), ls.disc(5)]
        downsample = ls.nn.Downsample(2).to_empty(device="cpu")
        layer = GConv(1, 1, 5, grids[0], h_basis=SplineBasis(ls.local(ls.SO2(), 3, 0.9)), device="cpu")
    assert all(not grid.elements.is_meta for grid in grids)
    assert layer(torch.randn(1, 1, 7, 9, 9)).isfinite().all()
    assert torch.equal(downsample.taps, ls.nn.Downsample(2).taps)


def test_layers_first_made_in_inference_mode_leave_later_ones_trainable() -> None:
    with torch.inference_mode():
        GConv(1, 2, 5, ls.uniform(ls.SO2(), 9), dtype=torch.float64)  # new to every cache
    layer = GConv(1, 2, 5, ls.uniform(ls.SO2(), 9), dtype=torch.float64)
    layer(torch.randn(1, 1, 9, 9, 9, dtype=torch.float64)).sum().backward()
    assert layer.weight.grad.abs().max() > 0


def test_sixty_rotations_take_little_memory() -> None:
    grid = ls.repulsion(ls.SO3(), 60)
    for layer in (Lift(1, 1, 5, grid), GConv(1, 1, 5, grid), GConv(1, 1, 3, grid, padding=1)):
        samples = {"x_samples", "h_samples"}
        assert {name for name, buffer in layer.named_buffers() if buffer is not None} <= samples
        file = io.BytesIO()
        torch.save(layer, file)
        held = sum(t.numel() * t.element_size() for t in (*layer.parameters(), *layer.buffers()))
        assert file.getbuffer().nbytes - held < 1_000_000
    assert not list(layer.children())  # nothing below it when printed


def test_samples_are_the_layers_own_shared_between_processes_and_filled_again() -> None:
    one = GConv(1, 1, 5, TURNS, dtype=torch.float64)
    expected = one.kernel().detach().clone()
    for samples in (one.x_samples, one.h_samples):
        samples.zero_()
    other, empty = (GConv(1, 1, 5, TURNS, dtype=torch.float64) for _ in range(2))
    for layer in (other, empty.to_empty(device="cpu")):
        layer.load_state_dict(one.state_dict())
        assert torch.equal(layer.kernel(), expected)
    other.share_memory()
    assert all(tensor.is_shared() for tensor in (*other.parameters(), *other.buffers()))


def test_weights_that_are_not_finite_go_through_as_in_a_convolution() -> None:
    layer = GConv(1, 1, 5, TURNS)
    with torch.no_grad():
        layer.weight[0, 0, 0, 0] = math.nan
    assert layer(torch.zeros(1, 1, 4, 9, 9)).isnan().any()


class Counted(nn.Module):
    """A parametrisation that knows how often it was evaluated."""

    calls = 0

    def forward(self, weight: Tensor) -> Tensor:
        type(self).calls += 1
        return 2 * weight


@pytest.mark.parametrize("make", [lambda: Lift(1, 2, 5, TURNS), lambda: GConv(1, 2, 5, TURNS)])
def test_a_parametrised_weight_is_computed_once(make: Callable[[], Lift | GConv]) -> None:
    layer = make()
    x = torch.randn(1, 1, 9, 9) if isinstance(layer, Lift) else torch.randn(1, 1, 4, 9, 9)
    expected = 2 * (layer(x) - layer.bias.view(-1, 1, 1, 1))
    parametrize.register_parametrization(layer, "weight", Counted())
    Counted.calls = 0
    close(layer(x), expected)
    assert Counted.calls == 1
