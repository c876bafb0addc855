"""What a run is. A new setting is one line here: its default, its meaning, its limits, and where it applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, model_validator

from .definition import Setting, checked_settings, setting
from .kinds import Interval, Number, Widths
from .words import ConfigError, shown

# A configuration can come inside a file from somewhere else: no setting may ask for all memory there is.
MOST_CHARACTERS = 100_000
MOST_PAIRS = 2 * 10**7
GENERAL = ("digits", "rotmnist", "images", "volumes")
SIZED = (*GENERAL, "segment")
"""Tasks whose network is the general classifier; those of the paper are built as its tables say."""


@checked_settings
class Network:
    """Which network: the group, how finely it is sampled, and the kernels on it."""

    group: Literal["so2", "o2", "scale", "so3", "o3", "none"] = setting("so2", "What the network is equivariant to.")
    network: Literal["classifier", "resnet"] = setting("classifier", "A chain, or residual blocks.", only=GENERAL)
    n_h: int = setting(8, "Number of group elements.", ge=1, le=1000)
    kernel: Literal["dense", "local", "atrous", "deformable"] = setting("dense", "Kind of kernel on the group.")
    n_k: int | None = setting(None, "Number of splines on the group.", ge=1, le=1000)
    kernel_size: int = setting(5, "Side of the kernels in samples.", ge=1, le=101, only=SIZED)
    stride: int = setting(1, "Keep every n-th sample in the first layer, for large images.", ge=1, le=16, only=GENERAL)
    scale: Number = setting(
        1.0,
        "The smallest of the scales, and the only one of the 2-D network.",
        gt=0,
        le=16,
        only=("celeba", "landmarks"),
    )
    widths: Widths = setting(
        (8, 12, 16, 24), "Channels of each layer, such as 8,12,16.", min_length=1, max_length=64, only=SIZED
    )
    weights: int | None = setting(
        None, "Scale the widths so that the network has about this many weights.", ge=1, le=10**9, only=SIZED
    )

    @model_validator(mode="after")
    def _few_enough(self) -> Network:
        n_k = self.n_k or self.n_h
        if self.n_h**2 * n_k > MOST_PAIRS:
            raise ConfigError(f"n_h = {self.n_h} with n_k = {n_k}: too many to compare each with each")
        return self


@checked_settings
class Training:
    """How it is trained."""

    epochs: int = setting(20, "Times to go through the images.", ge=1, le=10**9, later=True)
    batch: int = setting(64, "Images in a batch, over all devices.", ge=1, le=10**9)
    optimiser: Literal["adamw", "sgd"] = setting("adamw", "How to step.")
    lr: Number = setting(0.01, "Learning rate.", gt=0, allow_inf_nan=False)
    decay: Number = setting(0.01, "Decoupled weight decay.", ge=0, allow_inf_nan=False)
    schedule: Literal["usual", "one-cycle"] = setting(
        "usual", "Learning rate: for adamw a rise and a cosine, for sgd halvings; or torch's OneCycleLR."
    )
    ema: Number = setting(
        0.0, "Keep and score a moving average of the weights with this decay, such as 0.99; 0 takes the last ones.",
        ge=0, lt=1,
    )  # fmt: skip
    label_smoothing: Number = setting(
        0.0, "Share of the target that all classes get alike.", ge=0, lt=1, only=(*SIZED, "pcam")
    )
    shift: bool = setting(False, "Move all grids of the network by a common random element at every step.")
    augment: str = setting(
        "none", "Augmentation: none, or one that the task offers (flips, turns, flips-turns, affine, zoom, …).",
        metavar="NAME",
    )  # fmt: skip
    class_weights: bool = setting(False, "Weigh each class by one over its number of images.", only=(*SIZED, "pcam"))
    patience: int | None = setting(
        None, "Stop after this many epochs without a better validation score.", ge=1, le=10**9, later=True
    )
    start_from: str | None = setting(None, "Begin with the weights of this run (its folder or file).", metavar="RUN")
    precision: Literal["32-true", "bf16-mixed", "16-mixed", "64-true"] = setting("32-true", "Number format.")
    accelerator: Literal["auto", "cpu", "gpu"] = setting("auto", "Where to compute.", machine=True)
    devices: int = setting(1, "Processes (GPUs) on this machine.", ge=1, le=1024, machine=True)
    nodes: int = setting(1, "Machines, when started by torchrun or srun.", ge=1, le=10_000, machine=True)
    workers: int = setting(0, "Reader processes; 0 reads between steps.", ge=0, le=512, machine=True)
    compile: bool = setting(False, "Compile the network with torch.compile.", machine=True)
    deterministic: bool | None = setting(
        None, "The same numbers every time, at some cost; by default on CPUs only.", machine=True
    )
    nan_guard: bool = setting(True, "Stop at the first value that is not finite, and keep its batch.", machine=True)
    logger: Literal["tensorboard", "wandb", "mlflow"] = setting(
        "tensorboard", "Where the curves go; wandb and mlflow are installed separately.", machine=True
    )

    @model_validator(mode="after")
    def _shared_equally(self) -> Training:
        if self.batch % (self.devices * self.nodes):
            raise ConfigError(
                f"batch = {self.batch} cannot be shared equally by {self.nodes} × {self.devices} devices; "
                "choose a multiple"
            )
        return self


def _part(kind: type[Any]) -> Callable[[object], object]:
    """Settings in a file are `name: value` lines; in Python they are there already."""
    return lambda values: kind(**{str(k): v for k, v in values.items()}) if isinstance(values, dict) else values


@checked_settings
class Config:
    """One run: the task, its data, the network, the training and the seed."""

    task: str
    data: str | None = setting(None, "Folder or file with the task's data.", metavar="PATH", later=True)
    size: int | None = setting(None, "Scale images of mixed sizes to this side.", ge=1, le=8192, only=("images",))
    labels: str | None = setting(
        None, "Table (CSV) with the columns file and label, or several labels, and if wanted split and group.",
        metavar="FILE", later=True, only=("images", "segment", "landmarks"),
    )  # fmt: skip
    labels_are: Literal["classes", "tags", "numbers"] | None = setting(
        None, "What the labels of the table are, where it could be either.", only=("images",)
    )
    folds: int | None = setting(
        None, "Cut the data into so many parts and train so often, each part once for testing.", ge=3, le=100,
        only=("images", "segment", "landmarks"),
    )  # fmt: skip
    fold: int | None = setting(
        None, "Train only the run that tests on this part, counted from 1.", ge=1, le=100,
        only=("images", "segment", "landmarks"),
    )  # fmt: skip
    patch: int | None = setting(
        None, "Side of the patches in samples; 96 for images, 32 for volumes.", ge=4, le=4096, only=("segment",)
    )
    window: Interval = setting(
        None, "Intensities of volumes from LOW to HIGH become 0 to 1; else each volume is normalised by itself.",
        metavar="LOW,HIGH", only=("segment",),
    )  # fmt: skip
    spacing: Number | None = setting(
        None, "Side in mm that all voxels are resampled to; by default about as many as there are.", gt=0,
        allow_inf_nan=False, only=("segment",),
    )  # fmt: skip
    about: Literal["image", "mass"] = setting(
        "image", "Digits are turned about the image's centre, or their own: then no offset tells what is up.",
        only=("rotmnist",),
    )  # fmt: skip
    preset: Literal["paper", "released"] = setting(
        "paper", "As the text says, or as the released scripts did.", only=("pcam", "celeba")
    )
    seed: int = setting(0, "Seed of everything random.", ge=0, lt=2**32)
    network: Annotated[Network, BeforeValidator(_part(Network))] = field(default_factory=Network)
    training: Annotated[Training, BeforeValidator(_part(Training))] = field(default_factory=Training)

    @model_validator(mode="after")
    def _applies(self) -> Config:
        for name, one in SETTINGS.items():
            if (reason := one.refusal(self.task)) and self[name] != one.default:
                raise ConfigError(reason)
        if self.training.shift and self.network.group == "none":
            raise ConfigError("--shift does nothing with --group none, which has no grid to move; leave out shift")
        try:
            f"{self.data} {self.training.start_from}".encode()
        except UnicodeEncodeError:
            raise ConfigError(f"data = {self.data!r}: the name is not UTF-8; rename the folder") from None
        return self

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
        """A checked copy with what a user asked for; an option that does nothing here is refused."""
        for name in options:
            if reason := SETTINGS[name].refusal(self.task):
                raise ConfigError(reason)
        config = self.updated(**options)
        for name in {"n_h", "kernel", "n_k"} & options.keys():
            if config.network.group == "none" and options[name] not in (1, "dense"):
                raise ConfigError(f"{SETTINGS[name].option} does nothing with --group none; leave out {name}")
        if config.network.network == "resnet" and "stride" in options:
            raise ConfigError("--stride does nothing with --network resnet, which halves by itself; leave out stride")
        return config

    def to_yaml(self) -> str:
        """The configuration as the text that is saved beside its results."""
        values = asdict(self)
        values["network"]["widths"] = list(self.network.widths)
        values["window"] = None if self.window is None else list(self.window)
        text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
        return text

    @staticmethod
    def from_yaml(text: str, where: str, defaults: Mapping[str, Config] | None = None) -> Config:
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
    def from_dict(values: object, where: str, defaults: Mapping[str, Config] | None = None) -> Config:
        """Build a configuration from plain values; the error names the first setting that is wrong.

        What is not there is as in the `defaults` of the task, or as defined above.
        """
        if not isinstance(values, dict):
            raise ConfigError(f"{where}: expected 'name: value' lines, found {type(values).__name__}")
        usual = asdict(known) if (known := (defaults or {}).get(str(values.get("task")))) else {}
        for part in ("network", "training"):
            if isinstance(values.get(part), dict):
                usual[part] = usual.get(part, {}) | values[part]
        values = usual | {k: v for k, v in values.items() if k not in usual or not isinstance(v, dict)}
        try:
            return Config(**{str(name): value for name, value in values.items()})
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None

    @staticmethod
    def load(path: Path, defaults: Mapping[str, Config] | None = None) -> Config:
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
    if part or name not in ("task", "network", "training")
}
"""Every setting by its name, which is its own in all of the file."""
