"""herd7 is a script, and so is what fetches it; the tests are small texts."""

import subprocess
from types import SimpleNamespace

import pytest

from kvmseries.base import debian, paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, DPKG_DEB, lacking, write
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
	WRITE_ONCE(*x, 2);
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
def put(tmp_path, monkeypatch):
    """put(name, result): writes a test to the folder of tests."""
    monkeypatch.setattr(litmus, "FOLDERS", (tmp_path / "litmus",))

    def write_test(name, result, old="", new=""):
        text = CLAIM.format(name=name, result=result)
        assert old in text
        return write(tmp_path / f"litmus/{name}.litmus", text.replace(old, new) if old else text)

    return write_test


@pytest.fixture
def herd7(program, tmp_path):
    """herd7(result): a herd7 of the machine's own with this verdict; returns the file of its calls."""

    def have(result="Never", more="", version="7.58"):
        program("herd7", HERD.format(result=result, more=more, version=version, log=tmp_path / "herd7.log"))
        return tmp_path / "herd7.log"

    return have


def test_a_test_says_what_it_is_and_its_twins_follow_it(put):
    for name in "b", "a+no-z", "a-b", "a", "a+no-y":
        put(name, "Sometimes" if "+" in name else "Never")
    found = litmus.tests()
    assert [test.name for test in found] == ["a", "a+no-y", "a+no-z", "a-b", "b"]
    assert [test.twin_of for test in found] == ["", "a", "a", "", ""]
    twin = found[1]
    assert (twin.model, twin.result, twin.initial, twin.condition) == ("LKMM", "Sometimes", "x=1;", "exists (x=1)")
    assert litmus.load(put("walk", "Never", "C walk", "AArch64 walk")).model == "AArch64"


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


OTHER = "walk+no-lock: another model, initial state or condition than walk"


@pytest.mark.parametrize(
    "files, old, new, reasons",
    [
        ({"walk": "Never"}, "", "", ["walk: no twin walk+no-*.litmus shows what it rests on"]),
        ({"walk": "Sometimes", "walk+no-lock": "Sometimes"}, "", "", ["walk: a claim is about what happens never"]),
        ({"walk": "Never", "walk+no-lock": "Never"}, "", "", ["walk+no-lock: a twin must fail sometimes"]),
        ({"walk+no-lock": "Sometimes"}, "", "", ["walk+no-lock: there is no walk.litmus that it would be a twin of"]),
        # The last of the files differs from the others.
        ({"walk": "Never", "walk+no-lock": "Sometimes"}, "exists (x=1)", "exists (x=2)", [OTHER]),
        ({"walk": "Never", "walk+no-lock": "Sometimes"}, "\tx=1;", "\tx=0;", [OTHER]),
        ({"walk": "Never", "walk+no-lock": "Sometimes"}, "C walk", "AArch64 walk", [OTHER]),
        ({"walk": "Never", "walk+no-lock": "Sometimes"}, "2);", "3);", []),
    ],
)
def test_a_claim_has_a_twin_that_fails_for_what_it_lacks(put, files, old, new, reasons):
    for name, result in files.items():
        put(name, result)
    put(name, result, old, new)
    assert litmus.unpaired(litmus.tests()) == reasons


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


@pytest.fixture
def sid(program, tmp_path, monkeypatch):
    """sid(version): what Debian's packages of herd7 have, all in one; returns the list of what is fetched."""
    program("dpkg-deb", DPKG_DEB)
    fetched = []

    def have(version):
        usr = tmp_path / "pkg/usr"
        for name in ("bin/herd7", "share/herdtools7/herd/aarch64.cat"):
            write(usr / name, name)
        script = HERD.format(version=version, result="Never", more="", log="/dev/null")
        write(usr / "lib/some-triplet/ld-linux-riscv64.so.1", f"#!/bin/sh\n{script}").chmod(0o755)
        subprocess.run(["tar", "-cf", str(tmp_path / "x.deb"), "-C", str(tmp_path / "pkg"), "usr"], check=True)
        monkeypatch.setattr(debian, "fetch_pinned", lambda *package: fetched.append(package) or tmp_path / "x.deb")
        return fetched

    return have


