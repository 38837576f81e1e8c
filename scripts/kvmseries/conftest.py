"""What the tests of the modules share: a place of their own for everything that the tool makes, a
kernel of four files with a series of three patches, and fake programs.  Nothing here reaches the
network: apt-get is a script that says so."""

import contextlib
import hashlib
import multiprocessing
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from kvmseries import cli
from kvmseries.base import paths
from kvmseries.kernel import build, selftests, toolchain
from kvmseries.source import catalog
from kvmseries.vm import held, image, tcgplugin

NO_NETWORK = """\
case "$*" in
*indextargets*)
	echo 'http://deb.example.org/debian bookworm Debian'
	echo 'http://deb.example.org/debian-security bookworm-security Debian' ;;
*)
	echo 'E: Failed to fetch http://deb.example.org/: Temporary failure resolving' >&2
	exit 100 ;;
esac
"""
INSTALLED = "echo installed\n"
# A .deb of these tests is a tar archive.
DPKG_DEB = 'exec tar -xf "$2" -C "$3"\n'
# -O names the archive; the files, named on standard input, follow each other in it.
CPIO = """\
while [ "$1" != -O ]; do shift; done
while read -r name; do [ -d "$name" ] || cat "$name"; done > "$2"
"""
COMPILER = "echo 'fake gcc (tests) 1.0'\n"
# What the fakes and the tool itself call, for a PATH that has nothing else.
TOOLS = ("sh", "git", "tar", "gzip", "cat", "cp", "sed", "sleep", "echo")


def committed(pattern="*.json"):
    """Paths of the results files of Documentation/results that match, sorted."""
    return sorted((paths.ROOT / "Documentation" / "results").glob(pattern))


def git(tree, *arguments):
    """git with an identity of its own: (as a user would, not as the tool does)."""
    who = ["-c", "user.name=Tess Tester", "-c", "user.email=tess@example.org"]
    return subprocess.run(["git", "-C", tree, *who, *arguments], check=True, capture_output=True, text=True).stdout


def subjects(tree, since="base", until="HEAD"):
    """Those of commits, the first one first."""
    return git(tree, "log", "--reverse", "--format=%s", f"{since}..{until}").splitlines()


def snapshot(folder):
    """Every file below `folder`, with its content and its time: what "never touched" means."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def below(folder):
    """Names of all that is below `folder`, hidden files too."""
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))


def lacking(reason):
    """Skip the test; in CI it fails, so that none is left out unseen."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(reason))


def wanted(*programs):
    """lacking(), where one of these programs is missing."""
    for name in programs:
        if not shutil.which(name):
            lacking(f"{name} is missing: run `make deps`")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def edit(tree, name, old, new):
    """Replace the line `old` of a file."""
    text = (tree / name).read_text(encoding="utf-8")
    assert f"{old}\n" in text
    write(tree / name, text.replace(f"{old}\n", f"{new}\n"))


def replaced(path, old, new):
    """Put `new` for `old`, which is there, in a file."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    write(path, text.replace(old, new))


def started(function, *rest):
    """Processes that run `function`, one with each of `rest` as its arguments."""
    runs = [multiprocessing.get_context("fork").Process(target=function, args=arguments) for arguments in rest]
    for run in runs:
        run.start()
    return runs


MMU = "virt/kvm/kvm_main.c"
ARM = "arch/arm64/kvm/mmu.c"
SUBJECTS = (
    "KVM: arm64: Take the first step with a subject that is so long that it is folded",
    "KVM: arm64: Take the second step",
    "KVM: selftests: Take the third step",
)


def milestones(folder, ends, on=None, needs=None):
    """Write the file `milestones` of the series "mini" in `folder`.  Patches are given by number: ends, name -> last one;
    needs, fix -> list.  on: name -> list of names."""
    data = {
        "milestones": {name: SUBJECTS[end - 1] for name, end in ends.items()},
        "based-on": on or {},
        "needs": {SUBJECTS[fix - 1]: [SUBJECTS[one - 1] for one in below] for fix, below in (needs or {}).items()},
    }
    write(folder / "milestones", yaml.safe_dump(data, sort_keys=False))


def _kernel(tree):
    write(tree / "Makefile", "# SPDX\nVERSION = 5\nPATCHLEVEL = 10\nSUBLEVEL = 262\nEXTRAVERSION =\n")
    write(tree / ARM, "".join(f"int arm{number};\n" for number in range(60)))
    write(tree / MMU, "".join(f"int kvm{number};\n" for number in range(60)))
    write(tree / ".gitignore", "*.o\n")
    write(tree / "firmware/blob.o", "tracked although .gitignore names it\n")


def _steps(tree):
    """The commits of the series.  The second changes lines beside those of the first, so that
    the first cannot be taken back from a tree that has both."""
    edit(tree, ARM, "int arm10;", "int first;")
    author = ("--author=Zoë Author <zoe@example.org>", "--date=2020-02-02T02:02:02+0200")
    git(tree, "commit", "-q", "-a", "-m", f"{SUBJECTS[0]}\n\nWhy: because.", *author)
    edit(tree, ARM, "int arm11;", "int second;")
    git(tree, "commit", "-q", "-a", "-m", f"{SUBJECTS[1]}\n\nAnother reason.")
    edit(tree, MMU, "int kvm30;", "int third;")
    write(tree / "tools/testing/new.c", "int main(void) { return 0; }\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", f"{SUBJECTS[2]}\n\nThe last one.")


_COVER = """\
From: Tess Tester <tess@example.org>
Subject: [PATCH] A tiny series

