"""Train, evaluate, look: the `liespline` command and what it is made of (needs the extra `lab`)."""

from .loading import Trained, load

__all__ = ["Trained", "load"]
