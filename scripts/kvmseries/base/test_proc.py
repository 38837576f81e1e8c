"""Which locale the programs that the tool runs see."""

import pytest

from kvmseries.base import proc

NAMES = ("LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES")


@pytest.mark.parametrize("language", ["de_DE.UTF-8", "C", None])
def test_programs_see_the_same_locale_whatever_the_users_is(monkeypatch, language):
    """ccache hashes these four: for a user with another one it would compile all again."""
    for name in NAMES:
        if language:
            monkeypatch.setenv(name, language)
        else:
            monkeypatch.delenv(name, raising=False)
    seen = [line for line in proc.run(["env"], "env").splitlines() if line.startswith(("LANG=", "LC_"))]
    assert sorted(seen) == ["LANG=C.UTF-8", "LC_ALL=C"]


def test_what_a_caller_sets_goes_before():
    assert "LC_ALL=de_DE.UTF-8" in proc.run(["env"], "env", env={"LC_ALL": "de_DE.UTF-8"}).splitlines()
