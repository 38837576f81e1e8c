import contextlib
import re

import pytest

from kvmseries.base.errors import Fail, Usage
from kvmseries.conftest import write
from kvmseries.kernel import kconfig


@pytest.fixture
def fragments(tmp_path, monkeypatch):
    """configs/ of the test's own: fragments(normal="...", debug="...")."""
    monkeypatch.setattr(kconfig, "CONFIGS", tmp_path / "configs")

    def make(**texts):
        for stem, text in {"normal": "", "arm64": "", "x86_64": "", **texts}.items():
            write(tmp_path / f"configs/{stem}.config", text)

    return make


@pytest.mark.parametrize("version", ["5.10.262", "7.3.4"])
@pytest.mark.parametrize("arch", ["arm64", "x86_64"])
def test_the_fragments_of_the_repository_load(arch, version):
    """But for those that are for the other architecture."""
    loaded = set()
    for overlay in kconfig.overlays():
        with contextlib.suppress(Usage):
            config = kconfig.load(arch, [overlay], version)
            assert config.wanted["CONFIG_KVM"] == "y" and config.name == overlay
            loaded.add(overlay)
    assert loaded >= {"normal", "lockstat", "debug"}
    assert ("64k" in loaded, "kcsan" in loaded) == (arch == "arm64", (arch, version) != ("arm64", "5.10.262"))


@pytest.mark.parametrize(
    "version, symbols",
    [
        ("5.9.1", {"BEFORE", "BEFORE10"}),
        ("5.10.262", {"BEFORE10", "SINCE", "ONLY"}),
        ("5.11.0", {"BEFORE10", "SINCE"}),
        ("6.1.2", {"SINCE"}),
        ("10.0.1", {"SINCE", "TEN"}),
    ],
)
def test_limits_compare_versions_as_numbers(fragments, version, symbols):
    fragments(
        normal="CONFIG_SINCE=y # since 5.10\nCONFIG_BEFORE=y # before 5.10\n"
        "CONFIG_ONLY=y # only 5.10\nCONFIG_TEN=y # since 10.0\n"
        "CONFIG_BEFORE10=y # before 6.1\n"
    )
    config = kconfig.load("arm64", [], version)
    assert set(config.wanted) == {f"CONFIG_{name}" for name in symbols}
    assert set(re.findall(r"CONFIG_\w+", config.text)) == set(config.wanted)


def test_the_later_fragment_wins(fragments):
    fragments(
        normal="CONFIG_A=y\nCONFIG_B=4\n", arm64="CONFIG_B=8\n", one="# CONFIG_A is not set\n", two="CONFIG_A=m\n"
    )
    assert kconfig.load("arm64", [], "5.10.1").wanted == {"CONFIG_A": "y", "CONFIG_B": "8"}
    assert kconfig.load("arm64", ["one"], "5.10.1").wanted["CONFIG_A"] == "n"
    assert kconfig.load("arm64", ["one", "two"], "5.10.1").wanted["CONFIG_A"] == "m"
    assert kconfig.load("arm64", ["two", "one"], "5.10.1").wanted["CONFIG_A"] == "n"
    # kconfig itself takes the last line of the text, too.
    assert kconfig.load("arm64", ["one", "two"], "5.10.1").text.rstrip().endswith("CONFIG_A=m")


def test_a_fragment_is_written_as_kconfig_reads_it(fragments):
    fragments(normal='# CONFIG_A is not set\nCONFIG_S="a b"\n', debug="# cmdline: page_poison=1\n")
    config = kconfig.load("arm64", ["debug"], "5.10.1")
    assert config.text == '# CONFIG_A is not set\nCONFIG_S="a b"\n'
    assert config.wanted == {"CONFIG_A": "n", "CONFIG_S": '"a b"'} and config.cmdline == ("page_poison=1",)
    assert kconfig.load("arm64", [], "5.10.1").cmdline == ()


def test_names_are_those_of_the_overlays_once_each(fragments):
    fragments(one="", two="")
    assert kconfig.load("arm64", [], "5.10.1").name == "normal"
    assert kconfig.load("arm64", ["normal", "two", "one", "two"], "5.10.1").name == "two+one"
    for name in ("nope", "arm64", "x86_64", "../normal", ""):
        with pytest.raises(Usage, match=f"unknown config '{name}': there is normal, one, two$"):
            kconfig.load("arm64", [name], "5.10.1")


def test_a_config_of_another_arch_is_refused(fragments):
    fragments(races="# arch: x86_64\nCONFIG_KCSAN=y\n", some="# arch: x86_64 # before 5.17\nCONFIG_KCSAN=y\n")
    for arch, name, version in (("x86_64", "races", "5.10.1"), ("arm64", "some", "5.17.0")):
        assert kconfig.load(arch, [name], version).wanted == {"CONFIG_KCSAN": "y"}
    for name, more in (("races", ""), ("some", " in linux 5.16.9")):
        with pytest.raises(Usage, match=f"config '{name}' is for x86_64, not for arm64{more}$"):
            kconfig.load("arm64", [name], "5.16.9")


@pytest.mark.parametrize(
    "line", ["CONFIG_A", "CONFIG_A=y # from 5.10", "CONFIG_A=y z", "CONFIG_A = y", "CONFIG_A=y # since 5"]
)
def test_a_line_that_is_none_is_quoted(fragments, line):
    fragments(bad=f"{line}\n")
    with pytest.raises(Fail, match=re.escape(f"bad.config: '{line}' is not a line of a fragment")):
        kconfig.load("arm64", ["bad"], "5.10.1")


@pytest.mark.parametrize(
    "dotconfig, wrong",
    [
        ("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=12\nCONFIG_MORE=y\n", ""),
        ("# CONFIG_A is not set\nCONFIG_C=12\n", "CONFIG_A=y"),
        ("CONFIG_C=12\n", "CONFIG_A=y"),
        ("CONFIG_A=m\nCONFIG_C=12\n", "CONFIG_A=y"),
        ("CONFIG_A=y\nCONFIG_C=128\n", "CONFIG_C=12"),
        ("CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=12\n", "CONFIG_B off"),
        ("", "CONFIG_A=y, CONFIG_C=12"),
    ],
)
def test_what_did_not_take_is_named(fragments, dotconfig, wrong):
    fragments(normal="CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=12\n# CONFIG_GONE is not set\n")
    config = kconfig.load("arm64", [], "5.10.1")
    if not wrong:
        kconfig.check(config, dotconfig)
        return
    with pytest.raises(Fail, match=f"config normal: this kernel does not take {wrong}:"):
        kconfig.check(config, dotconfig)
