"""A template, a set of them, and the errors they fail with.

TemplateFormatError   a file is no template: front matter, placeholders or schema are wrong
MissingTemplatesError required templates are missing or empty (all names at once)
RenderError           render() was given too few or too many values
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from services.templates.folder import file_name

_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\n((?:.*\n)*?)---[ \t]*(?:\n|\Z)")
_PLACEHOLDER = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")
_KEYS = {"name", "placeholders", "output"}
# The library passes on what fails inside it: a 13th month, a tag that its value doesn't fit, thousands of digits.
_NO_YAML = (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class TemplateFormatError(ValueError):
    """A file that is not a template; `faults` lists everything that is wrong with it."""

    def __init__(self, name: str, faults: tuple[str, ...]) -> None:
        self.name = name
        self.faults = faults
        super().__init__(f"template {name}: {'; '.join(faults)}")


class MissingTemplatesError(ValueError):
    """Required templates that are missing or empty; `names` lists all of them."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        super().__init__(f"templates missing or empty: {', '.join(names)}")


class RenderError(ValueError):
    """Values that don't match the placeholders of a template."""


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with named gaps.

    `output_schema` is the JSON schema of the answer, or None where the answer is plain text.
    """

    name: str
    placeholders: tuple[str, ...]
    output_schema: Mapping[str, Any] | None
    text: str
    _validator: Draft202012Validator | None = field(default=None, repr=False, compare=False)

    def render(self, **values: str) -> str:
        """Return the text with every placeholder filled in; a value is never expanded again.

        Raises RenderError naming each missing and each unknown value.
        """
        missing = sorted(set(self.placeholders) - values.keys())
        unknown = sorted(values.keys() - set(self.placeholders))
        if missing or unknown:
            raise RenderError(f"template {self.name}: missing values {missing}, unknown values {unknown}")
        return _PLACEHOLDER.sub(lambda gap: values[gap[1]], self.text)

    def answer_faults(self, answer: object) -> tuple[str, ...]:
        """Return how a decoded JSON answer departs from `output_schema`, with paths; () if it conforms."""
        if self._validator is None:
            return () if isinstance(answer, str) else ("the answer must be text",)
        found = sorted(self._validator.iter_errors(answer), key=lambda fault: list(map(str, fault.absolute_path)))
        return tuple(f"{fault.json_path}: {fault.message[:300]}" for fault in found)


def parse_template(name: str, text: str) -> Template:
    """Return the template that `text` holds; raises TemplateFormatError with every fault.

    The front matter declares exactly `name`, `placeholders` (a list) and `output` (`text` or a JSON schema, draft
    2020-12). Declared and used placeholders must be the same set.
    """
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    fields, body = _split(name, normal)
    declared = fields.get("placeholders")
    output = fields.get("output")
    faults = [f"front matter: {key} is missing" for key in sorted(_KEYS - fields.keys())]
    faults += [f"front matter: unknown key {key}" for key in sorted(map(str, fields.keys() - _KEYS))]
    if "name" in fields and fields["name"] != name:
        faults.append(f"front matter says name {fields['name']!r}")
    faults += _placeholder_faults(declared, set(_PLACEHOLDER.findall(body)))
    faults += _schema_faults(output)
    if not body.strip():
        faults.append("the text is empty")
    if faults or not isinstance(declared, list):
        raise TemplateFormatError(name, tuple(faults))
    schema = output if isinstance(output, dict) else None
    validator = Draft202012Validator(schema) if schema is not None else None
    return Template(name, tuple(declared), schema, body.strip("\n"), validator)


def _split(name: str, text: str) -> tuple[dict[str, Any], str]:
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise TemplateFormatError(name, ("no front matter between two --- lines",))
    try:
        fields = yaml.safe_load(found[1])
    except _NO_YAML as error:
        raise TemplateFormatError(name, (f"front matter is not YAML: {' '.join(str(error).split())}",)) from error
    if not isinstance(fields, dict):
        raise TemplateFormatError(name, ("front matter is not a mapping of keys to values",))
    return fields, text[found.end() :]


def _is_empty(text: str) -> bool:
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    return not _FRONT_MATTER.sub("", normal, count=1).strip()


def _placeholder_faults(declared: object, used: set[str]) -> list[str]:
    if not isinstance(declared, list) or not all(isinstance(item, str) for item in declared):
        return ["front matter: placeholders must be a list of names"]
    twice = sorted({item for item in declared if declared.count(item) > 1})
    faults = [f"placeholder {item} is declared twice" for item in twice]
    faults += [f"placeholder {item} is declared and not used" for item in sorted(set(declared) - used)]
    return faults + [f"placeholder {item} is used and not declared" for item in sorted(used - set(declared))]


def _schema_faults(output: object) -> list[str]:
    if output == "text":
        return []
    if not isinstance(output, dict):
        return ["front matter: output must be `text` or a JSON schema object"]
    try:
        Draft202012Validator.check_schema(output)
    except SchemaError as error:
        return [f"front matter: output is no JSON schema: {error.message}"]
    return []


@dataclass(frozen=True, slots=True)
class TemplateSet:
    """Templates by name, all of the required ones present."""

    templates: Mapping[str, Template]

    @classmethod
    def load(cls, files: Mapping[str, str], required: Iterable[str]) -> "TemplateSet":
        """Return the required templates out of `files` ({flat file name: text}).

        A file that has nothing after its front matter is empty. Raises MissingTemplatesError with the names of all that
        are missing or empty, else TemplateFormatError for the first that is malformed.
        """
        names = sorted(set(required))
        absent = tuple(name for name in names if _is_empty(files.get(file_name(name), "")))
        if absent:
            raise MissingTemplatesError(absent)
        return cls({name: parse_template(name, files[file_name(name)]) for name in names})

    def __getitem__(self, name: str) -> Template:
        return self.templates[name]
