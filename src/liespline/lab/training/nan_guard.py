"""Values that are not finite stop training, with the step, the layer, and the batch kept for replay."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn

from ..data import DataError
from ..runs.checkpoint import read_weights, save_weights
from ..runs.precision import in_precision
from ..runs.trained import described_network
from ..settings import Config
from ..tasks import find_task
from ..tasks.networks import Signature

ADVICE = "Try a lower --lr, or --precision 32-true"


@dataclass
class Step:
    """What a step began with, and whether its loss and the weights after it came out finite."""

    number: int
    batch: tuple[Tensor, Tensor]
    weights: Tensor
    """All floating-point weights and buffers before the step, one after the other."""
    fine: Tensor
    known: torch.cuda.Event | None = None

    def is_fine(self) -> bool:
        """Whether all was finite, on every device; waits until that is known."""
        if self.known is not None:
            self.known.synchronize()
        return bool(self.fine)


class StopAtNaN(Callback):
    """Stop at the first step that is not finite, before it reaches a checkpoint, and keep what made it."""

    def __init__(self, folder: Path, config: Config, signature: Signature) -> None:
        self.folder, self.config, self.signature = folder, config, signature
        self._values: dict[str, Tensor] = {}
        self._weights = torch.empty(0)
        self._steps: deque[Step] = deque()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Find the weights, which stay where they are while their values change."""
        self._values = _floating(_network(pl_module))
        self._weights = _joined(self._values)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Keep what the step began with, send the answer on its way, and look at that of an earlier step."""
        loss = (outputs["loss"] if isinstance(outputs, dict) else outputs).detach()
        before, self._weights = self._weights, _joined(self._values)
        fine = loss.isfinite() & self._weights.isfinite().all()
        if trainer.world_size > 1:  # all processes stop at the same step, or the others would wait for ever
            fine = trainer.strategy.reduce((~fine).float(), reduce_op="sum") == 0
        if loss.is_cuda:
            known = torch.cuda.Event()
            self._steps.append(Step(trainer.global_step, batch, before, fine.to("cpu", non_blocking=True), known))
            known.record()
        else:
            self._steps.append(Step(trainer.global_step, batch, before, fine))
        self._look(trainer, pl_module, steps_behind(loss.device))

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Look at all steps of the epoch before anything is made of its weights."""
        self._look(trainer, pl_module, 0)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The same, if there is nothing to validate on."""
        self._look(trainer, pl_module, 0)

    def _look(self, trainer: Trainer, learner: LightningModule, behind: int) -> None:
        while len(self._steps) > behind:
            step = self._steps.popleft()
            if not step.is_fine():
                self._stop(trainer, learner, step)

    def _stop(self, trainer: Trainer, learner: LightningModule, step: Step) -> None:
        network, objective = _network(learner), learner.objective
        _put_back(network, step.weights)
        # Before the step is done again, which moves the running means of batch norms.
        weights = {f"network.{name}": value.clone() for name, value in network.state_dict().items()}

        def loss() -> Tensor:
            with trainer.precision_plugin.forward_context():
                return objective.loss(network(step.batch[0]), step.batch[1])  # type: ignore[operator, union-attr]

        place = first_not_finite(network, loss, step.batch[0])
        of_process = f"-process-{trainer.global_rank}" if trainer.world_size > 1 else ""
        file = self.folder / f"not-finite-step-{step.number}{of_process}.safetensors"
        facts = {"step": step.number, "epoch": trainer.current_epoch, "place": place}
        about = facts | {"config": self.config.plain(), "signature": asdict(self.signature)}
        images, targets = step.batch
        save_weights(file, {"images": images.contiguous(), "targets": targets} | weights, about)
        raise DataError(
            f"step {step.number} gave values that are not finite, first in {place}. Its batch and the weights "
            f"before it are in {file}; the checkpoint of the last whole epoch is kept. {ADVICE}"
        )


def replay(file: str | Path) -> str:
    """Do the step of a `not-finite-step-N.safetensors` again on the CPU; where the first bad value appeared."""
    tensors, about = read_weights(Path(file))
    weights = {name.removeprefix("network."): v for name, v in tensors.items() if name.startswith("network.")}
    if not weights or "images" not in tensors or "targets" not in tensors:
        raise DataError(f"{file}: holds no step to replay; expected a not-finite-step-N.safetensors")
    images, targets = tensors["images"], tensors["targets"]
    network, config, signature = described_network(about, weights, str(file))
    network.to(images.dtype)
    objective = find_task(config).objective(config, signature)

    def loss() -> Tensor:
        with in_precision(config.training.precision, "cpu"):
            return objective.loss(network(images), targets)

    return first_not_finite(network.train(), loss, images)


def first_not_finite(network: nn.Module, loss: Callable[[], Tensor], images: Tensor) -> str:
    """Where the first value that is not finite appears: in the images, a layer, the loss, a gradient, or later."""
    if not bool(images.isfinite().all()):
        rows = (~images.flatten(1).isfinite().all(1)).nonzero()[:, 0].tolist()
        return f"the images of the batch (numbers {rows[:9]})"
    names = {module: f"layer {name} ({type(module).__name__})" for name, module in network.named_modules() if name}
    order: list[nn.Module] = []  # as they finish, inner layers before those that hold them
    bad: list[str] = []

    def looked_at(module: nn.Module, inputs: Any, output: Any) -> None:
        order.append(module)
        # Buffers too: a batch norm hides a variance that overflows, its running mean of variances does not.
        if not all(bool(v.isfinite().all()) for v in (output, *module.buffers(recurse=False)) if isinstance(v, Tensor)):
            bad.append(names[module])

    hooks = [module.register_forward_hook(looked_at) for module in names]
    try:
        with torch.enable_grad():
            value = loss()
    finally:
        for hook in hooks:
            hook.remove()
    if bad or not bool(value.isfinite()):
        return bad[0] if bad else "the loss of finite outputs"
    network.zero_grad(set_to_none=True)
    value.backward()
    # A gradient that is not finite spreads towards the input: it came from the layer nearest to the loss.
    for module in reversed(order):
        gradients = [p.grad for p in module.parameters(recurse=False) if p.grad is not None]
        if not all(bool(gradient.isfinite().all()) for gradient in gradients):
            return f"the gradient of {names[module]}"
    return "the optimiser's step, from finite gradients"


def steps_behind(device: torch.device) -> int:
    """How many steps later a loss is looked at: by then a GPU has computed it, and nothing waits."""
    return 3 if device.type == "cuda" else 0


def _network(learner: LightningModule) -> nn.Module:
    network = learner.network
    if not isinstance(network, nn.Module):
        raise TypeError(f"StopAtNaN watches a Learner, which has a network, not {type(learner).__name__}")
    return network


def _floating(network: nn.Module) -> dict[str, Tensor]:
    return {name: value for name, value in network.state_dict().items() if value.is_floating_point()}


def _joined(values: dict[str, Tensor]) -> Tensor:
    """All values as one new vector: one small piece of work for the device, however many there are."""
    return torch.cat([value.flatten() for value in values.values()])


@torch.no_grad()
def _put_back(network: nn.Module, weights: Tensor) -> None:
    values = _floating(network)
    for value, part in zip(values.values(), weights.split([v.numel() for v in values.values()]), strict=True):
        value.copy_(part.view_as(value))
