"""Foreign text on a terminal: nothing in it can move a cursor, colour a word or end a line."""

from __future__ import annotations

LONGEST = 2_000


def printable(text: str, most: int = LONGEST) -> str:
    """On one line, cut after ``most`` characters; what is not printable becomes U+FFFD."""
    if len(text) > most:
        text = f"{text[: most - 1]}…"
    words = " ".join(text.splitlines())
    return "".join(c if c.isprintable() else "\ufffd" for c in words)
