"""Every check of the family ``llama`` on real weights, and what is said of weights that do not fit."""

from __future__ import annotations

from collections import Counter

import pytest

from encyclopedia.checks.identity import TOLERANCE as IDENTITY_TOLERANCE
from encyclopedia.checks.weights import check_weights
from encyclopedia.weights import WeightsError
from tests.smollm2 import FILE, PACKAGE

needs_weights = pytest.mark.skipif(FILE is None, reason=f"the package {PACKAGE} is not installed")


@needs_weights
def test_every_claim_holds_on_smollm2() -> None:
    checked = check_weights("llama", PACKAGE)
    assert checked.model.num_layers == 30
    found, = checked.identities
    assert found is not None
    identity, error = found
    assert identity == "layers[i].input + self_attn.attention_output + mlp.mlp_output == layer_output"
    assert error == pytest.approx(0, abs=IDENTITY_TOLERANCE)
    values = {name for host in (checked.model, *checked.model.hosts(0)) for name in type(host).values()}
    by_sort = {sort: {claim.value for claim in checked.claims if claim.sort == sort} for sort in ("layout", "meaning")}
    assert by_sort == {"layout": values, "meaning": values}
    runs = Counter(claim.sort for claim in checked.claims for _ in range(claim.runs))
    assert runs["identity"] == 30
    assert {"writing", "availability"} <= set(runs)


@needs_weights
def test_weights_of_another_family_are_refused_in_a_line() -> None:
    with pytest.raises(WeightsError, match="are of the family 'llama', not 'doge'") as error:
        check_weights("doge", PACKAGE)
    assert "\n" not in str(error.value)
