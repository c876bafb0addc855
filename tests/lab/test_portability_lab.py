"""The lab imports no module that only Unix has, so that it runs on Windows and macOS."""

import ast
from pathlib import Path

import liespline

ONLY_UNIX = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "posix", "syslog"}


def imported(source: str) -> set[str]:
    """The top-level modules that a source imports anywhere, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return names


def test_no_module_of_unix_alone():
    files = list(Path(liespline.__file__).parent.rglob("*.py"))
    assert len(files) > 100
    assert not {(file.name, name) for file in files for name in imported(file.read_text()) & ONLY_UNIX}
    assert imported("def f():\n    import fcntl") & ONLY_UNIX  # the planted fault
