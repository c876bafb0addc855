"""A tiled TIFF of 20,000 × 20,000 pixels segmented in tiles, killed and started again: `python large_image.py OUT`.

Prints the memory that the work took beyond the loaded network, the seconds, and how many tiles were left when it was
started again. The network is a small one, so that this ends on one core; memory does not depend on it but for one tile.
"""

import json
import multiprocessing as mp
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import tifffile
import torch

from liespline import Trivial, models, uniform
from liespline.lab.data.large import open_windows
from liespline.lab.evaluation.mask_files import segment_large
from liespline.lab.tiles import Tiling, halo_of

SIDE, TILE = 20_000, 1024
KILLED_AT = 0.3


def make(path: Path) -> None:
    """Bright discs on noise, one tile repeated, so that the file is made in no time."""
    draw = np.random.default_rng(0)
    y, x = np.mgrid[:500, :500]
    tile = 60 + 120 * ((y - 250) ** 2 + (x - 250) ** 2 < 100**2) + draw.normal(0, 15, (500, 500))
    tile = tile.clip(0, 255).astype(np.uint8)
    tifffile.imwrite(
        path,
        (np.pad(tile, ((0, 12), (0, 12)), mode="edge") for _ in range((SIDE // 512 + 1) ** 2)),
        shape=(SIDE, SIDE),
        dtype=np.uint8,
        tile=(512, 512),
        photometric="minisblack",
    )


def work(path: Path, out: Path, kill_at: float, answers: mp.Queue) -> None:
    """Segment the file; end without a word, as if killed, once this share of the tiles is done."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = models.unet(1, 2, uniform(Trivial(2), 1), widths=(2, 2), kernel_size=3).eval()
    tiling = Tiling(TILE, halo_of(network, 1, 2, 2, 64), 2)
    with torch.no_grad():
        network(torch.zeros(1, 1, TILE, TILE))
    before, most, begun, seen = psutil.Process().memory_info().rss, 0, time.perf_counter(), []

    def told(done: int, total: int) -> None:
        nonlocal most
        seen.append(done)
        most = max(most, psutil.Process().memory_info().rss)
        if done >= kill_at * total:
            answers.put({"tiles": total, "first": seen[0]})
            answers.close()
            answers.join_thread()
            psutil.Process().kill()

    with open_windows(path) as source:
        to_logits = lambda samples: network(torch.from_numpy(samples)[None].float() / 255)[0]  # noqa: E731
        segment_large(source, out, to_logits, tiling, "benchmark", told)
    most = max(most, psutil.Process().memory_info().rss)
    seconds = round(time.perf_counter() - begun, 1)
    answers.put(
        {"first": seen[0], "beyond_the_network_mib": (most - before) >> 20, "seconds": seconds, "halo": tiling.halo}
    )


def main(folder: Path) -> None:
    """Make the file, begin, be killed, go on."""
    folder.mkdir(parents=True, exist_ok=True)
    path, out = folder / "large.tif", folder / "mask.tif"
    make(path)
    answers: mp.Queue = mp.Queue()
    found = []
    for kill_at in (KILLED_AT, 2.0):
        process = mp.Process(target=work, args=(path, out, kill_at, answers))
        process.start()
        found.append(answers.get())
        process.join()
    with tifffile.TiffFile(out) as file:
        size = file.pages[0].shape
    print(json.dumps({"pixels": size, "killed": found[0], "again": found[1]}))


if __name__ == "__main__":
    mp.set_start_method("spawn")
    main(Path(sys.argv[1]))
