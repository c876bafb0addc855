"""Runs from Python as `liespline train` does them, without progress bars."""

from pathlib import Path

from liespline.lab.runs.folder import Run
from liespline.lab.settings import Config
from liespline.lab.training.start import reopened, start
from liespline.lab.training.train import train


def new_run(config: Config, folder: Path) -> Run:
    session = start(config, folder)
    train(session, progress=False)
    return session.run


def resumed_run(folder: Path, **given) -> Run:
    session = reopened(folder, given)
    train(session, progress=False)
    return session.run
