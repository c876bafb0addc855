"""Training stops at the first step that is not finite, before it reaches a checkpoint, and says which layer it was."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn

from ..data import DataError
from .learner import Learner


class Step(NamedTuple):
    """What a step began with, and whether its loss and the network after it came out finite: `fine`, once `known`."""

    number: int
    batch: tuple[Tensor, Tensor]
    before: Tensor
    fine: Tensor
    known: torch.cuda.Event | None


class StopAtNaN(Callback):
    """Look at each step once the device has computed it; what a step began with is kept until then."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Find parameters and buffers, which stay where they are while their values change."""
        self._network = cast(Learner, pl_module).network
        self._values = [value for value in self._network.state_dict().values() if value.is_floating_point()]
        self._now = self._joined()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Keep what the step began with, ask whether it is finite, and look at what was found of an earlier step.

        After the last batch of an epoch at all that are left, before anything is made of the network.
        """
        loss, before, self._now = outputs["loss"].detach(), self._now, self._joined()
        fine, known = loss.isfinite() & self._now.isfinite().all(), None
        if trainer.world_size > 1:  # all processes stop at the same step, or the others would wait for ever
            fine = trainer.strategy.reduce((~fine).float(), reduce_op="sum") == 0
        if loss.is_cuda:
            fine, known = fine.to("cpu", non_blocking=True), torch.cuda.Event()
            known.record()
        self._steps.append(Step(trainer.global_step, batch, before, fine, known))
        while len(self._steps) > (0 if trainer.is_last_batch else steps_behind(loss.device)):
            step = self._steps.popleft()
            if step.known is not None:
                step.known.synchronize()
            if not step.fine:
                self._stop(trainer, cast(Learner, pl_module), step)

    def _joined(self) -> Tensor:
        """All values as one new vector: one small piece of work for the device, however many there are."""
        return torch.cat([value.flatten() for value in self._values])

    def _stop(self, trainer: Trainer, learner: Learner, step: Step) -> None:
        with torch.no_grad():
            for value, before in zip(self._values, step.before.split([v.numel() for v in self._values]), strict=True):
                value.copy_(before.view_as(value))
        images, targets = step.batch

        def loss() -> Tensor:
            with trainer.precision_plugin.forward_context():
                return learner.objective.loss(self._network(images), targets)

        place = first_not_finite(self._network, loss, images)
        raise DataError(
            f"step {step.number} gave values that are not finite, first in {place}. The checkpoint of the last whole "
            "epoch is kept. Try a lower --lr, or --precision 32-true"
        )


def first_not_finite(network: nn.Module, loss: Callable[[], Tensor], images: Tensor) -> str:
    """Where the first value that is not finite appears: in the images, a layer, the loss, a gradient, or later."""
    if not finite(images):
        rows = (~images.flatten(1).isfinite().all(1)).nonzero()[:, 0].tolist()
        return f"the images of the batch (numbers {rows[:9]})"
    names = {module: f"layer {name} ({type(module).__name__})" for name, module in network.named_modules() if name}
    seen: list[tuple[nn.Module, bool]] = []  # as they finish, inner layers before those that hold them

    def look(module: nn.Module, inputs: Any, output: Any) -> None:
        # Buffers too: a batch norm hides a variance that overflows, its running mean of variances does not.
        seen.append((module, finite(output, *module.buffers(recurse=False))))

    hooks = [module.register_forward_hook(look) for module in names]
    with torch.enable_grad():
        value = loss()
    for hook in hooks:
        hook.remove()
    if bad := [module for module, fine in seen if not fine]:
        return names[bad[0]]
    if not finite(value):
        return "the loss of finite outputs"
    network.zero_grad(set_to_none=True)
    value.backward()
    # A gradient that is not finite spreads towards the input: it came from the layer nearest to the loss.
    bad = [module for module, _ in seen if not finite(*(p.grad for p in module.parameters(recurse=False)))]
    return f"the gradient of {names[bad[-1]]}" if bad else "the optimiser's step, from finite gradients"


def finite(*values: Any) -> bool:
    """Whether all tensors among the values are finite."""
    return all(bool(value.isfinite().all()) for value in values if isinstance(value, Tensor))


def steps_behind(device: torch.device) -> int:
    """How many steps later a loss is looked at: by then a GPU has computed it, and nothing waits."""
    return 3 if device.type == "cuda" else 0
