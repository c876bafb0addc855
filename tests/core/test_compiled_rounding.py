"""A compiler that fuses keeps float32 where memory would have bfloat16: no gradient may depend on that rounding.

Such a compiler is played here on the CPU: the backward graph is computed without its roundings to bfloat16, as the
GPU's fused kernels compute what they recompute of the forward pass.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.decomposition import select_decomp_table

import liespline as ls

SO2 = ls.uniform(ls.SO2(), 8)


class Unrounded(fx.Interpreter):
    """Runs a graph, but leaves float32 as it is where it would become bfloat16."""

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "convert_element_type" in str(target) and args[0].dtype == torch.float32 and args[1] == torch.bfloat16:
            return args[0]
        return super().call_function(target, args, kwargs)


def fused() -> Callable[..., Any]:
    return aot_autograd(
        fw_compiler=lambda graph, _: make_boxed_func(graph.forward),
        bw_compiler=lambda graph, _: make_boxed_func(Unrounded(graph).run),
        partition_fn=min_cut_rematerialization_partition,
        decompositions=select_decomp_table(),
    )


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    torch.compiler.reset()


def normalised(*layers: nn.Module) -> nn.Module:
    norm = ls.nn.NormReLU(6)
    nn.init.uniform_(norm[0].running_mean, -0.3, 0.3)
    nn.init.uniform_(norm[0].running_var, 0.5, 2.0)
    return nn.Sequential(norm, *layers).eval()


def gradient(net: Callable[[Tensor], Tensor]) -> Tensor:
    x = torch.randn(4, 6, 8, 6, 6, generator=torch.Generator().manual_seed(1)).bfloat16().requires_grad_()
    (found,) = torch.autograd.grad(net(x).float().square().sum(), x)
    return found.float()


@pytest.mark.parametrize(
    "layer",
    [ls.Project("max", SO2), ls.Project("mean", SO2), ls.nn.MaxPool(2), ls.nn.Downsample(2), nn.SiLU()],
    ids=["maximum", "mean", "max pooling", "halving", "nonlinearity"],
)
def test_gradients_do_not_hang_on_rounding(layer: nn.Module) -> None:
    net = normalised(layer)
    expected = gradient(net)
    found = gradient(torch.compile(net, backend=fused()))
    assert (found - expected).norm() < 0.02 * expected.norm()


def test_the_compiler_played_here_shows_the_fault() -> None:
    class Looked(nn.Module):  # for the maximum, by comparing with it
        def forward(self, x: Tensor) -> Tensor:
            return x.amax(2)

    net = normalised(Looked())
    assert gradient(net).isfinite().all()
    assert gradient(torch.compile(net, backend=fused())).isnan().any()
