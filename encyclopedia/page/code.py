"""Code: source text as tokens with classes, standard values in the colour of their role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.lexers.python import PythonLexer
from pygments.token import Name, Operator, Token, Whitespace
from pygments.util import ClassNotFound

from encyclopedia.vocabulary import VOCABULARY

#: The role of each standard value.
VALUE_ROLES: dict[str, str] = {value.name: value.role.value for value in VOCABULARY}

_VALUE = Name.StandardValue


@dataclass(frozen=True)
class CodeToken:
    """A piece of source text and the classes it carries, empty for plain text."""

    text: str
    classes: str = ""


@dataclass(frozen=True)
class CodeBlock:
    """A block of code for ``code.html.jinja``.

    Attributes:
        tokens: the source, piece by piece; their texts joined are the source.
        status: whether it was run, in a phrase, or ``None`` where nothing is said.
        ran: whether ``status`` tells of a run.
    """

    tokens: tuple[CodeToken, ...]
    status: str | None = None
    ran: bool = False

    @property
    def source(self) -> str:
        """The text of the block."""
        return "".join(token.text for token in self.tokens)


class StandardNamesLexer(PythonLexer):
    """Python in which a standard value that is read as an attribute is a token of its role."""

    name = "Python with standard names"
    aliases: ClassVar[list[str]] = []
    filenames: ClassVar[list[str]] = []
    mimetypes: ClassVar[list[str]] = []

    def get_tokens_unprocessed(self, text: str, *args: Any, **kwargs: Any) -> Iterator[tuple[int, Any, str]]:
        """Tokens as Pygments gives them, with standard values marked."""
        after_dot = False
        for position, token, piece in super().get_tokens_unprocessed(text, *args, **kwargs):
            role = VALUE_ROLES.get(piece) if after_dot and token in Name else None
            yield position, getattr(_VALUE, role.capitalize()) if role else token, piece
            if token not in Whitespace:
                after_dot = token in Operator and piece == "."


def code_block(source: str, language: str = "", status: str | None = None, *, ran: bool = False) -> CodeBlock:
    """``source`` as a block; a ``language`` nobody knows is shown as plain text."""
    return CodeBlock(tuple(tokens(source, language)), status, ran)


def tokens(source: str, language: str = "python") -> Iterator[CodeToken]:
    """The pieces of ``source``; joined they are ``source``."""
    lexer = _lexer(language)
    if lexer is None:
        yield CodeToken(source)
        return
    text, classes = "", ""
    # Unprocessed tokens keep the text as it is; the processed ones end it with a line break.
    for _, kind, piece in lexer.get_tokens_unprocessed(source):
        found = _classes(kind)
        if found != classes and text:
            yield CodeToken(text, classes)
            text = ""
        text, classes = text + piece, found
    if text:
        yield CodeToken(text, classes)


def _lexer(language: str) -> Lexer | None:
    if language in ("python", "py", "python3"):
        return StandardNamesLexer()
    try:
        return get_lexer_by_name(language) if language else None
    except ClassNotFound:
        return None


# Few kinds of token are told apart: colour belongs to the roles.
_CLASSES = {
    Token.Comment: "code-comment",
    Token.Keyword: "code-keyword",
    Token.Literal.String: "code-string",
    Token.Literal.Number: "code-number",
    Token.Operator.Word: "code-keyword",
    Token.Name.Function: "code-name",
    Token.Name.Class: "code-name",
    Token.Name.Decorator: "code-name",
}


def _classes(kind: Any) -> str:
    if kind in _VALUE and kind is not _VALUE:
        return f"code-value role-{kind[-1].lower()}"
    while kind is not Token and kind is not None:
        if kind in _CLASSES:
            return _CLASSES[kind]
        kind = kind.parent
    return ""
