"""What torch says in private: which transforms, compilers and tracers follow a tensor. No other file asks."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._C import DispatchKeySet
from torch._library.autograd import Info, make_autograd_impl
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad

__all__ = [
    "DispatchKeySet", "OpOverload", "as_new", "batched", "beside", "constant", "full_precision", "has_tangent",
    "has_values", "is_autocast", "plain", "readable", "real", "recorded", "traced", "transformed", "unseen", "widened",
    "with_gradients",
]  # fmt: skip

Answer = TypeVar("Answer", bound=Callable[..., Any])
_BATCHED_GRADIENTS = torch._C._dispatch_key_parse("VmapMode")


def transformed() -> bool:
    """Say whether torch.func (vmap, jvp, grad …) or forward mode is at work, which only torch's operators know."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def batched() -> bool:
    """Say whether many gradients are computed at once, as `torch.autograd.grad(is_grads_batched=True)` does."""
    return torch._C._dispatch_tls_is_dispatch_key_included(_BATCHED_GRADIENTS)


def plain(x: Tensor) -> bool:
    """Say whether x is one of torch's own tensors, not of a class that follows what is done with it."""
    return type(x) is Tensor or type(x) is torch.nn.Parameter


def unlabelled(x: Tensor) -> Tensor:
    """A tensor of a class that computes as torch's own, such as MONAI's `MetaTensor`, as one of torch's own."""
    return x.as_subclass(Tensor) if type(x).__torch_dispatch__ is Tensor.__torch_dispatch__ else x


def recorded() -> bool:
    """Say whether torch.jit.trace is at work."""
    return torch._C._get_tracing_state() is not None


def traced(x: Tensor) -> bool:
    """Say whether a compiler, a tracer or a mode follows x, so that each kernel has to be an operator of torch."""
    return (
        torch.compiler.is_compiling()
        or not (type(x) is Tensor or type(x) is torch.nn.Parameter)
        or x.is_meta
        or torch._C._get_tracing_state() is not None
        or torch._C._len_torch_dispatch_stack() > 0
    )


def readable(x: Tensor) -> bool:
    """Say whether values may be read: that would stall a GPU, and cannot be compiled, traced or transformed."""
    return not traced(x) and x.device.type == "cpu" and not transformed()


# ---- registration ----


def unseen(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep torch.compile from following a kernel's launch, also where the operator is called outside its graphs."""
    return torch._disable_dynamo(function)  # type: ignore[attr-defined]


def constant(function: Answer) -> Answer:
    """Call a function while torch.compile looks on, and take what it returns for a constant."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch's own imports the whole compiler
    return function


def with_gradients(
    operator: OpOverload, backward: Callable[..., Any] | None, remember: Callable[..., None] | None
) -> Callable[..., Any]:
    """Return what `torch.library.register_autograd` registers."""
    return make_autograd_impl(operator, Info(backward, remember))


def has_tangent(value: Any) -> bool:
    """Say whether a value carries a tangent, which an operator without a rule for it would drop."""
    dual = forward_ad._current_level >= 0 and isinstance(value, Tensor)
    return dual and forward_ad.unpack_dual(value).tangent is not None


# ---- constants and precision ----


def full_precision(device: torch.device) -> AbstractContextManager[Any]:
    """Leave autocast in the block, if it is on."""
    return torch.autocast(device.type, enabled=False) if is_autocast(device) else nullcontext()


def is_autocast(device: torch.device) -> bool:
    """Say whether autocast is on; the meta device has none."""
    return device.type != "meta" and torch.is_autocast_enabled(device.type)


def widened(x: Tensor) -> Tensor:
    """Return x in float32 at least, in which sums are exact enough."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


@contextmanager
def real() -> Iterator[None]:
    """Compute in the block with ordinary CPU tensors, whatever default device or mode the caller has set."""
    # An inference tensor that is shared by later layers would keep them from training.
    with torch.device("cpu"), torch.inference_mode(False):
        guard = torch._C._DisableTorchDispatch()
        try:
            yield
        finally:
            del guard


def has_values(x: Tensor) -> bool:
    """Say whether x holds numbers: not on the meta device, nor in torch's FakeTensorMode."""
    return not x.is_meta and not isinstance(x, FakeTensor)


def beside(exact: Tensor, x: Tensor) -> Tensor:
    """Return a constant as a tensor that may be computed with beside x: a fake one where x is fake."""
    return x.fake_mode.from_tensor(exact) if isinstance(x, FakeTensor) else exact


def as_new(exact: Tensor) -> Tensor:
    """Return a constant as new tensors are made here: of the default dtype, on the default device, perhaps fake."""
    new = torch.empty(0)
    return beside(exact, new).to(new, copy=True)
