"""Plant faults in a copy of the core, the models and the lab, one at a time, and see whether the tests catch them.

    python reliability/mutations.py --jobs 1
    python reliability/mutations.py --only "SO(3)"

The tests nearest to a fault come first; what they let pass faces all tests of the core.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from queue import SimpleQueue

import planted_data
import planted_lab
import planted_recipe
import planted_records
from planted import EXPLAINED, Fault
from planted import FAULTS as IN_THE_CORE
from record import Findings

ROOT = Path(__file__).parent.parent
PARTS = (planted_lab, planted_data, planted_recipe, planted_records)
FAULTS = [*IN_THE_CORE, *(fault for part in PARTS for fault in part.FAULTS)]
ENOUGH = 0.95
LONGEST = 900  # seconds; tests that do not end would not be let pass either
NEAREST = {  # by how the file's name begins, first match first
    "groups/so3": ["test_rotations", "test_groups", "test_errors_foundation"],
    "groups/sphere": ["test_rotations", "test_groups", "test_singular"],
    "groups/semidirect": ["test_semidirect"],
    "groups/linear": ["test_matrix_groups", "test_products"],
    "groups/matrixgroup": ["test_matrix_groups", "test_check_group"],
    "groups/product": ["test_products", "test_check_group"],
    "groups/o": ["test_products", "test_check_group"],
    "groups/gl2": ["test_products", "test_check_group"],
    "groups/": ["test_groups", "test_errors_foundation", "test_check_group", "test_products"],
    "grids/": ["test_grids", "test_products"],
    "splines": ["test_splines", "test_fit", "test_products"],
    "functional/regular": ["test_semidirect"],
    "functional/": ["test_planted_faults", "test_layers", "test_singular"],
    "nn/initial": ["test_initial"],
    "nn/pool": ["test_norm_pool"],
    "nn/norm": ["test_norm_pool"],
    "nn/centre": ["test_classifier"],
    "nn/resample": ["test_resample", "test_norm_pool", "test_backbones"],
    "nn/base": ["test_transforms", "test_layers", "test_compatibility", "test_portability"],
    "nn/": ["test_errors_layers", "test_layers", "test_compatibility"],
    "paths/fourier": ["test_paths_fourier"],
    "paths/cudnn": ["test_paths_cuda"],
    "paths/decide": ["test_decide", "test_paths", "test_compatibility"],
    "paths/": ["test_paths_cuda", "test_decide", "test_paths", "test_layers", "test_paths_triton"],
    "export": ["test_export", "test_export_networks"],
    "models/celeba": ["test_models_parts", "test_models"],
    "models/pcam": ["test_models_parts", "test_models"],
    "models/classifier": ["test_models_parts", "test_models", "test_classifier"],
    "models/kit": ["test_models_parts", "test_backbones"],
    "models/kernels": ["test_finer_grids", "test_models", "test_classifier"],
    "models/": ["test_models", "test_classifier"],
    "lab/training/optimisers": ["lab/test_optimise"],
    "lab/training/learner": ["lab/test_learned", "lab/test_devices"],
    "lab/training/": ["lab/test_learned", "lab/test_statistics"],
    "lab/runs/checkpoint": ["lab/test_learned"],
    "lab/runs/data": ["lab/test_record", "lab/test_data_check"],
    "lab/runs/line": ["lab/test_line"],
    "lab/runs/": ["lab/test_evaluate"],
    "lab/tasks/": ["lab/test_measures", "lab/test_statistics", "lab/test_evaluate"],
    "lab/evaluation/scores": ["lab/test_measures"],
    "lab/evaluation/moves": ["lab/test_moves", "lab/test_measures", "lab/test_evaluate"],
    "lab/evaluation/statistics": ["lab/test_statistics"],
    "lab/evaluation/predict": ["lab/test_predict"],
    "lab/evaluation/": ["lab/test_record", "lab/test_learned"],
    "lab/report/": ["lab/test_measures"],
    "../../studies/": ["studies/test_tables", "studies/test_claims", "studies/test_intervals"],
    "lab/moving": ["lab/test_measures", "lab/test_evaluate"],
    "lab/data/augment": ["lab/test_measures", "lab/test_data_landmarks", "lab/test_devices"],
    "lab/data/split": ["lab/test_measures", "lab/test_record", "lab/test_data_images"],
    "lab/data/pcam": ["lab/test_predict"],
    "lab/data/record": ["lab/test_record"],
    "lab/data/": ["lab/test_data_check"],
    "converting": ["test_converting_own", "test_converting"],
    "testing": ["test_check_group", "test_equivariance", "test_equivariance_measure"],
}
# What a fault in the lab faces when the nearest tests let it pass; all tests of the lab would take an hour.
LAB = ["lab/test_learned", "lab/test_measures", "lab/test_statistics", "lab/test_record", "lab/test_predict"]
LAB += ["lab/test_data_check", "lab/test_evaluate", "lab/test_small_folders", "lab/test_paper_tasks"]
APART = (
    "test_docs_site",
    "test_package",
    "test_figures",
    "test_explore",
    "test_snippets",
    "test_properties",
)  # docs and packaging; and slow to fail


class Copy:
    """The last commit in a folder of its own, where faults are planted, and a process that runs its tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sound: set[tuple[str, ...]] = set()
        paths = ["src", "studies", "tests", "pyproject.toml"]
        archive = subprocess.run(["git", "archive", "HEAD", *paths], cwd=ROOT, capture_output=True, check=True)
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        changes = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, Path(__file__).with_name("worker.py"), str(LONGEST)]
        self.worker = subprocess.Popen(
            command, cwd=folder, env=os.environ | changes, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def passes(self, names: list[str]) -> bool:
        """Say whether the tests of these names pass."""
        assert self.worker.stdin is not None
        assert self.worker.stdout is not None
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "unshrunk", "--hypothesis-profile=unshrunk"]
        print(*options, *(_path(name) for name in names), file=self.worker.stdin, flush=True)
        status = int(self.worker.stdout.readline())
        # 1 is a test that fails, 2 a module that does not import, below 0 a crash or the end of its time.
        if status > 2:
            raise RuntimeError(f"pytest ended with {status} on {names}")
        return status == 0

    def source(self, file: str) -> Path:
        """Where a file of the library lies in this copy."""
        return self.folder / "src" / "liespline" / file

    def everything(self) -> list[str]:
        """All tests of the core, those drawn at random last: they find what they find, but take longer."""
        names = sorted(path.stem for path in (self.folder / "tests").glob("test_*.py"))
        drawn = [name for name in names if name.startswith("test_properties")]
        return [*(name for name in names if not name.startswith(APART)), *drawn]

    def caught_by(self, fault: Fault) -> str | None:
        """Plant the fault, and return which tests fail: the nearest, others, or none."""
        if fault.test and self._fails([fault.test], fault):
            return "its own test"
        nearest = next(names for start, names in NEAREST.items() if fault.file.startswith(start))
        if self._fails(nearest, fault):
            return "nearest tests"
        others = LAB if fault.file.startswith("lab/") else self.everything()
        return "other tests" if self._fails([name for name in others if name not in nearest], fault) else None

    def _fails(self, names: list[str], fault: Fault) -> bool:
        """Say whether tests that pass without the fault fail with it."""
        if tuple(names) not in self.sound:
            if not self.passes(names):
                raise RuntimeError(f"without any fault these tests fail, so they say nothing about faults: {names}")
            self.sound.add(tuple(names))
        path = self.source(fault.file)
        right = path.read_text()
        path.write_text(right.replace(fault.old, fault.new))
        try:
            return not self.passes(names)
        finally:
            path.write_text(right)


