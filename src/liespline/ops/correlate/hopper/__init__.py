"""Kernels for one family of GPUs, measured on an H200; `choose` takes them where they pay."""
