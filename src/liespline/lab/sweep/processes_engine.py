"""Jobs as processes of this machine: the default."""

import subprocess
import sys
import time
from collections.abc import Sequence

from .jobs import POLL, Job

PATIENCE = 20  # seconds that a job has to end
COMMAND = (sys.executable, "-m", "liespline.lab.cli")


class Process:
    """`liespline WORDS` as a process of its own; one that dies is begun again once."""

    def __init__(self, words: Sequence[str], folder: str | None = None) -> None:
        self.words, self.folder, self._again, self._errors = words, folder, True, ""
        self.process = self._begun()

    def _begun(self) -> subprocess.Popen[str]:
        """What it says of errors is kept."""
        return subprocess.Popen(
            [*COMMAND, *self.words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
            cwd=self.folder,
        )  # fmt: skip

    def done(self) -> bool:
        """Whether it has come to an end; of status 2, a clear error, trying again would not help."""
        try:
            _, self._errors = self.process.communicate(timeout=0.01)
        except subprocess.TimeoutExpired:
            return False
        if self._again and self.process.returncode not in (0, 2):
            self.process, self._again = self._begun(), False
            return False
        return True

    def result(self) -> str | None:
        """What went wrong with it, if anything."""
        status = self.process.returncode
        return (" ".join(self._errors.split())[-500:] or f"exit status {status}") if status else None

    def cancel(self) -> None:
        """End it: a run that went on alone would keep its folder from the next sweep."""
        self.process.terminate()
        try:
            self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()


def submit(job: Job) -> Process:
    return Process(job.words)


def carry_out(words: Sequence[str], folder: str) -> str | None:
    """What a cluster's machine does: `liespline WORDS` in a folder, to its end; what went wrong, or None."""
    process = Process(words, folder)
    try:
        while not process.done():
            time.sleep(POLL)
    except BaseException:
        process.cancel()
        raise
    return process.result()
