"""Values that are not finite stop training at their step, name their layer, and reach no checkpoint."""

import pytest
import torch

from liespline.lab.data import DataError
from liespline.lab.runs.checkpoint import SafeCheckpoints
from liespline.lab.runs.folder import Run
from liespline.lab.session import Session
from liespline.lab.settings import Config, Network, Training
from liespline.lab.training import nan_guard as finite
from liespline.lab.training import train as engine
from liespline.lab.training.learner import Batches
from liespline.lab.training.nan_guard import first_not_finite

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


def spoil(monkeypatch, step, change):
    """Let `change(images)` be the images of a step."""
    real = Batches.on_after_batch_transfer

    def batch(self, batch, dataloader_idx):
        images, targets = real(self, batch, dataloader_idx)
        if self.trainer.training and self.trainer.global_step + 1 == step:
            images = change(images.clone())
        return images, targets

    monkeypatch.setattr(Batches, "on_after_batch_transfer", batch)


def with_nan(images):
    images[5, 0, 3, 3] = float("nan")
    return images


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (with_nan, "the images of the batch (numbers [5])"),
        (lambda images: 3e38 * torch.randn(images.shape).sign(), "layer 0 (Lift)"),
        (lambda images: images * 1e20, "layer 1"),  # squares overflow in the batch norm, sums in the convolution do not
    ],
)
def test_a_bad_batch_is_found_where_it_first_shows(tmp_path, monkeypatch, change, place):
    step = 2 * STEPS + 4
    spoil(monkeypatch, step, change)
    run, said = stopped(tmp_path / "run")
    assert f"step {step} " in said
    assert f"first in {place}" in said
    state = SafeCheckpoints().load_checkpoint(run.last_checkpoint)
    assert state["global_step"] == 2 * STEPS
    assert all(value.isfinite().all() for value in state["state_dict"].values())
    assert [row["epoch"] for row in run.read_metrics()] == [0, 1]


@pytest.mark.parametrize("step", [STEPS + 2, 2 * STEPS - 1, 2 * STEPS])
def test_a_step_looked_at_later_is_the_same_step(tmp_path, monkeypatch, step):
    """As on a GPU, which is steps ahead; at the end of an epoch nothing is left to be looked at.

    The layer is found with the batch and the parameters of that step: those after it are not finite, and would be the
    first layer's.
    """
    spoil(monkeypatch, step, lambda images: images * 1e20)
    monkeypatch.setattr(finite, "steps_behind", lambda device: 3)
    run, said = stopped(tmp_path / "run")
    assert f"step {step} " in said
    assert "first in layer 1.0 (BatchNorm)" in said
    assert SafeCheckpoints().load_checkpoint(run.last_checkpoint)["global_step"] == STEPS


def test_the_parameters_looked_at_are_those_before_the_step(tmp_path, monkeypatch):
    """The step after an epoch begins with the state of its checkpoint."""
    seen = {}

    def look(network, loss, images):
        seen.update({f"network.{name}": value.clone() for name, value in network.state_dict().items()})
        return "a layer"

    spoil(monkeypatch, STEPS + 1, with_nan)
    monkeypatch.setattr(finite, "first_not_finite", look)
    run, _ = stopped(tmp_path / "run")
    state = SafeCheckpoints().load_checkpoint(run.last_checkpoint)["state_dict"]
    compared = [name for name in state if name.startswith("network.") and state[name].is_floating_point()]
    assert len(compared) > 8
    assert all(torch.equal(seen[name], state[name]) for name in compared)


def test_an_exploding_rate_is_told_what_to_do(tmp_path):
    run, said = stopped(tmp_path / "run", CONFIG.updated(lr=1e38))
    assert "lower --lr" in said
    assert "first in layer" in said
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
    assert f"step {2 * STEPS} " in said
    state = SafeCheckpoints().load_checkpoint(run.last_checkpoint)
    assert state["global_step"] == STEPS
    assert [row["epoch"] for row in run.read_metrics()] == [0]


class Root(torch.nn.Module):
    """√|x − x|: zero, with a gradient that is not finite."""

    def forward(self, x):
        return (x - x.detach()).abs().sqrt()


def test_a_gradient_is_traced_to_the_layer_that_made_it():
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Linear(4, 4), Root(), torch.nn.Linear(4, 2), torch.nn.Linear(2, 1)
    )
    images = torch.randn(5, 3)
    assert first_not_finite(network, lambda: network(images).sum(), images) == "the gradient of layer 1 (Linear)"
    fine = network[:2]
    assert "optimiser" in first_not_finite(fine, lambda: fine(images).sum(), images)
    assert "loss" in first_not_finite(fine, lambda: fine(images).sum() / 0, images)
