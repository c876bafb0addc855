"""What it takes to train well, against formulas and torch: averages, smoothed labels, one cycle, moved grids."""

import math

import pytest
import torch
from torch import nn

import liespline as ls
from lab.small_runs import new_run, resumed_run
from liespline.lab import load
from liespline.lab.networks import Signature
from liespline.lab.runs.checkpoint import SafeCheckpoints
from liespline.lab.settings import Config, ConfigError, Training
from liespline.lab.tasks import find_task
from liespline.lab.tasks.masks import Segmentation
from liespline.lab.tasks.objectives import Classification
from liespline.lab.training import learner as learners
from liespline.lab.training.learner import Learner, a_shift
from liespline.lab.training.optimisers import rate
from liespline.nn import shift

SMALL = find_task("digits").defaults.updated(
    elements=4, widths=(2, 2, 3), epochs=2, batch_size=128, accelerator="cpu", seed=1
)


# ---- the moving average of weights ----


def test_the_average_is_of_what_is_saved_wherever_the_grids_stand():
    """Against a loop in float64, statistics of norms too; moved grids change neither it nor what it computes."""
    grid = ls.uniform(ls.Scale(2), 2, spacing=0.35)
    net = ls.models.classifier(1, 3, grid, widths=(2, 2)).double()
    learner = Learner(net, Classification("abc"), Training(ema=0.9))
    truth, images = None, torch.randn(4, 1, 12, 12, dtype=torch.float64)
    for step in range(3):
        shift(net, torch.tensor([1.0 + 0.2 * step]))  # its windows grow with it
        net.train()(images)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(torch.randn_like(parameter))
        now = {name: value.clone() for name, value in net.state_dict().items() if value.is_floating_point()}
        truth = now if truth is None else {name: 0.9 * truth[name] + 0.1 * now[name] for name in now}
        learner.on_train_batch_end(None, None, step)
    found = learner.averaged.module
    assert any("running" in name for name in truth)
    assert all(torch.allclose(found.state_dict()[name], value, atol=1e-12) for name, value in truth.items())
    assert not any(parameter.requires_grad for parameter in found.parameters())
    shift(net, None)
    scored, trained = learner.eval().output(images), net.eval()(images)
    learner.train()
    net.eval()
    assert torch.equal(learner.output(images), trained)
    assert not torch.allclose(scored, trained)
    net.load_state_dict(found.state_dict())
    assert torch.equal(net(images), scored)


def test_the_average_is_what_is_kept_scored_and_resumed(tmp_path):
    """The network that is kept is the averaged one; a run in two pieces ends with the same bits as one in one piece."""
    config = SMALL.updated(ema=0.8, grid_jitter=1.0, schedule="one-cycle", label_smoothing=0.1, augment="affine")
    whole = new_run(config, tmp_path / "whole")
    states = SafeCheckpoints().load_checkpoint(whole.best_checkpoint)["state_dict"]
    kept = load(whole.path).network.state_dict()
    assert all(torch.equal(value, states[f"averaged.module.{name}"]) for name, value in kept.items())
    assert any(not torch.equal(value, states[f"network.{name}"]) for name, value in kept.items())

    interrupted = tmp_path / "interrupted"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Learner, "training_step", stops_in_the_second_epoch(Learner.training_step))
        with pytest.raises(Stopped):
            new_run(config, interrupted)
    other = resumed_run(interrupted)
    assert other.model_file.read_bytes() == whole.model_file.read_bytes()
    last, wanted = (SafeCheckpoints().load_checkpoint(run.last_checkpoint)["state_dict"] for run in (other, whole))
    assert all(torch.equal(value, last[name]) for name, value in wanted.items())


class Stopped(Exception):
    pass


def stops_in_the_second_epoch(real):
    def training_step(self, batch, batch_idx):
        if self.trainer.current_epoch == 1 and batch_idx == 2:
            raise Stopped
        return real(self, batch, batch_idx)

    return training_step


# ---- smoothed labels ----


