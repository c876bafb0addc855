"""What training does with the data and which network it keeps, seen from outside."""

import math
import shutil
from itertools import chain

import numpy as np
import pytest
import torch
from PIL import Image
from torchmetrics import Metric, MetricCollection

from lab.small_runs import new_run, resumed_run
from liespline.lab import load
from liespline.lab.data import DataError
from liespline.lab.data.augment import Augmentation
from liespline.lab.evaluation import evaluate, external
from liespline.lab.evaluation.scores import predictions
from liespline.lab.runs.model_file import read_weights
from liespline.lab.session import Session
from liespline.lab.tasks import find_task
from liespline.lab.tasks.objectives import Classification
from liespline.lab.training.learner import Learner
from liespline.lab.training.train import keep_best, start, train

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """Forty images, each of one shade of its own, so that a batch tells which images are in it."""
    root = tmp_path_factory.mktemp("numbered")
    for name, first in (("a", 0), ("b", 20)):
        (root / name).mkdir()
        for i in range(first, first + 20):
            Image.fromarray(np.full((9, 9), 5 * i, np.uint8)).save(root / name / f"{i:02}.png")
    return root


def config_for(folder, **more):
    small = {"group": "none", "elements": 1, "widths": (2, 2), "batch_size": 8, "epochs": 3, "accelerator": "cpu"}
    return find_task("images").defaults.updated(data=str(folder), **small | more)


