"""The variables that make an engine a target of chaos: a preloaded library, its page, its consent.

The library is given by its path, so that the rig's engine knows nothing of the package that breaks
it. The supervisor does not load it: what keeps an engine running must not be broken with it.
"""

from collections.abc import Mapping
from pathlib import Path

PRELOAD = "LD_PRELOAD"
PAGE, TARGET = "MODELPROBE_CHAOS_PAGE", "MODELPROBE_CHAOS_TARGET"


def environment(
    library: Path | None, page: Path | None, target: str | None, environ: Mapping[str, str]
) -> dict[str, str]:
    """Variables of the engine, none without a library; a preload of `environ` stays, after ours.

    Raises ValueError for what the loader would pass over in silence, and for one without the rest.
    """
    if library is None and page is None and target is None:
        return {}
    if library is None or page is None or not target:
        raise ValueError("--preload, --page and --target go together: give all three or none")
    if not library.is_file():
        raise ValueError(f"--preload {library}: there is no such file; build it first")
    path = str(library.absolute())
    if set(path) & set(" :"):
        raise ValueError(f"--preload {path}: LD_PRELOAD parts at spaces and colons; move the file")
    if not page.parent.is_dir():
        raise ValueError(f"--page {page}: {page.parent} is no folder; make it first")
    before = environ.get(PRELOAD, "")
    preload = f"{path}:{before}" if before else path
    return {PRELOAD: preload, PAGE: str(page.absolute()), TARGET: target}
