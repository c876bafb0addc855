"""A trained network in one file, and back from the file to a network ready for use."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...models.pretrained import Saved
from ...nn import Ensemble, GridAverage
from ..data import DataError, as_float
from ..data.arrays import Array
from ..data.files import size_words
from ..data.pictures import scaled, scaling
from ..data.samples import ValueRange
from ..networks import Signature, build, multiple_of
from ..screen import rows_of
from ..settings import Config
from ..tiles import Tiling, halo_of, in_tiles
from .folder import Run
from .model_file import check_fit, read_weights, save_weights
from .old import metric_of, renewed
from .sharing import command, results_beside, write_folder
from .where import located, model_file, model_files

TILE = {1: 65536, 2: 512, 3: 96}
ONE_OUTPUT = ("classes", "tags", "numbers")
"""What comes out once per image; points and masks are maps, of any size."""


class Trained(Saved):
    """A trained network with what it needs to be used: `net(images)` gives logits, `net.predict` classes.

    `metric` is the validation score whose best epoch it is; None for the last epoch of a run that picked none.
    `results` are the final numbers of its run, if they lie beside its file.
    """

    def __init__(self, network: nn.Module, config: Config, signature: Signature, metric: str | None = None) -> None:
        super().__init__()
        self.network, self.config, self.signature = network, config, signature
        self.classes, self.checkpoint_metric = signature.classes, metric
        self.results: dict[str, Any] = {}
        self._halos: dict[int, int | None] = {}

    def forward(self, images: Tensor) -> Tensor:
        """Outputs for images (B, C, *space): floats in [0, 1], or unsigned integers as stored."""
        wanted = (self.signature.in_channels, *self.signature.space)
        if images.ndim != len(wanted) + 1 or images.shape[1] != wanted[0]:
            raise ValueError(f"images have shape {tuple(images.shape)}; this network was trained on (B, {wanted})")
        dtype = next(self.network.parameters()).dtype
        return self.network((images if images.is_floating_point() else as_float(images)).to(dtype))

    def prepared(self, pixels: Array) -> Array:
        """An image (H, W) or (H, W, 3) as training brought it to the network: scaled to its size, or its middle."""
        if isinstance(self.config.size, int):
            return scaled(pixels, (self.config.size, self.config.size))
        if pixels.shape[:2] != self.signature.whole:
            return pixels
        height, width = self.signature.space
        top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
        return pixels[top : top + height, left : left + width]

    def preparation(self) -> dict[str, Any]:
        """The same for other programs, by name: `resize` with its filter, and `crop`."""
        if isinstance(self.config.size, int):
            return scaling(self.config.size)
        whole = "×".join(map(str, self.signature.whole))
        return {"crop": f"the middle of images of {whole}"} if whole else {}

    @torch.no_grad()
    def probabilities(self, images: Tensor) -> Tensor:
        """Probabilities of the classes (B, classes), of each tag, or of each pixel's classes (B, classes, *space)."""
        kind = self.signature.kind
        if kind in ("numbers", "points"):
            raise ValueError(f"this network gives {kind}, which have no probabilities; call it for its output")
        logits = (self.in_tiles(images) if kind == "masks" else self(images)).float()
        return logits.sigmoid() if kind == "tags" else logits.softmax(1)

    def in_tiles(self, images: Tensor, side: int | None = None) -> Tensor:
        """Maps (B, K, *space) of images of any size, in tiles of `side` samples.

        What `net(images)` gives, to 1e-4, if the sides are multiples of what the network halves by; other images are
        first continued by their edge to such sides, and their maps differ from that, most at the border.
        """
        return in_tiles(self, images, self.tiling(images.shape[2:], side))

    def tiling(self, space: Sequence[int], side: int | None = None) -> Tiling:
        """How an image of this size is cut into tiles; the overlap is measured once, if one is needed.

        A network that sees too far for tiles of the usual side gets tiles twice as wide.
        """
        d, multiple = len(self.signature.space), multiple_of(self.config.network)
        if side is None:
            side = TILE[d]
            if max(space) > side and self._halo_within(side) is None:
                side *= 2
        if max(space) <= side:
            return Tiling(side, 0, multiple)
        if (halo := self._halo_within(max(side, TILE[d]))) is None:
            raise ValueError(
                f"the network sees so far that tiles of {side} samples change its output: take larger ones, or a "
                "network with fewer widths; one that averages over the whole image cannot be used in tiles"
            )
        return Tiling(side, halo, multiple)

    def _halo_within(self, side: int) -> int | None:
        """How far the network sees; None if that is too far for tiles of this side."""
        if side not in self._halos:
            channels, d = self.signature.in_channels, len(self.signature.space)
            self._halos[side] = halo_of(self.network, channels, d, multiple_of(self.config.network), side * 3 // 8)
        return self._halos[side]

    @property
    def value_range(self) -> ValueRange | None:
        """The range of values in training; None for older runs, and for volumes that are normalised each by itself."""
        return self.signature.value_range

    @torch.no_grad()
    def check_size(self, space: tuple[int, ...], where: str, any_size: bool = False) -> None:
        """Refuse images of another size than in training; with `any_size`, those without one output per image."""
        wanted = self.signature.space
        if tuple(space) == wanted:
            return
        own, usual = (size_words(sides) + " pixels" * (len(sides) == 2) for sides in (space, wanted))
        said = f"{where}: is {own}; the network was trained on {usual}"
        if len(space) != len(wanted):
            raise DataError(said)
        if not any_size and self.signature.kind in ONE_OUTPUT:
            raise DataError(
                f"{said}, and another size may be another scale: --resize brings it to that size as --size does in "
                "training, --any-size runs the network at the image's own size"
            )
        weight = next(self.parameters())
        try:
            fits = self.network(weight.new_zeros(1, self.signature.in_channels, *space)).shape == (1, len(self.classes))
        except ValueError as error:
            raise DataError(f"{said} and cannot take it ({error}): resize it") from error
        if not fits:
            raise DataError(f"{said} and takes no other size: resize it")

    @torch.no_grad()
    def predict(self, images: Tensor) -> list[tuple[str, float]]:
        """The most likely class of each image and its probability."""
        if (kind := self.signature.kind) != "classes":
            instead = "call probabilities" if kind in ("tags", "masks") else "call it for its output"
            raise ValueError(f"this network gives {kind}, and predict is for classes; {instead}")
        confidence, index = self.probabilities(images).max(-1)
        return [(self.classes[int(i)], float(c)) for i, c in zip(index, confidence, strict=True)]

    def _write(self, folder: Path) -> None:
        network = self.network.networks[0] if isinstance(self.network, GridAverage) else self.network
        write_folder(folder, network, self.config, self.signature, self.checkpoint_metric, self.results)

    def _about(self, name: str) -> tuple[str, str, dict[str, str]]:
        scores = dict(rows_of(self.results)) if self.results else {}
        return f"liespline.load({name!r})", f"`{command(self.config)}`", scores


def ready(network: nn.Module, config: Config, signature: Signature, metric: str | None) -> Trained:
    """A network with the parameters that it was trained to, as it is used: on several grids if the run says so."""
    if config.network.tta_grids > 1:
        network = GridAverage(network, config.network.tta_grids)
    return Trained(network, config, signature, metric).eval()


def save_trained(
    run: Run, config: Config, signature: Signature, parameters: Mapping[str, Tensor], epoch: int, metric: str | None
) -> None:
    """Write a network into the one file that `load` reads, with its epoch and the score that picked the epoch."""
    about = {"config": config.plain(), "signature": asdict(signature), "epoch": epoch, "checkpoint_metric": metric}
    save_weights(run.model_file, parameters, about)


def load(path: str | Path, device: str | torch.device = "cpu") -> Trained:
    """A trained network from the folder of its run or from its `model.safetensors`, ready to be called.

    Or from `zoo:NAME` or OWNER/NAME on the Hugging Face Hub; from a folder of `--folds`, the mean of all its networks.
    """
    each, files = [], model_files(Path(path))
    for file in files:
        parameters, about = read_weights(file)
        each.append(described_network(about, parameters, str(file)))
    network, config, signature = each[0]
    if len(each) > 1:
        network = Ensemble(other for other, _, _ in each)
    trained = ready(network, config, signature, metric_of(about, config, signature)).to(device)
    trained.results = results_beside(files[0]) if len(files) == 1 else {}
    return trained


def warm_start(network: nn.Module, config: Config) -> list[str]:
    """Give a network the parameters of the run that `init_from` names; remarks on what could not be taken over.

    All tensors must fit, except those of the last layer, which starts anew if the classes differ.
    """
    if config.training.init_from is None:
        return []
    file, own = model_file(located(Path(config.training.init_from))), network.state_dict()
    parameters, about = read_weights(file)
    # Its own network says how wide its splines are, which no shape does.
    parameters = described_network(about, parameters, str(file))[0].state_dict()
    last = last_layers(network)
    anew = [name for name in own.keys() & parameters.keys() if name.startswith(last)]
    anew = [name for name in anew if own[name].shape != parameters[name].shape]
    parameters.update({name: own[name] for name in anew})
    check_fit(parameters, own, str(file))
    try:
        network.load_state_dict(parameters)
    except RuntimeError as error:  # splines of another width
        raise DataError(f"{file}: {error}") from error
    return [f"{file}: all parameters but those of the last layer, which has other classes"] if anew else []


def last_layers(network: nn.Module) -> tuple[str, ...]:
    """How the names of the last layer's parameters begin, or of each last layer of an ensemble."""
    if isinstance(network, Ensemble):
        each = enumerate(network.networks)
        return tuple(f"networks.{number}.{name}" for number, one in each for name in last_layers(one))
    return ([name for name, _ in network.named_parameters()][-1].rpartition(".")[0] + ".",)


def described_network(
    about: Mapping[str, Any], parameters: Mapping[str, Tensor], file: str
) -> tuple[nn.Module, Config, Signature]:
    """The network that a file describes, with the parameters in it, and what it is.

    A description that asks for a network of other parameters is refused. Nor does it say which folder code is imported
    from.
    """
    config = replace(Config.from_dict(about.get("config"), file), task_root=None)
    config, signature = renewed(about, config, Signature.from_dict(about.get("signature"), file))
    try:
        network = build(config, signature)
    except ValueError as error:
        raise DataError(f"{file}: does not describe a network of its parameters: {error}") from error
    check_fit(parameters, network.state_dict(), file)
    network.load_state_dict(parameters)
    return network, config, signature
