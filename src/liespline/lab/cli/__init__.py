"""The `liespline` command."""

from .commands import app, main

__all__ = ["app", "main"]
