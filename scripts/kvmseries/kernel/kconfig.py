"""Kernel configurations from the fragments in tools-testing-selftests-kvm/configs/.

A configuration is normal.config, the architecture's, and the overlays named with --config, in that
order; of two lines about a symbol the last one counts.  normal.config says what the comments
`# since V`, `# before V`, `# only V`, `# arch: NAME` and `# cmdline: WORD` mean.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..base import paths
from ..base.errors import Fail, Usage
from ..source import catalog

CONFIGS = paths.TESTS / "configs"
_LIMIT = r"(?:\s+#\s*(since|before|only)\s+(\d+)\.(\d+))?\s*$"
_SET = re.compile(r"^(CONFIG_\w+)=(\S+|\"[^\"]*\")" + _LIMIT)
_ARCH = re.compile(r"^# arch: (\w+)" + _LIMIT, re.M)
_UNSET = re.compile(r"^# (CONFIG_\w+) is not set$")


def name(names: Iterable[str]) -> str:
    """The name of the configuration with the overlays `names`."""
    return "+".join(names) or "normal"


@dataclass(frozen=True)
class Config:
    """The fragments of one configuration, read."""

    names: tuple[str, ...]  # overlays, () for the normal kernel
    text: str  # for KCONFIG_ALLCONFIG
    wanted: dict[str, str]  # symbol -> value, "n" for one that must be off, for the kernel version
    cmdline: tuple[str, ...]  # words for the kernel command line

    @property
    def name(self) -> str:
        """ "normal", "lockstat", "debug+64k": names directories, and is a run's "config"."""
        return name(self.names)


def overlays() -> list[str]:
    """Names that --config takes."""
    return sorted({path.stem for path in CONFIGS.glob("*.config")} - set(catalog.ARCHES))


def load(arch: str, names: Iterable[str], version: str) -> Config:
    """The Config for `arch`, overlays `names` (a list; "normal" adds nothing) and kernel `version`
    ("5.10.262")."""
    known = overlays()
    for name in names:
        if name not in known:
            raise Usage(f"unknown config '{name}': there is {', '.join(known)}")
    names = tuple(dict.fromkeys(name for name in names if name != "normal"))
    major, minor = (int(part) for part in version.split(".")[:2])
    text, wanted, cmdline = [], {}, []
    for stem in ("normal", arch, *names):
        fragment = (CONFIGS / f"{stem}.config").read_text(encoding="utf-8")
        only = _ARCH.search(fragment)
        if only and only[1] != arch and _applies(only, (major, minor)):
            where = f" in linux {version}" if only[2] else ""
            raise Usage(f"config '{stem}' is for {only[1]}, not for {arch}{where}")
        cmdline += re.findall(r"^# cmdline: (\S+)$", fragment, re.M)
        for line in fragment.splitlines():
            symbol, value, applies = _parse(line, (major, minor), stem)
            if symbol and applies:
                wanted[symbol] = value
                text.append(f"# {symbol} is not set" if value == "n" else f"{symbol}={value}")
    return Config(names, "\n".join(text) + "\n", wanted, tuple(dict.fromkeys(cmdline)))


def _parse(line: str, version: tuple[int, int], stem: str) -> tuple[str, str, bool]:
    """(symbol, value, whether it is for kernel `version`) of a fragment's line; no symbol: ""."""
    if match := _UNSET.match(line):
        return match[1], "n", True
    if not line.startswith("CONFIG_"):
        return "", "", False
    if match := _SET.match(line):
        return match[1], match[2], _applies(match, version)
    raise Fail(f"{stem}.config: '{line}' is not a line of a fragment")


def _applies(match: re.Match[str], version: tuple[int, int]) -> bool:
    """Whether the limit that ends a line, the last three groups of `match`, lets it count for kernel `version`."""
    word, *number = match.groups()[-3:]
    if not word:
        return True
    limit = (int(number[0]), int(number[1]))
    return {"since": version >= limit, "before": version < limit, "only": version == limit}[word]


def check(config: Config, dotconfig: str) -> None:
    """Raise Fail unless every wanted symbol is in `dotconfig` (the text of .config) as wanted: a
    missing dependency turns a symbol off without a word."""
    found = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", dotconfig, re.M))
    wrong = [
        f"{symbol}={value}" if value != "n" else f"{symbol} off"
        for symbol, value in config.wanted.items()
        if found.get(symbol, "n") != value
    ]
    if wrong:
        why = "a dependency is missing in the fragment, or the symbol has another name"
        raise Fail(f"config {config.name}: this kernel does not take {', '.join(wrong)}: {why}")
