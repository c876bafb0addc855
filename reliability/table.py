"""What long checks found last, and the docs' table, made from that alone: `python reliability/table.py`."""

import json
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"
MARKS = "<!-- table -->", "<!-- end of table -->"
COLUMNS = {
    "check": "what was checked",
    "cases": "cases",
    "faults": "faults injected",
    "crashes": "crashes",
    "hangs": "hangs",
    "wrong_acceptances": "wrong acceptances",
    "lost_results": "lost results",
    "remarks": "remarks",
    "command": "command",
    "commit": "commit",
}


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

    def write(self, name: str, commit: str | None = None, file: Path = RESULTS, **more: object) -> None:
        """Keep the findings under their name in a file, with the machine, the day and the commit."""
        others = json.loads(file.read_text()) if file.is_file() else {}
        asked = ["git", "rev-parse", "--short", "HEAD"]
        commit = commit or subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
        where = {
            "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "day": date.today().isoformat(),
            "commit": commit or "unknown",
        }
        found = others | {name: asdict(self) | where | more}
        file.write_text(json.dumps(found, indent=1) + "\n")


def table() -> str:
    """One Markdown line per check, by its name."""
    rows = [row for _, row in sorted(json.loads(RESULTS.read_text()).items())]
    lines = [" | ".join(COLUMNS.values()), " | ".join("---" for _ in COLUMNS)]
    for row in rows:
        row["command"] = f"`{row['command']}`"
        lines.append(" | ".join(str(row[key]) for key in COLUMNS))
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    """Put the table between the page's two marks."""
    text = PAGE.read_text()
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}\n{table()}\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
