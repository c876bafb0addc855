"""The page to play with: its formulas are the library's, and in a real browser it follows sliders, keys and touch."""

import json
import math
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
import torch

import liespline as ls
from explore import page

ROOT = Path(__file__).parents[2]
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"),
)
KERNEL = {
    "centres": [[0.3, -1.0], [1.2, 0.4], [-1.1, 0.9]],
    "coefficients": [1.0, -0.7, 0.4],
    "scale": 0.9,
    "degree": 3,
}
SPHERE = [[0.36, 0.48, 0.8], [0.0, 0.6, -0.8], [0.0, 0.0, 1.0], [-0.6, 0.0, 0.8]]

VALUES = """
const kernel = KERNEL, points = SPHERE;
const values = {
  bspline: [0, 1, 2, 3, 4, 5].map((n) => Array.from({ length: 81 }, (_, i) => Spline.bspline(-4 + i / 10 + 0.013, n))),
  so2: [1, 2, 5].map((n) => Array.from({ length: 40 }, (_, i) => Array.from({ length: n }, (_, k) =>
    Spline.onGroup.so2(-3 + 0.15 * i, Spline.wrap(2 * Math.PI * k / n), 2 * Math.PI / n, 3)))),
  scale: Array.from({ length: 20 }, (_, i) => [1, 1.5, 3].map((c) => Spline.onGroup.scale(0.4 + 0.2 * i, c, 0.35, 2))),
  sphere: points.map((n) => points.map((c) => Spline.onGroup.sphere(n, c, 0.9, 3))),
  turned: [0, 0.5, 2.9].map((h) => Spline.sampled("so2", kernel, h, 7)),
  zoomed: [1, 1.5, 2.3].map((h) => Spline.sampled("scale", kernel, h, 5)),
};
"""

ACTIONS = """
const painted = (id) => { const c = document.getElementById(id), copy = document.createElement("canvas");
  [copy.width, copy.height] = [c.width, c.height];
  const pen = copy.getContext("2d", { willReadFrequently: true }); pen.drawImage(c, 0, 0);
  const d = pen.getImageData(0, 0, c.width, c.height).data; let n = 0;
  for (let i = 0; i < d.length; i += 4) if (d[i + 3] && (d[i] < 230 || d[i + 1] < 230)) n++; return n; };
const ids = ["kernel", "sampled", "image", "partition", "response"];
const seen = {};
{
  for (const group of ["so2", "scale", "sphere"]) {
    const radio = document.querySelector(`input[value=${group}]`);
    radio.checked = true; radio.dispatchEvent(new Event("input", { bubbles: true })); explore.draw();
    seen[group] = ids.map(painted);
  }
  document.querySelector("input[value=so2]").click(); explore.draw();
  const turn = document.getElementById("rotated");
  seen.still = explore.response(explore.state()).map((p) => p[1]);
  turn.value = 90; turn.dispatchEvent(new Event("input", { bubbles: true })); explore.draw();
  seen.turned = explore.response(explore.state()).map((p) => p[1]);
  const canvas = document.getElementById("kernel"), before = explore.state().kernel.centres;
  canvas.focus();
  for (const key of ["n", "ArrowRight"]) canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  explore.draw();
  seen.keys = [before, explore.state().kernel.centres, document.getElementById("kind").value];
  const box = canvas.getBoundingClientRect();
  canvas.setPointerCapture = () => {};
  const pointer = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerType: "touch",
    pointerId: 1, clientX: box.left + x * box.width, clientY: box.top + y * box.height }));
  pointer("pointerdown", 0.5, 0.5); pointer("pointermove", 0.6, 0.5); pointer("pointerup", 0.6, 0.5); explore.draw();
  seen.touch = explore.state().kernel.centres;
  seen.steps = {};
  for (const group of ["so2", "scale", "sphere"]) {
    document.querySelector(`input[value=${group}]`).click();
    seen.steps[group] = ["ArrowRight", "ArrowDown"].map((key) => {
      const before = explore.places()[4];
      for (let i = 0; i < 3; i++) canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      const after = explore.places()[4];
      return [after[0] - before[0], after[1] - before[1]];
    });
  }
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  found.textContent = JSON.stringify({ values, seen });
}
"""


