"""A trained network without what is its machine's own, as it goes to others: its settings, its command, its numbers."""

import json
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import nn

from ...models.pretrained import CONFIG, VERSION, WEIGHTS
from ...nn import Ensemble
from ..data import DataError
from ..data.files import write_text
from ..networks import Signature
from ..settings import SETTINGS, Config, written
from ..settings.config import PRODUCTS
from ..tasks.defaults import DEFAULTS
from .folder import Run
from .model_file import save_weights

PATHS = ("data", "labels", "init_from")
ELSEWHERE = ("accelerator", "devices", "nodes", "workers", "compile", "logger")
"""Settings that say where a run was computed and not what."""


def portable(config: Config) -> Config:
    """The configuration with the last parts of paths: where data lie is everyone's own."""
    names = {name: Path(config[name]).name for name in PATHS if config[name] is not None}
    return replace(config, task_root=None).updated(**names)


def command(config: Config) -> str:
    """The command that trains such a network: the task and each setting that differs from the task's defaults."""
    config = portable(config)
    usual, words = DEFAULTS.get(config.task, Config(config.task)), ["liespline", "train", config.task]
    for name, one in SETTINGS.items():
        value = config[name]
        if value == usual[name] or value is None or name in ELSEWHERE:
            continue
        text = written(value, "x" if name in PRODUCTS else ",")
        if one.advanced:
            words += ["--set", f"{name}={text}"]
        else:
            words += [one.option] if value is True else [one.option, text]
    return shlex.join(words)


def write_folder(
    folder: Path, network: nn.Module, config: Config, signature: Signature, metric: str | None, results: dict[str, Any]
) -> None:
    """Write config.json, the file that `load` reads, and the final numbers if they are known."""
    if isinstance(network, Ensemble) and config.network.ensemble == 1:
        count = len(network.networks)
        raise ValueError(f"save_pretrained: these are the {count} networks of --folds {count}; save one of them")
    about = {"config": portable(config).plain(), "signature": asdict(signature), "checkpoint_metric": metric}
    save_weights(folder / WEIGHTS, network.state_dict(), about)
    write_text(folder / CONFIG, json.dumps({"liespline": VERSION, "run": about}) + "\n")
    if results:
        Run(folder).write_results(results)


def results_beside(file: Path) -> dict[str, Any]:
    """The final numbers of the run whose network is in a file, if they lie beside it."""
    run = Run(file.parent)
    try:
        return run.read_results("scores", "parameters") if run.finished else {}
    except DataError:  # a network can be used without them
        return {}
