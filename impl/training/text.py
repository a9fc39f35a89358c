"""Text to learn: of a seeded grammar, or a corpus of the user's; windows of it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Int
from numpy.lib.stride_tricks import sliding_window_view

from assay.impl.training.data import DataError, Examples, Problem

Grammar = Mapping[str, tuple[str, ...]]

GRAMMAR: Grammar = {
    "SENTENCE": (
        "ONE SEES OTHER.\n",
        "MANY SEE OTHER.\n",
        "ONE SLEEPS, and MANY SLEEP WHERE.\n",
        "WHERE, ONE SLEEPS.\n",
    ),
    "ONE": ("the KIND BEING", "a KIND BEING"),
    "MANY": ("the KIND BEINGs", "two KIND BEINGs", "some KIND BEINGs"),
    "OTHER": ("the THING", "ONE", "MANY"),
    "SEES": ("sees", "follows", "greets", "paints"),
    "SEE": ("see", "follow", "greet", "paint"),
    "SLEEPS": ("sleeps", "sings", "waits"),
    "SLEEP": ("sleep", "sing", "wait"),
    "WHERE": ("by the river", "in the garden", "under the moon"),
    "KIND": ("quiet", "brown", "young", "little"),
    "BEING": ("dog", "bird", "king", "cat", "sailor"),
    "THING": ("river", "garden", "moon", "boat"),
}
"""Capitals stand for one of their phrases, each as likely. Verbs agree with what came before them,
so that what comes next is known better from more context. No text has two derivations.
"""

LENGTH = 40_000
"""Characters that are written where no context needs more."""

JUDGED = 64
"""Windows that are held out, at most."""

SYMBOL = re.compile("[A-Z]+")


def write(grammar: Grammar, symbol: str, rng: np.random.Generator) -> str:
    """One phrase of a symbol."""
    phrase = grammar[symbol][rng.integers(len(grammar[symbol]))]
    return SYMBOL.sub(lambda found: write(grammar, found[0], rng), phrase)


def entropy_and_length(grammar: Grammar, symbol: str) -> tuple[float, float]:
    """Of a phrase of a symbol: its entropy in nats and its mean length, if it has one derivation.

    Choices are independent, so that their entropies add up: ln n of this one, and in the mean those
    of the phrase that is chosen.

    >>> entropy_and_length({"A": ("B!", "?"), "B": ("xx", "y")}, "A")[1]
    1.75
    """
    phrases = grammar[symbol]
    entropy, length = math.log(len(phrases)), 0.0
    for phrase in phrases:
        parts = [entropy_and_length(grammar, found) for found in SYMBOL.findall(phrase)]
        entropy += sum(part[0] for part in parts) / len(phrases)
        own = len(SYMBOL.sub("", phrase))
        length += (own + sum(part[1] for part in parts)) / len(phrases)
    return entropy, length


def entropy_rate(grammar: Grammar = GRAMMAR) -> float:
    """Nats per character of a long text: no model's expected loss is lower.

    Source: C. Shannon, "A mathematical theory of communication" (1948), section 7.
    """
    entropy, length = entropy_and_length(grammar, "SENTENCE")
    return entropy / length


def composed(seed: int, length: int) -> str:
    """A text of the grammar, cut to ``length`` characters."""
    rng, sentences, written = np.random.default_rng(seed), [], 0
    while written < length:
        sentences.append(write(GRAMMAR, "SENTENCE", rng))
        written += len(sentences[-1])
    return "".join(sentences)[:length]


def read(file: Path) -> str:
    """A corpus. DataError when it is empty or not UTF-8; OSError when it cannot be read."""
    raw = file.read_bytes()
    if not raw:
        raise DataError(f"{file}: 0 bytes must be a text; valid: UTF-8 that is not empty")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file}: byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8; "
            "valid: text in UTF-8"
        ) from error


def encode(text: str) -> tuple[Int[np.ndarray, " n"], str]:
    """Identifiers, and the sorted characters that they stand for.

    >>> ids, alphabet = encode("abca")
    >>> ids.tolist(), alphabet
    ([0, 1, 2, 0], 'abc')
    """
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    found, ids = np.unique(points, return_inverse=True)
    return ids.astype(np.int64), "".join(map(chr, found))


def windows(ids: Int[np.ndarray, " n"], context: int) -> Examples:
    """Every stretch of ``context`` characters, and those that follow each of them; no copy."""
    found = sliding_window_view(ids, context + 1)
    return Examples(found[:, :-1], found[:, 1:])


def problem(origin: str, text: str, vocabulary: int, context: int) -> Problem:
    """The first nine tenths are learnt, the rest is held out.

    DataError when one part is shorter than a window, or the model has too few symbols.
    """
    # At the least length each part holds one window.
    least = 10 * (context + 1)
    if len(text) < least:
        raise DataError(
            f"{origin}: {len(text)} characters are too few for context={context}; "
            f"valid: {least} or more"
        )
    ids, alphabet = encode(text)
    if len(alphabet) > vocabulary:
        beyond = alphabet[vocabulary:][:8]
        raise DataError(
            f"{origin}: {len(alphabet)} distinct characters exceed vocabulary={vocabulary}, from "
            f"{beyond!r} on; valid: --set vocabulary={len(alphabet)} or more"
        )
    end = len(ids) * 9 // 10
    held = windows(ids[end:], context).rows(slice(None, None, context))
    return Problem(origin, windows(ids[:end], context), held.rows(slice(JUDGED)), alphabet)


def generated(seed: int, vocabulary: int, context: int) -> Problem:
    """A text of the grammar."""
    length = max(LENGTH, 20 * (context + 1))
    found = problem("a text of the grammar", composed(seed, length), vocabulary, context)
    return replace(found, floor=entropy_rate())
