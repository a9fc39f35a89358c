"""What must hold: properties, strategies, judging, campaigns."""
