"""Write requirements.lock, the pins of constraints.txt with the hash of each file: `python reliability/lock.py`.

The files are those for this Python on this machine. torch is left out: which of its builds is right depends on the
machine, and it is installed first.
"""

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Ask pip what it would install, and keep names, versions and hashes; where they came from does not matter."""
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("torch==")]
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder, "wanted.txt"), Path(folder, "report.json")
        wanted.write_text("\n".join(pins))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
        subprocess.run([*command, "--report", str(report), "-r", str(wanted)], check=True)
        found = json.loads(report.read_text())["install"]
    lines = [f"# Python {platform.python_version()}, {platform.system()} {platform.machine()}; reliability/lock.py"]
    for item in sorted(found, key=lambda item: str(item["metadata"]["name"]).lower()):
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        lines.append(f"{name}=={version} --hash=sha256:{item['download_info']['archive_info']['hashes']['sha256']}")
    (ROOT / "requirements.lock").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
