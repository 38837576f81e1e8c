"""herd7 is a script, and so is what fetches it; the tests are small texts."""

import hashlib
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from kvmseries.base import debian, paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, DPKG_DEB, write
from kvmseries.source import trees
from kvmseries.verify import litmus

CLAIM = """\
C {name}

(*
 * Result: {result}
 *
 * What it shows.
 *)

{{
	x=1;
}}

P0(int *x)
{{
	WRITE_ONCE(*x, 2);{more}
}}

exists (x=1)
"""
# herd7 -version, or what it says of the test that is its last argument.
HERD = """\
for last; do :; done
[ "$last" = -version ] && {{ echo '{version}, Rev: exported'; exit; }}
echo "$PWD $*" >> '{log}'
name=$(basename "$last" .litmus)
echo "Test $name Allowed"
echo '{more}'
echo "Observation $name {result} 1 2"
echo "Time $name 0.25"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of tests: put(name, result) makes one."""
    monkeypatch.setattr(litmus, "FOLDERS", (tmp_path / "litmus",))
    (tmp_path / "litmus").mkdir()
    return tmp_path / "litmus"


@pytest.fixture
def put(folder):
    def write_test(name, result, more="", old="", new=""):
        text = CLAIM.format(name=name, result=result, more=more)
        assert old in text
        write(folder / f"{name}.litmus", text.replace(old, new) if old else text)
        return folder / f"{name}.litmus"

    return write_test


@pytest.fixture
def herd7(program, tmp_path):
    """herd7(result): a herd7 of the machine's own with this verdict; returns the file of its calls."""

    def have(result="Never", more="", version="7.58"):
        program("herd7", HERD.format(result=result, more=more, version=version, log=tmp_path / "herd7.log"))
        return tmp_path / "herd7.log"

    return have


# The files


def test_a_test_says_its_model_its_verdict_and_what_it_is_a_twin_of(put):
    test = litmus.load(put("walk+no-lock", "Sometimes"))
    assert (test.name, test.model, test.result, test.twin_of, test.initial, test.condition) == (
        "walk+no-lock",
        "LKMM",
        "Sometimes",
        "walk",
        "x=1;",
        "exists (x=1)",
    )
    assert litmus.load(put("walk", "Never", old="C walk", new="AArch64 walk")).model == "AArch64"
    assert litmus.load(put("walk", "Never")).twin_of == ""


@pytest.mark.parametrize(
    "old, new, reason",
    [
        ("C walk", "C talk", "first line is not a model .LKMM|first line is not a model"),
        ("C walk", "X86 walk", "first line is not a model"),
        ("Result: Never", "Result: Rarely", "needs one line ' . Result: Never'"),
        (" * Result: Never\n", "", "needs one line"),
        ("{\n\tx=1;\n}\n", "", "needs an initial state"),
        ("exists", "forall", "needs an initial state and a line that begins with 'exists'"),
    ],
)
def test_a_test_that_is_not_as_it_must_be_is_refused(put, old, new, reason):
    path = put("walk", "Never", old=old, new=new)
    if old.startswith("{"):
        # P0's body would do for one.
        path.write_text(path.read_text(encoding="utf-8").replace("\n{\n", " {\n"), encoding="utf-8")
    with pytest.raises(Fail, match=f"^walk.litmus: .*({reason})"):
        litmus.load(path)


def test_twins_follow_their_test(put):
    for name, result in (
        ("b", "Never"),
        ("a+no-z", "Sometimes"),
        ("a-b", "Never"),
        ("a", "Never"),
        ("a+no-y", "Sometimes"),
    ):
        put(name, result)
    assert [test.name for test in litmus.tests()] == ["a", "a+no-y", "a+no-z", "a-b", "b"]


OTHER = "walk+no-lock: another model, initial state or condition than walk"


@pytest.mark.parametrize(
    "old, new, found",
    [
        ("exists (x=1)", "exists (x=2)", [OTHER]),
        ("\tx=1;", "\tx=0;", [OTHER]),
        ("C walk", "AArch64 walk", [OTHER]),
        ("2);", "3);", []),
    ],
)
def test_a_twin_that_fails_for_another_reason_is_found(put, old, new, found):
    put("walk", "Never")
    put("walk+no-lock", "Sometimes", old=old, new=new)
    assert litmus.unpaired(litmus.tests()) == found


