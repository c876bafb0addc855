"""Where a result comes from: versions, commit, machine and command."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("liespline", "torch", "lightning", "torchmetrics", "numpy", "roma")
STAMP = ".commit"
"""The file at the root of a copy without `.git` that says its commit."""
STAMP_COMMAND = f"git describe --always --abbrev=40 --exclude='*' --dirty=+changes > COPY/{STAMP}"
"""What writes it, run where the copy came from."""


def environment() -> dict[str, Any]:
    """The exact versions, commit and machine that a result came from."""
    packages = {name: version(name) for name in PACKAGES}
    return {
        "packages": packages,
        "python": sys.version.split()[0],
        "commit": git_commit(),
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}",
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }


def git_commit() -> str | None:
    """The commit of the source in use, with `+changes` if files differ from it; None outside a checkout or a copy."""
    here = Path(__file__).parents[2]  # the package
    try:
        # Installed into some other project's checkout, this file is there but not part of it.
        _git(here, "ls-files", "--error-unmatch", __file__)
        commit = _git(here, "rev-parse", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no", "--", ".")
    except (OSError, subprocess.SubprocessError):
        stamp = here.parents[1] / STAMP
        return stamp.read_text(encoding="utf-8").strip()[:60] or None if stamp.is_file() else None
    return commit + ("+changes" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()


def _processor() -> str:
    import torch

    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"{torch.get_num_threads()} threads"
