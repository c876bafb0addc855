"""Which network, and how it is trained. A new setting is one line: default, meaning, limits, where it applies."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from .counts import Counts, total, written
from .definition import checked_settings, setting
from .kinds import Number, Widths
from .words import ConfigError

MOST_PAIRS = 2 * 10**7


@checked_settings
class Network:
    """Which network: the group, how finely it is sampled, and the kernels on it."""

    group: Literal["so2", "o2", "scale", "sim2", "gl2", "so3", "o3", "none"] = setting(
        "so2", "What the network is equivariant to."
    )
    network: Literal["classifier", "resnet", "unet", "pcam", "celeba"] = setting(
        "classifier", "A chain, or residual blocks; other tasks have networks of their own.", special=True
    )
    architecture: int = 1
    """The version of the function that makes it, of lab/networks.py."""
    n_h: Counts = setting(
        8,
        "Number of group elements; o2 and o3: half of them reflections; sim2: rotations x scales, such as 8x4; "
        "gl2: rotations x zooms x squeezes x squeezes, such as 8x1x3x3.",
        metavar="N|NxN",
    )
    within: Number | None = setting(
        None,
        "so2, sim2 and gl2: turns within so many degrees of upright only, scales and squeezes a little about 1.",
        gt=0, le=180, metavar="DEGREES", special=True,
    )  # fmt: skip
    kernel: Literal["dense", "local", "atrous", "deformable", "apart"] = setting(
        "dense", "Kind of kernel on the group; apart: none, elements meet only in the end."
    )
    n_k: Counts | None = setting(
        None, "Number of splines on the group, counted as n_h; local: about the identity, and for o2 and o3 as many "
        "again about the reflection.", metavar="N|NxN",
    )  # fmt: skip
    separable: bool = setting(
        False, "Kernels that are products of one in space and one on the group: faster, of fewer weights.", special=True
    )
    kernel_size: int = setting(5, "Side of the kernels in samples.", ge=1, le=101, special=True)
    stride: int = setting(1, "Keep every n-th sample in the first layer, for large images.", ge=1, le=16, special=True)
    scale: Number = setting(
        1.0,
        "The smallest of the scales, and the only one of the 2-D network.",
        gt=0,
        le=16,
        special=True,
    )
    widths: Widths = setting(
        (8, 12, 16, 24), "Channels of each layer, such as 8,12,16.", min_length=1, max_length=64, special=True
    )
    weights: int | None = setting(
        None, "Scale the widths so that the network has about this many weights.", ge=1, le=10**9, special=True
    )
    disc: bool = setting(
        False, "Look at the largest disc alone, not at the square: for tissue, or what else fills the image.",
        special=True,
    )  # fmt: skip
    grids: int = setting(
        1, "Answer with the mean over so many grids, once it is trained: changes less when moved, and takes as many "
        "times as long.", ge=1, le=16, special=True,
    )  # fmt: skip
    ensemble: int = setting(
        1, "Train so many networks beside each other, and answer with their mean; weights are those of all together.",
        ge=1, le=16,
    )  # fmt: skip
    dropout: Number = setting(0.3, "Share of the last features to leave out in training.", ge=0, lt=1, special=True)

    @model_validator(mode="after")
    def _few_enough(self) -> Network:
        n_k = self.n_k or self.n_h
        if total(self.n_h) ** 2 * total(n_k) > MOST_PAIRS:
            raise ConfigError(
                f"n_h = {written(self.n_h)} with n_k = {written(n_k)}: too many to compare each with each"
            )
        return self


@checked_settings
class Training:
    """How it is trained."""

    epochs: int = setting(20, "Times to go through the images.", ge=1, le=10**9, later=True)
    batch: int = setting(64, "Images in a batch, over all devices.", ge=1, le=10**9)
    optimiser: Literal["adamw", "adamw-modes", "sgd"] = setting(
        "adamw", "How to step. adamw-modes: in modes of the splines, for images that come turned."
    )
    lr: Number = setting(0.01, "Learning rate.", gt=0, allow_inf_nan=False)
    decay: Number = setting(0.01, "Decoupled weight decay.", ge=0, allow_inf_nan=False)
    schedule: Literal["usual", "one-cycle"] = setting(
        "usual", "Learning rate: for adamw a rise and a cosine, for sgd halvings; or torch's OneCycleLR."
    )
    ema: Number = setting(
        0.0, "Keep and score a moving average of the weights with this decay, such as 0.99; 0 takes the last ones.",
        ge=0, lt=1,
    )  # fmt: skip
    label_smoothing: Number = setting(0.0, "Share of the target that all classes get alike.", ge=0, lt=1, special=True)
    shift: bool = setting(False, "Move all grids of the network by a common random element at every step.")
    augment: str = setting(
        "none", "Augmentation: rotate, flip, zoom-shear, joined by + (affine is rotate+zoom-shear); of images also "
        "mirror and elastic, of volumes rotate-z. pcam: rot90, no-rot90 or rotate; celeba and landmarks: zoom.",
        metavar="WORDS",
    )  # fmt: skip
    share: Number = setting(
        1.0, "Learn from this share of the training images, of each class alike.", gt=0, le=1, special=True
    )
    valid_too: bool = setting(
        False, "Learn from the validation images too, and keep the last epoch: none is picked.", special=True
    )
    class_weights: bool = setting(False, "Weigh each class by one over its number of images.", special=True)
    patience: int | None = setting(
        None,
        "Stop after this many epochs without a better one: a higher validation score, or the same with a lower loss.",
        ge=1,
        le=10**9,
        later=True,
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
