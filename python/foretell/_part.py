"""Answers as frozen dataclasses, read from JSON by their own fields.

A dataclass names what it knows; what a newer library adds is kept in ``extra`` instead of being lost or refused.
``to_dict`` gives back what came, so that an answer survives being stored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["Part", "copied", "many", "one"]

P = TypeVar("P", bound="Part")


def one(kind: type[P]) -> Any:
    """A field that holds an object of this kind, or None where the answer has none."""
    return field(default=None, metadata={"read": lambda value: _read(kind, value)})


def many(kind: type[P]) -> Any:
    """A field that holds a tuple of such objects, empty where the answer has none."""
    return field(default=(), metadata={"read": lambda value: tuple(_read(kind, each) for each in value)})


def _read(kind: type[P], value: Any) -> Any:
    return kind.from_dict(value) if isinstance(value, Mapping) else value


def copied(value: Any) -> Any:
    """JSON once more, so that nobody changes an answer through what it handed out."""
    if isinstance(value, Mapping):
        return {key: copied(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [copied(each) for each in value]
    return value


@dataclass(frozen=True, kw_only=True)
class Part:
    """What answers and their parts have in common: the JSON they were read from, and what of it has no field here."""

    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_dict(cls: type[P], raw: Mapping[str, Any], **more: Any) -> P:
        """Reads the JSON object of an answer."""
        known = {each.name: each for each in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, value in raw.items():
            described = known.get(key)
            if described is None or key in _OURS or key in more:
                extra[key] = value
                continue
            read = described.metadata.get("read")
            if read is None:
                values[key] = tuple(value) if isinstance(value, list) else value
            else:
                values[key] = read(value)
        return cls(**values, **more, extra=extra, raw=dict(raw))

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, as the program prints it."""
        document: dict[str, Any] = copied(self.raw)
        return document

    def __getitem__(self, key: str) -> Any:
        """A value by its JSON name, whether this class has a field for it or not: ``answer["step_ms"]``."""
        return self.raw[key]


_OURS = frozenset({"extra", "raw"})
