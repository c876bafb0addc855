"""Names out of data are shown and never obeyed: in the report, in tables, in messages, on the terminal."""

import html.parser

import numpy as np
import pytest
from PIL import Image

from liespline.lab.screen import Screen, printable
from truth.shell import command, fails, succeeds

SMALL = "--elements 2 --set widths=2,2,3 --epochs 1 --batch-size 8 --accelerator cpu --quiet".split()
# The second one ends so that its files' paths read as closing marks: x[/bold].
NAMES = ("\"><script>alert(1)<'&amp;", "[red]{{7*7}}:smile: x[", "\x1b[2J\x07plain")
SHOWN = (*NAMES[:2], "�[2J�plain")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three classes with names to be escaped, and files of such names in them."""
    root = tmp_path_factory.mktemp("images")
    draw = np.random.default_rng(0)
    for level, name in enumerate(NAMES):
        (root / name).mkdir()
        for i in range(8):
            pixels = draw.integers(80 * level, 80 * level + 60, (16, 16), np.uint8)
            Image.fromarray(pixels).save(root / name / f"bold]<b>{i}.png")
        (root / name / "none]<i>.txt").touch()
    return root


class Page(html.parser.HTMLParser):
    """What a browser would take from the page: its elements, their attributes, and the text between them."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def trained(tmp_path_factory, folder):
    """A run in a folder with such a name, and what was said while it was trained."""
    out = tmp_path_factory.mktemp("run") / "[link=x]<u>["
    status, *said = command("train", "images", "--data", folder, "--out", out, *SMALL)
    assert status == 0, said
    return out, "".join(said)


@pytest.fixture
def run(trained):
    return trained[0]


def test_the_report_shows_them_as_text(run):
    page = Page((run / "report.html").read_text())
    assert not {"script", "i", "u"} & set(page.tags)
    assert all(value.startswith("data:image/") for name, value in page.attributes if name == "src")
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    for name in NAMES[:2]:
        assert name in page.text
    assert "[link=x]<u>[" in page.text


def test_tables_and_messages_show_them_as_text(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)  # names short enough for one line of a table
    files = [f"{name}/bold]<b>0.png" for name in NAMES]
    text = succeeds("predict", run, *files)
    assert "\x1b" not in text
    for name in SHOWN:
        assert f"{name}/bold]<b>0.png" in text

    assert f"classes {SHOWN[2]} 6, {SHOWN[0]} 6, {SHOWN[1]} 6" in succeeds("data", "check", "images", folder)

    assert "[blink]�]0;title�.png: does not exist" in fails("predict", run, tmp_path / "[blink]\x1b]0;title\x07.png")

    assert "[link=x]<u>[/report.html" in succeeds("train", "--resume", run)


def test_what_is_left_out_is_named_as_text(trained):
    assert all(f"{name}/none]<i>.txt" in trained[1] for name in SHOWN)
    assert "\x1b[2J" not in trained[1]


def test_the_screen_prints_names_as_text(capsys):
    """Rich would take them for markup that breaks, and a terminal for codes that it obeys."""
    Screen().print(*NAMES)
    assert capsys.readouterr().out.split("\n")[0].startswith(SHOWN[0])
    assert printable("a\tb\u202ec\nd") == "a�b�c\nd"
