"""What a run is: one readable YAML file, checked key by key before anything starts."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import yaml

# A run's whole configuration is a few dozen lines; anything larger is some other file.
MOST_CHARACTERS = 100_000


class ConfigError(ValueError):
    """A setting that cannot be used; the message says which, and what would be right."""


@dataclass(frozen=True)
class Network:
    """Which network: the group, how finely it is sampled, and the kernels on it."""

    group: str = "so2"
    n_h: int = 8
    kernel: str = "dense"
    n_k: int | None = None
    kernel_size: int = 5
    stride: int = 1
    """Keep every so many-th sample of the image in the first layer."""
    scale: float = 1.0
    """For celeba: the smallest of the scales, and the only one of the 2-D network."""
    widths: tuple[int, ...] = (8, 12, 16, 24)
    weights: int | None = None
    """Scale all widths together so that the network has about this many weights."""


@dataclass(frozen=True)
class Training:
    """How it is trained."""

    epochs: int = 20
    batch: int = 64
    optimiser: str = "adamw"
    lr: float = 0.01
    decay: float = 0.01
    augment: str = "none"
    patience: int | None = None
    """Stop after this many epochs without a better validation score."""
    precision: str = "32-true"
    accelerator: str = "auto"
    devices: int = 1
    nodes: int = 1
    workers: int = 0
    compile: bool = False


@dataclass(frozen=True)
class Config:
    """One run: the task, its data, the network, the training and the seed."""

    task: str
    data: str | None = None
    size: int | None = None
    """Scale images to this side before training; None takes them as they are."""
    preset: str = "paper"
    seed: int = 0
    network: Network = field(default_factory=Network)
    training: Training = field(default_factory=Training)

    def to_yaml(self) -> str:
        """The configuration as the text that is saved beside its results."""
        text: str = yaml.safe_dump(_plain(asdict(self)), sort_keys=False, allow_unicode=True)
        return text

    @staticmethod
    def from_yaml(text: str, where: str) -> Config:
        """Read what `to_yaml` wrote, or what a person wrote by hand; `where` names it in errors."""
        if len(text) > MOST_CHARACTERS:
            raise ConfigError(f"{where}: has over {MOST_CHARACTERS:,} characters; this is no configuration of a run")
        try:
            values = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError) as error:
            raise ConfigError(f"{where}: is not valid YAML ({_one_line(error)})") from error
        return Config.from_dict(values, where)

    @staticmethod
    def from_dict(values: object, where: str) -> Config:
        """Build a configuration from plain values, complaining of every unknown key and wrong type."""
        config: Config = _build(Config, values, where)
        try:
            return config.checked()
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None

    @staticmethod
    def load(path: Path) -> Config:
        """Read the YAML file of a run."""
        try:
            if not path.is_file():  # a pipe or a device would keep us reading for ever
                raise ConfigError(f"{path}: cannot be read: it is no plain file; expected the YAML file of a run")
            with path.open(encoding="utf-8") as stream:
                text = stream.read(MOST_CHARACTERS + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: cannot be read ({error})") from error
        return Config.from_yaml(text, str(path))

    def checked(self) -> Config:
        """The configuration itself, if every value can be used."""
        net, training = self.network, self.training
        one_of("group", net.group, GROUPS)
        one_of("kernel", net.kernel, KERNELS)
        one_of("preset", self.preset, PRESETS)
        one_of("optimiser", training.optimiser, OPTIMISERS)
        one_of("precision", training.precision, PRECISIONS)
        one_of("accelerator", training.accelerator, ACCELERATORS)
        counts = {"n_h": net.n_h, "kernel_size": net.kernel_size, "stride": net.stride, "epochs": training.epochs}
        counts |= {"batch": training.batch, "devices": training.devices, "nodes": training.nodes}
        counts |= {"widths": min(net.widths, default=0)}
        optional = {"size": self.size, "n_k": net.n_k, "weights": net.weights, "patience": training.patience}
        counts |= {name: value for name, value in optional.items() if value is not None}
        for name, value in counts.items():
            if not 1 <= value <= MOST.get(name, 10**9):
                raise ConfigError(f"{name} = {value}: must be from 1 to {MOST.get(name, 10**9):,}")
        if max(net.widths) > MOST["widths"] or len(net.widths) > MOST["layers"]:
            shown = str(list(net.widths))[:80]
            raise ConfigError(f"widths = {shown}: at most {MOST['layers']} layers of {MOST['widths']:,}")
        if net.n_h**2 * (net.n_k or net.n_h) > MOST["n_h² n_k"]:
            raise ConfigError(f"n_h = {net.n_h} with n_k = {net.n_k or net.n_h}: too many to compare each with each")
        if not 0 <= training.workers <= MOST["workers"] or not 0 <= self.seed < 2**32:
            raise ConfigError(f"workers = {training.workers}, seed = {self.seed}: must not be negative or huge")
        if not 0 < training.lr < float("inf") or not 0 <= training.decay < float("inf"):
            raise ConfigError(f"lr = {training.lr}, decay = {training.decay}: must be positive numbers")
        if not 0 < net.scale <= 16:
            raise ConfigError(f"scale = {net.scale}: must be more than 0 and at most 16")
        if training.batch % (training.devices * training.nodes):
            raise ConfigError(
                f"batch = {training.batch} cannot be shared equally by {training.nodes} × {training.devices} "
                "devices; choose a multiple"
            )
        return self

    def updated(self, network: Mapping[str, Any], training: Mapping[str, Any], **own: Any) -> Config:
        """A checked copy with the settings that are not None replaced."""
        changes = {key: value for key, value in own.items() if value is not None}
        changes["network"] = replace(self.network, **{k: v for k, v in network.items() if v is not None})
        changes["training"] = replace(self.training, **{k: v for k, v in training.items() if v is not None})
        return replace(self, **changes).checked()


# A configuration can come inside a file from somewhere else: no setting may ask for all memory there is.
MOST = {"n_h": 1000, "n_k": 1000, "kernel_size": 101, "stride": 16, "widths": 8192, "layers": 64, "size": 8192}
MOST |= {"n_h² n_k": 2 * 10**7, "workers": 512, "devices": 1024, "nodes": 10_000}
GROUPS = ("so2", "scale", "so3", "none")
KERNELS = ("dense", "local", "atrous", "deformable")
PRESETS = ("paper", "released")
OPTIMISERS = ("adamw", "sgd")
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "64-true")
ACCELERATORS = ("auto", "cpu", "gpu")


def suggestion(value: str, choices: Iterable[str]) -> str:
    """` Did you mean 'so2'?` where a choice is near `value`, else nothing."""
    near = difflib.get_close_matches(value, list(choices), 1, 0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def one_of(name: str, value: str, choices: Iterable[str]) -> str:
    """The value itself, or an error with the choices and the near miss."""
    choices = list(choices)
    if value not in choices:
        raise ConfigError(
            f"{name} {value!r} is unknown; choose one of {', '.join(choices)}.{suggestion(value, choices)}"
        )
    return value


def _build(cls: type[Any], values: object, where: str) -> Any:
    if not isinstance(values, dict):
        raise ConfigError(f"{where}: expected 'name: value' lines, found {type(values).__name__}")
    types_of = get_type_hints(cls)
    known = [f.name for f in fields(cls)]
    for key in values:
        if key not in known:
            raise ConfigError(
                f"{where}: {str(key)[:80]!r} is no setting; known are {', '.join(known)}." + suggestion(str(key), known)
            )
    if "task" in known and "task" not in values:
        raise ConfigError(f"{where}: 'task' is missing")
    return cls(**{key: _convert(types_of[key], value, f"{where}: {key}") for key, value in values.items()})


def _convert(kind: Any, value: object, where: str) -> Any:
    if is_dataclass(kind):
        return _build(kind, value, where)  # type: ignore[arg-type]
    if get_origin(kind) in (Union, types.UnionType):
        return None if value is None else _convert(get_args(kind)[0], value, where)
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where} = {value!r}: expected a list of whole numbers, such as [8, 16]")
        return tuple(_convert(int, item, where) for item in value)
    # YAML reads 1e-3 as text, and bool is a kind of int in Python.
    if kind is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            pass
    elif type(value) is kind:
        return value
    raise ConfigError(f"{where} = {str(value)[:80]!r}: expected {_NAMES[kind]}")


_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
