"""What each of two processes does in the test of data-parallel training; spawned, so it lives in its own module."""

from __future__ import annotations

import datetime
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from networks import NETWORKS


def network(name: str) -> nn.Module:
    """Return a network that is the same in every process, without batch norm, whose statistics are a process's own."""
    torch.manual_seed(0)
    net = NETWORKS[name]().double()
    net[1] = nn.Identity()  # type: ignore[index]
    return net


def joint_batch(name: str) -> torch.Tensor:
    """Return the batch that the processes share, half each."""
    return NETWORKS[name].image(batch=4, dtype=torch.float64)


def train(rank: int, names: list[str], folder: str) -> None:
    """Take one backward pass of each network on this process's half and leave the gradients in the folder."""
    torch.set_num_threads(1)
    minute = datetime.timedelta(minutes=1)
    distributed.init_process_group("gloo", f"file://{folder}/meeting", minute, rank=rank, world_size=2)
    for name in names:
        torch.save(_averaged_gradients(name, rank), Path(folder) / f"{name} {rank}.pt")
    distributed.barrier()
    distributed.destroy_process_group()


def _averaged_gradients(name: str, rank: int) -> dict[str, torch.Tensor | None]:
    net = network(name)
    parallel = DistributedDataParallel(net)
    parallel(joint_batch(name).chunk(2)[rank]).square().mean().backward()
    return {key: parameter.grad for key, parameter in net.named_parameters()}