@pytest.mark.parametrize(
    "files, reason",
    [
        ({"walk": "Never"}, "walk: no twin walk+no-*.litmus shows what it rests on"),
        ({"walk": "Sometimes", "walk+no-lock": "Sometimes"}, "walk: a claim is about what happens never"),
        ({"walk": "Never", "walk+no-lock": "Never"}, "walk+no-lock: a twin must fail sometimes"),
        ({"walk+no-lock": "Sometimes"}, "walk+no-lock: there is no walk.litmus that it would be a twin of"),
    ],
)
def test_a_claim_without_a_twin_that_fails_is_found(put, files, reason):
    for name, result in files.items():
        put(name, result)
    assert litmus.unpaired(litmus.tests()) == [reason]


# Verdicts


def test_each_model_is_run_with_its_rules(put, herd7, tmp_path):
    log = herd7("Never")
    for first in ("C walk", "AArch64 walk"):
        test = litmus.load(put("walk", "Never", old="C walk", new=first))
        verdict = litmus.run(litmus.herd(), test, tmp_path)
        assert verdict == ("Never", frozenset(), 0.25)
        assert litmus.complaint(test, verdict) == ""
    assert log.read_text(encoding="utf-8").splitlines() == [
        f"{tmp_path} -timeout 60 -conf linux-kernel.cfg {test.path}",
        f"{tmp_path} -timeout 60 {test.path}",
    ]


@pytest.mark.parametrize(
    "name, expected, result, more, complaint",
    [
        ("walk", "Never", "Sometimes", "", "walk: Sometimes, not Never"),
        ("walk+no-lock", "Sometimes", "Never", "", "walk+no-lock: Never, not Sometimes"),
        ("walk+no-lock", "Sometimes", "Always", "", "walk+no-lock: Always, not Sometimes"),
        ("walk", "Never", "Never", "Flag data-race", "walk: Never, but with data-race"),
        ("walk+no-lock", "Sometimes", "Sometimes", "Flag data-race", ""),
        ("walk", "Never", "Never", "Flag Assuming-common-inner-shareable-domain", ""),
    ],
)
def test_another_verdict_than_expected_is_found(put, herd7, tmp_path, name, expected, result, more, complaint):
    herd7(result, more)
    test = litmus.load(put(name, expected))
    assert litmus.complaint(test, litmus.run(litmus.herd(), test, tmp_path)) == complaint


@pytest.mark.parametrize(
    "script",
    [
        "echo 7.58\n",
        "[ $1 = -version ] && echo 7.58 || echo 'Warning: File \"x\": unexpected [ (User error)'\n",
        "[ $1 = -version ] && echo 7.58 || echo 'Observation talk Never 0 1'\n",
    ],
)
def test_no_verdict_is_none(put, program, tmp_path, script):
    program("herd7", script)
    test = litmus.load(put("walk", "Never"))
    with pytest.raises(Fail, match="^herd7 has no verdict on walk: "):
        litmus.run(litmus.herd(), test, tmp_path)


# herd7


@pytest.fixture
def sid(program, tmp_path, monkeypatch):
    """sid(version): what Debian's packages of herd7 have, all in one; returns the list of what is
    fetched."""
    program("dpkg-deb", DPKG_DEB)
    program("dpkg", "echo riscv64\n")
    fetched = []

    def have(version):
        usr = tmp_path / "pkg/usr"
        for name in ("bin/herd7", "bin/litmus7", "share/herdtools7/herd/aarch64.cat"):
            write(usr / name, name)
        write(
            usr / "lib/some-triplet/ld-linux-riscv64.so.1",
            f"#!/bin/sh\n{HERD.format(version=version, result='Never', more='', log='/dev/null')}",
        )
        (usr / "lib/some-triplet/ld-linux-riscv64.so.1").chmod(0o755)
        subprocess.run(["tar", "-cf", str(tmp_path / "x.deb"), "-C", str(tmp_path / "pkg"), "usr"], check=True)

        def fetch(package, version, suites, sha256):
            fetched.append((package, version, suites, sha256))
            return tmp_path / "x.deb"

        monkeypatch.setattr(debian, "fetch_pinned", fetch)
        return fetched

    return have


@pytest.mark.parametrize("version", ["7.58", "7.58+1", "8.0"])
def test_the_machines_own_herd7_is_taken_if_it_is_new_enough(sid, herd7, version):
    fetched = sid("7.99")
    herd7(version=version)
    assert litmus.herd() == (("herd7",), version.partition("+")[0])
    assert not fetched


