"""The front door: commands, what they print, reports."""
