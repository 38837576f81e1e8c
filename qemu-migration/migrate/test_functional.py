"""What QEMU's own tests print, and what comes of it."""

import json

import pytest

from tests import extra
from kvmseries.base import paths
from kvmseries.base.errors import Fail, Usage
from kvmseries.conftest import git, replaced, write
from kvmseries.source import catalog, export, trees
from kvmseries.source.catalog import Point
from migrate import build, functional
from migrate.conftest import KVM

PLAIN = "aarch64/migration/precopy/unix/plain"
TAP = f"TAP version 13\n# random seed: R02S\n1..1\n# Start of {{0}}\nok 1 /{PLAIN}\n# End\n"


@pytest.mark.parametrize(
    "status, text, result",
    [
        (0, TAP, "pass"),
        (0, TAP.replace("plain\n", "plain # SKIP no KVM\n"), "skip"),
        (1, TAP.replace("ok 1", "not ok 1"), "fail"),
        # Aborted before its line, or after it.
        (134, "TAP version 13\n", "fail"),
        (134, TAP, "fail"),
        (124, TAP, "timeout"),
        (137, "", "timeout"),
        # The line of another test.
        (0, TAP.replace("plain\n", "plain/more\n"), "fail"),
        (0, "", "fail"),
    ],
)
def test_a_qtest_is_what_its_line_and_status_say(status, text, result):
    assert functional.qtest_result(PLAIN, status, text) == result


def test_mesons_log_has_a_result_a_line():
    said = {"OK": "pass", "ERROR": "fail", "TIMEOUT": "timeout", "SKIP": "skip"}
    lines = [json.dumps({"name": f"qemu:unit / test-{word}", "result": word}) for word in said]
    assert functional.unit_results("\n".join(lines)) == {f"unit/test-{word}": said[word] for word in said}
    assert functional.unit_results('{"name": "test-x", "result": "OK"}') == {"unit/test-x": "pass"}


@pytest.mark.parametrize(
    "base, series, reasons, complaint",
    [
        ({"a": "pass"}, {"a": "pass"}, {}, ""),
        ({"a": "pass"}, {"a": "fail"}, {}, "fail on series, but pass on base"),
        ({"a": "pass"}, {}, {}, "skip on series, but pass on base"),
        ({"a": "fail"}, {"a": "fail"}, {"a": "why"}, ""),
        # A test that the series brings.
        ({}, {"a": "pass"}, {}, ""),
        ({}, {"a": "fail"}, {}, "fail on series"),
    ],
)
def test_series_must_do_what_base_does(base, series, reasons, complaint):
    verdicts = functional.compare({"base": base, "series": series}, reasons)
    assert [verdict.name for verdict in verdicts] == ["a"]
    assert complaint in verdicts[0].complaint and bool(complaint) == bool(verdicts[0].complaint)


# A migration-test that fails where the tree has the line "broken at run time".
MIGRATION = f"""#!/bin/sh
[ "$2" = -l ] && {{ echo "/aarch64/migration/a"; echo "/aarch64/migration/b"; echo "# skipping"; exit; }}
[ -e "$QTEST_QEMU_BINARY" ] || exit 3
for name; do :; done
grep -q 'broken at run time' ../{KVM} && [ "$name" = /aarch64/migration/b ] && exit 134
echo "ok 1 $name"
"""
UNITS = [{"name": name, "suite": ["qemu:unit"], "cmd": []} for name in ("test-a", "test-b")]


@pytest.fixture
def qtests(compilers, program, tmp_path, monkeypatch):
    """Builds that hold MIGRATION, and a meson whose unit tests pass."""
    program(
        "ninja",
        """\
for name; do
	case $name in qemu-system-*) printf '#!/bin/sh\\necho QEMU 10\\n' > $name; chmod +x $name ;; esac
done
mkdir -p tests/qtest meson-logs
cat > tests/qtest/migration-test <<'END'
"""
        + MIGRATION
        + """END
chmod +x tests/qtest/migration-test
""",
    )
    program(
        "meson",
        f"""\
[ "$1" = introspect ] && {{ echo '{json.dumps(UNITS)}'; exit; }}
for name; do case $name in test-*) echo '{{"name": "qemu:unit / '$name'", "result": "OK"}}' ;; esac; done \\
	> meson-logs/testlog.json
""",
    )
    monkeypatch.setattr(build, "meson", lambda: str(tmp_path / "bin/meson"))
    monkeypatch.setattr(functional, "KNOWN", tmp_path / "tests.yaml")


