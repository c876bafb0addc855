"""The kinds of work that are killed: training, a sweep, and decoding one's own images.

Usage: python killed_work.py FOLDER SEED NAME=KILLS…. Prints one JSON object: name -> what came of its kills.
"""

import hashlib
import io
import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from killing import AGAIN, DONE, Campaign, Work
from PIL import Image
from small_runs import new_run, resumed_run

from liespline.lab.runs import checkpoint
from liespline.lab.runs.checkpoint import SafeCheckpoints
from liespline.lab.runs.folder import Run
from liespline.lab.runs.model_file import read_weights
from liespline.lab.settings import Config, Network, Training
from liespline.lab.sweep import plan as sweeping
from liespline.lab.sweep.study import Study
from liespline.lab.tasks import images

torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"  # of the runs that a sweep starts: other sums, other roundings
TIMES = ("seconds", "images_per_second", "memory_mib")
CONFIG = Config(
    task="digits",
    seed=3,
    network=Network(group="so2", elements=2, widths=(2, 2, 4), kernel_size=5),
    training=Training(epochs=3, batch_size=256, augment="rotate", accelerator="cpu"),
)
# Each file is opened, opened again to be synced, and renamed; a line of metrics is appended.
MOMENTS = (
    ("metrics.jsonl", 2),  # the second epoch is over, and no file of it written
    ("best.ckpt.part", 1),  # another of the same epoch, in its first file
    ("last.ckpt.part", 3),  # the best is replaced, the last not yet
    ("model.safetensors.part", 3),  # trained, the network not yet in place
    ("results.json.part", 1),
    ("report.html.part", 2),
)


