"""A machine behind ssh: `ssh` is a script that runs what it is given in a directory that stands for the machine."""

import dataclasses
from types import SimpleNamespace

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail, Usage
from kvmseries.conftest import below, fake, write
from kvmseries.data import ids
from kvmseries.kernel import hostkernel, selftests
from kvmseries.measure import bench, remote, ssh
from kvmseries.measure.test_bootloader import GRUB, UUID, menu
from kvmseries.source import catalog, trees

CONFIG = "CONFIG_ARM64=y\nCONFIG_KVM=y\n"
# Paths of the machine are below $ROOT. $ROOT/down: no connection. $ROOT/stuck: it does not come back.
SSH = """\
echo 'Welcome to server'
[ ! -e "$ROOT/nopasswd" ] || echo 'sudo: unable to resolve host server' >&2
while [ "$1" != -- ]; do shift; done
host=$2; shift 2
[ "$host" = root@server ] || { echo "ssh: Could not resolve hostname $host" >&2; exit 255; }
[ ! -e "$ROOT/down" ] || { echo 'ssh: connect to host server port 22: Connection refused' >&2; exit 255; }
printf '%s\\n' "$*" | sed "s#/boot/#$ROOT/boot/#g; s#/dev/kvm#$ROOT/kvm#g; s#-c $ROOT/kvm#-e $ROOT/kvm#g; \
s#/proc/sys/kernel/random/boot_id#$ROOT/boot_id#g; s#/proc/config.gz#$ROOT/config.gz#g; \
s#/var/tmp/#$ROOT/var/tmp/#g; s#/etc/#$ROOT/etc/#g; s#/sys/kernel/mm#$ROOT#g" > "$ROOT/command"
PATH=$ROOT/bin:/usr/bin:/bin exec sh "$ROOT/command"
"""
PROGRAMS = {
    "uname": 'case $1 in -m) echo aarch64 ;; *) cat "$ROOT/release" ;; esac\n',
    "id": 'cat "$ROOT/uid"\n',
    "nproc": "echo 64\n",
    "lscpu": "echo 'Model name:  Neoverse-N1'\n",
    "sleep": "",
    "dmesg": 'cat "$ROOT/dmesg"\n',
    "sudo": 'shift; [ -e "$ROOT/nopasswd" ] && exec "$@"\nexit 1\n',
    "dpkg": """\
echo "$*" >> "$ROOT/installed"
release=${2##*/}
touch "$ROOT/boot/vmlinuz-${release%.deb}"
""",
    "grub-reboot": 'echo "$1" > "$ROOT/next"\n',
    # One boot of what was chosen, and the machine's own kernel after that.
    "systemctl": """\
[ ! -e "$ROOT/stuck" ] || { touch "$ROOT/down"; exit; }
release=6.1.0-1-arm64
[ ! -e "$ROOT/next" ] || [ -e "$ROOT/deaf" ] || release=$(sed 's/.*>gnulinux-\\(.*\\)-advanced.*/\\1/' "$ROOT/next")
rm -f "$ROOT/next"
echo $release > "$ROOT/release"
echo $release >> "$ROOT/boots"
# Last: by this the tool sees that the machine has booted.
echo "$RANDOM$(cat "$ROOT/boot_id")x" > "$ROOT/boot_id"
""",
    "timeout": 'shift 3; exec "$@"\n',
    # script -q -e -c COMMAND /dev/null
    "script": """\
[ ! -e "$ROOT/fails" ] || { echo 'Test Assertion Failure'; exit 254; }
[ ! -e "$ROOT/crash" ] || { echo 'Connection reset by server' >&2; exit 255; }
echo "$(cat "$ROOT/release"): $4" >> "$ROOT/ran"
printf 'Test iterations: 1\\r\\nPopulate memory time: 0.5s\\r\\nIteration 1 dirty memory time: 0.25s\\r\\n'
""",
}


@pytest.fixture
def server(tmp_path, program, monkeypatch):
    """The machine's directory."""
    return fake_server(tmp_path, program, monkeypatch)


def fake_server(tmp_path, program, monkeypatch):
    """Have `ssh` reach root@server; returns the directory that stands for it."""
    root = tmp_path / "server"
    for name, text in (
        ("boot/grub/grub.cfg", GRUB),
        ("boot/config-6.1.0-1-arm64", CONFIG),
        ("release", "6.1.0-1-arm64\n"),
        ("boot_id", "0\n"),
        ("uid", "0\n"),
        ("dmesg", ""),
        ("kvm", ""),
        ("etc/os-release", 'PRETTY_NAME="Debian 12"\n'),
        ("hugepages/hugepages-2048kB/nr_hugepages", ""),
    ):
        write(root / name, text)
    (root / "bin").mkdir()
    for name, text in PROGRAMS.items():
        fake(root / "bin", name, text)
    program("ssh", SSH)
    monkeypatch.setenv("ROOT", str(root))
    monkeypatch.setattr(ssh, "_PAUSE", 0.05)
    return root


