"""Every setting of a run, defined once: options, help, YAML, checks and documentation follow from it."""

from . import renamed
from .config import SETTINGS, Config
from .definition import total, written
from .parts import Network, Training
from .words import ConfigError, one_of

__all__ = ["SETTINGS", "Config", "ConfigError", "Network", "Training", "one_of", "renamed", "total", "written"]
