"""Checks: every claim of a page, run on a model whose numbers are known.

Each sort of claim has a module; :mod:`encyclopedia.checks.run` runs them all on a twin or on real weights.
"""