What "Take the ..." are for.

"""
FORMAT = (
    "format-patch -q --zero-commit --full-index --no-signature --no-numbered --stat=72 --no-renames base..HEAD -o"
).split()


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """What is made once: the tiny kernel as git tree, tarball and .deb, and its patches/ entry.
    Tests only read it."""
    top = tmp_path_factory.mktemp("made")
    plain = top / "linux-source-5.10"
    _kernel(plain)
    tarball = top / "usr/src/linux-source-5.10.tar.gz"
    tarball.parent.mkdir(parents=True)
    subprocess.run(["tar", "-czf", str(tarball), "-C", str(top), plain.name], check=True)
    deb = top / "linux.deb"
    subprocess.run(["tar", "-cf", str(deb), "-C", str(top), "usr"], check=True)
    tree = top / "git"
    plain.rename(tree)
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-f", "-A")
    git(tree, "commit", "-q", "-m", "the kernel")
    patched = top / "patched"
    shutil.copytree(tree, patched)
    git(patched, "tag", "base")
    _steps(patched)
    mini = top / "patches/mini"
    git(patched, *FORMAT, str(mini))
    stat = git(patched, "diff", "--stat=72", "--summary", "--no-renames", "base..HEAD").rstrip()
    log = git(patched, "shortlog", "-w72,2,4", "base..HEAD").rstrip()
    write(mini / "0000-cover-letter.patch", f"{_COVER}{log}\n\n{stat}\n")
    milestones(mini, {"first": 1, "rwlock": 2})
    write(
        mini / "base",
        f"""\
kernel: 5.10.262
tag: v5.10.262
arches: [arm64, x86_64]
versions:
  - kernel: 5.10.262
    package: linux-source-5.10
    version: 5.10.262-1
    suite: bullseye-security
    sha256: {hashlib.sha256(deb.read_bytes()).hexdigest()}
