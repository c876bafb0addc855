"""What a run is: its task, its data, its network and its training, each setting on a line of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, model_validator

from .definition import ADVANCED, LATER, SPECIAL, Interval, Number, Setting, Size, checked_settings, setting, written
from .old import FORMAT, translated
from .parts import Network, Training
from .words import ConfigError, shown

# A configuration can come inside a file from somewhere else: no setting may ask for all memory there is.
MOST_CHARACTERS = 100_000
PRODUCTS = ("elements", "basis", "size", "kernel_size")
"""Settings of several numbers that are written as 8x4."""
Defaults = Callable[[str, str | None], "Config"]
"""The defaults of a task, from its name and the folder of its module."""
USUAL: dict[str, dict[str, Any]] = {
    "sim2": {"elements": (8, 3), "kernel": "local"},
    "gl2": {"elements": (8, 1, 3, 3), "kernel": "local"},
    "axial": {"elements": 8, "kernel": "local", "basis": 3},
    "axial-o2": {"elements": 16, "kernel": "local", "basis": 3},
}
"""What a user gets who asks for a large group and nothing else: dense kernels would be slow."""


def _part(kind: type[Any]) -> Callable[[object], object]:
    """Settings in a file are `name: value` lines; in Python they are there already."""
    return lambda values: kind(**{str(k): v for k, v in values.items()}) if isinstance(values, dict) else values


@checked_settings
class Config:
    """One run: the task, its data, the network, the training and the seed."""

    task: str
    """A name, or `module:NAME`."""
    task_root: str | None = None
    """The folder that the task's module was imported from."""
    data: str | None = setting(None, "Folder or file with the task's data.", LATER, metavar="PATH")
    size: Size = setting(
        None, "Side that images are scaled to; of the box around a volume.", SPECIAL, metavar="N|NxNxN"
    )
    labels: str | None = setting(
        None, "CSV table: file, label(s), optionally split and group.", SPECIAL, LATER, metavar="FILE"
    )
    label_type: Literal["classes", "tags", "numbers"] | None = setting(
        None, "What the labels are, if unclear.", SPECIAL
    )
    folds: int | None = setting(
        None, "K-fold cross-validation: each part of the data tests once.", SPECIAL, ge=3, le=100, metavar="K"
    )
    fold: int | None = setting(
        None, "Train only the run that tests on this part, counted from 1.", SPECIAL, ADVANCED, ge=1, le=100
    )
    patch: int | None = setting(
        None, "Side of the patches in samples; 96 for images, 32 for volumes.", SPECIAL, ge=4, le=4096, metavar="N"
    )
    intensity_range: Interval = setting(
        None, "Intensities that become 0 to 1; else normalised per volume.", SPECIAL, metavar="LOW,HIGH"
    )
    spacing: Number | None = setting(
        None, "Side in mm that voxels are resampled to; else about as stored.", SPECIAL, gt=0,
        allow_inf_nan=False, metavar="MM",
    )  # fmt: skip
    rotation_centre: Literal["image", "mass"] = setting(
        "image", "Digits are rotated about the image's centre, or about their own: then no offset tells what is up.",
        SPECIAL,
    )  # fmt: skip
    transformation: Literal["rotated", "scaled", "rotated-scaled", "affine"] = setting(
        "rotated", "By any angle, by a factor of 0.3 to 1, or both; affine: trained on upright digits at any position, "
        "tested on transformed ones.", SPECIAL,
    )  # fmt: skip
    preset: Literal["paper", "released"] = setting(
        "paper", "As the paper's text says, or as its released scripts did.", SPECIAL
    )
    seed: int = setting(0, "Seed of everything random.", ge=0, lt=2**32, metavar="N")
    network: Annotated[Network, BeforeValidator(_part(Network))] = field(default_factory=Network)
    training: Annotated[Training, BeforeValidator(_part(Training))] = field(default_factory=Training)

    @model_validator(mode="after")
    def _applies(self) -> Config:
        for name in ("grid_jitter", "tta_grids"):
            if self.network.group == "none" and self[name] != SETTINGS[name].default:
                values = self[name] if isinstance(self[name], tuple) else (self[name],)
                given = f"{SETTINGS[name].option} {','.join(f'{value:g}' for value in values)}"
                raise ConfigError(f"{given} with --group none: it has no grid to offset; leave it out")
        if self.fold is not None and self.folds is None:
            raise ConfigError(f"fold = {self.fold}: say --folds too, into how many parts the data are cut")
        if (self.fold or 1) > (self.folds or 1):
            raise ConfigError(f"fold = {self.fold}: with --folds {self.folds} it is at most {self.folds}")
        try:
            f"{self.data} {self.training.init_from} {self.task_root}".encode()
        except UnicodeEncodeError:
            raise ConfigError(f"data = {self.data!r}: the name is not UTF-8; rename the folder") from None
        return self

    @property
    def label(self) -> str:
        """The task in one word, for titles and folders: `pcam` of studies.paper.pcam:PCAM."""
        return self.task.rpartition(":")[2].lower()

    def __getitem__(self, name: str) -> Any:
        """The value of a setting, wherever it is kept."""
        part = SETTINGS[name].part
        return getattr(getattr(self, part) if part else self, name)

    def updated(self, **changes: Any) -> Config:
        """A checked copy with these settings replaced; None leaves one as it is."""
        parts: dict[str, dict[str, Any]] = {"": {}, "network": {}, "training": {}}
        for name, value in changes.items():
            if value is not None:
                parts[SETTINGS[name].part][name] = value
        network, training = replace(self.network, **parts["network"]), replace(self.training, **parts["training"])
        return replace(self, network=network, training=training, **parts[""])

    def given(self, **options: Any) -> Config:
        """A checked copy with what a user asked for; an option that does nothing beside others is refused."""
        config = self.updated(**self._usual(options) | options)
        for name in {"elements", "kernel", "basis", "restrict"} & options.keys():
            if config.network.group == "none" and options[name] not in (1, "dense"):
                raise ConfigError(f"{SETTINGS[name].option} does nothing with --group none; leave out {name}")
        if config.network.network == "resnet" and "stride" in options:
            raise ConfigError("stride does nothing with --network resnet, which halves by itself; leave it out")
        return config

    def plain(self) -> dict[str, Any]:
        """The configuration as plain values, with their format, as files keep them."""
        values = {"format": FORMAT, **asdict(self)}
        if self.task_root is None:
            del values["task_root"]
        return values

    def _usual(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """What comes with another group, or with the library's ResNet, for a user who asks for nothing else."""
        group = options.get("group", self.network.group)
        usual: dict[str, Any] = {}
        if options.get("network") == "resnet":
            usual["architecture"] = options.get("architecture", 1)
            if usual["architecture"] > 1 and group != "none":
                usual["kernel"] = "local"
        if group == self.network.group:
            return usual
        if group == "o2" and isinstance(self.network.elements, int):
            return usual | {"elements": 2 * self.network.elements}  # as many rotations, and their reflections
        return usual | USUAL.get(group, {})

    def to_yaml(self, without: Iterable[str] = ()) -> str:
        """The configuration as the text that is saved beside its results, `without` some settings."""
        values, left_out = self.plain(), set(without)
        for name, one in SETTINGS.items():
            part = values[one.part] if one.part else values
            if name in left_out:
                del part[name]
            elif isinstance(part[name], tuple):
                part[name] = written(part[name]) if name in PRODUCTS else list(part[name])
        return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)

    @staticmethod
    def from_yaml(text: str, where: str, defaults: Defaults | None = None) -> Config:
        """Read what `to_yaml` wrote, or what a person wrote by hand; `where` names it in errors."""
        if len(text) > MOST_CHARACTERS:
            raise ConfigError(f"{where}: has over {MOST_CHARACTERS:,} characters; this is no configuration of a run")
        try:
            values = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError) as error:
            raise ConfigError(f"{where}: is not valid YAML ({shown(error)})") from error
        except ValueError:  # Python reads no longer numbers
            raise ConfigError(f"{where}: holds a number of over 4,300 digits; no setting is that large") from None
        return Config.from_dict(values, where, defaults)

    @staticmethod
    def from_dict(values: object, where: str, defaults: Defaults | None = None) -> Config:
        """Build a configuration from plain values; the error names the first setting that is wrong.

        What is not there is as in the `defaults` of its task, or as defined above.
        """
        if not isinstance(values, dict):
            raise ConfigError(f"{where}: expected 'name: value' lines, found {type(values).__name__}")
        values = translated(values, where)
        try:
            if defaults is not None and "task" in values:
                known = defaults(str(values["task"]), values.get("task_root"))
                values = values | {"task": known.task, "task_root": known.task_root}
                usual = asdict(known)
                for part in ("network", "training"):
                    if isinstance(values.get(part), dict):
                        usual[part] = usual[part] | values[part]
                values = usual | {k: v for k, v in values.items() if k not in usual or not isinstance(v, dict)}
            return Config(**{str(name): value for name, value in values.items()})
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None

    @staticmethod
    def load(path: Path, defaults: Defaults | None = None) -> Config:
        """Read the YAML file of a run."""
        try:
            if not path.is_file():  # a pipe or a device would keep us reading for ever
                raise ConfigError(f"{path}: cannot be read: it is no plain file; expected the YAML file of a run")
            with path.open(encoding="utf-8") as stream:
                text = stream.read(MOST_CHARACTERS + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: cannot be read ({error})") from error
        return Config.from_yaml(text, str(path), defaults)


SETTINGS = {
    name: Setting.of(name, part, found)
    for part, kind in {"": Config, "network": Network, "training": Training}.items()
    for name, found in kind.__pydantic_fields__.items()  # type: ignore[attr-defined]
    if found.json_schema_extra is not None
}
"""Every setting by its name; names are unique in the whole file."""