@pytest.fixture
def job(mini, tmp_path, monkeypatch):
    """A job of two rounds; kernels and tests are stubs."""
    tests = tmp_path / "tests"
    for name in ("dirty_log_perf_test", "lockphase"):
        write(tests / name, name)
    monkeypatch.setattr(selftests, "build", lambda *_: tests)
    monkeypatch.setattr(
        trees,
        "worktree",
        lambda series, count, *_: SimpleNamespace(path=tmp_path, point={0: "base", 3: "series"}[count]),
    )
    monkeypatch.setattr(ids, "source", lambda path, arch: "1" * 16)
    monkeypatch.setattr(ids, "tests", lambda path: "2" * 16)

    def build(tree, _arch, text, form, overlays, _note):
        assert text == CONFIG
        name = "-".join(["5.10.262", *overlays, tree.point])
        write(tmp_path / f"{name}.{form}", name)
        return hostkernel.HostKernel(tree.point, name, (tmp_path / f"{name}.{form}",), tree.path)

    monkeypatch.setattr(hostkernel, "build", build)
    monkeypatch.setattr(
        bench,
        "settings",
        lambda test: {"vcpus": "-v", "timeout": 60, "params": {"anonymous_hugetlb_2mb": ["series.hugepages=256"]}},
    )
    return bench.Job(
        series=mini,
        arch="arm64",
        test="dirty_log_perf_test",
        line=("-b", "1M"),
        vcpus=(1, 2),
        points=catalog.points(mini, "base,series"),
        samples=2,
        configs=(),
        counts=False,
        times=True,
        cpu="host",
        accel="tcg",
        params=(),
        kernel=None,
    )


OPTIONS = remote.Options("root@server", seconds=120)


def test_kernels_take_turns_and_the_results_are_merged(server, job):
    runs, versions, machine, made = remote.run(job, OPTIONS)
    boots = (server / "boots").read_text(encoding="utf-8").split()
    assert boots == ["5.10.262-base", "5.10.262-series", "5.10.262-series", "5.10.262-base"]
    assert len((server / "ran").read_text(encoding="utf-8").splitlines()) == 8
    assert "5.10.262-series: " in (server / "ran").read_text(encoding="utf-8")
    assert {(run["kernel"], run["vcpus"], run["metric"], len(run["samples"])) for run in runs} == {
        (kernel, count, metric, 2)
        for kernel in ("base", "series")
        for count in (1, 2)
        for metric in ("populate_memory_time", "dirty_memory_time")
    }
    assert {run["accel"] for run in runs} == {"here"}
    assert versions == {"base arm64 normal": "5.10.262-base", "series arm64 normal": "5.10.262-series"}
    assert made.ids["kernels"] == {"base": "1" * 16, "series": "1" * 16}
    info = remote.host_info(machine, versions, {"tools": {}})
    assert (info["cpu"], info["cpus"], info["os"], info["kernel"]) == ("Neoverse-N1", 64, "Debian 12", "6.1.0-1-arm64")
    assert len(list(made.kept.glob("*.json"))) == 4
    remote.forget(made.kept)
    assert not made.kept.exists()
    remote.leave(machine, 120)
    assert (server / "release").read_text(encoding="utf-8") == "6.1.0-1-arm64\n"


def test_a_kernel_is_installed_once(server, job):
    remote.run(job, OPTIONS)
    remote.run(dataclasses.replace(job, vcpus=(4,)), OPTIONS)
    assert len((server / "installed").read_text(encoding="utf-8").splitlines()) == 2
    assert not [name for name in below(server / "var") if name.endswith((".part", ".deb"))]


def test_a_kernel_that_was_removed_is_installed_again(server, job):
    remote.run(job, OPTIONS)
    (server / "boot/vmlinuz-5.10.262-base").unlink()
    remote.run(dataclasses.replace(job, vcpus=(4,)), OPTIONS)
    installed = (server / "installed").read_text(encoding="utf-8").splitlines()
    assert [line.rpartition("/")[2] for line in installed] == [
        "5.10.262-base.deb",
        "5.10.262-series.deb",
        "5.10.262-base.deb",
    ]


def test_tar_archives_where_there_is_no_dpkg(server, job, monkeypatch):
    monkeypatch.setattr(remote, "_FACTS", remote._FACTS.replace(" dpkg ", " "))
    for name in ("tar", "depmod", "update-initramfs", "update-grub"):
        fake(server / "bin", name, f'echo {name} "$@" >> "$ROOT/steps"\n')
    for label in ("base", "series"):
        write(server / f"boot/vmlinuz-5.10.262-{label}", "")
    remote.run(job, OPTIONS)
    steps = (server / "steps").read_text(encoding="utf-8").replace(f"{server}/", "/").splitlines()
    assert not (server / "installed").exists()
    assert steps[:4] == [
        "tar -xf /var/tmp/kvm-series/5.10.262-base.tar -C / --no-same-owner --keep-directory-symlink",
        "depmod 5.10.262-base",
        "update-initramfs -c -k 5.10.262-base",
        "update-grub",
    ]
    assert len(steps) == 8