@pytest.mark.parametrize("weighted", [False, True])
def test_smoothed_labels_by_hand(weighted):
    """(1 − ε) of the target on its class, ε/K on each; each class by its weight; in training alone."""
    torch.manual_seed(0)
    logits, target, share = torch.randn(6, 3, dtype=torch.float64), torch.tensor([0, 0, 0, 1, 1, 2]), 0.2
    objective = Classification("abc", weighted, share)
    objective.look_at(target)
    weights = [6 / (3 * n) if weighted else 1.0 for n in (3, 2, 1)]
    expected = plain = 0.0
    for row, number in zip(logits.tolist(), target.tolist(), strict=True):
        log_sum = math.log(sum(map(math.exp, row)))
        plain -= (row[number] - log_sum) / 6
        for k in range(3):
            expected -= (share / 3 + (1 - share) * (k == number)) * weights[k] * (row[k] - log_sum) / 6
    assert objective.train().loss(logits, target).item() == pytest.approx(expected, abs=1e-7)
    assert objective.eval().loss(logits, target).item() == pytest.approx(plain, abs=1e-12)


def test_masks_are_smoothed_where_they_are_known():
    torch.manual_seed(0)
    logits, target = torch.randn(1, 2, 3, 3, dtype=torch.float64), torch.randint(2, (1, 3, 3))
    target[0, 0, 0] = 255
    sharp, smooth = (Segmentation("ab", smoothing=share).train().loss(logits, target) for share in (0.0, 0.3))
    log = logits.log_softmax(1)[0].flatten(1)[:, 1:]
    hit = log.gather(0, target.flatten()[None, 1:])[0]
    assert (smooth - sharp).item() == pytest.approx((0.3 * (hit - log.mean(0)).mean()).item(), abs=1e-12)


@pytest.mark.parametrize("given", [{"label_smoothing": 0.1}, {"class_weights": True}])
def test_tags_and_numbers_have_no_classes_to_smooth_or_weigh(given):
    ((name, value),) = given.items()
    config = Config("images").updated(**given)
    for kind in ("tags", "numbers"):
        with pytest.raises(ConfigError, match=f"{name} = {value}: is for classes, not for {kind}"):
            find_task("images").objective(config, Signature(1, (8, 8), ("a", "b"), kind=kind, scaling=((0, 1), (0, 1))))


# ---- one cycle ----


def stepper():
    return torch.optim.AdamW([nn.Parameter(torch.zeros(1))], lr=0.02)


def rates(optimiser, schedule, steps):
    seen = []
    for _ in range(steps):
        group = optimiser.param_groups[0]
        seen.append((group["lr"], group["betas"][0]))
        optimiser.step()
        schedule.step()
    return seen


def test_one_cycle_is_torchs():
    mine, theirs = stepper(), stepper()
    chosen = rate(mine, Training(lr=0.02, epochs=5, schedule="one-cycle"), 8)
    reference = torch.optim.lr_scheduler.OneCycleLR(theirs, 0.02, total_steps=40)
    found = rates(mine, chosen, 40)
    assert found == rates(theirs, reference, 40)
    assert max(found)[0] == pytest.approx(0.02)
    assert found[-1][0] < 1e-6 < found[0][0]


def test_one_cycle_goes_on_in_a_longer_one():
    """A run resumed with more epochs; torch's own schedule would keep the shorter length and stop with an error."""
    short, longer = Training(epochs=2, schedule="one-cycle"), Training(epochs=4, schedule="one-cycle")
    first = rate(stepper(), short, 5)
    for _ in range(10):
        first.optimizer.step()
        first.step()
    optimiser, whole = stepper(), stepper()
    second = rate(optimiser, longer, 5)
    second.load_state_dict(first.state_dict())
    expected = rates(whole, rate(whole, longer, 5), 20)
    assert [lr for lr, _ in rates(optimiser, second, 10)][1:] == pytest.approx([lr for lr, _ in expected[11:]])


# ---- moved grids ----


def test_shifts_are_uniform_within_one_step_of_the_grid():
    network = ls.models.classifier(1, 2, ls.uniform(ls.SO2(), 8), widths=(2, 2))
    found = torch.cat([a_shift(network, seed) for seed in range(400)]).sort().values
    step = math.pi / 4
    assert found.abs().max() <= step / 2
    even = (torch.arange(400, dtype=torch.float64) + 0.5) / 400 * step - step / 2
    assert (found - even).abs().max() < 1.63 / 20 * step  # Kolmogorov and Smirnov, at one in a hundred
    assert torch.equal(a_shift(network, 3), a_shift(network, 3))


