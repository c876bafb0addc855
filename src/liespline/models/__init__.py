"""Ready-made networks: for classes, for maps, as backbones, and the paper's two."""

from .celeba import celeba
from .classifier import classifier
from .pcam import pcam
from .resnet import resnet
from .unet import unet

__all__ = ["celeba", "classifier", "pcam", "resnet", "unet"]