# Writes the menu with the setting that it finds, as the default.
UPDATE_GRUB = """\
. "$ROOT/etc/default/grub.d/kvm-series.cfg"
echo "$GRUB_DEFAULT" > "$ROOT/default"
sed -i "s|set default=.*|set default=\\"$GRUB_DEFAULT\\"|" "$ROOT/boot/grub/grub.cfg"
"""


def test_kernels_of_ours_that_are_newer_are_not_the_default(server, job, capsys):
    write(server / "boot/grub/grub.cfg", menu("5.10.262-series", "5.10.262-base", "6.1.0-1-arm64"))
    fake(server / "bin", "update-grub", UPDATE_GRUB)
    remote.run(job, OPTIONS)
    entry = f"gnulinux-advanced-{UUID}>gnulinux-6.1.0-1-arm64-advanced-{UUID}"
    assert (server / "default").read_text(encoding="utf-8") == f"{entry}\n"
    said = capsys.readouterr().err
    assert said.count("kvm-series.cfg keeps its own kernel the default of the boot menu, where 5.10.262-series is") == 1
    remote.run(dataclasses.replace(job, vcpus=(4,)), OPTIONS)
    assert "kvm-series.cfg" not in capsys.readouterr().err


@pytest.mark.parametrize("releases", [("5.10.262-series", "6.1.0-1-arm64"), ("5.10.262-series",)])
def test_a_default_that_cannot_be_kept_is_said_before_a_boot(server, job, releases):
    write(server / "boot/grub/grub.cfg", menu(*releases))
    fake(server / "bin", "update-grub", "")
    assert refuse(job).startswith("root@server would boot 5.10.262-series after a power cycle, as its newest kernel: ")
    assert not (server / "boots").exists()


def test_a_machine_that_was_left_with_one_of_our_kernels(server, job):
    write(server / "release", "5.10.262-base\n")
    assert refuse(job).startswith("root@server runs 5.10.262-base, a kernel of this tool: boot its own one, or name ")


def test_what_another_kernel_has_measured_is_not_taken(server, job, monkeypatch):
    first = remote.run(job, OPTIONS)[3].kept
    build = hostkernel.build

    def changed(*arguments):
        made = build(*arguments)
        made.packages[0].write_text("another kernel", encoding="utf-8")
        return made

    monkeypatch.setattr(hostkernel, "build", changed)
    assert remote.run(job, OPTIONS)[3].kept != first
    assert len((server / "boots").read_text(encoding="utf-8").split()) == 8


def test_huge_pages_are_reserved(server, job):
    remote.run(dataclasses.replace(job, line=("-s", "anonymous_hugetlb_2mb")), OPTIONS)
    assert (server / "hugepages/hugepages-2048kB/nr_hugepages").read_text(encoding="utf-8") == "256\n"


