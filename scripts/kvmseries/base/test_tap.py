"""Lines of TAP."""

import pytest

from kvmseries.base import tap


@pytest.mark.parametrize(
    "line, wanted",
    [
        ("ok 1 /aarch64/a", ("/aarch64/a", True, False)),
        ("not ok 2 /aarch64/a", ("/aarch64/a", False, False)),
        ("ok 3 /a # SKIP no KVM", ("/a", True, True)),
        ("ok 3 /a#skip", ("/a", True, True)),
        ("ok 4 /a # took 3 s", ("/a", True, False)),
        ("not ok 5", ("", False, False)),
        ("ok 6 exits, 2 of 3", ("exits, 2 of 3", True, False)),
    ],
)
def test_results(line, wanted):
    assert [tuple(one) for one in tap.results(f"TAP version 13\n{line}\n1..1\n")] == [wanted]


def test_the_results_of_an_output_in_order():
    text = "ok 1 /a\n# ok 9 /x\nokay 1 /y\nnot ok /z\nnok 1 /z\nok 1/a\nnot ok 2 /b\n\nok 3 /c # SKIP\n"
    assert [one.name for one in tap.results(text)] == ["/a", "/b", "/c"]


@pytest.mark.parametrize(
    "line, is_tap, told",
    [
        ("TAP version 13", True, False),
        ("1..12", True, False),
        ("ok 1", True, False),
        ("ok 1 a", True, True),
        ("not ok 1 a # SKIP", True, True),
        ("# Totals: pass:1 fail:0", True, True),
        ("# Planned tests != run tests", True, True),
        ("# why it failed", True, False),
        ("Populate memory time: 1.2s", False, False),
        ("1..x", False, False),
        ("#no", False, False),
        ("TAP version 13 and more", False, False),
        ("okay 1 a", False, False),
    ],
)
def test_lines(line, is_tap, told):
    assert (tap.line(line), tap.told(line)) == (is_tap, told)