def sha(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def stamped(folder: Path, pattern: str) -> dict[str, str]:
    """Files with the moment they were written: one that is written again shows, even with the same bytes."""
    return {str(p.relative_to(folder)): str(p.stat().st_mtime_ns) for p in folder.glob(pattern)}


def train(folder: Path) -> int:
    if (folder / "config.yaml").exists():
        resumed_run(folder)
    else:
        new_run(CONFIG, folder)
    return DONE


def end_of_run(folder: Path) -> dict[str, str]:
    run = Run(folder)
    results = run.read_results()
    results.pop("seconds")
    rows = [{k: v for k, v in row.items() if k not in TIMES} for row in run.read_metrics()]
    state = SafeCheckpoints().load_checkpoint(run.last_checkpoint)
    parts = [state[part] for part in ("state_dict", "optimizer_states", "lr_schedulers", "global_step", "epoch")]
    return {
        "weights": sha(run.model_file.read_bytes()),
        "state": sha(repr(flat(parts)).encode()),
        "results": json.dumps(results),
        "epochs": json.dumps(rows),
        "report": str(run.report_file.is_file()),
    }


def flat(value):
    """A state as values that print all their digits."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, tuple(value.shape), value.numpy().tobytes())
    if isinstance(value, dict):
        return [(key, flat(item)) for key, item in value.items()]
    return [flat(item) for item in value] if isinstance(value, list | tuple) else value


def kept_of_run(folder: Path) -> dict[str, str]:
    """Lines of epochs that the checkpoint has behind it, seconds and all, and the results."""
    run = Run(folder)
    kept = stamped(folder, "results.json")
    if run.last_checkpoint.exists():
        epochs = SafeCheckpoints().load_checkpoint(run.last_checkpoint)["epoch"] + 1
        kept |= {f"epoch {row['epoch']}": json.dumps(row) for row in run.read_metrics() if row["epoch"] < epochs}
    return kept


def broken_in_run(folder: Path) -> list[str]:
    run, bad = Run(folder), []
    for file in (run.last_checkpoint, run.best_checkpoint, run.model_file, run.results_file, run.config_file):
        try:
            if file.suffix == ".ckpt" and file.exists():
                SafeCheckpoints().load_checkpoint(file)
            elif file.exists():
                readers = {".safetensors": read_weights, ".json": lambda f: run.read_results()}
                readers.get(file.suffix, lambda f: Run.open(folder))(file)
        except ValueError as error:
            bad.append(f"{file.name}: {error}")
    epochs = [row["epoch"] for row in run.read_metrics()]
    return bad + ([f"metrics.jsonl counts {epochs}"] if len(set(epochs)) < len(epochs) else [])


def train_in_place(folder: Path) -> int:
    """A planted fault: checkpoints are written over the earlier ones, in two halves."""

    @contextmanager
    def replacing(path):
        yield (stream := io.BytesIO())
        raw = stream.getvalue()
        for mode, part in (("wb", raw[: len(raw) // 2]), ("ab", raw[len(raw) // 2 :])):
            with open(path, mode) as file:
                file.write(part)

    checkpoint.replacing = replacing
    return train(folder)


RECIPE = {"widths": (2, 2, 4), "augment": "rotate", "accelerator": "cpu", "epochs": 1, "batch_size": 256}
TWO = Study("digits", {"one": {"elements": 2}, "two": {"group": "none", "elements": 1}}, RECIPE)


def planned(folder: Path) -> list[sweeping.Planned]:
    return sweeping.plan(TWO, folder, 1, {})


def one_by_one(folder: Path) -> int:
    for entry in planned(folder):
        new_run(entry.config, entry.run.path)
    return DONE


def sweep(folder: Path) -> int:
    said = []
    failed = sweeping.sweep(planned(folder), lambda name, what: said.append(what), 1)
    if failed and not all("is working there" in what for what in said if what.startswith(("failed", "left out"))):
        raise RuntimeError(str(said))
    return AGAIN if failed else DONE


def over_runs(look):
    """What `look` finds in each run of a sweep."""

    def of_sweep(folder: Path):
        found = [(run.parent.name, look(run)) for run in sorted(folder.glob("runs/*/seed-0"))]
        if found and isinstance(found[0][1], list):
            return [f"{name} {entry}" for name, entries in found for entry in entries]
        return {f"{name} {key}": value for name, entries in found for key, value in entries.items()}

    return of_sweep


def finished(folder: Path) -> dict[str, str]:
    return stamped(folder, "runs/*/seed-0/results.json")


def decode(folder: Path) -> int:
    """Own images, decoded once into a cache beside them."""
    if not (folder / "data" / "b" / "last").exists():
        draw = np.random.default_rng(0)
        for name in ("a", "b"):
            (folder / "data" / name).mkdir(parents=True, exist_ok=True)
            for i in range(40):
                Image.fromarray(draw.integers(0, 256, (40, 40), np.uint8)).save(folder / "data" / name / f"{i}.png")
        (folder / "data" / "b" / "last").touch()
    images.load(folder / "data", "train")
    return DONE


def decoded(folder: Path) -> dict[str, str]:
    data = images.load(folder / "data", "train")
    return {"pixels": sha(data.__getitems__(range(len(data)))[0].numpy().tobytes())}


WORKS = {
    "training": Work("training", train, end_of_run, kept_of_run, broken_in_run, moments=MOMENTS),
    "sweep": Work("sweep", sweep, over_runs(end_of_run), finished, over_runs(broken_in_run), one_by_one, seconds=12),
    "decode": Work("decode", decode, decoded, lambda f: stamped(f, ".liespline-cache/*.items")),
}
# Each file is opened twice then: the second last.ckpt is half there.
PLANTED = Work("planted", train_in_place, end_of_run, moments=(("last.ckpt", 4),), unkilled=train)


def main(root: Path, seed: int, plan: list[str]) -> None:
    kills = {name: int(count) for name, count in (entry.split("=") for entry in plan)}
    works = WORKS | {"planted": PLANTED}
    found = {name: vars(Campaign(works[name], root / name, seed).run(count)) for name, count in kills.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
