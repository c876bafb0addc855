"""What a run leaves on the disk: its folder, its weights, its numbers."""
