"""Training stops where values are no longer finite, before they reach a checkpoint."""

from __future__ import annotations

from typing import Any, cast

from lightning.pytorch import Callback, LightningModule, Trainer

from ..data import DataError
from .learner import Learner

EVERY = 100
"""Steps between two looks: to look at a number, a GPU has to be waited for."""


class StopAtNaN(Callback):
    """Look at the losses of an epoch and at what its steps left of the network, now and then and in the end."""

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Name the first step whose loss is not finite; or what else is not, which no loss has shown yet."""
        if (batch_idx + 1) % EVERY and not trainer.is_last_batch:
            return
        learner = cast(Learner, pl_module)
        losses, step = learner.losses(), trainer.global_step
        values = {name: value for name, value in learner.network.state_dict().items() if value.is_floating_point()}
        # A batch norm hides a variance that overflows, its running mean of variances does not.
        bad = [name for name, value in values.items() if not value.isfinite().all()]
        # All processes stop at the same step, or the others would wait for ever.
        spoiled = trainer.strategy.reduce((~losses.isfinite()).float(), reduce_op="sum").nonzero()
        if len(spoiled):
            what = f"the loss of step {step - len(losses) + 1 + int(spoiled[0])} is"
        elif bad:
            what = f"after step {step} or shortly before, {bad[0]} is"
        else:
            return
        raise DataError(
            f"{what} not finite. The checkpoint of the last whole epoch is kept. Try a lower --lr, or "
            "--precision 32-true"
        )
