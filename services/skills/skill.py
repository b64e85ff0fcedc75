"""A skill file read into its parts."""

from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from services.skills.regions import Span, block_content, front_matter_span, protected_spans
from services.skills.text import normalise_newlines, text_sha256

_REQUIRED = ("name", "description", "task_type")
# The library passes on what fails inside it: a 13th month, a tag that its value doesn't fit, thousands of digits.
_NO_YAML = (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class SkillFormatError(ValueError):
    """A file that is not a skill; `faults` lists everything that is wrong with it."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        self.faults = faults
        super().__init__("; ".join(faults))


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill: its whole text (LF line ends) and what the front matter says."""

    text: str
    name: str
    description: str
    task_type: str

    @property
    def front_matter(self) -> str:
        """The front matter with both `---` lines."""
        return front_matter_span(self.text).of(self.text)

    @property
    def body(self) -> str:
        """Everything after the front matter, blocks included."""
        return self.text[front_matter_span(self.text).end :]

    @property
    def protected(self) -> tuple[Span, ...]:
        """Front matter and marked blocks, as spans of `text`."""
        return protected_spans(self.text)

    @property
    def appendix(self) -> str:
        """The reminders of the APPENDIX block, empty without one."""
        return block_content(self.text, "APPENDIX") or ""

    @property
    def momentum(self) -> str:
        """The content of the MOMENTUM block, empty without one."""
        return block_content(self.text, "MOMENTUM") or ""

    @property
    def sha256(self) -> str:
        """The fingerprint of the whole text."""
        return text_sha256(self.text)


def parse_skill(text: str) -> Skill:
    """Return the skill that `text` holds; raises SkillFormatError with every fault of its front matter."""
    normal = normalise_newlines(text)
    fields = _front_matter_fields(normal)
    faults = [
        f"front matter: {key} is missing or not text"
        for key in _REQUIRED
        if not isinstance(fields.get(key), str) or not str(fields[key]).strip()
    ]
    if faults:
        raise SkillFormatError(tuple(faults))
    return Skill(normal, *(str(fields[key]).strip() for key in _REQUIRED))


def _front_matter_fields(text: str) -> Mapping[str, object]:
    span = front_matter_span(text)
    if not span.end:
        raise SkillFormatError(("no front matter: the file must begin with a block between two --- lines",))
    inner = span.of(text).lstrip("\ufeff").strip().removeprefix("---").removesuffix("---")
    try:
        fields = yaml.safe_load(inner)
    except _NO_YAML as error:
        raise SkillFormatError((f"front matter is not YAML: {' '.join(str(error).split())}",)) from error
    if not isinstance(fields, dict):
        raise SkillFormatError(("front matter is not a mapping of keys to values",))
    return fields
