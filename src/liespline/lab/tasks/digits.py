"""Handwritten digits that ship with scikit-learn: the first thing to try."""

from ..data import digits
from .base import Task
from .defaults import DEFAULTS, OPTIONS

TASK = Task(defaults=DEFAULTS["digits"], load_split=lambda config, split: digits.load(split), options=OPTIONS["digits"])
