"""The maximum over H as an operator, against torch's own in values, gradients and order of memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from liespline.functional.largest import largest
from liespline.hopper.operators import innermost


def drawn(shape: tuple[int, ...], together: bool) -> Tensor:
    x = torch.randint(-3, 4, shape).double()  # many maxima are equal
    x = x.movedim((2, 1), (-2, -1)).contiguous().movedim((-2, -1), (2, 1)) if together else x
    return x.requires_grad_()


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 5, 8, 3, 7), (2, 3, 4, 2, 3, 2)])
def test_it_is_torch_s_own_maximum(shape: tuple[int, ...], together: bool) -> None:
    torch.manual_seed(0)
    x = drawn(shape, together and len(shape) > 3)
    torch.library.opcheck(largest, (x,))
    grad = torch.randn(*shape[:2], *shape[3:], dtype=x.dtype)
    right = x.max(2).values
    for by in (largest, torch.compile(largest, backend="aot_eager", fullgraph=True)):
        values, _ = by(x)
        assert torch.equal(values, right)
        (found,) = torch.autograd.grad(values, x, grad)
        assert torch.equal(found, torch.autograd.grad(right, x, grad, retain_graph=True)[0])
        assert innermost(found) == innermost(x)


def test_compiling_is_told_from_exporting() -> None:
    def sign(x: Tensor) -> Tensor:
        return x if torch.compiler.is_dynamo_compiling() else -x

    x = torch.ones(2)
    assert torch.equal(torch.compile(sign, backend="eager", fullgraph=True)(x), x)
    assert torch.equal(sign(x), -x)

    class Signed(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return sign(x)

    assert torch.equal(torch.export.export(Signed(), (x,)).module()(x), -x)
