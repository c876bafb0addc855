"""Draw random changes of the core from cosmic-ray's operators, and list with each the tests that run its line."""

import ast
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names

from mutations import ROOT, Copy

ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}
BITS = {"BitOr", "BitAnd", "BitXor"}
# What is the same by definition, and what needs arguments.
SAME = {"Is_Eq", "Eq_Is", "IsNot_NotEq", "NotEq_IsNot"}
LONG, MANY = 60.0, 400  # seconds and number of the tests that one change faces, where they are more


class RemoveStatement(Operator):
    """An assignment or a call whose value nobody takes becomes `pass`."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "simple_stmt" and node.children[0].type in ("expr_stmt", "atom_expr", "power"):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        return parso.parse(node.get_first_leaf().prefix + "pass\n")

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class SwapArguments(Operator):
    """The first two arguments of a call without names change places."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "arglist" and node.parent.type == "trailer" and len(self._unnamed(node)) > 1:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        first, second = self._unnamed(node)[:2]
        node.children[first], node.children[second] = node.children[second], node.children[first]
        return node

    def _unnamed(self, node: Any) -> list[int]:
        return [i for i, one in enumerate(node.children) if one.type not in ("operator", "argument")]

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class Mutant(NamedTuple):
    """One change: the file, the line, the operator and which of its changes in this file it is."""

    file: str
    line: int
    operator: str
    number: int


def operators() -> dict[str, Operator]:
    """By name, those that change what a program does and not only its kind of numbers."""
    chosen: dict[str, Operator] = {"RemoveStatement": RemoveStatement(), "SwapArguments": SwapArguments()}
    for name in operator_names():
        short = name.removeprefix("core/")
        kind, _, change = short.partition("_")
        pair = set(change.split("_"))
        if kind == "ReplaceBinaryOperator" and not (pair <= ARITHMETIC or pair <= BITS):
            continue
        if change not in SAME and not kind.startswith(("Variable", "RemoveDecorator")):
            chosen[short] = get_operator(name)()
    return chosen


def beside_the_code(source: str) -> set[int]:
    """Lines of annotations and signatures without defaults, which nothing reads when the program runs."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) and node.value is None:
            lines |= set(range(node.lineno, int(node.end_lineno or 0) + 1))
        if isinstance(node, ast.FunctionDef) and not (node.args.defaults or any(node.args.kw_defaults)):
            lines |= set(range(node.lineno, node.body[0].lineno))
    return lines


def places(folder: Path, lines: dict[str, dict[int, list[str]]]) -> tuple[list[list[Mutant]], int]:
    """The changes at every place that some test runs, and how many places none does."""
    found, unseen, known = [], 0, operators()
    for file in sorted(lines):
        source = (folder / "src" / "liespline" / file).read_text()
        here: dict[tuple[Any, Any], list[Mutant]] = defaultdict(list)
        nodes, skipped = list(ast_nodes(get_ast(source))), beside_the_code(source)
        for name, operator in known.items():
            positions = [position for node in nodes for position in operator.mutation_positions(node)]
            for number, (start, stop) in enumerate(positions):
                if start[0] not in skipped:
                    here[start, stop].append(Mutant(file, start[0], name, number))
        for (start, stop), changes in sorted(here.items()):
            seen = any(line in lines[file] for line in range(start[0], stop[0] + 1))
            found += [changes] if seen else []
            unseen += not seen
    return found, unseen


def covering(
    copy: Copy, folder: Path, jobs: int, longest: float | None
) -> tuple[dict[str, float], dict[str, dict[int, list[str]]]]:
    """How long tests take, and which run which lines; those of a file whose .json is in the folder are known."""
    (folder / "core").mkdir(parents=True, exist_ok=True)
    environ = os.environ | {"PYTHONPATH": f"{copy.path}{os.pathsep}{Path(__file__).parent}", "OMP_NUM_THREADS": "1"}

    def look(name: str) -> None:
        into = folder / f"{name}.json"
        if not into.exists():
            command = [sys.executable, "-m", "pytest", "-q", "-p", "covering", "-p", "no:cacheprovider"]
            command += ["--covering", str(into), f"tests/{name}.py"]
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(command, cwd=copy.folder, env=environ, stdout=subprocess.DEVNULL, timeout=longest)

    names = copy.everything()[::-1]  # those drawn at random take longest
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(look, names))
    seconds: dict[str, float] = {}
    lines: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in names:
        into = folder / f"{name}.json"
        if not into.exists():
            print(f"{name} did not end, and is left out", flush=True)
            continue
        seen = json.loads(into.read_text())
        seconds |= seen["seconds"]
        for file, by_test in seen["lines"].items():
            for test, numbers in by_test.items():
                for number in numbers:
                    lines[file][number] += [test] if test else []
    return seconds, lines


def tests_of(mutant: Mutant, seconds: dict[str, float], lines: dict[str, dict[int, list[str]]]) -> list[str]:
    """The tests that run its line, or anything of its file if importing runs it; first the fastest of each file."""
    here = lines[mutant.file]
    tests = set(here.get(mutant.line, ())) or {test for tests in here.values() for test in tests}
    files: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=seconds.__getitem__):
        if "\\" not in test:  # pytest does not find these again by their names
            files[test.partition("::")[0]].append(test)
    ranked = sorted((rank, seconds[test], test) for some in files.values() for rank, test in enumerate(some))
    chosen, spent = [], 0.0
    for _, more, test in ranked:
        chosen.append(test)
        spent += more
        if spent > LONG or len(chosen) == MANY:
            break
    return chosen


def draw(folder: Path, number: int, seed: int, jobs: int, longest: float | None) -> dict[str, Any]:
    """So many different mutants that are Python, with the changed source and the tests that they face."""
    with tempfile.TemporaryDirectory() as place:
        copy = Copy(Path(place))
        seen = covering(copy, folder / f"covering-{_git('HEAD:src')}", jobs, longest)
        return {"commit": _git("HEAD"), "seed": seed} | _draw(copy, *seen, random.Random(seed), number)


def _draw(
    copy: Copy,
    seconds: dict[str, float],
    lines: dict[str, dict[int, list[str]]],
    generator: random.Random,
    number: int,
) -> dict[str, Any]:
    chances, unseen = places(copy.folder, lines)
    print(f"{len(chances):,} places that tests run, {unseen:,} that none does", flush=True)
    found, mutants = set[Mutant](), []
    while len(found) < number:
        mutant = generator.choice(generator.choice(chances))
        source = copy.source(mutant.file).read_text()
        changed = mutate_code(source, operators()[mutant.operator], mutant.number)
        if mutant in found or changed is None or not _another(source, changed):
            continue
        found.add(mutant)
        before, after = _lines(source, changed)
        said = {"before": before, "after": after, "changed": changed}
        mutants.append(mutant._asdict() | said | {"tests": tests_of(mutant, seconds, lines)})
    used = {test for mutant in mutants for test in mutant["tests"]}
    return {
        "places": len(chances), "unseen": unseen,
        "seconds": {test: seconds[test] for test in sorted(used)}, "mutants": mutants,
    }  # fmt: skip


def _git(what: str) -> str:
    """Its short name; empty where there is no git."""
    command = ["git", "rev-parse", "--short", what]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def _another(source: str, changed: str) -> bool:
    try:
        return ast.dump(ast.parse(source)) != ast.dump(ast.parse(changed))
    except SyntaxError:
        return False


def _lines(source: str, changed: str) -> tuple[str, str]:
    """The first line that differs, before and after."""
    pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
    return next(((old.strip(), new.strip()) for old, new in pairs if old != new), ("", ""))
