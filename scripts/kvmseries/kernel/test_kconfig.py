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
    for overlay in ["normal", *kconfig.overlays()]:
        text = (kconfig.CONFIGS / f"{overlay}.config").read_text(encoding="utf-8")
        only = re.search(r"^# arch: (\w+)( # before 5.17)?$", text, re.M)
        assert bool(only) == ("\n# arch: " in text.replace("# arch: NAME", ""))
        if only and only[1] != arch and (version.startswith("5.10") or not only[2]):
            with pytest.raises(Usage, match=f"config '{overlay}' is for {only[1]}, not for {arch}"):
                kconfig.load(arch, [overlay], version)
            continue
        config = kconfig.load(arch, [overlay], version)
        assert config.wanted["CONFIG_KVM"] == "y"
        assert config.name == overlay
        # Every line that is not a comment was understood: each lands in the text.
        lines = [line for line in text.splitlines() if line.startswith("CONFIG_")]
        assert lines
        assert all(line.split("=")[0] in config.text for line in lines if " # " not in line)


def test_the_limits_of_the_repository_pick_one_preemption_model():
    old = kconfig.load("arm64", [], "5.10.262").wanted
    new = kconfig.load("arm64", [], "7.3.4").wanted
    assert "CONFIG_PREEMPT_VOLUNTARY" in old and "CONFIG_PREEMPT_LAZY" not in old
    assert "CONFIG_PREEMPT_LAZY" in new and "CONFIG_PREEMPT_VOLUNTARY" not in new


def test_the_overlays_that_the_issue_names_are_there():
    assert {"normal", "lockstat", "debug", "kcsan", "64k"} <= set(kconfig.overlays())


def test_debug_asks_for_page_poisoning_on_the_command_line():
    assert "page_poison=1" in kconfig.load("arm64", ["debug"], "5.10.262").cmdline
    assert kconfig.load("arm64", [], "5.10.262").cmdline == ()


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


def test_unset_is_written_as_kconfig_reads_it(fragments):
    fragments(normal="# CONFIG_A is not set\n")
    assert kconfig.load("arm64", [], "5.10.1").text == "# CONFIG_A is not set\n"


def test_names_are_those_of_the_overlays_once_each(fragments):
    fragments(one="", two="")
    assert kconfig.load("arm64", [], "5.10.1").name == "normal"
    assert kconfig.load("arm64", ["normal", "two", "one", "two"], "5.10.1").name == "two+one"


def test_an_unknown_config_is_answered_with_those_that_there_are(fragments):
    fragments(one="")
    with pytest.raises(Usage, match="unknown config 'nope': there is normal, one$"):
        kconfig.load("arm64", ["nope"], "5.10.1")


@pytest.mark.parametrize("name", ["arm64", "x86_64", "../normal", ""])
def test_an_arch_is_no_config(fragments, name):
    fragments()
    with pytest.raises(Usage, match="unknown config"):
        kconfig.load("arm64", [name], "5.10.1")


def test_a_config_of_another_arch_is_refused(fragments):
    fragments(races="# arch: x86_64\nCONFIG_KCSAN=y\n")
    assert kconfig.load("x86_64", ["races"], "5.10.1").wanted == {"CONFIG_KCSAN": "y"}
    with pytest.raises(Usage, match="config 'races' is for x86_64, not for arm64$"):
        kconfig.load("arm64", ["races"], "5.10.1")


def test_a_config_may_be_of_another_arch_in_some_kernels_only(fragments):
    fragments(races="# arch: x86_64 # before 5.17\nCONFIG_KCSAN=y\n")
    assert kconfig.load("arm64", ["races"], "5.17.0").wanted == {"CONFIG_KCSAN": "y"}
    with pytest.raises(Usage, match="config 'races' is for x86_64, not for arm64 in linux 5.16.9$"):
        kconfig.load("arm64", ["races"], "5.16.9")


@pytest.mark.parametrize(
    "line", ["CONFIG_A", "CONFIG_A=y # from 5.10", "CONFIG_A=y z", "CONFIG_A = y", "CONFIG_A=y # since 5"]
)
def test_a_line_that_is_none_is_quoted(fragments, line):
    fragments(bad=f"{line}\n")
    with pytest.raises(Fail, match=re.escape(f"bad.config: '{line}' is not a line of a fragment")):
        kconfig.load("arm64", ["bad"], "5.10.1")


def test_strings_with_spaces_are_values(fragments):
    fragments(normal='CONFIG_S="a b"\n')
    assert kconfig.load("arm64", [], "5.10.1").wanted == {"CONFIG_S": '"a b"'}


def test_check_is_content_when_every_symbol_took(fragments):
    fragments(normal="CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=12\n# CONFIG_GONE is not set\n")
    kconfig.check(
        kconfig.load("arm64", [], "5.10.1"), "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=12\nCONFIG_MORE=y\n"
    )


@pytest.mark.parametrize(
    "dotconfig, wrong",
    [
        ("# CONFIG_A is not set\nCONFIG_C=12\n", "CONFIG_A=y"),
        ("CONFIG_C=12\n", "CONFIG_A=y"),
        ("CONFIG_A=m\nCONFIG_C=12\n", "CONFIG_A=y"),
        ("CONFIG_A=y\nCONFIG_C=128\n", "CONFIG_C=12"),
        ("CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=12\n", "CONFIG_B off"),
        ("", "CONFIG_A=y, CONFIG_C=12"),
    ],
)
def test_check_names_what_did_not_take(fragments, dotconfig, wrong):
    fragments(normal="CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=12\n")
    with pytest.raises(Fail, match=f"config normal: this kernel does not take {wrong}:"):
        kconfig.check(kconfig.load("arm64", [], "5.10.1"), dotconfig)
