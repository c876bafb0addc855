"""What another package or file has under a name: `module:NAME` and `FILE.py:NAME`."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from .settings import ConfigError

MODULE = re.compile(r"\w+(\.\w+)*")


def named(what: str, word: str, root: str | None, such_as: str, *, files: bool = True) -> tuple[Any, str, Path]:
    """What a module or a file has under a name (None if nothing), with the module and its file; `what` it should be."""
    place, _, name = word.rpartition(":")
    file = Path(place).resolve() if files and place.endswith(".py") else None
    if file is not None:
        place, root = dotted(file, what)
    if not MODULE.fullmatch(place):
        raise ConfigError(
            f"{what} {word!r}: expected module:NAME or FILE.py:NAME of letters, digits and _, such as {such_as}"
        )
    module = imported(f"{what} {word}", place, root)
    source = Path(getattr(module, "__file__", None) or place).resolve()
    if file is not None and source != file:
        raise ConfigError(f"{what} {word}: {place!r} is also the name of {source}; rename the file")
    return getattr(module, name, None), place, source


def dotted(file: Path, what: str) -> tuple[str, str]:
    """A file's name as a module of its package, and the folder that the package lies in."""
    if not file.is_file():
        raise ConfigError(f"{file}: does not exist; expected the file that holds the {what}")
    root = file.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    return ".".join(file.relative_to(root).with_suffix("").parts), str(root)


def imported(word: str, place: str, root: str | None) -> ModuleType:
    """The module; what is installed comes first, then `root`, then the current directory."""
    folders = list(dict.fromkeys([*([root] if root else []), str(Path.cwd())]))
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    try:
        return importlib.import_module(place)
    except ImportError as error:
        missing = error.name or ""
        if isinstance(error, ModuleNotFoundError) and f"{place}.".startswith(f"{missing}."):
            raise ConfigError(
                f"{word}: there is no module {missing} in {' or in '.join(folders)}; start in the folder that "
                "holds it, or name its file: FILE.py:NAME"
            ) from None
        raise ConfigError(f"{word}: {place} cannot be imported ({error})") from error
