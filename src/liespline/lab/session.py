"""What the steps of a run share, from its configuration to its report: each thing is made once, when first needed."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..nn import redraw
from ..nn.initial import BANDWIDTH
from .data import DataError, Split
from .data.manifest import Changes, Manifest, validate
from .data.samples import Comparison, ValueRange
from .data.split import ALL, SPLITS, Joined
from .networks import Signature, build
from .runs.folder import Run
from .runs.trained import Trained, load, ready, warm_start
from .settings import Config
from .tasks import find_task
from .tasks.objectives import Objective

AIM = {"train": "train on", "valid": "validate", "test": "test"}


class Session:
    """A configuration with its task, splits, manifest and network.

    Without a run, the splits are as the data are now. Those of a run are the images of its manifest; where they have
    changed since, a DataError says in what, and `advice` what to do.
    """

    def __init__(
        self,
        config: Config,
        run: Run | None = None,
        *,
        manifest: Manifest | None = None,
        advice: str = "bring it back, or begin another run",
    ) -> None:
        self.config, self._run, self._manifest, self._advice = config, run, manifest, advice
        self.task = find_task(config)
        self.changes = Changes()
        """Where the splits that were asked for have not changed, the images that were added to them."""
        self.remarks: list[str] = []
        """On what could not be taken over from the run that this one begins with."""
        self.loaded: dict[str, Split] = {}
        """The splits that were asked for so far."""

    @property
    def run(self) -> Run:
        if self._run is None:
            raise RuntimeError("this session has no run yet")
        return self._run

    @property
    def manifest(self) -> Manifest | None:
        """The images that the run began with; None before they were validated, and for runs of before 0.2."""
        if self._manifest is None and self._run is not None:
            self._manifest = self._run.manifest()
        return self._manifest

    def begin(self, run: Run) -> None:
        """Keep the manifest in the folder of a run, if it has none yet."""
        self._run = run
        if self._manifest is not None and not run.manifest_file.exists():
            self._manifest.write(run.manifest_file)

    def check_there(self) -> None:
        """Refuse data that are no longer where they were, and say how to name their new place."""
        data = self.config.data
        if data is not None and not Path(data).exists():
            seen = "" if Path(data).is_absolute() else f", seen from {Path.cwd()}"
            raise DataError(f"{data}: the data of this run are not there{seen}; say where they are with --data")

    def load(self, *names: str) -> dict[str, Split]:
        """These splits; those of a run are compared with its manifest all at once."""
        if new := [name for name in names if name not in self.loaded]:
            self.loaded |= self._unchanged(self.manifest, new) if self.manifest else self._now(new)
        return {name: self.loaded[name] for name in names}

    @property
    def names(self) -> tuple[str, ...]:
        """The splits that the data have."""
        try:
            return self.task.splits(self.config)
        except DataError:
            self.load(*SPLITS)  # says all that is wrong, with the files too
            raise

    def _now(self, names: list[str]) -> dict[str, Split]:
        path, splits = self.task.data_path(self.config), {}
        problems = self.task.check(path, self.config) if self.task.check is not None and path is not None else []
        for name in names:
            try:
                splits[name] = self.task.load(self.config, name)
            except DataError as error:  # one report of all that is wrong
                problems = [*problems, *error.problems]
        if problems:
            raise DataError(list(dict.fromkeys(problems)))
        return splits

    def _unchanged(self, manifest: Manifest, names: list[str]) -> dict[str, Split]:
        now = self._now([ALL] if manifest.dealt else names)
        self.changes = manifest.changes(now, names)
        if self.changes:
            where = self.config.data or self.config.task
            raise DataError(f"{where}: is not what the run began with: {self.changes.words}; {self._advice}")
        return {name: now[ALL].named(list(manifest.splits[name])) for name in names} if manifest.dealt else now

    def validate(self) -> list[str]:
        """Look at every image: remarks on them; DataError with all that would stop training or spoil its numbers."""
        self.load(*(self.manifest.splits if self.manifest else self.names))
        splits, where = self.loaded, str(self.config.data or self.config.task)
        remarks = validate(splits, where)
        known = self._value_range(splits.get("train"))
        if self.manifest is None:
            self._manifest = Manifest.of(splits, known)
        problems, missing = self._missing(splits)
        if problems:
            raise DataError([f"{self.config.labels or where}: {problem}" for problem in problems])
        odd = [f"{name}: {text}" for name, split in splits.items() if (text := compared(known, split).remark)]
        notes = [note for split in splits.values() for note in split.notes]
        notes += self.task.remarks(self.config, self.train) if "train" in splits else []
        return list(dict.fromkeys([*self._dealt(splits), *notes, *missing, *remarks, *odd]))

    def _value_range(self, train: Split | None) -> ValueRange | None:
        """The range of values in training; None for volumes that are each normalised by themselves."""
        if train is None or (train.side is not None and self.config.intensity_range is None):
            return None
        return ValueRange.of(train.seen.statistics, train.seen.dtype)

    def _missing(self, splits: Mapping[str, Split]) -> tuple[list[str], list[str]]:
        """What the targets of training and validation lack: problems, and remarks."""
        if "train" not in splits:
            return [], []
        targets = {name: splits[name].targets for name in ("train", "valid") if name in splits}
        if self.config.training.train_on_val:
            targets = {"train": torch.cat(list(targets.values()))}
        return self.objective.missing(targets)

    def _dealt(self, splits: Mapping[str, Split]) -> list[str]:
        if self.config.fold is None:
            return []
        sizes = {name: len(split) for name, split in splits.items()} | {"train": len(self.train)}
        parts = ", ".join(f"{size:,} to {AIM[name]}" for name, size in sizes.items())
        return [f"fold {self.config.fold} of {self.config.folds}: {parts}"]

    @cached_property
    def train(self) -> Split:
        """The training images that are asked for: a share of them, or the validation images too."""
        training, splits = self.config.training, self.load("train", "valid")
        train = splits["train"].share(training.train_fraction)
        return Joined({"train": train, "valid": splits["valid"]}) if training.train_on_val else train

    @property
    def valid(self) -> Split:
        """The images that the best epoch is picked by."""
        return self.load("valid")["valid"]

    @cached_property
    def tested(self) -> str:
        """The split that is scored: the validation images of data that come without test images."""
        return "test" if "test" in self.task.splits(self.config) else "valid"

    @property
    def test(self) -> Split:
        """The images that are scored in the end."""
        return self.load(self.tested)[self.tested]

    def test_again(self) -> Split:
        """The same, compared with the manifest once more: training takes long, and meanwhile files may have changed."""
        self.loaded.pop(self.tested, None)
        self._advice = "bring it back, then resume with --resume"
        return self.test

    @cached_property
    def signature(self) -> Signature:
        """What goes into the network and what comes out."""
        return replace(Signature.of(self.train), value_range=self.manifest.value_range if self.manifest else None)

    @cached_property
    def settled(self) -> Config:
        """The configuration with all that its network needs to be made again, without the task."""
        return self.task.settled(self.config, self.signature)

    @cached_property
    def objective(self) -> Objective:
        """The loss and the scores, as the classes of the training images ask for them."""
        objective = self.task.objective(self.config, self.signature)
        objective.look_at(self.train.targets)
        return objective

    @cached_property
    def network(self) -> nn.Module:
        """As training begins with it: drawn by the seed, or with the parameters of another run."""
        settled = self.settled
        torch.manual_seed(self.config.seed)
        network = build(settled, self.signature)
        if self.config.training.bandwidth != BANDWIDTH:
            redraw(network, self.config.training.bandwidth)
        self.remarks += warm_start(network, self.config)
        return network

    @cached_property
    def trained(self) -> Trained:
        """The network of the best epoch, ready to use."""
        return load(self.run.path)

    @cached_property
    def results(self) -> dict[str, Any]:
        """The final numbers of its run."""
        return self.run.read_results("scores", "images", "parameters", "split", "synthetic")

    def finish(self, parameters: Mapping[str, Tensor], metric: str | None) -> None:
        """Give the network the parameters of the best epoch."""
        network = self.network.cpu().float()  # it may have been trained in doubles
        network.load_state_dict(parameters)
        self.trained = ready(network, self.settled, self.signature, metric)


def compared(known: ValueRange | None, split: Split) -> Comparison:
    """The images of a split beside the range of values in training."""
    comparison = Comparison(known)
    comparison.add(split.seen.statistics)
    return comparison