@pytest.mark.filterwarnings("ignore:.*falls outside.*")
def test_shifts_follow_the_group():
    scales = ls.models.celeba(2, 1, "local")
    assert all(2**-0.25 <= a_shift(scales, seed).item() <= 2**0.25 for seed in range(50))
    turned = a_shift(ls.models.classifier(1, 2, ls.uniform(ls.SO3(), 12), widths=(1, 1)), 0)
    assert torch.allclose(turned @ turned.T, torch.eye(3, dtype=torch.float64), atol=1e-12)


def test_jitter_per_axis_moves_along_these_axes_alone():
    """α = (0, 0, 1) of SO(3) rotates about the last axis; of rotations and scales, (1, 0) only rotates."""
    cube = ls.models.classifier(1, 2, ls.uniform(ls.SO3(), 12), widths=(1, 1))
    along = torch.stack([ls.SO3().log(a_shift(cube, seed, (0.0, 0.0, 1.0))) for seed in range(50)])
    assert along[:, :2].abs().max() < 1e-12
    assert along[:, 2].abs().max() > 0.4 * cube[0].grid.steps[2]
    half = torch.stack([ls.SO3().log(a_shift(cube, seed, 0.5)) for seed in range(50)])
    assert torch.allclose(half, 0.5 * torch.stack([ls.SO3().log(a_shift(cube, seed)) for seed in range(50)]))
    both = ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (4, 2), spacing=(None, 0.4))
    angle, factor = a_shift(ls.models.classifier(1, 2, both, widths=(1, 1)), 0, (1.0, 0.0)).tolist()
    assert angle != 0
    assert factor == 1
    with pytest.raises(ConfigError, match=r"grid_jitter = \(1.0, 0.0\): SO3\(\) has 3 axes"):
        a_shift(cube, 0, (1.0, 0.0))


@pytest.mark.parametrize(("given", "read"), [("0.5", 0.5), ("0,0,1", (0.0, 0.0, 1.0)), ([0, 1], (0.0, 1.0))])
def test_how_jitter_is_said(given, read):
    assert SMALL.updated(grid_jitter=given).training.grid_jitter == read
    with pytest.raises(ConfigError, match="must be from 0 to 1"):
        SMALL.updated(grid_jitter="0,2")


def test_every_step_moves_all_grids_alike_and_scores_are_those_of_the_grid(tmp_path, monkeypatch):
    """Two runs of one seed agree to the bit; validation sees the network as built; another seed moves elsewhere."""
    angles, scored = [], []
    real_train, real_valid = Learner.training_step, Learner.validation_step

    def training_step(self, batch, batch_idx):
        loss = real_train(self, batch, batch_idx)
        grids = {layer.grid for layer in self.network.modules() if isinstance(layer, (ls.Lift, ls.GConv, ls.Project))}
        assert len(grids) == 1
        angles.append(next(iter(grids)).elements[0].item())
        return loss

    def validation_step(self, batch, batch_idx):
        fresh = find_task("digits").make(config, Signature(1, (24, 24), tuple("0123456789")))
        fresh.load_state_dict(self.network.state_dict())
        scored.append(torch.equal(fresh.eval()(batch[0]), self.output(batch[0])))
        real_valid(self, batch, batch_idx)

    monkeypatch.setattr(Learner, "training_step", training_step)
    monkeypatch.setattr(Learner, "validation_step", validation_step)
    config = SMALL.updated(grid_jitter=1.0)
    runs = [new_run(config, tmp_path / name) for name in ("one", "two")]
    half = len(angles) // 2
    assert angles[:half] == angles[half:]
    assert len(set(angles)) == half
    assert all(scored)
    assert runs[0].model_file.read_bytes() == runs[1].model_file.read_bytes()
    network, x = load(runs[0].path).network, torch.rand(2, 1, 24, 24)
    before = network(x)
    with shift(network, torch.tensor([0.3])):
        assert not torch.allclose(network(x), before)
    assert torch.equal(network(x), before)

    scored.clear()
    monkeypatch.setattr(learners, "shift", lambda net, h: None if h is None else shift(net, h))
    new_run(config, tmp_path / "planted: never put back")
    assert not any(scored)


