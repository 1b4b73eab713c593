"""The `filter` parameter of lists.

https://cloud.google.com/compute/docs/reference/rest/v1/networks/list (`filter`): comparisons by `=`, `!=`, `>`, `<`,
`>=`, `<=` and `:` (a set, or a part of a text; `:*` is presence), joined by AND (also by nothing) and OR, of which OR
binds closer, and NOT or `-`; and the older `eq` and `ne`, whose literal is an RE2 expression for the whole value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from sandbox.clouds import Document
from sandbox.gcp.errors import invalid

__all__ = ["matcher"]

_Test: TypeAlias = Callable[[Document], bool]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<bracket>[()])
      | (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<operator>!=|>=|<=|=|>|<|:)
      | (?P<word>[^\s()"'=!<>:]+)
    )""",
    re.VERBOSE,
)
_COMPARISONS = frozenset({"=", "!=", ">", "<", ">=", "<=", ":", "eq", "ne"})


def matcher(text: str) -> _Test:
    """A test of documents; an empty filter lets everything through.

    Raises:
        Refusal: the text is no filter.
    """
    if not text.strip():
        return lambda _: True
    try:
        parser = _Parser(_tokens(text))
        test = parser.all_of()
        parser.end()
    except (ValueError, re.error):
        raise invalid("filter", text, "Invalid list filter expression.") from None
    return test


def _tokens(text: str) -> list[tuple[str, str]]:
    found, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ValueError(text[position:])
        value = match[match.lastgroup]
        if match.lastgroup == "quoted":
            value = re.sub(r"\\(.)", r"\1", value[1:-1]) if "\\" in value else value[1:-1]
        found.append((match.lastgroup, value))
        position = match.end()
    return found


class _Parser:
    """Reads tokens by recursive descent."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens

    def end(self) -> None:
        """Nothing may be left."""
        if self._tokens:
            raise ValueError(self._tokens)

    def all_of(self) -> _Test:
        """Terms joined by AND, or by nothing."""
        tests = [self._any_of()]
        while self._tokens and self._tokens[0] != ("bracket", ")"):
            self._take_word("AND")
            tests.append(self._any_of())
        return lambda document: all(test(document) for test in tests)

    def _any_of(self) -> _Test:
        tests = [self._term()]
        while self._take_word("OR"):
            tests.append(self._term())
        return lambda document: any(test(document) for test in tests)

    def _term(self) -> _Test:
        if self._take_word("NOT"):
            test = self._term()
            return lambda document: not test(document)
        if self._next() == ("bracket", "("):
            self._tokens.pop(0)
            test = self.all_of()
            if self._pop() != ("bracket", ")"):
                raise ValueError("no closing bracket")
            return test
        return self._comparison()

    def _comparison(self) -> _Test:
        kind, name = self._pop()
        if kind != "word":
            raise ValueError(name)
        negated = name.startswith("-")
        _, operator = self._pop()
        if operator not in _COMPARISONS:
            raise ValueError(operator)
        kind, literal = self._pop()
        if kind not in ("word", "quoted"):
            raise ValueError(literal)
        compare = _comparison(operator, literal)
        path = name.removeprefix("-").split(".")
        return lambda document: compare(_value(document, path)) is not negated

    def _take_word(self, word: str) -> bool:
        if self._tokens and self._tokens[0] == ("word", word):
            self._tokens.pop(0)
            return True
        return False

    def _next(self) -> tuple[str, str]:
        return self._tokens[0] if self._tokens else ("end", "")

    def _pop(self) -> tuple[str, str]:
        if not self._tokens:
            raise ValueError("the filter ends too early")
        return self._tokens.pop(0)


def _comparison(operator: str, literal: str) -> Callable[[Any], bool]:
    if operator in ("eq", "ne"):
        pattern = re.compile(literal)
        return lambda value: (value is not None and pattern.fullmatch(_text(value)) is not None) == (operator == "eq")
    if operator == ":":
        return lambda value: _has(value, literal)
    if operator in ("=", "!="):
        return lambda value: (value is not None and _equal(value, literal)) == (operator == "=")
    return lambda value: value is not None and _ordered(value, operator, literal)


def _value(document: Any, path: list[str]) -> Any:
    for name in path:
        if isinstance(document, list):
            document = [item[name] for item in document if isinstance(item, dict) and name in item]
        elif isinstance(document, dict):
            document = document.get(name)
        else:
            return None
    return document


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _equal(value: Any, literal: str) -> bool:
    if isinstance(value, list):
        return any(_equal(item, literal) for item in value)
    if literal.endswith("*"):
        return _text(value).startswith(literal[:-1])
    return _text(value) == literal


def _has(value: Any, literal: str) -> bool:
    if literal == "*":
        return value not in (None, [], {}, "")
    if isinstance(value, (list, dict)):
        return any(_equal(item, literal) for item in value)
    return value is not None and literal.strip("*").lower() in _text(value).lower()


def _ordered(value: Any, operator: str, literal: str) -> bool:
    try:
        left: Any = float(value)
        right: Any = float(literal)
    except (TypeError, ValueError):
        left, right = _text(value), literal
    if operator.startswith(">"):
        return bool(left > right or (operator == ">=" and left == right))
    return bool(left < right or (operator == "<=" and left == right))
