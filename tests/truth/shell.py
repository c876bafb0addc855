"""The command as a user runs it, in this process."""

import contextlib
import io
import sys
from unittest import mock

from rich.console import ConsoleDimensions

from liespline.lab.cli import commands
from liespline.lab.screen import Screen


def command(*arguments):
    """The command as from a shell: its status, and what it wrote to both streams."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["liespline", *map(str, arguments)]),
        mock.patch.object(Screen, "size", ConsoleDimensions(2000, 50)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            commands.main()
        except SystemExit as stop:
            status = stop.code or 0
    return status, out.getvalue(), err.getvalue()
