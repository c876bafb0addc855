"""The sum over a window alone, channel by channel and element by element."""
