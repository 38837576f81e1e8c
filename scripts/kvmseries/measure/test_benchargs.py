import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import write
from kvmseries.measure import bench

TEST = "dirty_log_perf_test"
HEAD = "speed_test:\n  vcpus: -v\n  timeout: 1\n  samples: 1\n  memory: 1\n"
BENCH = f"""\
{HEAD}  args:
    arm64: {{-b: 1M, -m: 2, -g: null}}
    x86_64: {{-b: 2M}}
  since:
    "10.0": {{arm64: {{-m: 9}}}}
    "6.10": {{arm64: {{-m: 3, -x: 1}}, x86_64: {{-b: 4M}}}}
"""


@pytest.fixture
def bench_yaml(tmp_path, monkeypatch):
    """bench_yaml(text): a bench.yaml of the test's own."""
    monkeypatch.setattr(paths, "TESTS", tmp_path)
    return lambda text=BENCH: write(tmp_path / "bench.yaml", text)


@pytest.mark.parametrize(
    "kernel, arm, x86",
    [
        ("5.10.262", {"-b": "1M", "-m": 2, "-g": None}, {"-b": "2M"}),
        ("6.9.0", {"-b": "1M", "-m": 2, "-g": None}, {"-b": "2M"}),
        ("6.10", {"-b": "1M", "-m": 3, "-g": None, "-x": 1}, {"-b": "4M"}),
        ("7.3.4", {"-b": "1M", "-m": 3, "-g": None, "-x": 1}, {"-b": "4M"}),
        ("10.0.1", {"-b": "1M", "-m": 9, "-g": None, "-x": 1}, {"-b": "4M"}),
    ],
)
def test_the_latest_entry_that_is_not_later_than_the_kernel_counts(bench_yaml, kernel, arm, x86):
    bench_yaml()
    assert bench.defaults("speed_test", "arm64", kernel) == arm
    assert bench.defaults("speed_test", "x86_64", kernel) == x86


def test_a_replaced_value_keeps_its_place(bench_yaml):
    bench_yaml()
    assert list(bench.defaults("speed_test", "arm64", "7.3.4")) == ["-b", "-m", "-g", "-x"]


def test_one_answer_does_not_change_the_next(bench_yaml):
    bench_yaml()
    bench.defaults("speed_test", "arm64", "7.3.4")["-m"] = 99
    assert bench.defaults("speed_test", "arm64", "5.10.262")["-m"] == 2


def test_a_test_may_be_the_same_on_all_kernels_and_without_defaults_on_an_arch(bench_yaml):
    bench_yaml(f"{HEAD}  args: {{arm64: {{-b: 1M}}}}\n")
    assert bench.defaults("speed_test", "arm64", "7.3.4") == {"-b": "1M"}
    assert bench.defaults("speed_test", "x86_64", "7.3.4") == {}


@pytest.mark.parametrize(
    "version, why",
    [
        ("6.10", "the key 6.1 is a number with a point: write an integer, or text in quotes"),
        ("seven", "speed_test.since: 'seven' .*: a kernel version in quotes"),
        ("'7'", "speed_test.since: '7' .*: a kernel version in quotes"),
        ("'x.y'", "speed_test.since: 'x.y' .*: a kernel version in quotes"),
    ],
)
def test_a_version_that_is_none_is_quoted(bench_yaml, version, why):
    """6.10 without quotes is the number 6.1."""
    bench_yaml(f"{HEAD}  args: {{arm64: {{-b: 1M}}}}\n  since: {{{version}: {{}}}}\n")
    with pytest.raises(Fail, match=f"bench.yaml: {why}"):
        bench.defaults("speed_test", "arm64", "7.3.4")


def test_the_same_guest_mode_has_another_number_in_later_tests():
    """48 bits with 4K pages: VM_MODE_P48V48_4K in include/kvm_util.h of the selftests."""
    old = bench.defaults(TEST, "arm64", "5.10.262")
    new = bench.defaults(TEST, "arm64", "7.3.4")
    assert (old.pop("-m"), new.pop("-m")) == (2, 3)
    assert old == new
    assert bench.defaults(TEST, "x86_64", "5.10.262") == bench.defaults(TEST, "x86_64", "7.3.4")
