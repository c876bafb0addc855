"""A study: one file that says which networks are trained, how, and what is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..named import named
from ..settings import Config, ConfigError
from ..tasks import find_task

Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A comparison of two networks of a study: how far the first is ahead."""

    ours: str
    other: str
    measure: str = "accuracy"


@dataclass(frozen=True)
class Study:
    """Networks that are trained alike, from as many seeds each, and scored once.

    A file `NAME.py` that assigns one to `STUDY` is a study: `liespline sweep NAME.py --data DATA` trains its networks
    and appends each finished run to `results/NAME.jsonl` beside the file, where all studies of the file are.

        STUDY = Study(
            task="rotmnist",
            data="MNIST's four files.",
            protocol="1,000 labels: does a network on 16 orientations need fewer?",
            recipe={"epochs": 224, "train_fraction": 0.1},
            networks={"so2-16": {"elements": 16}, "plain": {"group": "none", "elements": 1}},
            rows=[Row("so2-16", "plain")],
        )
    """

    task: str
    networks: Mapping[str, Changes]
    """By name, which is also that of its folder: what each network changes in the recipe, the decisive ones first."""
    recipe: Changes = field(default_factory=dict)
    """What all networks change in the task's default settings."""
    seeds: int = 3
    rows: Sequence[Row] = ()
    protocol: str = ""
    """What is asked, and how it is measured."""
    data: str = ""
    """What `--data` names, and what is made of it."""

    @property
    def about(self) -> str:
        """The study in words."""
        return f"{self.data} {self.protocol}".strip()

    def configs(self, changes: Changes) -> dict[str, Config]:
        """Every network's configuration; what a user asks for comes last."""
        task = find_task(self.task)
        base = task.defaults.updated(**self.recipe)
        return {name: task.configured(base.updated(**own), **changes) for name, own in self.networks.items()}


@dataclass(frozen=True)
class Found:
    """A study with its name, and the file of results that all studies of one source file share."""

    name: str
    study: Study
    results: Path


def find_study(where: str) -> Found:
    """The study `FILE.py` or `module`, or another one that it holds, `FILE.py:NAME` or `module:NAME`."""
    word = where if ":" in where else f"{where}:STUDY"
    try:
        study, place, source = named("study", word, None, "studies/rotmnist.py")
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"study {word}: cannot be imported ({type(error).__name__}: {error})") from error
    name = word.rpartition(":")[2]
    if not isinstance(study, Study):
        raise ConfigError(f"{word}: is {type(study).__name__}; expected a liespline.lab.sweep.study.Study")
    family = place.rpartition(".")[2]
    own = family if name == "STUDY" else f"{family}_{name.lower()}"
    return Found(own, study, source.parent / "results" / f"{family}.jsonl")
