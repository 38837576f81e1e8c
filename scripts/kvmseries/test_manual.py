"""The man page and the completions have every verb and every option."""

import argparse
import re
import subprocess

from kvmseries import manual
from kvmseries.conftest import wanted


def options(old=False):
    """Every option of every verb, without old names; or the old names alone, which -h does not have either."""
    found = set()
    for action in manual.parser()._actions:
        for sub in action.choices.values() if isinstance(action.choices, dict) else ():
            actions = [inner for inner in sub._actions if (inner.help == argparse.SUPPRESS) == old]
            found |= {option for inner in actions for option in inner.option_strings if option.startswith("--")}
    return found - {"--help"}


def verbs():
    return next(list(action.choices) for action in manual.parser()._actions if isinstance(action.choices, dict))


def test_the_man_page_has_every_verb_and_option():
    text = manual.man_page().replace("\\-", "-")
    assert len(verbs()) > 15 and len(options()) > 30
    assert [word for word in [*verbs(), *options()] if word not in text] == []
    assert options(old=True) == {"--kernel", "--points"}
    assert not re.search(r"--(kernel|points)\b", text)
    # Whoever has installed it calls it by its own name.
    assert "scripts/series" not in re.sub(r"[^\n]*Documentation[^\n]*", "", text).split("POSITIONAL")[0]


def test_the_man_page_is_right_for_man(tmp_path):
    wanted("groff")
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-ww", "-z"], input=manual.man_page(), text=True, capture_output=True, check=True
    )
    assert done.stderr == ""


def test_bash_completes_verbs_and_options(tmp_path):
    manual.write(tmp_path)
    script = tmp_path / manual.COMPLETIONS["bash"]
    function = re.search(r"complete .*-F (\w+)", script.read_text(encoding="utf-8"))[1]

    def completed(*words):
        line = " ".join(f"'{word}'" for word in words)
        return subprocess.run(
            [
                "bash",
                "-c",
                f"source '{script}'; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
                f"{function}; echo ${{COMPREPLY[@]}}",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()

    assert completed("kvm-series", "ben") == ["bench"]
    assert completed("kvm-series", "bench", "--vc") == ["--vcpus"]
    assert completed("kvm-series", "bench", "--nothing") == []


def test_every_file_is_where_its_shell_looks(tmp_path):
    assert [str(path.relative_to(tmp_path)) for path in manual.write(tmp_path)] == [
        "man/man1/kvm-series.1",
        "bash-completion/completions/kvm-series",
        "zsh/site-functions/_kvm-series",
    ]


def test_a_help_text_that_begins_with_a_quote_is_text(monkeypatch):
    parser = manual.parser()
    parser.description = "as in --test-args\n'-i 3'"
    monkeypatch.setattr(manual, "parser", lambda: parser)
    assert not [line for line in manual.man_page().splitlines() if line.startswith("'")]
