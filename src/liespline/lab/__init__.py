"""Train, evaluate, look: the `liespline` command and what it is made of (needs the extra `lab`)."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if find_spec("typer") is None:
    raise ImportError("the command and trained networks need the extra lab: pip install 'liespline[lab]'")
if TYPE_CHECKING:
    from .runs.trained import Trained, load

__all__ = ["Trained", "load"]


def __getattr__(name: str) -> Any:
    # Only on demand: torch takes a second or more to import, and `liespline --help` should not.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .runs import trained

    return getattr(trained, name)
