"""Notes: expressions, measured numbers, snippets, and errors that say where."""

from pathlib import Path

import pytest

from encyclopedia.facts import NotesFacts
from encyclopedia.notes import NotesError, fill, python_blocks, snippets
from encyclopedia.page.code import CodeBlock
from encyclopedia.page.environment import environment
from encyclopedia.page.notes import render_notes
from tests.page.small_facts import family

TEMPLATES = Path(__file__).parents[2] / "templates"

NOTE = """\
## First

Blocks: {{ ref.sizes.num_layers }}, and {{ ckpt("Tiny-2").config.hidden_act }} in `mlp_output`.

```{ .python checkpoints="reference" }
model.layers[{{ ref.sizes.num_layers - 1 }}].mlp.mlp_output
```

- item

    ```python
    print("<b>")
    ```

```{ .python needs-weights="only trained ones show it" }
1
```

```text
not python
```
"""


def html(text: str) -> str:
    notes = render_notes(text, family())
    return environment(TEMPLATES).get_template("page/notes.html.jinja").render(notes=notes)


def test_expressions_are_filled_in():
    page = html(NOTE)
    assert "Blocks: 4, and silu in" in page
    assert '<code class="code-value role-mlp">mlp_output</code>' in page


def test_a_missing_name_is_an_error_that_says_where():
    with pytest.raises(NotesError, match=r"tiny: the note 'Loading', line 5: .*keep_window"):
        fill("## Loading {: #load }\n\ntext\n\n{{ ref.config.keep_window }}\n", family())


def test_a_syntax_error_says_where():
    with pytest.raises(NotesError, match="line 2"):
        fill("## A\n{{ ref. }}\n", family())


def test_an_unknown_checkpoint_names_the_known_ones():
    with pytest.raises(NotesError, match="maker/Tiny-2"):
        fill('{{ ckpt("Tiny-9").id }}', family())


def test_a_measured_number_must_say_where_it_is_from():
    with pytest.raises(NotesError, match="known_from"):
        fill('{{ measured("1", of="x", on="y") }}', family())


def test_headings_with_ids_are_not_comments():
    assert fill("## A {#here}\n", family()) == "## A {#here}\n"


def test_python_blocks_have_attributes_and_lines():
    found = python_blocks(NOTE)
    assert [snippet.line for snippet in found] == [5, 11, 15]
    assert found[0].attributes == {"checkpoints": "reference"}
    assert found[1].code == 'print("<b>")'
    assert found[2].needs_weights == "only trained ones show it"


def test_snippets_are_filled_in_at_their_lines():
    found = snippets("{% for i in [1, 2] %}\nx\n{% endfor %}\n" + NOTE, family())
    assert found[0].code == "model.layers[3].mlp.mlp_output"
    assert found[0].line == 8


def test_snippets_say_whether_they_ran():
    page = html(NOTE)
    assert "ran on the small model of Tiny-1<" in page
    assert "ran on the small model of all 2 checkpoints<" in page
    assert "not run: only trained ones show it<" in page


def test_without_a_recorded_run_nothing_is_claimed():
    notes = render_notes("```python\n1\n```\n", family(notes=NotesFacts(snippets=[])))
    [block] = notes.parts
    assert isinstance(block, CodeBlock)
    assert (block.status, block.ran) == ("no run is recorded", False)


def test_blocks_keep_their_text():
    blocks = [part for part in render_notes(NOTE, family()).parts if isinstance(part, CodeBlock)]
    assert [block.source.strip() for block in blocks] == [
        "model.layers[3].mlp.mlp_output", 'print("<b>")', "1", "not python"]


def test_measured_numbers_are_marked_and_listed():
    call = 'measured("57,662", of="a <channel>", on="maker/Tiny-1", known_from="a page")'
    page = html(f"## A\n\nIt is {{{{ {call} }}}} there, and `x = {{{{ {call} }}}}`.\n")
    assert '<span class="notes-measured" title="a &lt;channel&gt;, on maker/Tiny-1; a page">57,662<sup>' in page
    assert '<li id="measured-1"><strong>57,662</strong> a &lt;channel&gt;, on' in page
    assert "x = 57,662" in page
    assert "Measured on real weights" in page


def test_html_in_notes_is_text():
    page = html("## A\n\n<script>alert(1)</script> and <b>x</b>\n\n<div>y</div>\n")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<div>y" not in page


def test_quirks_stand_first_with_their_anchor():
    page = html("## A\n")
    assert page.index('id="quirk-output-gate"') < page.index('id="note-a"')
    assert "Output gate" in page


@pytest.mark.parametrize("mark", ["#", "##"])
def test_the_first_level_is_a_third_heading(mark):
    page = html(f"{mark} One\n\n{mark}# Two\n\n```python\n# comment\n```\n")
    assert '<h3 id="note-one">' in page
    assert '<h4 id="note-two">' in page


def test_empty_notes_show_the_quirks_and_the_block_in_order():
    page = html("")
    assert 'id="quirk-output-gate"' in page
    assert "Nobody has written notes" in page
    assert ("<li><code>self_attn</code> (attention, 2 heads × 8) reads the stream through <code>input_layernorm</code> "
            "and adds <code>attention_output</code> to the stream.</li>") in page
    assert "Nobody has written notes" not in html("## A\n")
