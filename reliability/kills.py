"""SIGKILL at random moments of training, sweeps and data preparation: `python reliability/kills.py [--kills N]`."""

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

from table import Findings

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "lab"))
from killed_work import WORKS
from killing import Campaign

# Of each sixty kills. Sweeps start a new Python for each run, so they get fewer.
SHARES = {"training": 36, "sweep": 12, "decode": 12}


def main() -> None:
    """Kill, start again, compare, and write down what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    findings = Findings(
        "kill −9 at random moments of training, sweep and data preparation, then going on",
        f"python reliability/kills.py --kills {chosen.kills} --seed {chosen.seed}",
    )
    begun, kinds = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, work in WORKS.items():
            kills = max(1, round(chosen.kills * SHARES[name] / sum(SHARES.values())))
            tally = Campaign(work, root / name, chosen.seed).run(kills)
            print(name, json.dumps(vars(tally), indent=1), flush=True)
            findings.cases += tally.attempts
            findings.faults += tally.kills
            findings.crashes += len(tally.crashes)
            findings.hangs += len(tally.hangs)
            findings.wrong_acceptances += len(tally.broken)
            findings.lost_results += len(tally.lost)
            kinds.append(f"{name} {tally.kills}")
    findings.remarks = f"kills by work: {', '.join(kinds)}; ends equal to work nobody killed"
    findings.seconds = round(time.monotonic() - begun, 1)
    findings.write("kills")
    sys.exit(not findings.clean)


if __name__ == "__main__":
    main()
