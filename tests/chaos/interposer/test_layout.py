"""The two mirrors of the page, and of the hooked names, are the same."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from chaos.interposer import layout, library
from chaos.interposer.symbols import SYMBOLS

from .conftest import compiled

STRUCTURES = {"page": layout.Layout, "rule": layout.RuleArea, "process": layout.ProcessArea}
NAMES = """
#include <stdio.h>
int main(void) {
#define CALL(kind, name, base, since, bytes, parameters, arguments) puts(#name);
#include "calls.h"
return 0; }
"""


def said(folder: Path, text: str) -> list[str]:
    """What a program of that text prints; skips without a compiler."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc not found: apt install gcc libc6-dev")
    (folder / "program.c").write_text(text)
    program = compiled(folder, "program", f"-I{library.HERE}", str(folder / "program.c"))
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()


def test_every_field_lies_where_the_header_has_it(tmp_path: Path) -> None:
    """Offset and size of each field of each structure, and the constants."""
    wanted, lines = [], []
    for name, structure in STRUCTURES.items():
        for field in structure._fields_:
            descriptor = getattr(structure, field[0])
            wanted += [str(descriptor.offset), str(descriptor.size)]
            at = f"struct {name}, {field[0]}"
            lines.append(
                f'printf("%zu %zu ", offsetof({at}), sizeof(((struct {name} *)0)->{field[0]}));'
            )
        wanted.append(str(ctypes.sizeof(structure)))
        lines.append(f'printf("%zu ", sizeof(struct {name}));')
    constants = "PAGE_MAGIC, PAGE_VERSION, PAGE_SIZE, RULES, PROCESSES, OWNER, OWNER_DIED"
    constants += ", ACT_ERROR, ACT_STICKY, ACT_DELAY, ACT_RESET, ACT_TRAP, LEASE_MOST"
    lines.append(
        f"unsigned long long all[] = {{ {constants} }};"
        'for (unsigned i = 0; i < sizeof(all) / 8; i++) printf("%llu ", all[i]);'
    )
    wanted += [
        str(number)
        for number in (
            layout.MAGIC, layout.VERSION, layout.SIZE, layout.RULES, layout.PROCESSES,
            layout.OWNER, layout.OWNER_DIED, *layout.ACTIONS.values(), 60 * 10**9,
        )
    ]  # fmt: skip
    text = '#include <stddef.h>\n#include <stdio.h>\n#include "page.h"\nint main(void) {\n'
    assert said(tmp_path, text + "\n".join(lines) + "return 0; }") == wanted


def test_both_name_the_same_functions_in_the_same_order(tmp_path: Path) -> None:
    """A function's place is its bit."""
    assert said(tmp_path, NAMES) == list(SYMBOLS)
