"""Commands as a user runs them, in this process."""

import contextlib
import errno
import io
import os
import resource
import sys
from unittest import mock

from rich.console import ConsoleDimensions

from liespline.lab.cli import commands
from liespline.lab.screen import Screen


def called(main, *arguments):
    """A program's function as from a shell: its status, and what it wrote to both streams, a message on one line."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["liespline", *map(str, arguments)]),
        mock.patch.dict(os.environ, COLUMNS="2000"),  # for help pages
        mock.patch.object(Screen, "size", ConsoleDimensions(2000, 50)),  # consoles read COLUMNS when they are made
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            status = stop.code or 0
    return status, out.getvalue(), err.getvalue()


def command(*arguments):
    """The command `liespline`."""
    return called(commands.main, *arguments)


def succeeds(*arguments):
    """What the command `liespline` prints and says as it succeeds."""
    status, out, err = command(*arguments)
    assert status == 0, out + err
    return out + err


def fails(*arguments):
    """What it says as it ends with status 2, in words."""
    status, out, err = command(*arguments)
    assert (status, "Traceback" in out + err) == (2, False), out + err
    return out + err


@contextlib.contextmanager
def largest_file(size):
    """The kernel refuses to let any file of this process grow beyond the size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def read_only(folder):
    """An `open` for which a folder lies on a disk that cannot be written to."""

    def opened(path, mode="r", *more, **options):
        if str(path).startswith(str(folder)) and set(mode) & set("wa+"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return open(path, mode, *more, **options)

    return opened
