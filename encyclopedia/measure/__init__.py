"""Measurements on real weights: what a note may quote, as data with its provenance.

:mod:`~encyclopedia.measure.records` is the data and knows no torch; :mod:`~encyclopedia.measure.quantities` is what can
be measured; :mod:`~encyclopedia.measure.run` loads weights and measures.
"""
