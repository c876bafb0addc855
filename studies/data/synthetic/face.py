"""One synthetic face: a shaded ellipsoid head with features on it, somewhere in a cluttered picture."""

import numpy as np
from PIL import Image, ImageFilter

from .canvas import Canvas, muted, oval, rotation
from .person import Person, Points, landmarks_of, rgb

SUPERSAMPLING = 2


def draw_face(person: Person, rng: np.random.Generator) -> tuple[Image.Image, Points]:
    """A new picture of a person and its landmarks (5, 2) in (x, y) pixels.

    Eye distances spread evenly in logarithm over 4–36 % of the longer side: no single scale serves all.
    """
    width, height = (int(rng.integers(150, 257)) for _ in range(2))
    longest = max(width, height)
    yaw, pitch, roll = rng.normal(0, (0.3, 0.12, 0.15)).clip(-0.7, 0.7)
    turn = rotation(yaw, pitch, roll)
    flat = landmarks_of(person) @ turn.T
    largest = 0.36 * longest
    for _ in range(50):
        unit = float(np.exp(rng.uniform(np.log(0.04 * longest), np.log(largest))))
        # The landmarks must stay inside, the head need not.
        low, high = flat[:, :2].min(0) * unit, flat[:, :2].max(0) * unit
        room = np.array([width, height]) - 6 - (high - low)
        if (room > 0).all():
            break
        largest = max(0.05 * longest, unit)
    centre = 3 - low + room * rng.beta(2, 2, 2)
    big = Image.new("RGB", (width * SUPERSAMPLING, height * SUPERSAMPLING))
    canvas = Canvas(big, turn, centre * SUPERSAMPLING, unit * SUPERSAMPLING)
    _background(canvas, rng)
    _body(canvas, person, rng)
    _head(canvas, person, rng)
    _features(canvas, person, rng)
    image = _photograph(big.resize((width, height), Image.Resampling.BOX), unit, rng)
    return image, centre + flat[:, :2] * unit


def _background(canvas: Canvas, rng: np.random.Generator) -> None:
    """Out-of-focus clutter of every size, with discs and pairs of dots: an eye must not be found as a mere blob."""
    width, height = canvas.image.size
    corners = Image.fromarray(muted(rng, 9).reshape(3, 3, 3).astype(np.uint8))
    canvas.image.paste(corners.resize((width, height), Image.Resampling.BICUBIC))
    for focus in (0.02, 0.006, 0.0):
        for _ in range(rng.integers(4, 14)):
            x, y = rng.uniform(0, width), rng.uniform(0, height)
            a, b = np.exp(rng.uniform(np.log(0.01), np.log(0.25), 2)) * max(width, height)
            colour = rgb(muted(rng)[0])
            kind = rng.integers(4)
            if kind == 0:
                canvas.pen.rectangle((x - a, y - b, x + a, y + b), fill=colour)
            elif kind == 1:
                canvas.pen.ellipse((x - a, y - b, x + a, y + b), fill=colour)
            elif kind == 2:
                canvas.pen.line((x, y, *rng.uniform(0, (width, height))), fill=colour, width=max(1, int(b / 8)))
            else:
                r = min(a, b) / 4
                for shift in (-a / 2, a / 2):
                    canvas.pen.ellipse((x + shift - r, y - r, x + shift + r, y + r), fill=colour)
        if focus:
            canvas.image.paste(canvas.image.filter(ImageFilter.GaussianBlur(focus * max(width, height))))


