"""Code keeps its text, and standard values carry their role."""

from hypothesis import given
from hypothesis import strategies as st

from encyclopedia.page.code import code_block, tokens

SNIPPET = '''\
with model.trace("x"):  # logits
    logits = model.logits.save()
    out = model.layers[1].self_attn.attention_output.save()
    mid = model.layers[1].layer_mid
'''


def classes_of(source: str) -> dict[str, str]:
    return {token.text: token.classes for token in tokens(source) if token.classes}


def test_standard_values_carry_their_role():
    found = classes_of(SNIPPET)
    assert found["attention_output"] == "code-value role-attention"
    assert found["layer_mid"] == "code-value role-stream"
    assert found["logits"] == "code-value role-stream"


def test_only_attributes_are_values():
    assert classes_of("logits = 1\n").get("logits") is None
    assert classes_of("model.other\n").get("other") is None


def test_comments_and_strings_are_told_apart():
    found = classes_of(SNIPPET)
    assert found["# logits"] == "code-comment"
    assert found['"x"'] == "code-string"


@given(st.text(alphabet=st.characters(exclude_characters="\r")))
def test_tokens_join_to_the_source(source):
    assert code_block(source, "python").source == source
    assert code_block(source, "no such language").source == source
