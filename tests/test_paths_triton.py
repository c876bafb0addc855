"""The Triton kernels against the sum written out tap by tap: interpreted everywhere, compiled where a GPU is."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from liespline import paths

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
    ]
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def by_triton(case: Case, *tensors: torch.Tensor) -> torch.Tensor:
    plan = paths.Plan(case.h_samples, case.sizes).to(tensors[0].device)
    with paths.use("triton"):
        return paths.correlate(*tensors, **case.options, plan=plan)


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
    plan = paths.Plan(case.h_samples, case.sizes).cuda()
    tensors = [tensor.cuda() for tensor in case.tensors]
    tensors[1].requires_grad_()
    with paths.use("triton"), torch.autocast("cuda", dtype=torch.bfloat16):
        step = torch.compile(lambda *t: paths.correlate(*t, **case.options, plan=plan), fullgraph=True)
        found = step(*tensors)
    found.float().square().sum().backward()
    assert found.dtype == torch.bfloat16
    assert relative_error(found, naive(Case(*(t.double() for t in case.tensors), *case.options.values()))) < 8e-3
    assert tensors[1].grad is not None
    assert torch.isfinite(tensors[1].grad).all()
