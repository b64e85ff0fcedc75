"""Errors of AnswerQuestions as a whole; what goes wrong with one question becomes that question's record.

InferenceError
 ├── InvalidRequest (its own room)
 ├── NotFound           the store has no such workspace, version or question; `metadata` names it
 ├── UnusableVersion    a version's skills or prompts can't drive the agent
 ├── RecordRefused      the store refuses what it was given; inside a question's boundary as long as it can be
 └── StoreUnavailable   the store did not answer, so nothing could be read, or a record could not be made durable
"""

from services.inference.domain.errors import InferenceError


class NotFound(InferenceError):
    """The store has no such workspace, version or question."""


class UnusableVersion(InferenceError):
    """A version's skills or prompts can't drive the agent; the message lists what is missing or malformed."""


class RecordRefused(InferenceError):
    """The store refused a record for what it holds."""


class StoreUnavailable(InferenceError):
    """The store did not answer."""