def test_processes_draw_the_same_shift(monkeypatch):
    """The seed is that of the run and the step: nothing of a process goes into it."""
    seen = []
    monkeypatch.setattr(learners, "a_shift", lambda network, seed, amplitude: seen.append(seed))
    monkeypatch.setattr(Learner, "global_step", 7)
    for rank in (0, 1):
        network = ls.models.classifier(1, 2, ls.uniform(ls.SO2(), 2), widths=(2, 2))
        learner = Learner(network, Classification("ab"), Training(grid_jitter=1.0), seed=5)
        monkeypatch.setattr(Learner, "global_rank", rank)
        learner.training_step((torch.randn(4, 1, 14, 14), torch.tensor([0, 1, 0, 1])), 0)
    assert seen[0] == seen[1]


# ---- residual networks ----


def test_the_residual_network_is_one_word_away():
    signature = Signature(1, (28, 28), tuple("0123456789"))
    for task in ("rotmnist", "images", "volumes"):
        config = find_task(task).defaults.given(network="resnet", **({"group": "so2"} if task == "volumes" else {}))
        made = find_task(task).make(config.updated(elements=4), signature)
        assert type(made) is type(ls.models.resnet(1, 2, ls.uniform(ls.SO2(), 2), widths=(2,)))
        assert made.stages[-1][-1].branch[-1].weight.shape[0] == 48
        assert config.network.kernel == find_task(task).defaults.network.kernel
    for side, widths in {9: (8,), 28: (8, 16), 64: (8, 16, 32), 96: (8, 16, 32, 64)}.items():
        config = find_task("images").defaults.given(network="resnet", architecture=2)
        assert config.network.kernel == "local"
        settled = find_task("images").settled(config, Signature(1, (side, side + 3), ("a", "b")))
        assert settled.network.widths == tuple(width for width in widths for _ in range(2))
    steady = find_task("images").defaults.given(
        smooth=True, activation="gelu", norm="instance", elements=4, widths=(2, 3)
    )
    network = find_task("images").make(steady, signature)
    norms = [m for m in network.modules() if isinstance(m, ls.nn.BatchNorm | ls.nn.GroupNorm)]
    assert {type(norm) for norm in norms} == {ls.nn.InstanceNorm}
    assert sum(isinstance(m, ls.nn.Oversampled) for m in network.modules()) == 2
    assert not any(isinstance(m, torch.nn.ReLU | torch.nn.SiLU) for m in network.modules())
    asked = find_task("rotmnist").make(config.updated(elements=4, widths=(2, 3)), signature)
    assert asked.stages[-1][-1].branch[-1].weight.shape[0] == 3
    with pytest.raises(ConfigError, match="smooth=… does nothing for task landmarks"):
        find_task("landmarks").configured(find_task("landmarks").defaults, smooth=True)
    with pytest.raises(ConfigError, match="stride does nothing with --network resnet"):
        find_task("images").defaults.given(network="resnet", stride=2)


def test_breaking_is_learned_kept_and_loaded(tmp_path, liespline, image_folder):
    """Biases of the kept network are no longer zero, and it loads with them."""
    small = ("--elements", "4", "--epochs", "2", "--set", "widths=3,4,4", "--batch-size", "8", "--quiet")
    out = tmp_path / "run"
    status, text = liespline("train", "images", "--data", image_folder, "--breaking", *small, "--out", out)
    assert status == 0, text
    loaded = ls.load(out)
    biases = [module for module in loaded.modules() if isinstance(module, ls.nn.FrameBias)]
    assert len(biases) == 3
    assert all(float(layer.weight.detach().abs().max()) > 0 for layer in biases)
    page = (out / "report.html").read_text()
    assert "the image&#39;s own orientation" in page or "the image's own orientation" in page
    assert all(f'<th scope="row">{name}</th>' in page for name, one in loaded.named_modules() if one in biases)
    assert liespline("evaluate", out, "--split", "all")[0] == 0
    assert liespline("export", out, "--onnx", tmp_path / "net.onnx")[0] == 0
