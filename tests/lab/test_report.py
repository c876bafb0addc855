"""The report: complete, escaped, and without errors in a real browser, on a phone too."""

import base64
import functools
import http.server
import io
import json
import re
import subprocess
import threading
from itertools import pairwise

import numpy as np
import pytest
import torch
from markupsafe import Markup
from PIL import Image

from lab.conftest import HOSTILE
from liespline.lab.data import Split
from liespline.lab.data.samples import IGNORE
from liespline.lab.report.drawings import line_chart, nice_ticks
from liespline.lab.report.overlays import errors
from liespline.lab.report.page import against_moves, confusion_section
from liespline.lab.report.views import landmark_section, mistakes_section
from liespline.lab.tasks.images import load as load_images

SECTIONS = ("curves", "transformed", "confusion", "mistakes", "kernels", "turning", "speed", "settings")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"),
)

HARNESS = """<!doctype html><iframe id=f src="/report.html" style="width:{width}px;height:700px;border:0"></iframe>
<pre id=found></pre><script>
f.onload = () => {{
  const d = f.contentDocument, w = d.documentElement;
  const shown = e => e.getBoundingClientRect().width > 0 && e.getBoundingClientRect().height > 0;
  found.textContent = JSON.stringify({{
    title: d.title, overflow: w.scrollWidth - w.clientWidth,
    sections: [...d.querySelectorAll("section")].filter(shown).map(s => s.id),
    lines: [...d.querySelectorAll("path.line")].filter(p => p.getBoundingClientRect().width > 50).length,
    cut: [...d.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth + 1).length,
    pictures: [...d.images].map(i => i.naturalWidth), scripts: d.scripts.length,
    smallest: Math.min(...[...d.querySelectorAll("svg text")].map(t => t.getBoundingClientRect().height)),
    classes: [...d.querySelectorAll(".confusion th[scope=row]")].map(t => t.textContent)
  }});
}};
</script>"""


def look(browser, run, tmp_path, width):
    """Load the page in a frame of that width and measure it from outside: the page itself allows no scripts."""
    (tmp_path / "report.html").write_bytes(run.report_file.read_bytes())
    (tmp_path / "harness.html").write_text(HARNESS.format(width=width))
    handler = functools.partial(QuietHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/harness.html"
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        command = [browser, *FLAGS, profile, "--virtual-time-budget=10000", "--dump-dom", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        server.shutdown()
    assert "CONSOLE" not in done.stderr, done.stderr
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(Markup(found[1]).unescape())


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.mark.parametrize("width", [1100, 360])
def test_page_in_a_browser(browser, tiny_run, tmp_path, width):
    page = look(browser, tiny_run, tmp_path, width)
    assert page["title"].startswith("images")
    assert tuple(page["sections"]) == SECTIONS
    assert page["overflow"] <= 0
    assert page["cut"] == 0  # nothing has to be scrolled sideways
    assert page["lines"] >= 4
    assert len(page["pictures"]) >= 20
    assert min(page["pictures"]) > 0
    assert page["scripts"] == 0
    assert page["smallest"] > 9  # legible on a phone
    assert "<img src=x onerror=alert(1)>" in page["classes"]


def test_only_whole_circles_are_closed():
    around = {"axis": "angle", "labels": ["0°", "120°", "240°"], "accuracy": [0.9, 0.5, 0.4], "images": 9}
    little = around | {"labels": ["0°", "-20°", "20°"], "accuracy": [0.9, 0.1, 0.8]}
    ends = {name: str(against_moves({"net": moves}).body) for name, moves in (("around", around), ("little", little))}
    assert "angle 360: 90.0 %" in ends["around"]
    assert "360" not in ends["little"]
    assert "angle -20: 10.0 %" in ends["little"]


def test_page_needs_nothing_from_outside(tiny_run):
    page = tiny_run.report_file.read_text()
    links = re.findall(r'<[a-z][^<>]*?\s(?:src|href|srcset|data|action)="(.{5})', page)
    assert len(links) > 20
    assert set(links) == {"data:"}
    assert "@import" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_line_chart_puts_points_where_they_belong():
    chart = line_chart({"a": [(0, 0.0), (10, 1.0)]}, x_label="x", y_label="y", y_range=(0, 1))
    dots = [tuple(map(float, d)) for d in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', chart)]
    (x0, y0), (x1, y1) = dots
    assert x1 - x0 == pytest.approx(440 - 52 - 14)
    assert y0 - y1 == pytest.approx(270 - 14 - 44)
    assert line_chart({"a": []}, x_label="x", y_label="y").startswith("<p")
    assert "nan" not in line_chart({"a": [(0, float("nan")), (1, 2.0)]}, x_label="x", y_label="y")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.013, 0.97), (-3, 250), (5, 5), (0, 0), (1e-9, 2e-9)])
def test_ticks_cover_the_range_in_equal_steps(low, high):
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 2 <= len(ticks) <= 8
    steps = {round((b - a) / (ticks[1] - ticks[0]), 6) for a, b in pairwise(ticks)}
    assert steps == {1.0}


def test_every_cell_is_shown_with_the_share_of_each_class_that_was_found():
    page = str(confusion_section([[3, 1, 0], [0, 2, 2], [0, 0, 0]], ["a", "b", "c"], "9 images").body)
    cells = re.findall(r"<td style=[^>]*>(.*?)</td>", page)
    assert cells == ["3", "1", "0", "0", "2", "2", "0", "0", "0"]
    assert re.findall(r'<th class="found"[^>]*>(.*?)</th>', page) == ["75 %", "50 %", "–"]


def test_mistakes_are_shown_with_their_pictures():
    images = np.array([[[0, 0], [0, 0]], [[255, 255], [255, 255]]], np.uint8)
    split = Split(images, np.array([0, 1]), ("dark", HOSTILE))
    page = str(mistakes_section(split.classes, split, [[1, 0, 0.925]]).body)
    assert "&lt;img src=x onerror=alert(1)&gt; taken for dark, 92 %" in page
    (code,) = re.findall(r"base64,([^\"]*)", page)
    assert np.asarray(Image.open(io.BytesIO(base64.b64decode(code)))).min() == 255


def test_missed_pixels_are_orange_and_invented_ones_blue():
    white, orange, blue = [1.0, 1.0, 1.0], [0.84, 0.37, 0.0], [0.0, 0.45, 0.70]
    found = errors(torch.tensor([[0, 0], [1, IGNORE]]), torch.tensor([[0, 1], [0, 1]]))
    assert found.tolist() == [[white, blue], [orange, white]]


def test_landmarks_are_marked_in_their_columns_and_rows():
    heat = torch.zeros(1, 1, 8, 16)
    heat[0, 0, 3, 11] = 1
    page = str(landmark_section(lambda images: heat, torch.zeros(1, 1, 8, 16), torch.tensor([[[5.0, 2.0]]])).body)
    assert re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', page) == [("2.5", "5.5")]
    assert re.findall(r'<path d="M([\d.]+) ([\d.]+)m', page) == [("11.5", "3.5")]


def test_the_speed_of_each_epoch_counts_its_own_images(tiny_run, image_folder):
    learned = len(load_images(image_folder, "train")) // 8 * 8  # whole batches
    rows = tiny_run.read_metrics()
    assert len(rows) == 3
    for row in rows:
        assert row["images_per_second"] * row["seconds"] == pytest.approx(learned, rel=0.1)
