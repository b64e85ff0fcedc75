"""Prompt templates: Markdown whose YAML front matter declares placeholders and the schema of the answer.

Pure, but for `read_folder`.
"""

from services.templates.folder import file_name, read_folder, template_name
from services.templates.template import (
    MissingTemplatesError,
    RenderError,
    Template,
    TemplateFormatError,
    TemplateSet,
    parse_template,
)

__all__ = [
    "MissingTemplatesError",
    "RenderError",
    "Template",
    "TemplateFormatError",
    "TemplateSet",
    "file_name",
    "parse_template",
    "read_folder",
    "template_name",
]
