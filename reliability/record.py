"""What a long check found, written down so that the docs' table is made from it and from nothing else."""

import json
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass
class Findings:
    """One line of the table: what was tried, what was injected, and the four things that must be zero."""

    check: str  # what is checked, in words
    command: str  # the command that repeats it
    cases: int = 0
    faults: int = 0
    crashes: int = 0
    hangs: int = 0
    wrong_acceptances: int = 0
    lost_results: int = 0
    remarks: str = ""
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether nothing that must be zero is above it."""
        return not (self.crashes or self.hangs or self.wrong_acceptances or self.lost_results)

    def write(self, name: str | Path, commit: str | None = None, **more: object) -> None:
        """Keep the findings as `results/name.json`, or in a file, with the machine, the day and the commit."""
        path = name if isinstance(name, Path) else RESULTS / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        asked = ["git", "rev-parse", "--short", "HEAD"]
        commit = commit or subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
        where = {
            "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "day": date.today().isoformat(),
            "commit": commit or "unknown",
        }
        path.write_text(json.dumps(asdict(self) | where | more, indent=1) + "\n")
