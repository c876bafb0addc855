"""A fault to plant: which function of which file, what stands there once, what to put in its place."""

import ast
import re
from typing import NamedTuple


class Fault(NamedTuple):
    """One change to one function, class or constant below src/liespline; what else its file holds may change."""

    place: str
    """The file and what is defined in it, such as `groups/so2.py::SO2.product` or `models/celeba.py::_STEP`."""
    old: str
    """What stands there exactly once, however its lines are broken."""
    new: str
    what: str
    test: str = ""
    """The test that should see it, such as `lab/test_learned::test_name`; tried before all others."""

    @property
    def file(self) -> str:
        """The file, below src/liespline."""
        return self.place.partition("::")[0]

    def planted(self, source: str) -> str:
        """The source of the file with the fault in it; ValueError where it has no place."""
        begin, end = span(source, self.place.partition("::")[2])
        words = re.findall(r"\w+|[^\w\s]", self.old)
        found = list(re.finditer(r"\s*".join(map(re.escape, words)), source[begin:end]))
        if len(found) != 1:
            raise ValueError(f"{self.what}: {self.old!r} stands {len(found)} times in {self.place}")
        changed = source[: begin + found[0].start()] + self.new + source[begin + found[0].end() :]
        try:
            same = ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source))
        except SyntaxError as error:
            raise ValueError(f"{self.what}: {self.new!r} is no Python in {self.place} ({error.msg})") from error
        if same:
            raise ValueError(f"{self.what}: {self.new!r} changes nothing in {self.place}")
        return changed


def span(source: str, name: str) -> tuple[int, int]:
    """Where a function, class or constant of this qualified name begins and ends, in characters."""
    node: ast.AST = ast.parse(source)
    for part in name.split("."):
        inside = [found for found in ast.walk(node) if found is not node and _name(found) == part]
        if not inside:
            raise ValueError(f"{name}: there is no {part}")
        node = inside[0]
    assert isinstance(node, ast.stmt)
    decorators = getattr(node, "decorator_list", [])
    lines = source.splitlines(keepends=True)
    first, last = min(one.lineno for one in (node, *decorators)), int(node.end_lineno or 0)
    return len("".join(lines[: first - 1])), len("".join(lines[:last]))


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return next((target.id for target in targets if isinstance(target, ast.Name)), None)