def refuse(job, options=OPTIONS):
    """The line with which the job is refused; nothing of it was kept as a result."""
    with pytest.raises(Fail) as caught:
        remote.run(job, options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_machine_that_does_not_come_back_and_the_rest_on_the_next_run(server, job):
    remote_base = server / "boots"
    write(server / "stuck", "")
    assert refuse(job, dataclasses.replace(OPTIONS, seconds=1)) == (
        "root@server did not come back within 1 s from booting 5.10.262-base: power cycle it (it then boots its own "
        "kernel) and look at its console; the same command goes on with what is left"
    )
    (server / "stuck").unlink()
    (server / "down").unlink()
    write(server / "next", "x>gnulinux-5.10.262-base-advanced")
    runs, *_ = remote.run(job, OPTIONS)
    assert len(remote_base.read_text(encoding="utf-8").split()) == 4 and len(runs) == 8


def test_the_machines_own_kernel_is_named_also_where_an_interruption_has_left_one_of_ours(server, job):
    fake(server / "bin", "script", "exit 255\n")
    refuse(job)
    assert (server / "release").read_text(encoding="utf-8") == "5.10.262-base\n"
    fake(server / "bin", "script", PROGRAMS["script"])
    machine = remote.run(job, OPTIONS)[2]
    assert machine.facts["release"] == "5.10.262-base"
    assert remote.host_info(machine, {}, {})["kernel"] == "6.1.0-1-arm64"
    # Read with the kernel of ours, and kept from before.
    assert remote.read_config(machine, OPTIONS, "arm64") == CONFIG


def test_what_was_measured_before_a_crash_is_not_measured_again(server, job):
    fake(server / "bin", "script", '[ "$(cat "$ROOT/release")" = 5.10.262-base ] || exit 255\n' + PROGRAMS["script"])
    line = refuse(job)
    assert (
        line.startswith("cannot reach root@server by ssh: ")
        and "with 5.10.262-series booted for one time: power" in line
    )
    fake(server / "bin", "script", PROGRAMS["script"])
    remote.run(job, OPTIONS)
    ran = (server / "ran").read_text(encoding="utf-8").splitlines()
    assert len(ran) == 8 and sum(line.startswith("5.10.262-base:") for line in ran) == 4


@pytest.mark.parametrize(
    "change, line",
    [
        (lambda root: (root / "kvm").unlink(), "--remote root@server has no /dev/kvm: load KVM there, or turn on "),
        (
            lambda root: write(root / "down", ""),
            "cannot reach root@server by ssh: ssh: connect to host server port 22: Con",
        ),
        (
            lambda root: (root / "bin/grub-reboot").unlink(),
            "--remote root@server: there is no grub-reboot or kexec on it",
        ),
        (
            lambda root: fake(root / "bin", "uname", "echo x86_64\n"),
            "--remote root@server is x86_64, --arch arm64 is not",
        ),
        (lambda root: write(root / "uid", "1000\n"), "--remote root@server: the user is not root and sudo asks for a "),
        (
            lambda root: (root / "boot/config-6.1.0-1-arm64").unlink(),
            "root@server has neither /boot/config-6.1.0-1-arm64 ",
        ),
        (
            lambda root: write(root / "boot/config-6.1.0-1-arm64", "CONFIG_ARM64=y\n"),
            "root@server:/boot/config-6.1.0-1-arm64 builds no KVM (CONFIG_KVM is not set)",
        ),
    ],
)
def test_a_machine_that_cannot_be_used_is_left_alone(server, job, change, line):
    change(server)
    assert refuse(job).startswith(line)
    assert not (server / "boots").exists() and not (server / "installed").exists()


@pytest.mark.parametrize(
    "change, line",
    [
        (
            lambda root: fake(root / "bin", "dpkg", "echo 'dpkg: error: no space'; exit 1\n"),
            "installing 5.10.262-base failed on root@server: dpkg: error: no space",
        ),
        (lambda root: write(root / "boot/grub/grub.cfg", ""), "the boot menu has no entry for 5.10.262-base"),
        (
            lambda root: write(root / "deaf", ""),
            "root@server came back with 6.1.0-1-arm64 instead of 5.10.262-base: if you have power cycled it, repeat the "
            "command, which goes on with what is left; otherwise it does not follow grub-reboot: boot it by hand",
        ),
        (
            lambda root: write(root / "fails", ""),
            "dirty_log_perf_test with 1 vCPUs failed on 5.10.262-base on root@server "
            "(status 254): Test Assertion Failure",
        ),
    ],
)
def test_what_goes_wrong_later_is_one_line(server, job, change, line):
    change(server)
    assert refuse(job).startswith(line)
    assert not list(paths.out("remote", "x").parent.rglob("*.json"))


def test_a_user_with_sudo(server, job):
    write(server / "uid", "1000\n")
    write(server / "nopasswd", "")
    runs, *_ = remote.run(job, OPTIONS)
    assert len(runs) == 8


def test_a_kernels_own_report_is_said(server, job, capsys):
    write(server / "dmesg", "[ 1.0] WARNING: CPU: 0 PID: 1 at x.c:1\n")
    fake(server / "bin", "script", 'echo "[ 2.0] kernel BUG at y.c:2!" >> "$ROOT/dmesg"\n' + PROGRAMS["script"])
    remote.run(job, OPTIONS)
    found = capsys.readouterr().err
    assert "5.10.262-base on root@server reported while the tests ran: kernel BUG at y.c:2!" in found
    # What it said as it booted is not the tests'.
    assert "x.c:1" not in found


@pytest.mark.parametrize("name", ["", "-oProxyCommand=x", "a b"])
def test_a_destination_that_is_none(name):
    with pytest.raises(Usage, match="give a destination of ssh, such as root@server"):
        ssh.Host(name)


def test_a_host_name_that_is_not_known(server, job):
    assert (
        refuse(job, remote.Options("root@nowhere"))
        == "cannot reach root@nowhere by ssh: ssh: Could not resolve hostname root@nowhere"
    )


@pytest.mark.parametrize(
    "command, line",
    [
        ("'", "No closing quotation"),
        ("", "--ssh needs a command"),
        ("no-such-program -p 1", "--ssh: there is no program no-such-program here"),
    ],
)
def test_an_ssh_command_that_is_none(command, line):
    with pytest.raises(Usage, match=line):
        ssh.Host("server", command)
