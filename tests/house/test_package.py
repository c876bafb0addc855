"""What is published: built, checked, and used in an environment that has nothing but the core's own dependencies."""

import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import liespline

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# Run in the clean environment: what importing the core brings in beyond torch, and that it works.
USE = """
import sys
import torch
before = set(sys.modules)
import liespline
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
layer = liespline.Lift(1, 2, 5, liespline.uniform(liespline.SO2(), 4))
assert layer(torch.zeros(1, 1, 7, 7)).shape == (1, 2, 4, 3, 3)
"""


def run(*command: str | Path, where: Path = ROOT) -> str:
    done = subprocess.run([str(part) for part in command], cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stderr)
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel built from it: what the sdist lacks, the wheel cannot have."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out)
    return out


def needed_by(names: set[str]) -> set[str]:
    """The installed packages that these need, themselves included, without extras."""
    found, open_ = set(), set(names)
    while open_:
        name = canonicalize_name(open_.pop())
        found.add(name)
        for line in distribution(name).requires or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                open_ |= {canonicalize_name(requirement.name)} - found
    return found


@pytest.fixture(scope="module")
def clean(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and the core's dependencies, which are links to those installed."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    for name in needed_by({Requirement(line).name for line in PROJECT["dependencies"]}):
        package = distribution(name)
        tops = {Path(file).parts[0] for file in package.files or []} - {"..", "__pycache__"}
        for top in tops - {entry.name for entry in site.iterdir()}:
            (site / top).symlink_to(Path(str(package.locate_file(top))).resolve())
    (wheel,) = dist.glob("*.whl")
    run(sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", site, wheel)
    return folder / "bin" / "python"


def test_descriptions_are_fit_to_publish(dist: Path) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir())


def test_core_works_with_its_own_dependencies_alone(clean: Path, tmp_path: Path) -> None:
    brought = set(run(clean, "-I", "-c", USE, where=tmp_path).split())
    strangers = brought - set(sys.stdlib_module_names) - {"liespline", "roma", "numpy", "torch"}
    assert not {name for name in strangers if not name.startswith("_")}, strangers
    assert "liespline" in brought


def test_the_clean_environment_is_clean(clean: Path, tmp_path: Path) -> None:
    # Without this, the lab could be imported by accident in the test above.
    done = subprocess.run([clean, "-I", "-c", "import lightning"], cwd=tmp_path, capture_output=True, check=False)
    assert b"ModuleNotFoundError" in done.stderr


def test_sdist_can_be_tested(dist: Path, tmp_path: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split("\n")
    wanted = [name for name in kept if name and not name.startswith(".") and (ROOT / name).exists()]
    assert not [name for name in wanted if not (folder / name).exists()]
    run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/core/test_splines.py", where=folder)


def pins(file: str) -> dict[str, str]:
    lines = (ROOT / file).read_text().splitlines()
    found = (re.match(r"([\w.-]+)==([^ ]+)", line) for line in lines)
    return {canonicalize_name(match[1]): match[2] for match in found if match}


def test_lock_has_a_hash_for_every_pin() -> None:
    wanted = pins("constraints.txt")
    del wanted["torch"]  # its build depends on the machine
    assert pins("requirements.lock") == wanted
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_oldest_versions_tested_are_the_oldest_allowed() -> None:
    oldest = {}
    extras = PROJECT["optional-dependencies"]
    for line in PROJECT["dependencies"] + extras["lab"] + extras["studies"]:
        requirement = Requirement(line)
        (bound,) = requirement.specifier
        assert bound.operator == ">="
        oldest[canonicalize_name(requirement.name)] = Version(bound.version)
    tested = {name: Version(version) for name, version in pins("minimum.txt").items()}
    assert tested == oldest


def relative_links(page: str) -> list[str]:
    return [path for path in re.findall(r"\]\(([^)]+)\)", page) if not path.startswith(("https://", "#"))]


def test_an_index_shows_no_link_that_needs_the_repository(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        page = archive.read(name).decode().partition("\n\n")[2]
    assert "## " in page
    assert relative_links(page) == []
    assert relative_links((ROOT / "README.md").read_text(encoding="utf-8"))  # there were some to mend
    code = runpy.run_path(str(ROOT / "hatch_build.py"))["standalone"]
    text = "![a](docs/figures/a.png) [b](docs/b.md) [c](https://c.org)"
    assert code(text, None, "1.0") == " b [c](https://c.org)"
    links = relative_links(code(text, "https://git.org/x", "1.0"))
    assert links == []
    assert "![a](https://git.org/x/raw/v1.0/docs/figures/a.png)" in code(text, "https://git.org/x", "1.0")


def test_the_wheel_holds_the_package_alone(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition("/")[0] for name in archive.namelist()}
    assert names == {"liespline", f"liespline-{liespline.__version__}.dist-info"}
    assert (ROOT / "studies" / "__init__.py").is_file()


def test_there_is_one_version(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    version = wheel.name.split("-")[1]
    assert liespline.__version__ == version
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == version
