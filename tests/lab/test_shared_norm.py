"""Statistics shared by processes, against one process that sees the whole batch."""

import socket
import subprocess
import sys

import pytest
import torch
from torch import distributed, nn

from liespline.lab.training.shared_norm import SharedBatchNorm, ShareStatistics
from liespline.nn import BatchNorm


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def inputs():
    generator = torch.Generator().manual_seed(0)
    # A large mean and unequal shares: naive sums of squares and plain averages of averages both fail here.
    x = torch.randn(7, 3, 2, 5, 5, generator=generator, dtype=torch.float64) + 1e4
    return x, torch.randn(x.shape, generator=generator, dtype=torch.float64)


def one_of_two(rank, port, results):
    """What each process does: this file, run as a script."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    x, weight = (part[:5] if rank == 0 else part[5:] for part in inputs())
    x.requires_grad_()
    norm = ShareStatistics().apply(nn.Sequential(BatchNorm(3))).double()
    out = norm(x)
    (out * weight).sum().backward()
    torch.save((out.detach(), x.grad, norm[0].running_mean, norm[0].running_var), f"{results}/{rank}")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    results, port = tmp_path_factory.mktemp("shared"), free_port()
    commands = [[sys.executable, __file__, str(rank), str(port), str(results)] for rank in (0, 1)]
    processes = [subprocess.Popen(command) for command in commands]
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


def test_exchange_keeps_state_and_mode_and_can_be_undone():
    model = nn.Sequential(nn.Sequential(BatchNorm(4, eps=1e-3)), nn.ReLU()).eval()
    before = {k: v.data_ptr() for k, v in model.state_dict().items()}
    shared = ShareStatistics().apply(model)
    assert type(shared[0][0]) is SharedBatchNorm
    assert not shared[0][0].training
    assert {k: v.data_ptr() for k, v in shared.state_dict().items()} == before
    x = torch.randn(2, 4, 3)
    expected = shared(x)
    back = ShareStatistics().revert(shared)
    assert type(back[0][0]) is BatchNorm
    assert torch.equal(back(x), expected)


def test_exchanged_norms_keep_their_options():
    given = [BatchNorm(3, eps=1e-3, momentum=0.3), BatchNorm(3, affine=False), BatchNorm(3, track_running_stats=False)]
    wanted = [(1e-3, 0.3, True, True), (1e-5, 0.1, False, True), (1e-5, 0.1, True, False)]
    model = nn.Sequential(*given)
    for exchange in (ShareStatistics().apply, ShareStatistics().revert):
        model = exchange(model)
        assert [(m.eps, m.momentum, m.affine, m.track_running_stats) for m in model] == wanted
        assert not any(m in given for m in model)


if __name__ == "__main__":
    one_of_two(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
