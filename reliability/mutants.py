"""Change the core at random places, one at a time, and see whether the tests that run the changed line notice.

    python reliability/mutants.py
    python reliability/mutants.py draw --number 300 --seed 35
    python reliability/mutants.py run --jobs 10 --minutes 8
    python reliability/mutants.py write

Changes are those of cosmic-ray's operators, and two of our own: a statement removed, two arguments swapped. A place is
drawn evenly from all that some test runs, then one of its changes. What is drawn is a file, which `run` takes where
neither git nor cosmic-ray is. It tries first which tests pass there without any change, then the fastest tests of each
change, then more tests of those that live; a run that was stopped goes on.
"""

import argparse
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from explained import EXPLAINED, SEEN
from mutations import ROOT
from table import Findings
from trying import here, read, run


def write(drawn: dict[str, Any], outcomes: Path) -> None:
    """How many live, with an interval, and why each is no change, or which test sees it now, or that none does."""
    machine, _, known = read(outcomes)
    survivors = []
    for number, outcome in sorted(known.items()):
        if not outcome["killed"]:
            mutant = drawn["mutants"][number]
            change = f"{mutant['file']}: {mutant['after']}"
            seen = f"now seen by {SEEN[change]}" if change in SEEN else "a test is missing"
            why = EXPLAINED.get(change, seen)
            place = f"{mutant['file']}:{mutant['line']}"
            survivors.append({"place": place, "before": mutant["before"], "after": mutant["after"], "why": why})
    from scipy.stats import binomtest  # where mutants are only run, SciPy need not be

    missing = sum(one["why"] == "a test is missing" for one in survivors)
    seen_now = sum(one["why"].startswith("now seen by") for one in survivors)
    interval = binomtest(len(survivors), len(known)).proportion_ci(method="wilson")
    places, unseen = drawn["places"], drawn["unseen"]
    Findings(
        "random changes of the core, one at a time",
        f"python reliability/mutants.py --number {len(drawn['mutants'])} --seed {drawn['seed']}",
        cases=len(known),
        faults=len(known),
        wrong_acceptances=missing,
        remarks=f"{len(known)} of {len(drawn['mutants'])} tried; "
        f"{len(survivors)} lived ({100 * interval.low:.1f} to {100 * interval.high:.1f} %), "
        f"{len(survivors) - missing - seen_now} equivalent, {seen_now} seen by a test since; "
        f"no test runs {unseen:,} of {unseen + places:,} places",
        seconds=max(outcome["at"] for outcome in known.values()),
    ).write(
        "mutants",
        commit=drawn["commit"] or None,
        machine=machine,
        survivors=survivors,
        operators=Counter(mutant["operator"].partition("_")[0] for mutant in drawn["mutants"]),
    )


def main() -> None:
    """Draw, try and write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", default=["draw", "run", "write"], help="draw, run, write; or all of them")
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=35)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="of each step; a file of tests gets half")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--outcomes", type=Path, help="outcomes.jsonl in the folder")
    arguments = parser.parse_args()
    arguments.folder = arguments.folder.resolve()  # tests run elsewhere
    file, outcomes = arguments.folder / "drawn.json", arguments.outcomes or arguments.folder / "outcomes.jsonl"
    if "draw" in arguments.steps:
        from drawing import draw  # and so need cosmic-ray not be

        arguments.folder.mkdir(parents=True, exist_ok=True)
        outcomes.unlink(missing_ok=True)
        longest = 30 * arguments.minutes if arguments.minutes < math.inf else None
        drawn = draw(arguments.folder, arguments.number, arguments.seed, arguments.jobs, longest)
        file.write_text(json.dumps(drawn | {"machine": here()}))
    drawn = json.loads(file.read_text())
    if "run" in arguments.steps:
        run(drawn, outcomes, arguments.jobs, arguments.minutes)
    if "write" in arguments.steps:
        write(drawn, outcomes)


if __name__ == "__main__":
    main()
