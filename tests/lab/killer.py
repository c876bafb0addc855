"""Trains a run, killing itself with SIGKILL at a chosen moment; imported once, forked for every attempt.

Usage: python killer.py FOLDER. Prints one JSON object: moment -> digest of the final weights.
"""

import hashlib
import json
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import torch

torch.set_num_threads(1)

from liespline.lab.data import files  # noqa: E402
from liespline.lab.runs import checkpoint  # noqa: E402
from liespline.lab.runs.folder import Run  # noqa: E402
from liespline.lab.session import Session  # noqa: E402
from liespline.lab.settings import Config, Network, Training  # noqa: E402
from liespline.lab.training import train as engine  # noqa: E402

CONFIG = Config(
    task="digits",
    seed=3,
    network=Network(group="so2", elements=2, widths=(2, 2, 4), kernel_size=5),
    training=Training(epochs=4, batch_size=128, augment="rotate", accelerator="cpu"),
)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_step(step: int) -> None:
    """Die in the middle of an epoch."""
    real = engine.Learner.training_step

    def training_step(self, batch, batch_idx):
        if self.global_step == step:
            die()
        return real(self, batch, batch_idx)

    engine.Learner.training_step = training_step


def while_writing(name: str, count: int) -> None:
    """Die half-way through writing file `name` for the count-th time."""
    real, seen = torch.save, []

    def save(state, stream):
        if str(stream.name).endswith((name, name + ".part")):
            seen.append(1)
            if len(seen) == count:
                stream.write(b"PK\x03\x04 half of a checkpoint")
                stream.flush()
                die()
        real(state, stream)

    checkpoint.torch.save = save


def before_renaming(name: str, count: int) -> None:
    """Die when the new file is complete and the old one still in place."""
    real, seen = os.replace, []

    def replace(part, path):
        if str(path).endswith(name):
            seen.append(1)
            if len(seen) == count:
                die()
        real(part, path)

    files.os.replace = replace


def written_in_place() -> None:
    """A planted fault: write over the old checkpoint, and die half-way."""

    @contextmanager
    def replacing(path):
        with open(path, "wb") as stream:
            yield stream

    checkpoint.replacing = replacing
    while_writing("last.ckpt", 2)


MOMENTS = {
    "never": lambda: None,
    "first epoch": lambda: at_step(3),
    "third epoch": lambda: at_step(20),
    "writing the last checkpoint": lambda: while_writing("last.ckpt", 2),
    "writing the best checkpoint": lambda: while_writing("best.ckpt", 1),
    "best replaced, last not yet": lambda: before_renaming("last.ckpt", 3),
    "planted: written in place": written_in_place,
    "trained, network not yet written": lambda: before_renaming("model.safetensors", 1),
}


def attempt(folder: Path, arm) -> int:
    """One process that trains, from the start or from the last checkpoint; its exit status."""
    child = os.fork()
    if child == 0:
        arm()
        run = Run(folder)
        try:
            if not run.config_file.exists():
                Run.create(folder, CONFIG)
            engine.train(Session(CONFIG, run), progress=False)
        except files.DataError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def main(root: Path) -> None:
    found = {}
    for name, arm in MOMENTS.items():
        folder = root / name.replace(" ", "-")
        killed = attempt(folder, arm)
        resumed = attempt(folder, lambda: None) if name != "never" else 0
        run = Run(folder)
        if resumed != 0:
            found[name] = {"killed": os.WIFSIGNALED(killed), "resumed": resumed}
            continue
        found[name] = {
            "killed": os.WIFSIGNALED(killed) and os.WTERMSIG(killed) == signal.SIGKILL,
            "resumed": resumed,
            "model": hashlib.sha256(run.model_file.read_bytes()).hexdigest(),
            "state": state_digest(run),
            "epochs": [row["epoch"] for row in run.read_metrics()],
            "losses": [row["train_loss"] for row in run.read_metrics()],
        }
    print(json.dumps(found))


def state_digest(run: Run) -> str:
    """Weights, optimiser state and schedule after the last epoch."""
    state = checkpoint.SafeCheckpoints().load_checkpoint(run.last_checkpoint)
    parts = {k: state[k] for k in ("state_dict", "optimizer_states", "lr_schedulers", "global_step", "epoch")}
    return hashlib.sha256(repr(flat(parts)).encode()).hexdigest()


def flat(value):
    if isinstance(value, torch.Tensor):
        return (value.dtype, tuple(value.shape), value.numpy().tobytes())
    if isinstance(value, dict):
        return [(key, flat(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [flat(item) for item in value]
    return value


if __name__ == "__main__":
    main(Path(sys.argv[1]))
