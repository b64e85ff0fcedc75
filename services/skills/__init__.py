"""The text of a skill: names, front matter, protected regions, hashing. Pure.

A skill is a Markdown file with YAML front matter and a body. Inside the body two marked blocks may stand, each written
by one part of the training only: APPENDIX (reminders for rules that were right and not followed) and MOMENTUM (what an
epoch taught). Everything here works on text with LF line ends; `normalise_newlines` makes it so.
"""

from services.skills.names import DEFAULT_SKILL_FILE, skill_file, slug
from services.skills.regions import (
    BLOCKS,
    MARKERS,
    Span,
    block_content,
    block_spans,
    fence_spans,
    front_matter_span,
    holds_marker,
    marker_faults,
    open_fence,
    protected_spans,
    replace_block,
    section_spans,
)
from services.skills.skill import Skill, SkillFormatError, parse_skill
from services.skills.text import normalise_newlines, text_sha256

__all__ = [
    "BLOCKS",
    "DEFAULT_SKILL_FILE",
    "MARKERS",
    "Skill",
    "SkillFormatError",
    "Span",
    "block_content",
    "block_spans",
    "fence_spans",
    "front_matter_span",
    "holds_marker",
    "marker_faults",
    "normalise_newlines",
    "open_fence",
    "parse_skill",
    "protected_spans",
    "replace_block",
    "section_spans",
    "skill_file",
    "slug",
    "text_sha256",
]
