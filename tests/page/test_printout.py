"""The printout loses nothing: lines to tree to folded tree and back."""

from hypothesis import given
from hypothesis import strategies as st

from encyclopedia.page.printout import Entry, Repeated, fold, lines_of, parse, unfold
from encyclopedia.page.ranges import blocks, ranges

MODEL = """\
TinyForCausalLM(
  (embed_tokens): Embedding(10, 4)
  (layers): ModuleList(
    (0): Block(
      (mlp): Dense(in_features=4)
    )
    (1-3): 3 x Block(
      (mlp): Mixture(
        (router/gate): Router()
      )
    )
    (4): Block(
      (mlp): Dense(in_features=4)
    )
    (5-7): 3 x Block(
      (mlp): Mixture(
        (router/gate): Router()
      )
    )
  )
  (logits) -> Logits [batch seq vocab_size]: What the model returns
)""".splitlines()


def layers(nodes):
    return nodes[0].children[1].children


def test_tree_gives_back_the_lines():
    assert list(lines_of(parse(MODEL))) == MODEL


def test_equal_blocks_are_gathered():
    dense, mixture = layers(fold(parse(MODEL)))
    assert isinstance(dense, Repeated)
    assert isinstance(mixture, Repeated)
    assert dense.spans == ((0, 0), (4, 4))
    assert mixture.spans == ((1, 3), (5, 7))


def test_folded_tree_gives_back_the_lines():
    assert list(lines_of(fold(parse(MODEL)))) == MODEL


def test_indices_out_of_order_are_left_alone():
    lines = ["L(", "  (1): A()", "  (0): A()", ")"]
    assert all(isinstance(node, Entry) for node in fold(parse(lines))[0].children)


def test_a_count_that_is_not_the_span_is_left_alone():
    lines = ["L(", "  (0-1): 3 x A()", ")"]
    assert list(lines_of(fold(parse(lines)))) == lines


@given(st.lists(st.from_regex(r"\A {0,6}[()\w:,. >-]*\Z") | st.sampled_from(MODEL)))
def test_any_lines_survive(lines):
    tree = parse(lines)
    assert list(lines_of(tree)) == lines
    assert unfold(fold(tree)) == tree


@st.composite
def stacks(draw):
    """A printed stack of blocks: neighbours that are equal are already counted together, as torch prints them."""
    kinds = draw(st.lists(st.sampled_from("ABC"), min_size=1, max_size=20))
    lines, at = ["layers("], 0
    while at < len(kinds):
        last = at
        while last + 1 < len(kinds) and kinds[last + 1] == kinds[at]:
            last += 1
        head = f"({at}): " if last == at else f"({at}-{last}): {last - at + 1} x "
        lines += [f"  {head}{kinds[at]}(", "    (x): Linear()", "  )"]
        at = last + 1
    return kinds, [*lines, ")"]


@given(stacks())
def test_a_stack_folds_to_one_entry_per_kind(stack):
    kinds, lines = stack
    folded = fold(parse(lines))
    children = folded[0].children
    assert len(children) == len(set(kinds))
    for node in children:
        covered = [number for first, last in node.spans for number in range(first, last + 1)]
        assert {kinds[number] for number in covered} == {node.text[0]}
    assert list(lines_of(folded)) == lines


def test_ranges_read_well():
    assert ranges([0]) == "0"
    assert ranges([1, 2, 3, 5]) == "1–3, 5"
    assert ranges(range(0, 40, 4)) == "0, 4, 8, … 36"
    assert ranges([n for n in range(40) if n % 4]) == "1–3, 5–7, 9–11, … 37–39"
    assert ranges([0, 1, 3, 8, 9, 20, 31]) == "0–1, 3, 8–9, 20, 31"
    assert blocks([2]) == "block 2"
    assert blocks([2, 3]) == "blocks 2–3"
