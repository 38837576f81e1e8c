"""kvm-series, as pip and pipx install it: runs scripts/series of the checkout that the working directory is in, so that
tool and patches always belong together."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def checkout(start: Path) -> Path | None:
    """The top of the checkout that the directory `start` is in; None if it is in none."""
    for folder in (start, *start.parents):
        if (folder / "scripts/series").is_file() and (folder / "patches").is_dir():
            return folder
    return None


def main() -> int:
    """Become scripts/series with the same arguments; 1 where there is none."""
    try:
        top = checkout(Path.cwd())
    except OSError as error:  # a working directory that was removed
        print(f"kvm-series: error: {error.strerror}: change to another directory", file=sys.stderr)
        return 1
    if top is None:
        print(
            "kvm-series: error: not in a checkout of the patch series: change to one (it has patches/ and scripts/series)",
            file=sys.stderr,
        )
        return 1
    program = str(top / "scripts/series")
    return os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