def kept():
    """What the cache has of herd7, but for locks."""
    return [name for name in below(paths.cache_root()) if "herd" in name and "locks/" not in name]


@pytest.mark.parametrize(
    "own, taken", [("7.58", "7.58"), ("7.58+1", "7.58"), ("8.0", "8.0"), ("7.57", None), ("?", None), ("", None)]
)
def test_debians_stands_in_for_a_herd7_that_is_too_old_and_is_kept(sid, herd7, monkeypatch, own, taken):
    fetched = sid("7.99")
    if own:
        herd7(version=own)
    found = [litmus.herd() for _ in range(2)][1]
    if taken:
        assert found == (("herd7",), taken) and not fetched
        return
    loader, _, _, program, _, models = found.line
    assert found.version == "7.99" and loader.endswith("/lib/some-triplet/ld-linux-riscv64.so.1")
    assert program.endswith("/bin/herd7") and models == program.replace("bin/herd7", "herd")
    assert [package[0] for package in fetched] == ["herdtools7", "libc6", "libgmp10"]
    monkeypatch.setattr(litmus, "_PACKAGES", (*litmus._PACKAGES[:2], ("libgmp10", "3", "0" * 64)))
    assert litmus.herd().version == "7.99" and len(fetched) == 6


def test_a_herd7_that_does_not_run_here_is_not_kept(sid):
    sid("7.1")
    line = "^the litmus tests need herd7 7.58 or newer, and Debian's for amd64 does not run here: install herdtools7$"
    with pytest.raises(Fail, match=line):
        litmus.herd()
    assert not kept()
    sid("7.58")
    assert litmus.herd().version == "7.58"


def test_a_herd7_that_cannot_be_had_is_one_line_and_leaves_nothing(program):
    program("dpkg-deb", DPKG_DEB)
    need = "the litmus tests need herd7 7.58 or newer, and none can be had: "
    # Not what apt's users do about kernels.
    why = "Temporary failure resolving[^;]*; install herdtools7, or put the .debs .*deb as PACKAGE_VERSION.deb$"
    with pytest.raises(Fail, match=f"^{need}.*{why}"):
        litmus.herd()
    assert not kept()


@pytest.mark.parametrize("ci, ends", [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_check_without_herd7_fails_in_ci_and_is_skipped_elsewhere(monkeypatch, ci, ends):
    monkeypatch.setenv("CI", ci)
    with pytest.raises(ends, match="no herd7"):
        lacking(Fail("no herd7"))


@pytest.fixture
def pair(put, herd7, patches, tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "base", lambda *_: SimpleNamespace(path=tmp_path, version="5.10.262"))
    (tmp_path / "tools/memory-model").mkdir(parents=True)
    put("walk", "Never")
    put("walk+no-lock", "Sometimes")
    return herd7


def test_the_command_shows_each_test_and_what_said_so(pair, series, refused, put):
    put("talk", "Never")
    put("talk+no-sense", "Sometimes")
    pair("$(case $name in *+*) echo Sometimes ;; *) echo Never ;; esac)")
    result = series("prove", "mini", "--litmus", "walk")
    assert result.status == 0, result
    assert "walk+no-lock" in result.out and "talk" not in result.out
    assert "2 tests as expected by herd7 7.58; LKMM is that of linux 5.10.262" in result.err
    assert refused("prove", "mini", "--litmus", "wal").startswith("no test 'wal' in ")
    pair("Never")
    result = series("prove", "mini", "--litmus", "walk")
    assert result.status == 1
    assert "series: error: 1 complaint, the first: walk+no-lock: Never, not Sometimes" in result.err
