"""A trained network in one file, and back from the file to a network ready for use."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn

from .checkpoint import read_weights, save_weights
from .config import Config
from .data import DataError, as_float
from .network import Signature
from .run import Run
from .tasks import find_task


class Trained(nn.Module):
    """A trained network with what it needs to be used: `net(images)` gives logits, `net.predict` answers."""

    def __init__(self, network: nn.Module, config: Config, signature: Signature) -> None:
        super().__init__()
        self.network, self.config, self.signature = network, config, signature
        self.classes = signature.classes

    def forward(self, images: Tensor) -> Tensor:
        """Outputs for images (B, C, *space): floats in [0, 1], or unsigned integers as stored."""
        wanted = (self.signature.in_channels, *self.signature.space)
        if images.ndim != len(wanted) + 1 or images.shape[1] != wanted[0]:
            raise ValueError(f"images have shape {tuple(images.shape)}; this network was trained on (B, {wanted})")
        outputs: Tensor = self.network(as_float(images))
        return outputs

    @torch.no_grad()
    def predict(self, images: Tensor) -> list[tuple[str, float]]:
        """The most likely class of each image and its probability."""
        confidence, index = self(images).float().softmax(-1).max(-1)
        return [(self.classes[int(i)], float(c)) for i, c in zip(index, confidence, strict=True)]


def save_trained(run: Run, config: Config, signature: Signature, weights: dict[str, Tensor], epoch: int) -> None:
    """Write a network into the one file that `load` reads."""
    about = {"config": asdict(config), "signature": asdict(signature), "epoch": epoch}
    save_weights(run.model_file, weights, about)


def load(path: str | Path, device: str | torch.device = "cpu") -> Trained:
    """A trained network from the folder of its run or from its `model.safetensors`, ready to be called."""
    path = Path(path)
    file = Run(path).model_file if path.is_dir() else path
    weights, about = read_weights(file)
    config = Config.from_dict(about.get("config"), str(file))
    signature = Signature.from_dict(about.get("signature"), str(file))
    network = find_task(config.task).network(config, signature)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise DataError(f"{file}: the weights do not fit the network it describes: {error}") from error
    return Trained(network, config, signature).to(device).eval()
