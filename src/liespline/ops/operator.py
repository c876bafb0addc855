"""Operators whose kernels are our own: registered with torch, differentiated and transformed in one way."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

from .._torch import DispatchKeySet, OpOverload, batched, has_tangent, traced, transformed, unseen, with_gradients

Made = TypeVar("Made")
Gradients = tuple[Tensor | None, ...]
_library = torch.library.Library("liespline", "DEF")


class Operator:
    """An operator of torch's library: what computes it, and what tells the shapes of its result alone.

    A call runs `compute` at once; where a compiler or a tracer follows the first argument, it is the operator.
    In forward mode the operator raises NotImplementedError: torch would go on without tangents, as if they were zero.
    """

    def __init__(self, schema: str, compute: Callable[..., Any], fake: Callable[..., Any]) -> None:
        self.name, self.compute = schema.partition("(")[0], compute
        _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        _library.impl(self.name, unseen(compute), "CompositeExplicitAutograd")
        torch.library.register_fake(f"liespline::{self.name}", fake, lib=_library)
        self.op: OpOverload = getattr(torch.ops.liespline, self.name).default
        differentiated = self._with_gradients()

        def differentiate(keys: DispatchKeySet, *args: Any) -> Any:
            if any(has_tangent(value) for value in args):
                raise NotImplementedError(
                    f"liespline::{self.name} has no forward-mode derivative: call the layer, which computes such a one "
                    "by torch's own operators"
                )
            return differentiated(keys, *args)

        _library.impl(self.name, differentiate, "Autograd", with_keyset=True)

    def _with_gradients(self) -> Callable[..., Any]:
        return with_gradients(self.op, None, None)

    def __call__(self, *args: Any) -> Any:
        """Compute, as an operator if that is followed."""
        return self.op(*args) if traced(args[0]) else self.compute(*args)


class Differentiable(Operator):
    """An operator with a backward pass of its own in its first `tensors` arguments.

    `gradients(needs, grad, *args, *facts)` returns theirs, None where none is needed; facts are further results of
    `compute`, which have none. `plain(*args)` is the first result in torch's own operators, which every transform
    knows: it is called under one, and gives the gradients that are differentiated again or are many at once.
    """

    def __init__(
        self, schema: str, compute: Callable[..., Any], fake: Callable[..., Any], *,
        plain: Callable[..., Tensor], gradients: Callable[..., Gradients], tensors: int = 2,
    ) -> None:  # fmt: skip
        self.plain, self.gradients, self.tensors = plain, gradients, tensors
        super().__init__(schema, compute, fake)

    def _with_gradients(self) -> Callable[..., Any]:
        return with_gradients(
            self.op, lambda ctx, *grads: self.send_back(ctx, ctx.needs_input_grad, grads[0]), self.remember
        )

    def __call__(self, *args: Any) -> Any:
        """Compute; eagerly by an autograd.Function, as calling an operator of torch's takes longer than launching."""
        if transformed():
            return self.plain(*args)
        return self.op(*args) if traced(args[0]) else _Eager.apply(self, *args)

    def remember(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what the backward pass needs: the `setup_context` of an autograd.Function."""
        _, *facts = output if isinstance(output, tuple) else (output,)
        ctx.mark_non_differentiable(*facts)
        ctx.save_for_backward(*(v if isinstance(v, Tensor) else None for v in inputs), *facts)
        ctx.options = [None if isinstance(v, Tensor) else v for v in inputs]

    def send_back(self, ctx: Any, needs: Sequence[bool], grad: Tensor) -> Gradients:
        """Return a gradient for each input."""
        saved, count = ctx.saved_tensors, len(ctx.options)
        inputs = [o if t is None else t for t, o in zip(saved, ctx.options, strict=False)]
        needs, rest = needs[: self.tensors], inputs[self.tensors :]
        if followed():
            found = by_formula(lambda *some: self.plain(*some, *rest), inputs[: self.tensors], needs, grad)
        else:
            found = self.gradients(needs, grad, *inputs, *saved[count:])
        return *found, *(None,) * (count - self.tensors)


class _Eager(torch.autograd.Function):
    @staticmethod
    def forward(operator: Differentiable, *args: Any) -> Any:
        return operator.compute(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.operator, *args = inputs
        ctx.operator.remember(ctx, args, output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Gradients:
        return None, *ctx.operator.send_back(ctx, ctx.needs_input_grad[1:], grads[0])


def quick(function: type[torch.autograd.Function]) -> None:
    """Keep the signature of `forward`, which torch finds anew in every call: 50 µs of one core."""
    forward: Any = function.forward
    forward.__signature__ = inspect.signature(forward)


quick(_Eager)


def followed() -> bool:
    """Say whether a gradient will itself be differentiated or is computed for many at once: not by our own kernels."""
    return torch.is_grad_enabled() or transformed() or batched()


def by_formula(
    formula: Callable[..., Tensor], tensors: Sequence[Tensor | None], needs: Sequence[bool], grad: Tensor
) -> Gradients:
    """Return the gradients of a formula in torch's own operators, which every transform knows."""
    wanted = [tensor for tensor, need in zip(tensors, needs, strict=True) if need and tensor is not None]

    def of_wanted(*given: Tensor) -> Tensor:
        some = iter(given)
        return formula(*(next(some) if need else tensor for tensor, need in zip(tensors, needs, strict=True)))

    if transformed():
        found = iter(torch.func.vjp(of_wanted, *wanted)[1](grad))
    else:  # not by vjp, which refuses hooks on saved tensors
        further = torch.is_grad_enabled()
        with torch.enable_grad():
            out = formula(*tensors)
        found = iter(torch.autograd.grad(out, wanted, grad, create_graph=further))
    return tuple(next(found) if need else None for need in needs)


# ---- devices ----


def on_its_device(launch: Callable[..., Made]) -> Callable[..., Made]:
    """Launch kernels on the GPU of the first argument, also where another one is the current device."""

    @wraps(launch)
    def call(x: Tensor, *args: Any, **options: Any) -> Made:
        with torch.cuda.device_of(x):
            return launch(x, *args, **options)

    return call


@cache
def capability(device: torch.device) -> tuple[int, int]:
    """Return the compute capability of a GPU; (0, 0) where none is, so that kernels are not for its fake tensors."""
    return torch.cuda.get_device_capability(device) if torch.cuda.is_available() else (0, 0)
