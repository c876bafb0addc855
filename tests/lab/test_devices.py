"""Two processes train as one does, their batch norms too."""

import json
import os
import subprocess
import sys

import pytest
import torch
from torch import distributed, nn

from liespline.lab.training.shared_norm import SharedBatchNorm, ShareStatistics
from liespline.nn import BatchNorm

COMMAND = (
    *("train", "digits", "--elements", "2", "--epochs", "2", "--batch-size", "128", "--augment", "rotate", "--quiet"),
    *("--accelerator", "cpu", "--precision", "64-true", "--optimiser", "sgd", "--set", "widths=2,2,3"),
    *("--set", "dropout=0"),  # which every process draws for itself
)


def train(folder, devices):
    command = [sys.executable, "-m", "liespline.lab.cli", *COMMAND, "--out", str(folder), "--set", f"devices={devices}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_two_processes_have_the_loss_curve_of_one(tmp_path):
    """Of rotated images too: every process draws the same rotations and takes its share of them."""
    one, two = (train(tmp_path / str(devices), devices) for devices in (1, 2))
    assert [row["step"] for row in two] == [row["step"] for row in one] == [8, 16]
    # The training loss is float64 throughout; torchmetrics adds the validation's up in float32.
    for name, digits in (("train_loss", 1e-9), ("valid_loss", 1e-6), ("valid_accuracy", 1e-6)):
        assert [row[name] for row in two] == pytest.approx([row[name] for row in one], rel=digits), name
    assert (tmp_path / "2" / "report.html").is_file()


def inputs():
    generator = torch.Generator().manual_seed(0)
    # A large mean and unequal shares: naive sums of squares and plain averages of averages both fail here.
    x = torch.randn(7, 3, 2, 5, 5, generator=generator, dtype=torch.float64) + 1e4
    return x, torch.randn(x.shape, generator=generator, dtype=torch.float64)


def one_of_two(rank, results):
    """What each process does: this file, run as a script."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"file://{results}/meeting", rank=rank, world_size=2)
    x, weight = (part[:5] if rank == 0 else part[5:] for part in inputs())
    x.requires_grad_()
    norm = ShareStatistics().apply(nn.Sequential(BatchNorm(3))).double()
    out = norm(x)
    (out * weight).sum().backward()
    torch.save((out.detach(), x.grad, norm[0].running_mean, norm[0].running_var), f"{results}/{rank}")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    results = tmp_path_factory.mktemp("shared")
    processes = [subprocess.Popen([sys.executable, __file__, str(rank), str(results)]) for rank in (0, 1)]
    assert [process.wait(120) for process in processes] == [0, 0]
    return [torch.load(results / str(rank), weights_only=True) for rank in (0, 1)]


def test_outputs_gradients_and_running_statistics_are_those_of_the_whole_batch(shared):
    x, weight = inputs()
    x.requires_grad_()
    norm = nn.BatchNorm3d(3).double()
    out = norm(x)
    (out * weight).sum().backward()
    torch.testing.assert_close(torch.cat([s[0] for s in shared]), out.detach(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(torch.cat([s[1] for s in shared]), x.grad, rtol=1e-7, atol=1e-9)
    for found in shared:
        torch.testing.assert_close(found[2], norm.running_mean)
        torch.testing.assert_close(found[3], norm.running_var)


def test_norms_that_share_keep_all_they_have_and_are_put_back():
    """State, mode and options; a norm that is the whole model too."""
    given = [BatchNorm(4, 1e-3, 0.3), BatchNorm(4, affine=False), BatchNorm(4, track_running_stats=False)]
    x, model = torch.randn(2, 4, 3), nn.Sequential(nn.Sequential(*given), nn.ReLU()).eval()
    before, expected = {name: value.data_ptr() for name, value in model.state_dict().items()}, model(x)
    for exchange, kind in ((ShareStatistics().apply, SharedBatchNorm), (ShareStatistics().revert, BatchNorm)):
        assert {type(norm) for norm in exchange(model)[0]} == {kind}
        assert type(exchange(BatchNorm(4) if kind is SharedBatchNorm else SharedBatchNorm(4))) is kind
        assert {name: value.data_ptr() for name, value in model.state_dict().items()} == before
        assert [(m.eps, m.momentum, m.affine, m.track_running_stats) for m in model[0]] == [
            (1e-3, 0.3, True, True),
            (1e-5, 0.1, False, True),
            (1e-5, 0.1, True, False),
        ]
        assert not any(norm.training for norm in model[0])
        assert torch.equal(model(x), expected)


if __name__ == "__main__":
    one_of_two(int(sys.argv[1]), sys.argv[2])