def in_browser(browser: str, folder: Path, *flags: str, fault: tuple[str, str] = ("", "")) -> dict:
    script = VALUES.replace("KERNEL", json.dumps(KERNEL)).replace("SPHERE", json.dumps(SPHERE)) + ACTIONS
    text = page().replace(*fault) if fault[0] else page()
    text = text.replace("</body>", f"<pre id=found></pre><script>{script}</script></body>")
    (folder / "page.html").write_text(text, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    address = (folder / "page.html").as_uri()
    command = [browser, *FLAGS, *flags, profile, "--virtual-time-budget=20000", "--dump-dom", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in done.stderr, done.stderr
    found = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:]
    return json.loads(unescape(found[1]))


@pytest.fixture(scope="module")
def found(browser: str, tmp_path_factory: pytest.TempPathFactory) -> dict:
    return in_browser(browser, tmp_path_factory.mktemp("page"), "--window-size=1100,1000")


def expected() -> dict[str, list]:
    """The same numbers, by the library."""
    double = torch.float64
    x = torch.arange(81, dtype=double) / 10 - 4 + 0.013
    angles = (-3 + 0.15 * torch.arange(40, dtype=double)).unsqueeze(-1)
    factors = (0.4 + 0.2 * torch.arange(20, dtype=double)).unsqueeze(-1)
    grid = ls.Grid(ls.Scale(2), torch.tensor([[1.0], [1.5], [3.0]], dtype=double), torch.ones(3), 0.35)
    points = torch.tensor(SPHERE, dtype=double)
    return {
        "bspline": [ls.bspline(x, n).tolist() for n in range(6)],
        "so2": [ls.SplineBasis(ls.uniform(ls.SO2(), n))(angles).tolist() for n in (1, 2, 5)],
        "scale": ls.SplineBasis(grid, degree=2)(factors).tolist(),
        "sphere": ls.SplineBasis(ls.Grid(ls.Sphere(), points, torch.ones(4), 0.9))(points).tolist(),
        "turned": [sampled(ls.SO2(), h, 7) for h in (0.0, 0.5, 2.9)],
        "zoomed": [sampled(ls.Scale(2), h, 5) for h in (1.0, 1.5, 2.3)],
    }


def sampled(group: ls.Group, h: float, window: int) -> list:
    """What a lifting layer with this one element correlates with."""
    centres = torch.tensor(KERNEL["centres"], dtype=torch.float64)
    basis = ls.SplineBasis(ls.Grid(ls.Translation(2), centres, torch.ones(3), 1.0), scale=0.9, degree=3)
    grid = ls.Grid(group, torch.tensor([[h]], dtype=torch.float64), torch.ones(1), 1.0)
    layer = ls.Lift(1, 1, window, grid, x_basis=basis, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(KERNEL["coefficients"]))
        return layer.kernel()[0, 0, 0].tolist()


def gap(found: list, wanted: list) -> float:
    left, right = torch.tensor(found, dtype=torch.float64), torch.tensor(wanted, dtype=torch.float64)
    return math.inf if left.shape != right.shape else float((left - right).abs().max())


@pytest.mark.parametrize("name", ["bspline", "so2", "scale", "sphere"])
def test_formulas_are_the_library_s(found: dict, name: str) -> None:
    wanted = expected()[name]
    assert max(gap(a, b) for a, b in zip(found["values"][name], wanted, strict=True)) < 1e-12


@pytest.mark.parametrize("name", ["turned", "zoomed"])
def test_sampled_windows_are_the_layer_s(found: dict, name: str) -> None:
    for mine, layers in zip(found["values"][name], expected()[name], strict=True):
        assert gap(mine, layers) < 1e-6  # coefficients went through float32


def test_every_group_paints_every_panel(found: dict) -> None:
    for group in ("so2", "scale", "sphere"):
        assert min(found["seen"][group]) > 300


def test_the_response_turns_with_the_image(found: dict) -> None:
    still, turned = (torch.tensor(found["seen"][name]) for name in ("still", "turned"))
    assert len(still) == 73  # every 5°, both ends
    assert (turned[18:] - still[:-18]).abs().max() < 0.02 * still.abs().max()
    assert (turned - still).abs().max() > 0.2 * still.abs().max()


def test_keys_and_touch_move_centres(found: dict) -> None:
    before, after, kind = found["seen"]["keys"]
    moved = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if gap(a, b) > 1e-9]
    assert kind == "deformable"
    assert moved == [1]
    angle = math.radians(30)  # right on the screen, brought back by h⁻¹
    step = [b - a for a, b in zip(before[1], after[1], strict=True)]
    assert gap(step, [0.15 * math.sin(angle), 0.15 * math.cos(angle)]) < 1e-9
    touched = [i for i, (a, b) in enumerate(zip(after, found["seen"]["touch"], strict=True)) if gap(a, b) > 1e-9]
    assert touched == [4]


@pytest.mark.parametrize("group", ["so2", "scale", "sphere"])
def test_centres_go_where_the_keys_point(found: dict, group: str) -> None:
    (right, aside), (across, down) = found["seen"]["steps"][group]
    assert right > 0.02
    assert down > 0.02
    assert abs(aside) < 0.4 * right  # the sphere is curved, the plane is not
    assert abs(across) < 0.4 * down


def test_a_wrong_formula_is_noticed(browser: str, tmp_path: Path) -> None:
    wrong = in_browser(browser, tmp_path, fault=("(y + reach) * values[k]", "(y + reach) * 1.001 * values[k]"))
    assert gap(wrong["values"]["bspline"][3], expected()["bspline"][3]) > 1e-4


def test_a_phone_shows_it_without_scrolling_sideways(browser: str, tmp_path: Path) -> None:
    assert in_browser(browser, tmp_path, "--window-size=500,900")["seen"]["overflow"] <= 0


def test_the_page_is_one_file_that_needs_no_network(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "docs" / "explore.py", tmp_path / "page.html"], check=True)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text == page()
    assert not re.search(r"https?:|//cdn|@import|url\(|src=", text)
