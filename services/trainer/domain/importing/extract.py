"""Extractive summaries: the sentences of consecutive captions that together say most, each thing once."""

import heapq
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_OPENING = re.compile(
    r"^The (?:image|video|frame|scene|picture)s? (?:showcases|shows|depicts|captures|features|displays|presents)\s+",
    re.IGNORECASE,
)
_MOOD = re.compile(
    r"\b(?:ambiance|atmosphere|mood|(?:environment|setting) (?:suggests|appears|seems))\b", re.IGNORECASE
)
_STOP_WORDS: Final = frozenset(
    """a an and appear appears are as at be been being by can could for from has have he her his image in into is it its
    of on or other seem seems she showcases some suggesting suggests that the their them there there's they this to was
    were which while who with""".split()  # noqa: SIM905 -- a list of sixty quoted words says less
)
_OPENING_MARKS = "'\"(“‘"
_FEWEST_WORDS = 3
_LEAD_BONUS = 2.0
_MOOD_MALUS = 0.4
_NEWS = 0.35


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a caption; `scale` turns the weight of its news into its worth, `leads` says it is the first."""

    text: str
    words: frozenset[str]
    leads: bool
    scale: float


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption read once: its sentences, and the content words of all of them."""

    sentences: tuple[Sentence, ...]
    words: frozenset[str]


def read_caption(text: str) -> Caption:
    """The sentences of a caption, without the phrase that every caption opens with."""
    plain = [words for part in _sentences(text) if (words := _plain(part))]
    sentences = tuple(_sentence(part, leads=number == 0) for number, part in enumerate(plain))
    return Caption(sentences, frozenset[str]().union(*(sentence.words for sentence in sentences)))


def content_words(text: str) -> frozenset[str]:
    """The words of a text that carry its content, in lower case."""
    return frozenset(_WORD.findall(text.casefold().replace("’", "'"))) - _STOP_WORDS


def difference(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard distance of two word sets: 0 for equal ones, 1 for ones that share nothing."""
    union = len(one | other)
    return 1.0 - len(one & other) / union if union else 0.0


def word_weights(texts: Sequence[frozenset[str]]) -> Mapping[str, float]:
    """Inverse document frequency of each word: what is in every caption of a video tells its parts apart least."""
    counts = Counter(word for words in texts for word in words)
    return {word: math.log1p(len(texts) / count) for word, count in counts.items()}


def summary(captions: Sequence[Caption], weights: Mapping[str, float], most_chars: int) -> str:
    """Sentences of the captions, at most `most_chars` long in all (one sentence at least).

    Sentences are taken greedily by the weight of the words that they add per square root of their length (maximum
    coverage under a budget, Lin and Bilmes 2010), a word counting by the number of captions that say it. A caption's
    first sentence counts double, since it says who does what; one about the mood counts less. A sentence of which
    less than a third is new is left out. Ties go to the earlier one. The text begins with the chosen first sentences
    by time; the details follow by time.
    """
    sentences = _different([sentence for caption in captions for sentence in caption.sentences])
    support = Counter(word for caption in captions for word in caption.words)
    value = {word: weights.get(word, 1.0) * math.sqrt(count) for word, count in support.items()}
    chosen = _chosen(sentences, value, most_chars)
    in_order = sorted(chosen, key=lambda place: (not sentences[place].leads, place))
    return " ".join(sentences[place].text for place in in_order)


def _chosen(sentences: Sequence[Sentence], value: Mapping[str, float], most_chars: int) -> list[int]:
    """Lazy greedy selection (Minoux 1978): a sentence's worth only falls, so the best one known may be stale."""
    waiting = [(-sentence.scale * _weight(sentence.words, value), place) for place, sentence in enumerate(sentences)]
    heapq.heapify(waiting)
    chosen: list[int] = []
    covered: set[str] = set()
    room = most_chars
    while waiting:
        _, place = heapq.heappop(waiting)
        sentence = sentences[place]
        news = _weight(sentence.words - covered, value)
        now = (-sentence.scale * news, place)
        if waiting and now > waiting[0]:
            heapq.heappush(waiting, now)
        elif not chosen or (len(sentence.text) < room and news > _NEWS * _weight(sentence.words, value)):
            chosen.append(place)
            covered |= sentence.words
            room -= len(sentence.text) + 1
    return chosen


def _different(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Each text once, where it stands first."""
    first: dict[str, Sentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.text, sentence)
    return list(first.values())


def _sentences(text: str) -> list[str]:
    """Abbreviations and numbers end no sentence: `The sign reads 'HEX MNT. TR. NO. 1343'.` is one."""
    found: list[str] = []
    for part in _SENTENCE_END.split(text.strip()):
        if found and (len(part.split()) < _FEWEST_WORDS or not part.lstrip(_OPENING_MARKS)[:1].isalpha()):
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found


def _sentence(text: str, *, leads: bool) -> Sentence:
    factor = (_LEAD_BONUS if leads else 1.0) * (_MOOD_MALUS if _MOOD.search(text) else 1.0)
    return Sentence(text, content_words(text), leads, factor / math.sqrt(len(text)))


def _plain(sentence: str) -> str:
    rest = _OPENING.sub("", sentence.strip())
    return rest[:1].upper() + rest[1:]


def _weight(words: frozenset[str] | set[str], value: Mapping[str, float]) -> float:
    # Exact, so that the order in which a set gives its words, another in each process, decides no tie.
    return math.fsum(value.get(word, 0.0) for word in words)
