"""The table of the docs, from the findings of the last runs: `python reliability/table.py`."""

import json
from pathlib import Path

from record import RESULTS

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


def table() -> str:
    """One Markdown line per file of findings."""
    rows = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
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