def _body(canvas: Canvas, person: Person, rng: np.random.Generator) -> None:
    cloth = muted(rng)[0]
    lean = Canvas(canvas.image, np.eye(3), canvas.centre, canvas.unit)  # shoulders do not follow the head's turn
    if person.long_hair and not person.bald:
        canvas.polygon(oval(0, 0.75, -0.6, person.jaw * 1.3, person.length * 1.35), person.hair * 0.7)
    if not person.bald:
        canvas.polygon(oval(0, 0.0, -0.7, person.jaw * 1.12, person.length * 0.98), person.hair * 0.8)
    lean.polygon(oval(0, 4.2, 0, rng.uniform(2.2, 2.7), rng.uniform(1.9, 2.2), 60), cloth)
    neck = np.array([(-0.55, 1.0, 0), (0.55, 1.0, 0), (0.75, 2.6, 0), (0, 2.9, 0), (-0.75, 2.6, 0)])
    lean.polygon(neck, person.skin * 0.62)
    fold = np.array([(-1.0, 3.3, 0), (-0.6, 4.2, 0), (0.7, 3.2, 0), (0.9, 4.4, 0)])
    lean.line(fold[:2], cloth * 0.8, 0.07)
    lean.line(fold[2:], cloth * 0.85, 0.07)


def _head(canvas: Canvas, person: Person, rng: np.random.Generator) -> None:
    """The skull as an ellipsoid lit from one side, then hair over its top."""
    middle = np.array([0.0, 0.28, -0.65])
    axes = np.array([person.jaw, person.length, 1.1])
    for side in (-1, 1):
        canvas.polygon(oval(side * person.jaw * 0.99, 0.25, -0.65, 0.16, 0.27), person.skin * 0.8)
    # Silhouette and normals of the turned ellipsoid: x = M u with |u| = 1; normals are M⁻ᵀ u.
    shape = canvas.turn @ np.diag(axes)
    spread = np.sqrt((shape[:2] ** 2).sum(1))
    at = canvas.project(middle)
    width, height = canvas.image.size
    left, top = np.maximum(np.floor(at - spread * canvas.unit), 0).astype(int)
    right, bottom = np.minimum(np.ceil(at + spread * canvas.unit), (width, height)).astype(int)
    if right <= left or bottom <= top:
        return
    grid = np.stack(np.meshgrid(np.arange(left, right), np.arange(top, bottom)), axis=-1)
    p = (grid - at) / canvas.unit
    inverse = np.linalg.inv(shape @ shape.T)
    # Depth of the nearer surface point over each pixel: a quadratic in z.
    a, b = inverse[2, 2], p @ inverse[:2, 2]
    c = np.einsum("...i,ij,...j", p, inverse[:2, :2], p) - 1
    inside = b**2 > a * c
    depth = (-b + np.sqrt(np.maximum(b**2 - a * c, 0))) / a
    normal = np.concatenate([p, depth[..., None]], axis=-1) @ inverse
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-9
    light = np.array([rng.uniform(-0.9, 0.9), rng.uniform(-0.9, 0.1), 1.0])
    shade = 0.45 + 0.62 * np.clip(normal @ (light / np.linalg.norm(light)), 0, 1)
    colour = person.skin * shade[..., None]
    local = np.concatenate([p, depth[..., None]], axis=-1) @ canvas.turn + middle  # back in face coordinates
    if person.beard:
        shadow = _step((local[..., 1] - 0.72) / 0.25) * rng.uniform(0.5, 0.9)
        colour = colour * (1 - shadow[..., None]) + person.hair * shade[..., None] * shadow[..., None]
    if not person.bald:
        parting = rng.uniform(-0.5, 0.5)
        hairline = -0.62 + 0.35 * (local[..., 0] - parting) ** 2 * rng.uniform(0.2, 1.2)
        hairline = np.where(np.abs(local[..., 0]) > 0.8 * person.jaw, 0.4, hairline)
        waves = rng.uniform(30, 50) * local[..., 0] + rng.uniform(-9, 9) * local[..., 1] ** 2
        strands = 0.92 + 0.14 * np.sin(waves) * np.sin(0.37 * waves + 1)
        hair = _step((hairline - local[..., 1]) / 0.06 + rng.normal(0, 0.3, hairline.shape))
        colour = colour * (1 - hair[..., None]) + (person.hair * (strands * shade)[..., None]) * hair[..., None]
    patch = Image.fromarray(np.clip(colour, 0, 255).astype(np.uint8))
    canvas.image.paste(patch, (int(left), int(top)), Image.fromarray((inside * 255).astype(np.uint8)))


def _step(x: Points) -> Points:
    x = np.clip(x, 0, 1)
    return x * x * (3 - 2 * x)


