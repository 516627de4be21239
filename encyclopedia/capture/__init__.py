"""Capture: from a recorded config, through the live model, to facts."""
