"""Builds the committed objects: ``python -m sidecar.probed.build [--into DIR]``.

Deterministic: the same clang gives the same bytes wherever the checkout lies, because no debug
path is kept. Line tables are stripped; BTF stays, since libbpf reads the maps from it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CLANG, STRIP = "clang-14", "llvm-strip-14"  # the version whose output is committed
STEMS = ("sched", "wire", "wire_tls.x86_64", "wire_tls.aarch64")
_MACHINES = {"x86_64": "x86", "aarch64": "arm64"}  # as the kernel's sources call them


def missing() -> str:
    """What a build lacks on this machine, empty when nothing."""
    names = [name for name in (CLANG, STRIP) if shutil.which(name) is None]
    if not Path("/usr/include/bpf/bpf_helpers.h").exists():
        names.append("libbpf-dev")
    return ", ".join(names)


def _kernel_headers() -> Path:
    """Where asm/types.h lies: the multiarch folder on Debian, /usr/include elsewhere."""
    found = sorted(Path("/usr/include").glob("*-linux-gnu/asm/types.h"))
    return found[0].parent.parent if found else Path("/usr/include")


def build(stem: str, into: Path) -> Path:
    """Compiles ``<stem>.bpf.c``, for a machine where the stem ends in its name (a probe that reads
    registers); raises CalledProcessError with clang's words on stderr.
    """
    source, _, machine = stem.partition(".")
    target = into / f"{stem}.bpf.o"
    flags = ["-target", "bpfel", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror"]
    if machine:
        flags.append(f"-D__TARGET_ARCH_{_MACHINES[machine]}")
    # Under this name clang finds no file, and so keeps no source lines in the BTF.
    paths = [f"-ffile-prefix-map={HERE}=probed", "-fdebug-compilation-dir=probed"]
    headers = ["-isystem", str(_kernel_headers())]
    subprocess.run(
        [CLANG, *flags, *paths, *headers, "-c", f"{source}.bpf.c", "-o", str(target.absolute())],
        cwd=HERE,
        check=True,
    )
    subprocess.run([STRIP, "-g", str(target)], check=True)
    return target


def main() -> int:
    """Builds every object; exit code 2 when a tool is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, default=HERE / "objects")
    into: Path = parser.parse_args().into
    if lacking := missing():
        sys.stderr.write(f"missing: {lacking}: apt install clang-14 llvm-14 libbpf-dev\n")
        return 2
    into.mkdir(parents=True, exist_ok=True)
    for stem in STEMS:
        path = build(stem, into)
        sys.stdout.write(f"{path} {path.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
