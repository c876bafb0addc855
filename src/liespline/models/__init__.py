"""Ready-made networks: for classes, for maps, as backbones, and the paper's two."""

from .celeba import celeba
from .classifier import classifier
from .pcam import pcam
from .pretrained import from_pretrained
from .resnet import resnet
from .unet import unet

__all__ = ["celeba", "classifier", "from_pretrained", "pcam", "resnet", "unet"]