def _path(name: str) -> str:
    """Where the tests of a module, or one of them, are."""
    module, _, test = name.partition("::")
    return f"tests/{module}.py" + (f"::{test}" if test else "")


def stale(copy: Copy) -> list[str]:
    """Faults whose text does not stand exactly once where it should, since the code has changed."""
    texts = {file: copy.source(file).read_text() for file in {fault.file for fault in FAULTS}}
    return [
        f"{f.file}: {f.old!r} stands there {texts[f.file].count(f.old)} times"
        for f in FAULTS
        if texts[f.file].count(f.old) != 1
    ]


def main() -> None:
    """Try all faults and write down how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="faults whose file or description contains this; nothing is written")
    arguments = parser.parse_args()
    chosen = [fault for fault in FAULTS if arguments.only in fault.file or arguments.only in fault.what]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copies = [Copy(Path(folder, str(job))) for job in range(arguments.jobs)]
        if problems := stale(copies[0]):
            sys.exit("faults to be written anew:\n  " + "\n  ".join(problems))
        free: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            free.put(copy)

        def attempt(fault: Fault) -> bool:
            copy, began = free.get(), time.monotonic()
            try:
                by = copy.caught_by(fault)
            finally:  # or the others would wait for it for ever
                free.put(copy)
            outcome = f"caught by {by}" if by else "SURVIVED"
            print(f"{outcome:26} {time.monotonic() - began:4.0f} s  {fault.file}: {fault.what}", flush=True)
            return by is not None

        with ThreadPoolExecutor(arguments.jobs) as pool:
            caught = list(pool.map(attempt, chosen))
    survivors = [fault for fault, found in zip(chosen, caught, strict=True) if not found]
    print(f"{sum(caught)} of {len(chosen)} faults caught")
    if not arguments.only:
        listed = "; ".join(f"{f.file}: {f.what} ({EXPLAINED.get(f.what, 'a test is missing')})" for f in survivors)
        Findings(
            "faults planted in the core, the models and the lab, one at a time",
            "make mutations",
            cases=len(chosen),
            faults=len(chosen),
            wrong_acceptances=len(survivors),
            remarks=f"{sum(caught) / len(chosen):.0%} caught" + (f"; survivors: {listed}" if listed else ""),
            seconds=round(time.monotonic() - started, 1),
        ).write("mutations")
    sys.exit(sum(caught) < ENOUGH * len(chosen))


if __name__ == "__main__":
    main()