def _features(canvas: Canvas, person: Person, rng: np.random.Generator) -> None:
    smile, opening = rng.uniform(-0.04, 0.16), max(0.0, rng.normal(0.0, 0.07))
    lid, gaze = rng.uniform(0.45, 1.0), rng.uniform(-0.06, 0.06)
    dark, rosy = person.skin * 0.45, person.skin * (0.82, 0.58, 0.56)
    for side in (-0.5, 0.5):
        canvas.polygon(oval(side, 0.0, 0, person.eye * 1.25, person.eye * 0.8), person.skin * 0.78)
        canvas.polygon(oval(side, 0.0, 0.02, person.eye, person.eye * 0.5, lid=lid), (236, 232, 228))
        canvas.polygon(oval(side + gaze, 0.0, 0.03, 0.09, 0.09, lid=lid), person.iris)
        canvas.polygon(oval(side + gaze, 0.0, 0.03, 0.045, 0.045, lid=lid), (12, 10, 10))
        arch = np.linspace(-1, 1, 9)
        upper = np.stack([side + person.eye * arch, -0.5 * person.eye * lid * (1 - arch**2), 0 * arch], axis=-1)
        canvas.line(upper, dark * 0.6, 0.035)
        brow = np.stack([side * 1.02 + 0.27 * arch, -0.27 - 0.07 * (1 - arch**2), 0.05 + 0 * arch], axis=-1)
        canvas.line(brow, person.hair * 0.7, person.brow)
    nose = person.nose
    bridge = np.array([(0.1, 0.05, 0.1), (0.07, 0.3, 0.25), (0.13, nose - 0.03, 0.3), (0.0, nose + 0.05, 0.4)])
    canvas.line(bridge, person.skin * 0.72, 0.045)
    canvas.polygon(oval(0, nose - 0.02, 0.42, 0.085, 0.075), person.skin * 1.08)
    for side in (-0.085, 0.085):
        canvas.polygon(oval(side, nose + 0.075, 0.33, 0.05, 0.028), dark * 0.7)
    x = np.linspace(-1, 1, 15)
    bend = person.mouth + smile * (1 - x**2)  # the corners stay where the landmarks are
    depth = 0.02 + 0.16 * (1 - x**2)
    across = person.mouth_width * x
    upper = np.stack([across, bend - 0.075 * (1 - x**2) * (1 - 0.3 * np.exp(-((4 * x) ** 2))), depth], axis=-1)
    lower = np.stack([across, bend + (0.1 + opening) * (1 - x**2), depth], axis=-1)
    canvas.polygon(np.concatenate([upper, lower[::-1]]), rosy)
    gap = np.stack([across, bend + opening * (1 - x**2), depth], axis=-1)
    seam = np.stack([across, bend, depth], axis=-1)
    if opening > 0.04:
        canvas.polygon(np.concatenate([seam, gap[::-1]]), (235, 230, 222) if smile > 0.04 else (60, 24, 24))
    canvas.line(seam, dark * 0.7, 0.025)
    if person.glasses:
        shaded = rng.random() < 0.35
        for side in (-0.5, 0.5):
            rim = oval(side, 0.04, 0.15, 0.34, 0.26)
            if shaded:
                canvas.polygon(rim, (26, 24, 28))
            canvas.line(np.concatenate([rim, rim[:1]]), (30, 28, 30), 0.035)
        canvas.line(np.array([(-0.17, 0.0, 0.2), (0.17, 0.0, 0.2)]), (30, 28, 30), 0.035)


def _photograph(image: Image.Image, unit: float, rng: np.random.Generator) -> Image.Image:
    """Focus, exposure, colour cast and grain of a snapshot; one in eight is black and white."""
    image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0, 0.03) * unit))
    pixels = np.asarray(image, np.float64) * rng.uniform(0.85, 1.12, 3) * rng.uniform(0.6, 1.15)
    pixels = pixels + rng.normal(0, rng.uniform(1, 9), pixels.shape)
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    if rng.random() < 0.125:
        image = image.convert("L").convert("RGB")
    return image
