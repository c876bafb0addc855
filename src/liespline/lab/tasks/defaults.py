"""What each task is, and its own defaults: light, so that `--help` can show them at once."""

from ..settings import Config

SUMMARIES = {
    "digits": "handwritten digits that ship with scikit-learn, 8×8 up-sampled; no download",
    "rotmnist": "rotated MNIST, generated from the official MNIST files: 12,000 train, 50,000 test",
    "mnist": "MNIST or Fashion-MNIST, generated from the official files: rotated, scaled, both, or affine",
    "images": "your own images, one folder per class",
    "volumes": "your own volumes: NIfTI, DICOM or .npy, one folder per class; or an .npz file in MedMNIST's layout",
    "segment": "your own images or volumes with masks, in folders images and masks",
    "landmarks": "points of your own on images of one size, from a table (the paper's CelebA network)",
    "pcam": "PatchCamelyon tissue patches (paper, section 4)",
    "celeba": "facial landmarks on CelebA (paper, section 4)",
}
_PAPER = {"epochs": 100, "optimiser": "sgd", "lr": 0.01, "decay": 5e-4}

DEFAULTS = {
    "digits": Config("digits").updated(n_h=8, widths=(6, 8, 12, 16), epochs=12, batch=32),
    "rotmnist": Config("rotmnist").updated(n_h=12, widths=(16, 24, 32, 48), epochs=30, batch=128, lr=0.02),
    "mnist": Config("mnist").updated(n_h=12, widths=(16, 24, 32, 48), epochs=30, batch=128, lr=0.02),
    # Small batches: some hundred steps even for a folder of sixty images, and some steps for one of thirty scans.
    "images": Config("images").updated(n_h=8, kernel="local", widths=(12, 16, 24, 32, 48), epochs=30, batch=8),
    "volumes": Config("volumes").updated(
        group="so3", n_h=24, kernel="local", n_k=7, stride=2, widths=(6, 8, 12), epochs=20, batch=8
    ),
    "segment": Config("segment").updated(n_h=8, kernel="local", widths=(8, 12, 16, 24), epochs=30, batch=8, lr=0.004),
    "landmarks": Config("landmarks").updated(group="scale", n_h=3, n_k=1, kernel="local", epochs=40, batch=8, lr=0.004),
    "pcam": Config("pcam").updated(n_h=12, n_k=12, batch=32, augment="rot90", **_PAPER),
    "celeba": Config("celeba").updated(group="scale", n_h=5, n_k=3, kernel="local", batch=8, **_PAPER),
}
