"""A TCG plugin of this project, compiled into the cache directory once for each state of its source."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ..base import debian, files, paths, proc
from ..base.errors import Fail
from ..base.progress import say
from ..kernel.build import Kernel

# The plugin interface's declarations, and what plugins for arm64 share.
API = paths.ROOT / "scripts/vtime/qemu_api.h"
AARCH64 = paths.TESTS / "tcg-plugin/aarch64.h"
FLAGS = "-D_GNU_SOURCE -O2 -Wall -Wextra -shared -fPIC -fvisibility=hidden".split()


def library(name: str, source: Path, libraries: Sequence[str], headers: Sequence[Path] = ()) -> Path:
    """Path of the shared object `name`, of all C files in the directory `source`, compiled if they have changed.

    libraries: gcc's arguments, as "-lpthread"; headers: files elsewhere that the source includes."""
    sources = sorted(source.glob("*.[ch]"))
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for file in (*sources, *headers):
        digest.update(file.read_bytes())
    target = paths.cache(f"{name}-{digest.hexdigest()[:12]}.so")
    with paths.locked(name, say, shared=True):
        if not target.exists():
            debian.install("vtime")
            proc.need("gcc")
            includes = [f"-I{header.parent}" for header in headers]
            texts = [str(file) for file in sources if file.suffix == ".c"]
            with files.whole(target) as part:
                proc.run(["gcc", *FLAGS, *includes, "-o", str(part), *texts, *libraries], f"compiling {source}")
    return target


def symbols(kernel: Kernel) -> str:
    """The text of the System.map of `kernel`; raises Fail if it has none."""
    table = next((folder / "System.map" for folder in kernel.image.parents if (folder / "System.map").exists()), None)
    if not table:
        raise Fail(f"{kernel.image} has no System.map beside it: build it with `scripts/series build`")
    return table.read_text(encoding="utf-8")
