"""Which network, and how it is trained. A new setting is one line: default, meaning, limits, where it applies."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from .definition import (
    ADVANCED,
    LATER,
    SPECIAL,
    Counts,
    Number,
    Shares,
    Sides,
    Stages,
    Widths,
    checked_settings,
    setting,
    total,
    written,
)
from .words import ConfigError

Outside = Annotated[str, Field(pattern=r".:\w+$")]
"""`module:NAME` or `FILE.py:NAME`."""
MOST_PAIRS = 2 * 10**7


@checked_settings
class Network:
    """Which network: the group, how finely it is sampled, and the kernels on it."""

    group: Literal["so2", "o2", "scale", "sim2", "gl2", "so3", "o3", "axial", "axial-o2", "none"] = setting(
        "so2", "Group of transformations; axial: about one axis."
    )
    network: Literal["classifier", "resnet", "unet", "pcam", "celeba"] | Outside = setting(
        "classifier", "A chain of layers (classifier), residual blocks (resnet), or your own, FILE.py:NAME.", SPECIAL,
        metavar="NAME",
    )  # fmt: skip
    architecture: int = setting(
        2, "Version of the networks; 1: those of liespline 0.2, and the usual resnet.", ADVANCED, ge=1
    )
    elements: Counts = setting(
        8, "Elements of the group, N_h; half of o2 and o3 are reflections. sim2: rotations x scales, such as 8x4; "
        "gl2: rotations x zooms x stretches x stretches, 8x1x3x3.", metavar="N|NxN",
    )  # fmt: skip
    axis: int = setting(2, "Of axial groups: the axis that stays as it is.", SPECIAL, ADVANCED, ge=0, le=2)
    max_angle: Number | None = setting(
        None, "Only rotations of at most so many degrees; of sim2 and gl2 also only scales and stretches near 1.",
        SPECIAL, ADVANCED, gt=0, le=180, metavar="DEGREES",
    )  # fmt: skip
    kernel: Literal["dense", "local", "atrous", "deformable", "pointwise"] = setting(
        "dense", "Kernel on the group; pointwise: each element sees itself alone, pooled over H in the end."
    )
    basis: Counts | None = setting(
        None, "Splines on the group, N_k, counted as elements; local: about the identity, and of o2 and o3 as many "
        "about the reflection.", metavar="N|NxN",
    )  # fmt: skip
    separable: bool = setting(
        False, "Kernels that are products of one in space and one on the group: faster, with fewer parameters.",
        SPECIAL, ADVANCED,
    )  # fmt: skip
    kernel_size: Sides = setting(5, "Side of the kernels in samples, or three for volumes: 1x5x5.", SPECIAL, ADVANCED)
    stride: int = setting(
        1, "Keep every n-th sample in the first layer, for large images.", SPECIAL, ADVANCED, ge=1, le=16
    )
    scale: Number = setting(
        1.0, "The smallest of the scales, and the only one of the 2-D network.", SPECIAL, ADVANCED, gt=0, le=16
    )
    widths: Widths = setting(
        (8, 12, 16, 24), "Channels of each layer, such as 8,12,16.", SPECIAL, ADVANCED, min_length=1, max_length=64
    )
    parameters: int | None = setting(
        None, "Scale the widths to about this many parameters.", SPECIAL, ge=1, le=10**9, metavar="N"
    )
    circular_mask: bool = setting(False, "See only the largest disc of the image: where tissue fills it.", SPECIAL)
    activation: Literal["relu", "silu", "gelu"] | None = setting(
        None, "Activation; by default relu, of smooth networks silu.", SPECIAL, ADVANCED
    )
    norm: Literal["batch", "instance", "layer"] = setting(
        "batch", "Norm; instance or layer for batches of a few volumes.", SPECIAL, ADVANCED
    )
    smooth: bool = setting(
        False, "Steadier between the angles of the grid: SiLU, a circular mask, activations on twice as many "
        "orientations, an interpolated maximum.", SPECIAL, ADVANCED,
    )  # fmt: skip
    breaking: bool = setting(False, "Let every layer learn how far to use the image's own orientation.", SPECIAL)
    restrict: Stages = setting(
        None, "STAGE=GROUP: from a stage on, counted from 0, only what is in so2, o2, so3, axial, scale or none.",
        SPECIAL, ADVANCED,
    )  # fmt: skip
    project: Literal["max", "bispectrum", "joint-bispectrum"] = setting(
        "max", "What is kept of the group in the end; bispectrum, of so2: all but the orientation, of each channel by "
        "itself or of all together.",
        SPECIAL, ADVANCED,
    )  # fmt: skip
    tta_grids: int = setting(
        1, "Average predictions over N offsets of the grid: N times slower.", SPECIAL, ge=1, le=16, metavar="N"
    )
    ensemble: int = setting(
        1, "Train so many networks side by side and average their predictions; parameters are counted over all.",
        ADVANCED, ge=1, le=16,
    )  # fmt: skip
    dropout: Number = setting(0.3, "Dropout of the last features.", SPECIAL, ADVANCED, ge=0, lt=1)

    @property
    def restrictions(self) -> dict[int, str]:
        """To what the network is restricted, by the stage where that begins."""
        pairs = (pair.split("=") for pair in self.restrict.split(",")) if self.restrict else ()
        return {int(stage): group for stage, group in pairs}

    @model_validator(mode="after")
    def _few_enough(self) -> Self:
        basis = self.basis or self.elements
        if total(self.elements) ** 2 * total(basis) > MOST_PAIRS:
            raise ConfigError(
                f"elements = {written(self.elements)} with basis = {written(basis)}: too many to compare each with each"
            )
        return self


@checked_settings
class Training:
    """How it is trained."""

    epochs: int = setting(20, "Times to go through the images.", LATER, ge=1, le=10**9, metavar="N")
    batch_size: int = setting(64, "Images per batch, over all devices.", ge=1, le=10**9, metavar="N")
    optimiser: Literal["adamw", "spectral-adamw", "sgd"] = setting(
        "spectral-adamw", "Optimiser; spectral-adamw: AdamW in the modes of the splines."
    )
    smoothness: Number = setting(
        0.25, "Of spectral-adamw: steps of a mode in proportion to its norm to the power 2s; 0: equal steps.",
        ADVANCED, ge=0, le=1,
    )  # fmt: skip
    bandwidth: Number = setting(
        0.0, "Kernels at the start, from 0 for smooth ones to 0.5 for a flat spectrum.", ADVANCED, ge=0, le=0.5
    )
    lr: Number = setting(0.01, "Learning rate.", gt=0, allow_inf_nan=False, metavar="X")
    weight_decay: Number = setting(0.01, "Decoupled weight decay.", ADVANCED, ge=0, allow_inf_nan=False)
    schedule: Literal["cosine", "one-cycle"] = setting(
        "cosine", "Learning rate: warm-up and cosine (sgd: halved every 12 % of the epochs), or torch's OneCycleLR.",
        ADVANCED,
    )  # fmt: skip
    ema: Number = setting(
        0.0, "Keep and score a moving average of the parameters with this decay, such as 0.99; 0: none.", ADVANCED,
        ge=0, lt=1,
    )  # fmt: skip
    label_smoothing: Number = setting(
        0.0, "Share of the target that is spread over all classes.", SPECIAL, ADVANCED, ge=0, lt=1
    )
    grid_jitter: Shares = setting(
        0.0, "Offset all grids per step by one random element, of up to this share of half a step of the grid: "
        "augmentation over the group, 0 to 1, or one per axis of it.", metavar="α|α,α",
    )  # fmt: skip
    augment: str = setting(
        "none", "rotate, flip, zoom-shear (affine: rotate+zoom-shear), noise, blur, brightness, contrast, gamma "
        "(intensity: all five), joined by +; images also mirror, elastic; volumes rotate-z. landmarks: zoom.",
        metavar="WORDS",
    )  # fmt: skip
    train_fraction: Number = setting(
        1.0, "Train on this fraction of the training images, of each class alike.", SPECIAL, ADVANCED, gt=0, le=1
    )
    train_on_val: bool = setting(
        False, "Train on the validation images too, and keep the last epoch: none is picked.", SPECIAL, ADVANCED
    )
    class_weights: bool = setting(
        False, "Weigh each class by one over its number of images in the loss.", SPECIAL, ADVANCED
    )
    patience: int | None = setting(
        None,
        "Stop after this many epochs without a better one: a higher validation score, or the same with a lower loss.",
        LATER, ADVANCED, ge=1, le=10**9,
    )  # fmt: skip
    init_from: str | None = setting(None, "Begin with the parameters of this run, a folder or file.", metavar="RUN")
    precision: Literal["32-true", "bf16-mixed", "16-mixed", "64-true"] = setting("32-true", "Number format.")
    accelerator: Literal["auto", "cpu", "gpu"] = setting("auto", "Where to compute.", LATER)
    devices: int = setting(1, "Processes (GPUs) on this machine.", LATER, ADVANCED, ge=1, le=1024)
    nodes: int = setting(1, "Machines, when started by torchrun or srun.", LATER, ADVANCED, ge=1, le=10_000)
    workers: int = setting(0, "DataLoader workers; 0 loads between steps.", LATER, ADVANCED, ge=0, le=512)
    compile: bool = setting(False, "Compile the network with torch.compile.", LATER)
    deterministic: bool | None = setting(
        None, "The same numbers every time, at some cost; by default on CPUs only.", LATER, ADVANCED
    )
    logger: Literal["tensorboard", "wandb", "mlflow"] = setting(
        "tensorboard", "Where the curves go; wandb and mlflow are installed separately.", LATER, ADVANCED
    )

    @model_validator(mode="after")
    def _shared_equally(self) -> Self:
        if self.batch_size % (self.devices * self.nodes):
            raise ConfigError(
                f"batch_size = {self.batch_size} cannot be shared equally by {self.nodes} × {self.devices} devices; "
                "choose a multiple"
            )
        return self
