"""What changed between two captures of the same families, such as on two releases of transformers."""

from encyclopedia.diff.compare import NothingToCompare, compare_families
from encyclopedia.diff.history import read_records, write_record
from encyclopedia.diff.records import Change, Difference, FamilyChanges
from encyclopedia.diff.text import lines_of

__all__ = ["Change", "Difference", "FamilyChanges", "NothingToCompare", "compare_families", "lines_of", "read_records",
           "write_record"]