@pytest.mark.parametrize("own", ["7.57", "6.99", "?", None])
def test_debians_stands_in_for_an_old_herd7_and_is_kept(sid, herd7, own):
    fetched = sid("7.58")
    if own:
        herd7(version=own)
    pins = hashlib.sha256(repr(litmus._PACKAGES).encode()).hexdigest()[:8]
    folder = paths.cache(f"herd7-{litmus._PACKAGES[0][1]}-{pins}")
    for _ in range(2):
        found = litmus.herd()
        assert found.version == "7.58"
        library = f"{folder}/lib/some-triplet"
        assert found.line == (
            f"{library}/ld-linux-riscv64.so.1",
            "--library-path",
            library,
            f"{folder}/bin/herd7",
            "-set-libdir",
            f"{folder}/herd",
        )
    assert [package[0] for package in fetched] == ["herdtools7", "libc6", "libgmp10"]
    # What it is is not left to the mirror: each has a version and a checksum.
    assert all(re.match(r"\d", version) and re.fullmatch("[0-9a-f]{64}", sha256) for _, version, _, sha256 in fetched)
    # The other programs of the package are ten times as big.
    assert "bin/herd7" in below(folder) and "bin/litmus7" not in "\n".join(below(folder))


def test_a_herd7_that_does_not_run_here_is_not_kept(sid):
    sid("7.1")
    with pytest.raises(
        Fail,
        match="^the litmus tests need herd7 7.58 or newer, and Debian's for amd64 does not run "
        "here: install herdtools7$",
    ):
        litmus.herd()
    assert not [name for name in below(paths.cache_root()) if "herd" in name and "locks/" not in name]
    sid("7.58")
    assert litmus.herd().version == "7.58"


def test_other_packages_are_unpacked_anew(sid, monkeypatch):
    fetched = sid("7.58")
    litmus.herd()
    monkeypatch.setattr(litmus, "_PACKAGES", (*litmus._PACKAGES[:2], ("libgmp10", "3", "0" * 64)))
    litmus.herd()
    assert len(fetched) == 6


@pytest.mark.parametrize(
    "apt, why", [(True, "Temporary failure resolving"), (False, "has no apt to fetch sources with")]
)
def test_a_herd7_that_cannot_be_had_is_one_line_and_leaves_nothing(request, program, apt, why):
    if not apt:
        request.getfixturevalue("only_tools")
    program("dpkg-deb", DPKG_DEB)
    program("dpkg", "echo riscv64\n")
    need = "the litmus tests need herd7 7.58 or newer, and none can be had: "
    # Not what apt's users do about kernels.
    with pytest.raises(
        Fail, match=f"^{need}.*{why}[^;]*; install herdtools7, or put the .debs .*deb as PACKAGE_VERSION.deb$"
    ):
        litmus.herd()
    assert not [name for name in below(paths.cache_root()) if "herd" in name and "locks/" not in name]


@pytest.mark.parametrize("ci, passes, word", [("true", False, "error"), ("", True, "skipped")])
def test_a_check_without_herd7_fails_in_ci_and_is_skipped_elsewhere(only_tools, tmp_path, ci, passes, word):
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rs",
            "-c",
            paths.ROOT / "pyproject.toml",
            "-k",
            "age-hw-af]",
            paths.ROOT / "tests/common/test_litmus.py",
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(paths.ROOT / "scripts"), "CI": ci},
    )
    assert (run.returncode == 0) == passes, run.stdout
    assert f"1 {word}" in run.stdout and "the litmus tests need herd7" in run.stdout, run.stdout


# scripts/series prove --litmus


@pytest.fixture
def pair(put, herd7, patches, tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "base", lambda *_: SimpleNamespace(path=tmp_path, version="5.10.262"))
    (tmp_path / "tools/memory-model").mkdir(parents=True)
    put("walk", "Never")
    put("walk+no-lock", "Sometimes")
    return herd7


def test_the_verb_shows_each_test_and_what_said_so(pair, series, put):
    put("talk", "Never")
    put("talk+no-sense", "Sometimes")
    pair("$(case $name in *+*) echo Sometimes ;; *) echo Never ;; esac)")
    result = series("prove", "mini", "--litmus", "walk")
    assert result.status == 0, result
    assert "walk+no-lock" in result.out and "talk" not in result.out
    assert "2 tests as expected by herd7 7.58; LKMM is that of linux 5.10.262" in result.err


def test_the_verb_fails_when_a_verdict_is_another(pair, series):
    pair("Never")
    result = series("prove", "mini", "--litmus")
    assert result.status == 1
    assert "series: error: 1 complaint, the first: walk+no-lock: Never, not Sometimes" in result.err


def test_the_verb_knows_its_tests(pair, refused):
    assert refused("prove", "mini", "--litmus", "wal").startswith("no test 'wal' in ")