class Recorder(Augmentation):
    """An augmentation that changes nothing and remembers all."""

    def __init__(self):
        super().__init__()
        self.shades, self.numbers = [], []

    def forward(self, images, targets, draws):
        self.shades.append([int(image.flatten()[0]) // 5 for image in images])
        self.numbers.append(draws.uniform(images, 2))
        assert [int(shade >= 20) for shade in self.shades[-1]] == targets.tolist(), "every image with its own class"
        return super().forward(images, targets, draws)


def recorded(monkeypatch, folder, run, **more):
    recorder = Recorder()
    monkeypatch.setattr(type(find_task("images")), "augmentation", lambda task, *config: recorder)
    return recorder, new_run(config_for(folder, **more), run)


def test_every_epoch_sees_every_image_in_an_order_of_its_own(monkeypatch, numbered, tmp_path):
    recorder, run = recorded(monkeypatch, numbered, tmp_path / "run")
    steps, per_epoch = recorder.shades, 28 // 8
    assert len(steps) == 3 * per_epoch
    epochs = [list(chain(*steps[i : i + per_epoch])) for i in range(0, len(steps), per_epoch)]
    learned = {int(name[2:4]) for name in run.manifest().splits["train"]}
    for epoch in epochs:
        assert len(set(epoch)) == len(epoch) == 24, "no image twice"
        assert set(epoch) <= learned, "and none of the others"
        assert epoch != sorted(epoch)
        assert {int(shade >= 20) for shade in epoch[:8]} == {0, 1}, "classes are mixed"
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert set().union(*epochs) == learned, "those left over in one epoch come in another"


def test_draws_differ_by_step_and_by_seed_and_are_the_same_again(monkeypatch, numbered, tmp_path):
    runs = {}
    for name, seed in (("one", 0), ("again", 0), ("other", 1)):
        with monkeypatch.context() as patch:
            runs[name], _ = recorded(patch, numbered, tmp_path / name, seed=seed, epochs=2)
    numbers = {name: [tuple(n.flatten().tolist()) for n in recorder.numbers] for name, recorder in runs.items()}
    assert len(set(numbers["one"])) == len(numbers["one"]) == 6
    assert numbers["again"] == numbers["one"]
    assert not set(numbers["other"]) & set(numbers["one"])
    assert runs["again"].shades == runs["one"].shades != runs["other"].shades


class Scripted(Metric):
    """A score that says what it was told to, epoch by epoch."""

    full_state_update = False

    def __init__(self, values):
        super().__init__()
        self.values, self.epoch = values, -1

    def update(self, output, target):
        pass

    def compute(self):
        self.epoch += 1
        return torch.tensor(self.values[self.epoch])


def scripted(monkeypatch, *values):
    """Runs have these validation scores, whatever they learn, and are not tested."""
    monkeypatch.setattr("liespline.lab.training.train.evaluate_run", lambda session: session.run.write_results({}))
    monkeypatch.setattr("liespline.lab.training.train.report_run", lambda session: None)
    monkeypatch.setattr(Classification, "scores", lambda self: MetricCollection({"accuracy": Scripted(values)}))


@pytest.mark.parametrize(
    ("values", "patience", "epochs", "best"),
    [
        ((0.1, 0.2, 0.9, 0.3, 0.4), None, 5, 2),
        ((0.1, 0.2, 0.3, 0.4, 0.5), 1, 5, 4),
        ((0.3, 0.6, 0.5, 0.9, 0.9), 1, 3, 1),
        ((0.3, 0.6, 0.5, 0.4, 0.9), 2, 4, 1),
    ],
)
def test_the_best_epoch_is_kept_and_patience_ends_with_the_score(
    monkeypatch, numbered, tmp_path, values, patience, epochs, best
):
    states = []
    monkeypatch.setattr(
        Learner,
        "on_validation_epoch_end",
        lambda self: states.append({k: v.clone() for k, v in self.network.state_dict().items()}),
        raising=False,
    )
    scripted(monkeypatch, *values)
    run = new_run(config_for(numbered, epochs=5, lr=0.1, patience=patience), tmp_path / "run")
    rows = run.read_metrics()
    assert [row["valid_accuracy"] for row in rows] == pytest.approx(values[:epochs])
    kept, about = read_weights(run.model_file)
    assert about["epoch"] == best
    for name, value in states[best].items():
        assert torch.equal(kept[name], value), name
    others = [state for epoch, state in enumerate(states) if epoch != best]
    assert all(any(not torch.equal(kept[n], v) for n, v in state.items()) for state in others), "epochs differ"


def told(monkeypatch, values, losses):
    """Runs have these validation scores and losses, whatever they learn, and are not tested."""
    in_training, epochs = Classification.loss, []

    def loss(self, output, target):
        return in_training(self, output, target) if self.training else torch.tensor(losses[epochs[-1]])

    monkeypatch.setattr(Learner, "on_validation_epoch_start", lambda self: epochs.append(self.current_epoch))
    monkeypatch.setattr(Classification, "loss", loss)
    monkeypatch.setattr(Scripted, "compute", lambda self: torch.tensor(values[epochs[-1]]))
    scripted(monkeypatch, *values)


@pytest.mark.parametrize("again", [(), (3, 5)], ids=["in one go", "resumed twice"])
def test_of_equal_epochs_the_one_of_the_lowest_loss_is_kept(monkeypatch, numbered, tmp_path, again):
    """Whichever comes first, and whatever the losses of epochs with a lower score are."""
    losses = (0.1, 0.7, 0.6, 0.65, 0.5, 0.55)
    told(monkeypatch, (0.5, 0.9, 0.9, 0.9, 0.9, 0.9), losses)
    first, *rest = (*again, 6)
    run = new_run(config_for(numbered, epochs=first, lr=0.01), tmp_path / "run")
    for wanted in rest:
        run = resumed_run(run.path, epochs=wanted)
    assert [row["valid_loss"] for row in run.read_metrics()] == pytest.approx(losses)
    assert read_weights(run.model_file)[1]["epoch"] == 4


@pytest.mark.parametrize(("patience", "epochs", "best"), [(2, 6, 3), (3, 9, 7)], ids=["ends", "just not"])
def test_epochs_without_a_validation_count_for_patience_but_neither_end_a_run_nor_are_kept(
    monkeypatch, numbered, tmp_path, patience, epochs, best
):
    """Validated are the second, fourth, … and the last; the scores of the others would be those before."""
    told(monkeypatch, (0.99, 0.5, 0.99, 0.9, 0.99, 0.6, 0.99, 0.95, 0.1), (0.5,) * 9)
    monkeypatch.setattr("liespline.lab.training.train.validation_interval", lambda train, valid: 2)
    run = new_run(config_for(numbered, epochs=9, lr=0.01, patience=patience), tmp_path / "run")
    rows = run.read_metrics()
    assert len(rows) == epochs
    assert [row["epoch"] for row in rows if "valid_accuracy" in row] == [n for n in (1, 3, 5, 7, 8) if n < epochs]
    assert read_weights(run.model_file)[1]["epoch"] == best


@pytest.mark.parametrize(("sixth", "epochs", "best"), [(0.4, 8, 5), (0.51, 6, 2)], ids=["better", "no better"])
def test_patience_counts_epochs_that_are_not_kept_and_may_grow(monkeypatch, numbered, tmp_path, sixth, epochs, best):
    """Epochs of the same score and a lower loss are better ones; a resumed run goes on counting."""
    told(monkeypatch, (0.9,) * 8, (0.7, 0.6, 0.5, 0.55, 0.52, sixth, 0.54, 0.54))
    run = new_run(config_for(numbered, epochs=8, lr=0.01, patience=2), tmp_path / "run")
    assert len(run.read_metrics()) == 5
    assert read_weights(run.model_file)[1]["epoch"] == 2
    run = resumed_run(run.path, patience=3)
    assert len(run.read_metrics()) == epochs
    assert read_weights(run.model_file)[1]["epoch"] == best


def test_the_score_of_the_kept_network_is_the_one_it_was_kept_for(numbered, tmp_path):
    run = new_run(config_for(numbered, epochs=6, lr=0.05), tmp_path / "run")
    rows = run.read_metrics()
    trained = load(run.path)
    outputs, targets = predictions(trained, Session(trained.config, run).valid)
    share = float((outputs.argmax(-1) == targets).double().mean())
    assert share == pytest.approx(max(row["valid_accuracy"] for row in rows))
    assert [row["epoch"] for row in rows] == list(range(6))
    # The rate rises over a fifth of all 18 steps, then falls with a cosine to nothing.
    falls = [0.05 * (1 + math.cos(math.pi * (3 * (e + 1) / 18 - 0.2) / 0.8)) / 2 for e in range(1, 6)]
    assert [row["lr"] for row in rows[1:]] == pytest.approx(falls, abs=1e-6)


@pytest.mark.parametrize(
    "how", [{"grid_jitter": 1.0}, {"ema": 0.5}, {"precision": "64-true"}, {"tta_grids": 2}, {"ensemble": 2}], ids=str
)
def test_the_network_that_is_scored_is_the_one_in_the_file(numbered, tmp_path, how):
    """It is the one that was trained, not another one that was read from the file: to the last bit the same."""
    session = start(config_for(numbered, group="so2", elements=4, epochs=2, **how), tmp_path / "run")
    train(session, progress=False)
    images = torch.rand(5, 1, 9, 9, generator=torch.Generator().manual_seed(0))
    assert torch.equal(session.trained(images), load(tmp_path / "run")(images))
    assert session.trained.state_dict().keys() == load(tmp_path / "run").state_dict().keys()


def test_compile_compiles_the_training_steps_and_nothing_else(monkeypatch, numbered, tmp_path):
    made, calls = [], []

    def compiler(function, **options):
        made.append(options)

        def compiled(x):
            calls.append(len(x))
            return function(x)

        return compiled

    monkeypatch.setattr(torch, "compile", compiler)
    plain = new_run(config_for(numbered, epochs=2), tmp_path / "plain")
    assert not made
    run = new_run(config_for(numbered, epochs=2, compile=True), tmp_path / "compiled")
    assert len(made) == 1
    assert calls == [8] * 6, "each step of two epochs"
    weights = [read_weights(r.model_file)[0] for r in (plain, run)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_a_warm_start_takes_no_kernels_of_another_width(numbered, tmp_path):
    local = {"group": "so2", "kernel": "local", "basis": 3, "epochs": 1}
    run = new_run(config_for(numbered, **local, elements=4), tmp_path / "four")
    start(config_for(numbered, **local, elements=4, init_from=str(run.path)), tmp_path / "again")
    with pytest.raises(DataError, match="splines on H of width"):
        start(config_for(numbered, **local, elements=8, init_from=str(run.path)), tmp_path / "eight")
    assert not (tmp_path / "eight").exists()


def test_equivariance_is_measured_on_images_that_were_held_out(monkeypatch, numbered, tmp_path):
    data = shutil.copytree(numbered, tmp_path / "data")
    run = new_run(config_for(data, group="so2", elements=4, epochs=1), tmp_path / "run")
    splits, seen = run.manifest().splits, []
    first = data / min(splits["train"])
    first.rename(first.with_name("zz.png"))  # positions shift by one
    monkeypatch.setattr(external, "layer_errors", lambda trained, images: seen.append(images) or [])
    external.score_file(run.path, None, "test", layers=True)
    shades = {round(float(image.flatten()[0]) * 255) // 5 for image in seen[0]}
    assert shades == {int(name[2:4]) for name in splits["test"]}


def test_a_run_with_validation_images_too_keeps_its_last_epoch(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate, "MOVED_IMAGES", 5)
    config = find_task("digits").defaults.updated(
        elements=2, widths=(2, 2), epochs=2, batch_size=64, accelerator="cpu", train_on_val=True, train_fraction=0.2
    )
    run = new_run(config, tmp_path / "run")
    last = torch.load(run.last_checkpoint, weights_only=True)
    assert last["epoch"] == 1
    valid, train = (find_task("digits").load(config, split) for split in ("valid", "train"))
    assert last["global_step"] == 2 * ((len(train.share(0.2)) + len(valid)) // 64)
    worse = last | {"state_dict": {name: torch.zeros_like(value) for name, value in last["state_dict"].items()}}
    torch.save(worse, run.best_checkpoint)
    keep_best(Session(config, run))
    kept, weights = load(run.path).network.state_dict(), last["state_dict"]
    assert all(torch.equal(value, weights[f"network.{name}"]) for name, value in kept.items())
    assert set(run.read_results()["transformed"]["scores"]) == {"accuracy", "balanced_accuracy"}