def points(series):
    return (Point("base", 0, series), Point("series", len(series.patches), series))


def saved(targets):
    """What `scripts/series test` has written of these: the host, and {test: {label: result}}."""
    data = json.loads(paths.out(f"results/qmini-{targets}-tests-tcg.json").read_text(encoding="utf-8"))
    return data["host"], {test["name"]: test["results"] for test in data["tests"]}


def test_base_and_series_are_compared(qmini, qemu_mirror, qtests, series):
    result = series("test", "qmini")
    assert result.status == 0 and "unit tests and migration qtests" in result.out, result.err
    host, results = saved("arm64-x86_64")
    assert results == {
        name: {"base": "pass", "series": "pass"}
        for name in ("aarch64/migration/a", "aarch64/migration/b", "unit/test-a", "unit/test-b")
    }
    assert host["kernels"] == {f"{label} {functional.host_arch()}": "QEMU 10" for label in ("base", "series")}
    log = paths.out("logs/qemu-tests-qmini-tcg-series.log").read_text(encoding="utf-8")
    assert "== aarch64/migration/a: pass" in log


def test_a_test_that_aborts_is_a_failure_of_its_own(qmini, qemu_mirror, qtests, series):
    replaced(qmini.patches[1], "+int second;", "+int second; /* broken at run time */")
    result = series("test", "qmini", "--arch", "arm64", "--only", "migration")
    assert result.status == 1
    assert "1 complaint, the first: aarch64/migration/b: fail on series, but pass on base" in result.err
    assert [of["series"] for of in saved("arm64")[1].values()] == ["pass", "fail"]


def test_an_emulator_without_tests_is_no_success(tmp_path):
    script = "#!/bin/sh\necho '# machine virt not supported'\n"
    write(tmp_path / "tests/qtest/migration-test", script).chmod(0o755)
    with pytest.raises(Fail, match="migration-test has no tests for aarch64: # machine virt not supported"):
        functional.migration(tmp_path, {}, "arm64")


def test_a_known_failure_needs_its_reason(qmini, tmp_path, monkeypatch):
    monkeypatch.setattr(functional, "KNOWN", tmp_path / "tests.yaml")
    assert functional.known(qmini) == {}
    write(tmp_path / "tests.yaml", "qmini:\n  unit/test-a: >\n    no\n    network\n")
    assert functional.known(qmini) == {"unit/test-a": "no network"}


def test_a_pattern_without_a_test(qmini, qemu_mirror, qtests):
    with pytest.raises(Usage, match="--only 'nonsense' is in no test's name"):
        functional.run(qmini, points(qmini), ("arm64",), pattern="nonsense")


def test_unit_tests_that_do_not_run_at_all(qmini, qemu_mirror, qtests, program):
    program("meson", f"[ \"$1\" = introspect ] && {{ echo '{json.dumps(UNITS)}'; exit; }}\necho 'ERROR: no'; exit 1\n")
    with pytest.raises(Fail, match="the unit tests did not run: ERROR: no"):
        functional.run(qmini, points(qmini), ("arm64",))


def test_kvm_is_for_what_the_machine_is(qmini):
    with pytest.raises(Usage, match="host only, this is .*, or another --arch"):
        functional.run(qmini, points(qmini), ("arm64", "x86_64"), "kvm")


def test_the_unit_tests_that_a_series_adds_are_run_alone(qmini, qemu_mirror, compilers, monkeypatch):
    assert extra.own_units(qmini) == {}
    tree = trees.worktree(qmini, 2).path
    for name in ("test-ring.c", "helper.c", "test-other.c"):
        write(tree / "tests/unit" / name, "int main(void);\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "tests/unit: Add tests\n\nWhy: because.")
    export.export(qmini)
    ran = []

    def unit(folder, env, names):
        ran.append((folder.name, names))
        return {"unit/test-ring": "pass"}

    monkeypatch.setattr(functional, "unit", unit)
    # What meson does not know has not passed.
    assert extra.own_units(catalog.load(qmini.name)) == {"unit/test-ring": "pass", "unit/test-other": "skip"}
    ((folder, names),) = ran
    assert folder.startswith("build-units-") and sorted(names) == ["test-other", "test-ring"]
