"""Building the selftests: what make is told, and when it is run at all."""

import pytest

from kvmseries.base.errors import Fail
from kvmseries.kernel import selftests
from kvmseries.source import catalog

# Selftests of 5.10 make directories in the source, those of 7.3 headers in $abs_objdir/tools, which
# must be there.
MAKE = """\
for word; do case $word in *=*) eval "${word%%=*}='${word#*=}'" ;; esac; done
case "$*" in
*headers_install*) mkdir -p "$INSTALL_HDR_PATH/include" "$O" ;;
*)
	[ -d "$abs_objdir/tools" ] && [ -d "$INSTALL_HDR_PATH/include" ] || exit 2
	[ "$KHDR_INCLUDES" = "-isystem $INSTALL_HDR_PATH/include" ] || exit 3
	echo x >> "$COUNT"
	for name in some_test some_test.o; do
		echo "$ARCH" > "$OUTPUT/$name"; chmod +x "$OUTPUT/$name"
	done ;;
esac
"""
# The compiler of our own programs: -o names the program.
GCC = """\
while [ $# -gt 1 ]; do [ "$1" = -o ] && echo > "$2" && chmod +x "$2"; shift; done
echo 1.0
"""


@pytest.fixture
def make(program, mini, kernel, tmp_path, monkeypatch):
    """make(): builds for arm64, returns the directory; make.count holds an x for each real run."""
    for name in ("flex", "bison", "bc", "ccache", "rsync"):
        program(name, "")
    program("make", MAKE)
    program("aarch64-linux-gnu-gcc", GCC)
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))

    def run(count=None):
        return selftests.build(mini, "arm64", kernel, count)

    run.count = tmp_path / "count"
    return run


def test_the_programs_are_those_that_can_be_run(make):
    assert selftests.programs(make()) == ["lockphase", "some_test", "spread"]


def test_what_is_built_is_not_built_again_until_a_program_of_ours_changes(make, tmp_path, monkeypatch):
    assert make() == make()
    assert make.count.read_text(encoding="utf-8") == "x\n"
    monkeypatch.setattr(selftests, "GUEST", tmp_path)
    for name in selftests.HELPERS:
        (tmp_path / f"{name}.c").write_text("another\n", encoding="utf-8")
    make()
    assert make.count.read_text(encoding="utf-8") == "x\nx\n"


def test_base_s_selftests_are_built_apart(make, mini):
    every, base = make(), make(0)
    assert base != every and base.name.endswith("-arm64-base")
    assert make.count.read_text(encoding="utf-8") == "x\nx\n"
    assert make(len(mini.patches)) == every and make.count.read_text(encoding="utf-8") == "x\nx\n"


def test_a_build_that_fails_leaves_no_programs(make, program):
    program("make", "echo 'x.c:1: error: no'; exit 2\n")
    with pytest.raises(Fail, match="error: no"):
        make()
    program("make", MAKE)
    assert selftests.programs(make()) == ["lockphase", "some_test", "spread"]


def test_a_test_of_ours_is_built_for_its_series_and_architecture_alone(make, mini, monkeypatch, tmp_path):
    for name in (*selftests.HELPERS, "own_test"):
        (tmp_path / f"{name}.c").write_text(f"{name}\n", encoding="utf-8")
    monkeypatch.setattr(selftests, "GUEST", tmp_path)
    monkeypatch.setattr(selftests, "TESTS", {(mini.name, "arm64"): ("own_test",)})
    assert "own_test" in selftests.programs(make())
    (tmp_path / "own_test.c").write_text("another\n", encoding="utf-8")
    make()
    assert make.count.read_text(encoding="utf-8") == "x\nx\n"
    assert "own_test" not in selftests.own(mini, "x86_64")


def test_base_has_those_tests_of_ours_alone_whose_headers_it_has(make, mini, monkeypatch, tmp_path):
    for name in selftests.HELPERS:
        (tmp_path / f"{name}.c").touch()
    (tmp_path / "plain_test.c").write_text("#include <stdio.h>\n", encoding="utf-8")
    (tmp_path / "series_test.c").write_text('#include "of_the_series.h"\n', encoding="utf-8")
    monkeypatch.setattr(selftests, "GUEST", tmp_path)
    monkeypatch.setattr(selftests, "TESTS", {(mini.name, "arm64"): ("plain_test", "series_test")})
    assert {"plain_test", "series_test"} <= set(selftests.programs(make()))
    base = selftests.programs(make(0))
    assert "plain_test" in base and "series_test" not in base


def test_a_header_is_looked_for_beside_the_program_and_in_each_directory(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "x.c").write_text('#include <a.h>\n#include "b.h"\n#include "c.h"\n', encoding="utf-8")
    assert selftests.lacks(tmp_path / "x.c", [tmp_path / "include"]) == ["b.h", "c.h"]
    (tmp_path / "include/b.h").touch()
    (tmp_path / "c.h").touch()
    assert selftests.lacks(tmp_path / "x.c", [tmp_path / "include"]) == []


def test_each_test_of_ours_has_its_source():
    assert selftests.TESTS
    for (name, arch), names in selftests.TESTS.items():
        assert all(selftests.source(test, catalog.load(name)).is_file() for test in names), arch


def test_a_test_is_built_from_the_source_for_the_series_library(mini, monkeypatch, tmp_path):
    monkeypatch.setattr(selftests, "PROGRAMS", tmp_path)
    (tmp_path / "own_test.c").touch()
    assert selftests.source("own_test", mini) == tmp_path / "own_test.c"
    (tmp_path / mini.name).mkdir()
    (tmp_path / mini.name / "own_test.c").touch()
    assert selftests.source("own_test", mini) == tmp_path / mini.name / "own_test.c"
