"""The Triton kernels against the sum written out tap by tap: interpreted everywhere, compiled where a GPU is."""

import copy
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import liespline as ls
from liespline import functional, paths
from liespline.models.kernels import h_basis

from .path_cases import Case, banded_samples, naive, relative_error

if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed", allow_module_level=True)

on_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def test_interpreted_kernels() -> None:
    # A process of its own: Triton decides between compiler and interpreter when it is first imported.
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        Path(__file__).with_name("interpreted_triton.py"),
        Path(__file__).with_name("interpreted_hopper.py"),
    ]
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def by_triton(case: Case, *tensors: torch.Tensor) -> torch.Tensor:
    plan = paths.plan_of(case.h_samples, case.sizes)
    with paths.use("triton"):
        return functional.correlate(*tensors, **case.options, plan=plan)


@pytest.mark.parametrize("channels", [8, 17, 64])
@pytest.mark.parametrize(("stride", "padding"), [((1, 1), (2, 2)), ((2, 1), (0, 3))])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 8e-3), (torch.float16, 1e-3), (torch.float32, 1e-3)])
@pytest.mark.parametrize("gpu", [pytest.param(True, marks=on_gpu)])
def test_compiled_kernels_are_the_definition_to_their_precision(
    gpu: bool, channels: int, stride: tuple[int, int], padding: tuple[int, int], dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(0)
    case = Case(
        x=torch.randn(2, channels, 6, 19, 17).to(dtype).double(),
        weight=torch.randn(channels, channels, 4, 3, dtype=torch.float64),
        x_samples=torch.randn(6, 1, 5, 5, 4, dtype=torch.float64),
        h_samples=banded_samples(6, 6, 3, 2, cyclic=True),
        sizes=((5, 5),) * 6,
        stride=stride,
        padding=padding,
    )
    x, weight = case.x.to("cuda", dtype).requires_grad_(), case.weight.float().cuda().requires_grad_()
    case.x.requires_grad_()
    case.weight.requires_grad_()
    found = by_triton(case, x, weight, case.x_samples.float().cuda(), case.h_samples.float().cuda())
    truth = naive(case)
    direction = torch.randn_like(found)
    assert relative_error(found, truth) < tolerance
    gradients = torch.autograd.grad(found, (x, weight), direction)
    expected = torch.autograd.grad(truth, (case.x, case.weight), direction.double().cpu())
    for gradient, right in zip(gradients, expected, strict=True):
        assert relative_error(gradient, right) < tolerance


@pytest.mark.filterwarnings("ignore:.*script_method.*:DeprecationWarning")  # torch 2.11's own, on its first compilation
@pytest.mark.filterwarnings("ignore:.*TensorFloat32 tensor cores.*:UserWarning")  # advice of the compiler
@pytest.mark.parametrize("gpu", [pytest.param(True, marks=on_gpu)])
def test_compiles_whole_under_autocast(gpu: bool) -> None:
    torch.manual_seed(0)
    case = Case(
        x=torch.randn(2, 16, 8, 12, 12),
        weight=torch.randn(16, 16, 4, 3),
        x_samples=torch.randn(8, 1, 3, 3, 4),
        h_samples=banded_samples(8, 8, 3, 1, cyclic=True).float(),
        sizes=((3, 3),) * 8,
        stride=(1, 1),
        padding=(1, 1),
    )
    plan = paths.plan_of(case.h_samples, case.sizes)
    tensors = [tensor.cuda() for tensor in case.tensors]
    tensors[1].requires_grad_()
    with paths.use("triton"), torch.autocast("cuda", dtype=torch.bfloat16):
        step = torch.compile(lambda *t: functional.correlate(*t, **case.options, plan=plan), fullgraph=True)
        found = step(*tensors)
    found.float().square().sum().backward()
    assert found.dtype == torch.bfloat16
    assert relative_error(found, naive(Case(*(t.double() for t in case.tensors), *case.options.values()))) < 8e-3
    assert tensors[1].grad is not None
    assert torch.isfinite(tensors[1].grad).all()


@pytest.mark.parametrize("pool", [1, 2, 3])
@pytest.mark.parametrize("channels", [5, 11, 40])
@pytest.mark.parametrize("innermost", ["channels", "elements"])
@pytest.mark.parametrize("gpu", [pytest.param(True, marks=on_gpu)])
def test_norm_relu_and_pooling_on_the_gpu(gpu: bool, pool: int, channels: int, innermost: str) -> None:
    torch.manual_seed(0)
    x = (torch.randn(4, channels, 12, 12, 18) + 3).bfloat16()
    layer = ls.nn.NormReLU(channels, pool)
    torch.nn.init.normal_(layer[0].weight)
    exact, right_layer = x.double().requires_grad_(), copy.deepcopy(layer).double()
    right = right_layer(exact)
    if innermost == "channels":
        on = x.cuda().movedim(1, -1).contiguous().movedim(-1, 1).requires_grad_()
    else:
        on = x.cuda().movedim((1, 2), (-2, -1)).contiguous().movedim((-2, -1), (1, 2)).requires_grad_()
    layer = layer.cuda()
    found = layer(on)
    direction = torch.randn(right.shape, dtype=torch.float64)
    right.backward(direction)
    found.backward(direction.to("cuda", torch.bfloat16))
    assert relative_error(found, right) < 4e-3
    for one, other in zip((on, *layer.parameters()), (exact, *right_layer.parameters()), strict=True):
        assert relative_error(one.grad, other.grad) < 1.5e-2  # a window with two values alike chooses either
    for name, value in right_layer.state_dict().items():
        torch.testing.assert_close(layer.state_dict()[name].cpu().double(), value.double(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("path", ["auto", "banded", "separable", "dense"])
@pytest.mark.parametrize("kind", ["dense", "local"])
@pytest.mark.parametrize("gpu", [pytest.param(True, marks=on_gpu)])
def test_scale_layers_on_the_gpu(gpu: bool, kind: str, path: str) -> None:
    torch.manual_seed(0)
    grid = ls.uniform(ls.Scale(2), 4, spacing=0.35)
    layer = ls.GConv(5, 7, 5, grid, h_basis=h_basis(grid, kind, 3), padding="same", bias=False)
    x = torch.randn(2, 5, 4, 24, 21).bfloat16()
    exact, right_layer = x.double().requires_grad_(), copy.deepcopy(layer).double()
    on, layer = x.cuda().requires_grad_(), layer.cuda()
    with paths.use("dense"):
        right = right_layer(exact)
    direction = torch.randn(right.shape, dtype=torch.float64)
    right.backward(direction)
    with paths.use(path), torch.autocast("cuda", torch.bfloat16):
        found = layer(on)
    found.backward(direction.to("cuda", found.dtype))
    assert relative_error(found, right) < 1e-2
    assert relative_error(on.grad, exact.grad) < 1e-2
    assert relative_error(layer.weight.grad, right_layer.weight.grad) < 1e-2


@pytest.mark.filterwarnings("ignore")  # of the compiler's own, and of the paper's windows
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize(("n_h", "n_k", "kind"), [(12, 12, "dense"), (16, 3, "local")])
@pytest.mark.parametrize("gpu", [pytest.param(True, marks=on_gpu)])
def test_a_compiled_network_learns_as_an_eager_one(gpu: bool, n_h: int, n_k: int, kind: str, mode: str) -> None:
    torch.manual_seed(0)
    images, labels = torch.randn(16, 3, 88, 88, device="cuda"), torch.randint(2, (16,), device="cuda")
    curves = []
    for compiled in (False, True):
        torch.manual_seed(1)
        network = ls.models.pcam(n_h, n_k, kind).cuda()
        optimiser = torch.optim.SGD(network.parameters(), lr=0.01)

        def loss(x: torch.Tensor, y: torch.Tensor, network: torch.nn.Module = network) -> torch.Tensor:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return torch.nn.functional.cross_entropy(network(x), y)

        compute = torch.compile(loss, mode=mode) if compiled else loss
        curve = []
        for _ in range(5):
            optimiser.zero_grad()
            value = compute(images, labels)
            value.backward()
            optimiser.step()
            curve.append(value.item())
        curves.append(curve)
    assert curves[0][-1] < curves[0][0]
    assert max(abs(a - b) for a, b in zip(*curves, strict=True)) < 0.02
