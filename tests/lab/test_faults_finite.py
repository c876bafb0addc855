"""Values that are not finite stop training, name their step, and reach no checkpoint."""

import pytest
import torch

from liespline.lab.data import DataError
from liespline.lab.runs.checkpoint import SafeCheckpoints
from liespline.lab.runs.folder import Run
from liespline.lab.session import Session
from liespline.lab.settings import Config, Network, Training
from liespline.lab.training import train as engine
from liespline.lab.training import trainer
from liespline.lab.training.learner import Batches

CONFIG = Config(
    task="digits",
    network=Network(group="so2", elements=2, widths=(2, 2, 4)),
    training=Training(epochs=3, batch_size=128, accelerator="cpu", optimiser="sgd", lr=0.01),
)
STEPS = 8  # in an epoch


def stopped(folder, config=CONFIG):
    """Train until it stops; the run and what it said."""
    run = Run.create(folder, config)
    with pytest.raises(DataError) as error:
        engine.train(Session(config, run), progress=False)
    return run, str(error.value)


def spoil(monkeypatch, step, factor):
    """Let the images of a step be so many times as large."""
    real = Batches.on_after_batch_transfer

    def batch(self, batch, dataloader_idx):
        images, targets = real(self, batch, dataloader_idx)
        here = self.trainer.training and self.trainer.global_step + 1 == step
        return images * factor if here else images, targets

    monkeypatch.setattr(Batches, "on_after_batch_transfer", batch)


@pytest.mark.parametrize("step", [STEPS + 1, 2 * STEPS - 1, 2 * STEPS])
def test_the_first_step_without_a_finite_loss_is_named_and_nothing_of_it_is_kept(tmp_path, monkeypatch, step):
    spoil(monkeypatch, step, float("nan"))
    run, said = stopped(tmp_path / "run")
    assert f"the loss of step {step} is not finite. " in said
    assert "lower --lr" in said
    state = SafeCheckpoints().load_checkpoint(run.last_checkpoint)
    assert state["global_step"] == STEPS
    assert all(value.isfinite().all() for value in state["state_dict"].values())
    assert [row["epoch"] for row in run.read_metrics()] == [0]


def test_a_long_epoch_is_looked_at_before_it_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "LOOK_EVERY", 3)
    spoil(monkeypatch, 2, float("inf"))
    begun, real = [], Batches.on_after_batch_transfer
    monkeypatch.setattr(Batches, "on_after_batch_transfer", lambda *given: (begun.append(1), real(*given))[1])
    run, said = stopped(tmp_path / "run")
    assert "the loss of step 2 is not finite" in said
    assert len(begun) == 3
    assert not run.last_checkpoint.exists()


def test_a_statistic_that_no_loss_shows_reaches_no_checkpoint(tmp_path, monkeypatch):
    """Squares overflow in a batch norm: its output is finite, the running variance is not."""
    spoil(monkeypatch, STEPS - 2, 1e25)
    run, said = stopped(tmp_path / "run")
    assert f"after step {STEPS} or shortly before, " in said
    assert "running_var is not finite" in said
    assert not run.last_checkpoint.exists()


def test_a_bad_last_step_reaches_no_checkpoint(tmp_path, monkeypatch):
    """The loss of the epoch's last step is finite, its gradient is not: no later loss would show it in time."""
    real = engine.Learner.training_step

    def training_step(self, batch, batch_idx):
        loss = real(self, batch, batch_idx)
        last = self.global_step + 1 == 2 * STEPS
        return loss + (self.network[-1].bias.sum() - self.network[-1].bias.sum()).abs().sqrt() if last else loss

    monkeypatch.setattr(engine.Learner, "training_step", training_step)
    run, said = stopped(tmp_path / "run")
    assert f"after step {2 * STEPS} " in said
    state = SafeCheckpoints().load_checkpoint(run.last_checkpoint)
    assert state["global_step"] == STEPS
    assert torch.stack([value.isfinite().all() for value in state["state_dict"].values()]).all()
