"""The roads of a user, from files on disk to what is said about them."""

from lab.conftest import liespline

__all__ = ["liespline"]
