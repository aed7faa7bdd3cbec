"""Whether an answer fits the JSON Schema that the caller gave. Pure.

A caller's schema is not trusted: nothing is fetched for it, patterns are matched in linear time, and the work of one
check is bounded. The dialect is 2020-12 without the keywords in `NOT_AVAILABLE`; `format` is a note to the model.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

import re2
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from lanewayd.loop.answer_text import AnswerUnreadable, object_in

MAX_SCHEMA_DEPTH = 32
MAX_PATTERN_CHARS = 1_000
MAX_STEPS = 50_000
"""Keywords applied to values, in one check; under a second. A schema can ask for exponentially many of its length."""
MAX_NESTED_KEYWORDS = 150
"""What an answer of the deepest kind needs; a reference that leads back to itself needs more."""
MOST_PROBLEMS = 10
PROBLEM_CHARS = 300

NOT_AVAILABLE = frozenset(
    {
        "$id",
        "$dynamicRef",
        "$recursiveRef",
        "patternProperties",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""They change what references mean, or their work cannot be bounded."""


class SchemaRefused(ValueError):
    """The schema cannot be used; the text says why, as a sentence without its end."""


@dataclass(frozen=True, slots=True)
class AnswerRefused:
    """Why an answer does not fit: one line for each problem, the first few."""

    problems: tuple[str, ...]


class _TooMuchWork(Exception):
    """The check has taken more steps than it may."""


class _Work:
    """What a check has done so far."""

    def begin(self) -> None:
        """Another check."""
        self._steps = self._nested = 0

    def do(self, steps: int) -> None:
        """Raises _TooMuchWork when that is more than there may be."""
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise _TooMuchWork

    @contextmanager
    def within(self) -> Iterator[None]:
        """A keyword is applied, and others within it. Raises _TooMuchWork when that goes too deep."""
        if self._nested == MAX_NESTED_KEYWORDS:
            raise _TooMuchWork
        self._nested += 1
        try:
            yield
        finally:
            self._nested -= 1


class AnswerSchema:
    """The check of one run's answers. One check at a time."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Raises SchemaRefused."""
        self.schema = schema
        _check_form(schema)
        self._work = _Work()
        self._patterns = {pattern: _compiled(pattern) for pattern in _texts_of(schema, "pattern")}
        self._validator = _validator_class(self._work, self._patterns)(schema, registry=Registry())
        _check_against_metaschema(schema)
        self._check_references()

    def check(self, text: str) -> AnswerRefused | None:
        """None: the answer, alone or in a fenced block, is an object that fits."""
        try:
            answer = object_in(text)
        except AnswerUnreadable as unreadable:
            return AnswerRefused((str(unreadable),))
        try:
            problems = tuple(_problem(error) for error in islice(self._errors(answer), MOST_PROBLEMS))
        except (_TooMuchWork, ArithmeticError):
            return AnswerRefused(("checking it takes too long: the schema or the answer is too complex",))
        return AnswerRefused(problems) if problems else None

    def _errors(self, answer: Any) -> Iterator[ValidationError]:
        self._work.begin()
        errors: Iterator[ValidationError] = self._validator.iter_errors(answer)
        return errors

    def _check_references(self) -> None:
        """Each must lead somewhere within the schema, and not only back to itself."""
        resolver = self._validator._resolver  # noqa: SLF001 - the one that the check will use
        for reference in _texts_of(self.schema, "$ref"):
            if not reference.startswith("#"):
                raise SchemaRefused(f"it refers to {reference[:80]!r}; only references within it (#...) are followed")
            try:
                target = resolver.lookup(reference).contents
            except (Unresolvable, ValueError, TypeError):
                target = None
            if not isinstance(target, dict | bool):
                raise SchemaRefused(f"it refers to {reference[:80]!r}, and there is no schema at that place of it")
            _check_against_metaschema(target)
        try:
            for _ in self._errors({}):
                pass
        except (_TooMuchWork, ArithmeticError):
            raise SchemaRefused("it refers to itself without an end, or is too complex to be checked") from None


def schema_of(schema_json: str) -> AnswerSchema:
    """The check for a stored schema. Raises SchemaRefused."""
    schema = json.loads(schema_json)
    if not isinstance(schema, dict):
        raise SchemaRefused("it is not an object")
    return AnswerSchema(schema)


def _check_form(schema: dict[str, Any]) -> None:
    if schema.get("type") != "object":
        raise SchemaRefused('it must say "type": "object" at its top, because an answer is an object')
    _check_depth(schema, 1)
    for node in _objects_in(schema):
        for keyword in NOT_AVAILABLE & node.keys():
            raise SchemaRefused(f"{keyword} is not available in it")


def _check_depth(value: Any, depth: int) -> None:
    if depth > MAX_SCHEMA_DEPTH:
        raise SchemaRefused(f"it is nested more than {MAX_SCHEMA_DEPTH} deep")
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        _check_depth(member, depth + 1)


def _objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """All objects within a schema: whatever a reference may lead to."""
    if isinstance(value, dict):
        yield value
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        yield from _objects_in(member)


def _texts_of(schema: dict[str, Any], keyword: str) -> set[str]:
    found = (node.get(keyword) for node in _objects_in(schema))
    return {text for text in found if isinstance(text, str)}


def _compiled(pattern: str) -> Any:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise SchemaRefused(f"a pattern has more than {MAX_PATTERN_CHARS:,} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        raise SchemaRefused(f"the pattern {pattern[:80]!r} cannot be used (RE2): {said[:80]}") from None


def _check_against_metaschema(schema: dict[str, Any] | bool) -> None:
    try:
        # Without formats: that of patterns would be Python's.
        Draft202012Validator.check_schema(schema, format_checker=None)  # type: ignore[arg-type]
    except SchemaError as error:
        raise SchemaRefused(f"it is no JSON Schema: {_problem(error)}") from None
    except RecursionError:
        raise SchemaRefused("it is nested too deeply") from None


def _validator_class(work: _Work, patterns: dict[str, Any]) -> Any:
    def counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
        def apply(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
            work.do(1 + len(value) if isinstance(value, list | dict) else 1)
            with work.within():
                yield from keyword(validator, value, instance, schema) or ()

        return apply

    def pattern(_validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not patterns[value].search(instance):
            yield ValidationError(f"{instance!r} does not match {value!r}")

    def unique(_validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
        if value and isinstance(instance, list):
            work.do(len(instance))
            if len({_canonical(item) for item in instance}) < len(instance):
                yield ValidationError(f"{instance!r} has non-unique elements")

    def multiple_of(_validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
        if _is_number(instance) and not _is_multiple(instance, value):
            yield ValidationError(f"{instance!r} is not a multiple of {value!r}")

    own = {"pattern": pattern, "uniqueItems": unique, "multipleOf": multiple_of}
    keywords = {**Draft202012Validator.VALIDATORS, **own}
    return extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {name: counted(keyword) for name, keyword in keywords.items()}
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_multiple(value: float, of: float) -> bool:
    """By the numbers as they are written: 19.99 is a multiple of 0.01, though the doubles nearest to them are not."""
    return Fraction(repr(value)) % Fraction(repr(of)) == 0


def _canonical(value: Any) -> str:
    """Equal values have equal texts; 1 and 1.0 are equal, 1 and true are not."""
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _problem(error: ValidationError | SchemaError) -> str:
    path = error.json_path.removeprefix("$").removeprefix(".")
    return f"{path or '(the whole object)'}: {error.message}"[:PROBLEM_CHARS]
