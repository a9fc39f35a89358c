"""Reports of a campaign and its proofs: one HTML file that works offline, Markdown, JSON."""
