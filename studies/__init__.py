"""Our studies: one file each, their results in `results/`, and `report.py`, which makes the pages of them."""
