"""The words that the tiny model can say and that the load generator asks with.

Both sides share the list, so that one word is one token and prompt lengths are exact.
"""

from dataclasses import dataclass

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6  # llama.cpp token types
WORDS: tuple[str, ...] = tuple(
    """
    the a one two some any each every no other first last next same new old good bad long short
    high low open near far early late small large whole half clear dark light warm cold quick slow
    quiet loud simple plain strange real true false right left main red blue green grey white black
    river stone house road field hill tree leaf wind rain snow cloud sun moon star night day morning
    evening winter summer hour minute week year city town street bridge door window wall room table
    chair lamp book page line word letter name number story song voice sound colour shape path map
    engine wheel train ship boat sail harbour island shore wave water fire smoke iron silver gold
    glass paper wood bread salt apple garden flower seed root bird horse dog cat fish friend child
    mother father sister brother doctor teacher farmer sailor writer reader people crowd market
    is was has had can could will would may might must should goes went comes came makes made takes
    took gives gave sees saw hears heard finds found keeps kept holds held turns turned opens opened
    closes closed waits waited walks walked runs ran stands stood falls fell grows grew asks asked
    answers answered tells told knows knew thinks thought reads wrote builds built carries carried
    and or but so then when where while because before after until since under over through across
    against between beside behind above below inside outside with without from into toward about
    again always never often soon still already almost only even very quite rather here there now
    this that these those what which who whose why how more most less least much many few enough
    """.split()  # noqa: SIM905  a list of quoted words is unreadable
)


@dataclass(frozen=True, slots=True)
class Token:
    """One vocabulary entry; `said` is whether the model may ever generate it."""

    text: str
    score: float
    kind: int
    said: bool = False


def vocabulary() -> tuple[Token, ...]:
    """Special tokens, 256 bytes, letters, then words with every prefix of theirs.

    A SentencePiece tokenizer joins neighbours only into tokens that it has, so a word is
    reached through its prefixes; those are read, never said.
    """
    tokens = [Token("<unk>", 0.0, UNKNOWN), Token("<s>", 0.0, CONTROL), Token("</s>", 0.0, CONTROL)]
    tokens += [Token(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    spoken = {f"▁{word}" for word in WORDS}
    parts = {word[:end] for word in spoken for end in range(1, len(word) + 1)}
    parts |= {chr(code) for code in range(0x21, 0x7F)}
    longest_first = sorted(parts, key=lambda part: (-len(part), part))
    tokens += [
        Token(part, float(-rank), NORMAL, part in spoken) for rank, part in enumerate(longest_first)
    ]
    return tuple(tokens)
