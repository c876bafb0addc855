"""What a run leaves on the disk: its folder, its parameters, its numbers."""