""",
    )
    return SimpleNamespace(tree=tree, tarball=tarball, deb=deb, patched=patched, patches=mini.parent)


@pytest.fixture(autouse=True)
def sandbox(own_world):  # pylint: disable=redefined-outer-name,unused-argument
    """out/, git's configuration and the programs of apt are the test's own."""


@pytest.fixture
def own_world(tmp_path, monkeypatch):
    """See sandbox."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in list(os.environ):
        if name.startswith(("GIT_", "SERIES_")) or name in ("TREE", "EMAIL"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SERIES_OUT", str(tmp_path / "out"))
    monkeypatch.setenv("SERIES_CACHE", str(tmp_path / "out/cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # Nothing here has to survive a power cut, or needs sample hooks.
    write(tmp_path / "gitconfig", "[core]\n\tfsync = none\n[init]\n\ttemplateDir =\n")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    fake(folder, "apt-get", NO_NETWORK)
    fake(folder, "dpkg-query", INSTALLED)


def fake(folder, name, script):
    """Put a shell script on PATH as the program `name`."""
    (folder / name).write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
    (folder / name).chmod(0o755)


def compilers(program):
    """What builds for arm64 but make, as programs that only say their version."""
    for name in ("flex", "bison", "bc", "ccache", "rsync", "aarch64-linux-gnu-gcc"):
        program(name, COMPILER)


@pytest.fixture
def program(tmp_path):
    """program(name, script): a fake program that is found before the machine's own."""
    return lambda name, script: fake(tmp_path / "bin", name, script)


@pytest.fixture
def only_tools(tmp_path, monkeypatch):
    """PATH without apt, compilers and QEMU; fakes that a test adds later count."""
    for name in ("apt-get", "dpkg-query"):
        (tmp_path / "bin" / name).unlink()
    for name in TOOLS:
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def nothing_installed(only_tools, program):  # pylint: disable=redefined-outer-name,unused-argument
    """A Debian without any package, whose mirror does not answer."""
    program("dpkg-query", "exit 1\n")
    program("apt-get", NO_NETWORK)
    # debian.install() has it before apt-get.
    program("env", 'shift; exec "$@"\n')


def fake_mirror(program, log, word, copy, listing):
    """An apt whose `apt-get WORD` does `copy` and is a line of the file `log`, which is returned; it takes $DOWNLOAD_SECONDS.
    apt-cache prints `listing`."""
    log.touch()
    program(
        "apt-get",
        f"""\
case "$*" in
*update*) exit 0 ;;
*{word}*)
	echo "$*" >> '{log}'
	sleep ${{DOWNLOAD_SECONDS:-0}}
	exec {copy} ;;
esac
{NO_NETWORK}""",
    )
    program("apt-cache", f"echo ' {listing}'\n")
    return log


@pytest.fixture
def mirror(program, made, tmp_path):
    """A mirror that has the .deb of the series' base; see fake_mirror()."""
    program("dpkg-deb", DPKG_DEB)
    copy = f"cp '{made.deb}' linux-source-5.10_5.10.262-1_all.deb"
    listing = "linux-source-5.10 | 5.10.262-1 | http://deb.example.org Packages"
    return fake_mirror(program, tmp_path / "downloads", "download", copy, listing)


@pytest.fixture
def patches(tmp_path, made, monkeypatch):
    """A patches/ of the test's own with the series "mini"; returns its directory."""
    shutil.copytree(made.patches, tmp_path / "patches")
    monkeypatch.setattr(paths, "PATCHES", tmp_path / "patches")
    return tmp_path / "patches/mini"


@pytest.fixture
def mini(patches):
    """The series "mini"."""
    return catalog.load(patches.name)


@pytest.fixture
def kernel(tmp_path, made):
    """A user's own clean git tree."""
    shutil.copytree(made.tree, tmp_path / "linux")
    # Times differ from those in git's index now: bring it up to date, as a user's is.
    git(tmp_path / "linux", "status")
    return tmp_path / "linux"


@pytest.fixture
def identity(tmp_path):
    """git knows who the user is."""
    with open(tmp_path / "gitconfig", "a", encoding="utf-8") as file:
        file.write("[user]\n\tname = Ursula User\n\temail = ursula@example.org\n")


@contextlib.contextmanager
def mounted(folder, options):
    """A tmpfs at `folder`, or the test is skipped."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs takes root")
    folder.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", options, "none", folder]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1 MiB."""
    with mounted(tmp_path / "small", "size=1m") as folder:
        yield folder


@pytest.fixture
def read_only(tmp_path):
    """A directory in which nothing can be made, not even by root."""
    if os.geteuid():
        (tmp_path / "read-only").mkdir(mode=0o555)
        yield tmp_path / "read-only"
    else:
        with mounted(tmp_path / "read-only", "size=64k,ro") as folder:
            yield folder


@pytest.fixture
def series(capsys):
    """series("apply", "mini", ...): runs the command line; returns status, out and err."""

    def run(*arguments):
        capsys.readouterr()
        status = cli.main([str(argument) for argument in arguments])
        return SimpleNamespace(status=status, **capsys.readouterr()._asdict())

    return run


@pytest.fixture
def refused(series):
    """refused("apply", ...): the command must fail with exactly one clear line, beside lines of
    progress; returns that line without its beginning."""

    def run(*arguments):
        result = series(*arguments)
        progress = re.compile(r"\[\d+/\d+\] |waiting for |installing ")
        lines = [line for line in result.err.splitlines() if not progress.match(line)]
        assert result.status in (1, 2), result
        assert len(lines) == 1, result.err
        assert lines[0].startswith("series: error: "), result.err
        assert "Traceback" not in result.err and "Error(" not in lines[0]
        assert result.out == ""
        return lines[0][len("series: error: ") :]

    return run


# A guest as QEMU shows it: the console on standard output, the job's lines in the chardev's file.
# `run` is what job.sh's does, without running anything: the test says what a command prints.
QEMU = """\
[ "$1" = --version ] && { echo 'QEMU emulator version 0.0 (tests)'; exit; }
[ "$1 $2" = "-cpu help" ] && exit
for word; do
	case $word in file,id=job,path=*) job=${word#file,id=job,path=} ;; esac
	[ "$last" = -initrd ] && initrd=$word
	last=$word
done
echo '[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x000f0510]'
echo '[    0.000000] Linux version 5.10.262-fake (series@localhost) #1 SMP'
say() { echo "$*" >> "$job"; }
# Times of files are coarse: what comes now is later than the above.
sleep 0.02
"""
# Appended to QEMU: run the job that is in the archive; prints() says what a command prints.
RUN_JOB = """\
run() {
	name=$1; shift 2
	say "@@ begin $name"
	prints "$@" >> "$job"
	say "@@ end $name rc=$? seconds=1.25"
}
finish() { say '@@ done'; }
sed -n 's/^watched /run /; /^run /p; /^finish/p' "$initrd" > "$initrd.sh"
. "$initrd.sh"
"""


@pytest.fixture
def qemu(program):
    """qemu(script): what the fake guest does once its kernel has said its name."""
    program("cpio", CPIO)
    return lambda script: program("qemu-system-aarch64", QEMU + script)


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Kernels and selftests that need no compiler: builds are stubs, guests fake."""
    made_kernel = SimpleNamespace(
        config=SimpleNamespace(cmdline=("quiet",)),
        arch="arm64",
        image=tmp_path / "Image",
        release="5.10.262-fake",
        tree=SimpleNamespace(version="5.10.262"),
    )
    initrd, tests = tmp_path / "base.cpio", tmp_path / "tests"
    initrd.write_bytes(b"base image\n")
    for name in ("alpha_test", "aarch64/beta_test"):
        write(tests / name, "")
        (tests / name).chmod(0o755)
    monkeypatch.setattr(build, "kernel", lambda *_args, **_keys: made_kernel)
    monkeypatch.setattr(selftests, "build", lambda *_args, **_keys: tests)
    monkeypatch.setattr(image, "base", lambda *_args, **_keys: initrd)
    monkeypatch.setattr(held, "program", lambda: write(tmp_path / "hold_vm-0", "the program hold_vm\n"))
    return SimpleNamespace(kernel=made_kernel, initrd=initrd, tests=tests)


def compiled(folder, text, sources, includes, *arguments):
    """Path of a program, checked by sanitizers as it runs, of the C text `text` and the files `sources`; made in `folder`."""
    wanted("gcc")
    write(folder / "main.c", text)
    flags = ["-O1", "-g", "-w", "-fsanitize=undefined,address", *(f"-I{path}" for path in includes)]
    subprocess.run(["gcc", *flags, "-o", folder / "main", folder / "main.c", *sources, *arguments], check=True)
    return folder / "main"


def encodings(folder, arch, instructions):
    """The bytes that the assembler makes of each of `instructions`."""
    # Of each its length in four, then itself, padded to 32.
    tool = toolchain.prefix(arch)
    wanted(f"{tool}as")
    text = "".join(f".balign 32\n.long 2f - 1f\n1: {word}\n2:\n" for word in instructions)
    flags = ["-march=armv8.7-a"] if arch == "arm64" else []
    subprocess.run([f"{tool}as", *flags, "-o", folder / "x.o", "-"], input=text, text=True, check=True)
    subprocess.run([f"{tool}objcopy", "-O", "binary", "-j", ".text", folder / "x.o", folder / "x"], check=True)
    data = (folder / "x").read_bytes()
    return [data[at + 4 : at + 4 + data[at]] for at in range(0, len(data), 32)]


def plugin_program(folder, text, source, *files):
    """As compiled(): of `text` and these files of the TCG plugin for arm64 whose directory is `source`."""
    folders = (source, tcgplugin.API.parent, tcgplugin.AARCH64.parent)
    return compiled(folder, text, (source / name for name in files), folders, "-D_GNU_SOURCE", "-lpthread")


def decoded(program, folder, instructions):
    """The lines that `program`, a plugin's decoder for arm64, prints of each of `instructions`."""
    codes = encodings(folder, "arm64", instructions)
    text = "".join(f"{int.from_bytes(code, 'little'):x}\n" for code in codes)
    return subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.splitlines()


def plugin_run(program, arguments, lines):
    """The subprocess.CompletedProcess of `program`, a made-up QEMU with a plugin: `arguments` are the plugin's, `lines` what the
    QEMU does.  Nothing that sanitizers complain of."""
    done = subprocess.run(
        [program, *arguments],
        text=True,
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        check=False,
        timeout=60,
        env={"TARGET": "aarch64", "VERSION": "5", "ASAN_OPTIONS": "detect_leaks=0"},
    )
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
    return done
