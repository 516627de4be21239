"""Errors of the live model."""

from __future__ import annotations


class Unavailable(Exception):
    """A standard value that this load cannot serve, with the reason and what to do."""


class NoWeights(Exception):
    """A model without weights was asked to compute."""
