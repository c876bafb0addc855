"""The property tests of the core for as long as you like, each round with a seed of its own.

    python reliability/fuzz.py --minutes 30 --seed 1

A failure prints its seed; `--minutes 0 --seed N` repeats that round alone.
"""

import argparse
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

from table import Findings

ROOT = Path(__file__).parent.parent
SUITES = {
    "layers against naive loops": ["tests/core/test_properties.py"],
    "symmetries and export": ["tests/core/test_properties_networks.py"],
    "paths against the sum over taps": ["tests/core/test_paths.py", "-k", "definition"],
    "convolutions by Fourier": ["tests/core/test_paths_fourier.py", "-k", "is_the_convolution"],
    "Triton kernels, interpreted": ["tests/core/interpreted_triton.py", "-k", "definition"],
}
LONGEST = 1800  # seconds after which a round counts as hanging


def examine(suite: list[str], seed: int) -> tuple[int, str, str]:
    """Run a suite once: how many examples it tried, how it ended, and what it printed."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if "interpreted" in suite[0]:
        environment |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    options = ["-p", "no:cacheprovider", "--hypothesis-profile=default", f"--hypothesis-seed={seed}"]
    command = [sys.executable, "-m", "pytest", *suite, *options, "--hypothesis-show-statistics"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired as late:
        return 0, "hang", str(late)
    # Tests found failing are wrong results let through; any other end is a crash of the run itself.
    ended = {0: "clean", 1: "failure"}.get(done.returncode, "crash")
    tried = sum(int(n) for n in re.findall(r"(\d+) passing", done.stdout))
    return tried, ended, done.stdout + done.stderr


def main() -> None:
    """Go round until the time is over; at least once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=None, help="of the first round; by default a new one every time")
    arguments = parser.parse_args()
    first = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    found = Findings("random layers, networks and paths of the core", "make fuzz")
    started, rounds = time.monotonic(), 0
    while rounds == 0 or time.monotonic() - started < 60 * arguments.minutes:
        seed = first + rounds
        for name, suite in SUITES.items():
            tried, ended, output = examine(suite, seed)
            found.cases += tried
            found.crashes += ended == "crash"
            found.hangs += ended == "hang"
            found.wrong_acceptances += ended == "failure"
            print(f"seed {seed}, {name}: {tried} examples, {ended}", flush=True)
            if ended != "clean":
                print(output, f"\nrepeat with: python reliability/fuzz.py --minutes 0 --seed {seed}", flush=True)
        rounds += 1
    found.seconds = round(time.monotonic() - started, 1)
    found.remarks = f"{rounds} rounds, seeds {first} to {first + rounds - 1}"
    found.write("fuzz-core")
    sys.exit(not found.clean)


if __name__ == "__main__":
    main()
