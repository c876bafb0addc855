"""The sum over channels, H and a window: what it is, and the ways to compute it fast."""
