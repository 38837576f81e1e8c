"""hold_vm, which a guest runs before its job: it creates a VM while no other CPU runs the scheduler, and keeps it.

hold_vm.c says what for.  It is for emulated CPUs of arm64: x86_64.config has no branches that are patched.
"""

import hashlib
from pathlib import Path

from ..base import files, paths, proc
from ..base.progress import say
from ..kernel import toolchain

SOURCE = paths.TESTS / "guest/hold_vm.c"
ARCH = "arm64"
# Of a job: it fails where there is no VM.
LINE = '/hold_vm || echo "@@ error hold_vm: no VM"'


def program() -> Path:
    """Path of the static program hold_vm for arm64, built or found built."""
    made_from = hashlib.sha256(f"{toolchain.version(ARCH)}\n{SOURCE.read_text(encoding='utf-8')}".encode()).hexdigest()
    target = paths.out("guest", f"hold_vm-{made_from[:12]}")
    with paths.locked("hold_vm", say):
        if not target.exists():
            with files.whole(target) as part:
                flags = "-O2 -static -Wall -Wextra -o".split()
                proc.run([f"{toolchain.prefix(ARCH)}gcc", *flags, str(part), str(SOURCE)], "building hold_vm")
    return target
