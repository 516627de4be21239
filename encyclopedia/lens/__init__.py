"""What TransformerLens calls the standard values, as found by running its bridge on a family's small twin.

:mod:`~encyclopedia.lens.records` is the data and knows no torch; :mod:`~encyclopedia.lens.compare` runs the bridge.
"""

from encyclopedia.lens.records import LensName, LensRecord, families_named, lens_names, lens_record

__all__ = ["LensName", "LensRecord", "families_named", "lens_names", "lens_record"]
