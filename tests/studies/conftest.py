"""Programs of studies/ run as from a shell."""

import sys

import pytest
from rich.console import ConsoleDimensions

from liespline.lab.screen import Screen
from studies.command import run


@pytest.fixture
def program(monkeypatch, capsys):
    """Run the function of a program; its exit status and what it printed, each message on one line."""

    def call(main, *arguments):
        monkeypatch.setattr(sys, "argv", ["program", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "1000")
        monkeypatch.setattr(Screen, "size", ConsoleDimensions(1000, 50))
        status = 0
        try:
            run(main)
        except SystemExit as stop:
            status = stop.code or 0
        seen = capsys.readouterr()
        return status, seen.out + seen.err

    return call
