"""Runs from Python as `liespline train` does them, without progress bars."""

from pathlib import Path

from liespline.lab.data import DataError
from liespline.lab.runs.folder import Run
from liespline.lab.session import Session
from liespline.lab.settings import Config
from liespline.lab.tasks import find_task
from liespline.lab.training.train import reopened, start, train


def problems(task: str, data: Path) -> list[str]:
    """Every problem that would stop training on the data."""
    try:
        Session(find_task(task).defaults.updated(data=str(data))).validate()
    except DataError as error:
        return error.problems
    return []


def new_run(config: Config, folder: Path) -> Run:
    session = start(config, folder)
    train(session, progress=False)
    return session.run


def resumed_run(folder: Path, **given) -> Run:
    session = reopened(folder, given)
    train(session, progress=False)
    return session.run
