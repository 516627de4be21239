"""A page for one's own config: one HTML file that holds all it needs and opens from disk."""
