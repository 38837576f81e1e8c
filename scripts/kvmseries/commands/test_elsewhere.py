"""hostkernel, bench --remote and --kcidb, test --ktap and --junit, boot --lava, by the command line."""

import json
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import yaml

from kvmseries.base import paths
from kvmseries.conftest import COMPILER, RUN_JOB, write
from kvmseries.data import results
from kvmseries.kernel import hostkernel, kconfig, selftests
from kvmseries.measure import bench
from kvmseries.measure.test_remote import CONFIG, fake_server
from kvmseries.source import trees

pytestmark = pytest.mark.usefixtures("patches")


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Packages and tests that need no compiler."""

    def build(tree, arch, text, form, overlays=(), _note=None):
        assert arch == "arm64" and text == CONFIG
        release = "-".join(["5.10.262", *overlays, tree.point])
        write(tmp_path / f"{release}.{form}", release)
        return hostkernel.HostKernel(tree.point, release, (tmp_path / f"{release}.{form}",), tree.path)

    for name in ("dirty_log_perf_test", "lockphase"):
        write(tmp_path / "tests" / name, name)
    monkeypatch.setattr(hostkernel, "build", build)
    monkeypatch.setattr(selftests, "build", lambda *_: tmp_path / "tests")
    monkeypatch.setattr(
        trees,
        "worktree",
        lambda series, count, *_: SimpleNamespace(
            path=tmp_path, point={0: "base", 3: "series"}.get(count, f"upto-{count}"), version="5.10.262"
        ),
    )
    monkeypatch.setattr(bench.ids, "source", lambda path, arch: "1" * 16)
    monkeypatch.setattr(bench.ids, "tests", lambda path: "2" * 16)
    return tmp_path


@pytest.fixture
def server(tmp_path, program, monkeypatch):
    """The directory that stands for root@server."""
    return fake_server(tmp_path, program, monkeypatch)


def test_hostkernel_prints_the_packages(series, packages):
    write(packages / "config", CONFIG)
    result = series(
        "hostkernel", "mini", "--kernels", "base,upto:2", "--config", packages / "config", "--overlay", "lockstat"
    )
    assert result.status == 0
    assert result.out.splitlines() == [f"{packages}/5.10.262-lockstat-{name}.deb" for name in ("base", "upto-2")]
    assert "install it, boot it, and run `scripts/series bench mini --here`" in " ".join(result.err.split())


def test_the_old_name_of_hostkernels_kernels_is_taken_with_a_line(series, packages):
    write(packages / "config", CONFIG)
    result = series("hostkernel", "mini", "--points", "upto:2", "--config", packages / "config")
    assert result.status == 0 and len(result.out.splitlines()) == 1 and "upto-2" in result.out
    line = "series: --points is called --kernels now; the old name goes with the next release\n"
    assert result.err.count(line) == 1


def test_remote_results_are_kept_without_the_machines_name(series, packages, server, monkeypatch):
    arguments = [
        "bench",
        "mini",
        "--remote",
        "root@server",
        "--ssh",
        "ssh -p 22",
        "--no-counts",
        "--samples",
        "1",
        "--vcpus",
        "1,2",
        "--json",
        str(packages / "x.json"),
        "--kcidb",
        str(packages / "k.json"),
        "--kcidb-origin",
        "lab",
    ]
    monkeypatch.setattr("sys.argv", ["series", *arguments])
    result = series(*arguments)
    assert result.status == 0, result.err
    text = (packages / "x.json").read_text(encoding="utf-8")
    assert (
        "root@server" not in text and "--remote HOST --ssh SSH" in results.load(packages / "x.json")["made"]["command"]
    )
    data = results.load(packages / "x.json")
    assert data["host"]["cpu"] == "Neoverse-N1" and {run["kernel"] for run in data["runs"]} == {"base", "series"}
    found = json.loads((packages / "k.json").read_text(encoding="utf-8"))
    assert len(found["tests"]) == len(data["runs"]) and found["tests"][0]["origin"] == "lab"
    # The machine runs its own kernel again, and nothing is left to go on with.
    assert (server / "release").read_text(encoding="utf-8") == "6.1.0-1-arm64\n"
    assert not list(paths.out("remote", "x").parent.rglob("*.json"))


MISTAKES = [
    (["bench", "mini", "--remote", "x", "--here", "base"], "--remote runs on the machine itself: no --here"),
    (["bench", "mini", "--remote", "x", "--param", "a=b"], "--remote runs on the machine itself: no --param"),
    (["bench", "mini", "--remote", "x", "--cpu", "max"], "--remote runs on the machine itself: no --cpu"),
    (["bench", "mini", "--remote", "x", "--accel", "kvm"], "--remote runs on the machine itself: no --accel"),
    (["bench", "mini", "--remote", "x", "--config", "64k"], "--remote runs on the machine itself: no --config"),
    (["bench", "mini", "--remote", "x", "--clock", "virtual"], "--remote runs on a machine whose clock is the wall's"),
    (["bench", "mini", "--remote", "x", "--sensitivity"], "are for --clock virtual"),
    (["bench", "mini", "--remote", ""], "--remote '': give a destination of ssh, such as root@server"),
    (["bench", "mini", "--remote", "x", "--ssh", ""], "--ssh needs a command, such as 'ssh -p 2222'"),
    (["bench", "mini", "--ssh", "ssh -p 1"], "--ssh is for --remote HOST"),
    (["bench", "mini", "--host-config", "x"], "--host-config is for --remote HOST"),
    (["bench", "mini", "--remote", "x", "--host-config", "nosuch"], "--host-config nosuch: no such file"),
    (["bench", "mini", "--boot", "kexec"], "--boot is for --remote HOST"),
    (["bench", "mini", "--remote", "x", "--boot", "pxe"], "argument --boot: invalid choice: 'pxe'"),
    (["bench", "mini", "--remote", "x", "--boot-timeout", "0"], "--boot-timeout 0: give a number from 1 on"),
    (["bench", "mini", "--kcidb-origin", "x"], "--kcidb-origin is for --kcidb FILE"),
    (
        ["bench", "mini", "--kcidb", "f", "--kcidb-origin", "My Lab"],
        "--kcidb-origin 'My Lab': KCIDB takes small letters",
    ),
    (["hostkernel", "mini", "--kernels", "x"], "unknown kernel 'x'"),
    (["hostkernel", "mini", "--arch", "riscv"], "unknown arch 'riscv'"),
    (["hostkernel", "mini", "--overlay", "nope"], "unknown config 'nope': there is"),
    (["hostkernel", "mini", "--format", "rpm"], "argument --format: invalid choice: 'rpm'"),
    (["boot", "mini", "--lava-url", "x"], "--lava-url is for --lava FILE"),
    (["boot", "mini", "--lava", "f", "--", "true"], "--lava runs the selftests: no command after --"),
]


@pytest.mark.parametrize(
    "arguments, line", MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_mistake_in_the_arguments_is_told_before_any_work(refused, series, arguments, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert line in refused(*arguments)
    assert series(*arguments).status == 2
    assert not (tmp_path / "f").exists() and not list(paths.out("trees", "x").parent.glob("*/*"))


@pytest.mark.parametrize(
    "text, line",
    [
        (None, "No such file or directory"),
        ("CONFIG_ARM64=y\n", "builds no KVM"),
        ("CONFIG_X86_64=y\nCONFIG_KVM=y\n", "add --arch x86_64"),
        ("x", "is not a kernel conf"),
    ],
)
def test_a_configuration_that_will_not_do_is_told_before_any_work(refused, tmp_path, text, line):
    if text:
        write(tmp_path / "config", text)
    assert line in refused("hostkernel", "mini", "--config", tmp_path / "config")
    assert not paths.out("hostkernel", "x").parent.exists() or not list(paths.out("hostkernel", "x").parent.iterdir())


_OUTPUT = {"--junit": "test", "--kcidb": "bench", "--lava": "boot", "--json": "soak", "--keep": "trace"}


@pytest.mark.parametrize("option", ["--junit", "--kcidb", "--lava"])
def test_a_file_that_cannot_be_written_is_told_before_any_work(refused, read_only, option, qemu):
    qemu("")
    command = _OUTPUT[option]
    more = ["--clock", "wall"] if command == "bench" else []
    assert (
        refused(command, "mini", option, read_only / "f", *more)
        == f"no permission to write {read_only}: choose another {option}"
    )
    assert refused(command, "mini", option, read_only, *more) == f"{option} {read_only} is a directory: name a file"


@pytest.mark.parametrize("option", _OUTPUT)
def test_a_file_in_a_directory_that_is_not_there_is_told_and_none_made(refused, tmp_path, option, qemu):
    qemu("")
    more = {"bench": ["--clock", "wall"], "trace": ["--", "/tests/alpha_test"]}.get(_OUTPUT[option], [])
    file = tmp_path / "no/such/f"
    assert (
        refused(_OUTPUT[option], "mini", option, file, *more) == f"{option} {file}: there is no directory {file.parent}"
    )
    assert not (tmp_path / "no").exists()


def test_a_picture_in_a_directory_that_is_not_there(refused, tmp_path):
    file = tmp_path / "no/such.png"
    assert refused("report", "x.json", "--picture", file) == f"--picture {file}: there is no directory {file.parent}"


@pytest.fixture
def tested(built, qemu, program, monkeypatch, tmp_path):  # pylint: disable=unused-argument
    """A guest in which alpha_test fails on the series."""
    write(tmp_path / "data/tests.yaml", "default_timeout: 9\n")
    monkeypatch.setattr(paths, "TESTS", tmp_path / "data")
    program("aarch64-linux-gnu-gcc", COMPILER)
    qemu("prints() { case $job$1 in *-series*alpha*) return 1 ;; esac; }\n" + RUN_JOB)
    monkeypatch.setattr(kconfig, "load", lambda *_: None)  # reads what is in TESTS, too


def test_ktap_is_printed_instead_of_the_table_and_junit_written(series, tested, tmp_path):
    result = series("test", "mini", "--ktap", "--junit", tmp_path / "x.xml")
    assert result.status == 1
    assert result.out.startswith("KTAP version 1\n# mini arm64 max normal\n1..3\n")
    print(result.out)
    lines = [line for line in result.out.splitlines() if not line.startswith("#")]
    assert lines[2:] == ["ok 1 aarch64/beta_test", "not ok 2 alpha_test", "ok 3 kernel-reports"]
    assert ElementTree.parse(tmp_path / "x.xml").getroot().get("failures") == "1"


def test_lava_writes_a_job_and_boots_nothing(series, tested, built, tmp_path):
    built.kernel.tree = SimpleNamespace(point="series")
    built.kernel.config.name = "normal"
    assert (
        series("boot", "mini", "--lava", tmp_path / "job.yaml", "--lava-url", "http://lab.example.org/files/").status
        == 0
    )
    job = yaml.safe_load((tmp_path / "job.yaml").read_text(encoding="utf-8"))
    images = job["actions"][0]["deploy"]["images"]
    assert images["kernel"]["url"] == "http://lab.example.org/files/Image"
    assert (
        "report alpha_test 9 /tests/alpha_test"
        in job["actions"][2]["test"]["definitions"][0]["repository"]["run"]["steps"]
    )
    assert job["job_name"] == "mini arm64 series normal"
