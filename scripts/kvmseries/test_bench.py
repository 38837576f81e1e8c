import re

import pytest

from kvmseries import bench, results
from kvmseries.conftest import RUN_JOB
from kvmseries.errors import Usage
from kvmseries.test_parse import OUTPUT, lock

TEST = "dirty_log_perf_test"


def test_vcpu_counts_are_read():
    assert bench.vcpu_counts("1,2,4") == (1, 2, 4)
    assert bench.vcpu_counts("64") == (64,)


@pytest.mark.parametrize("text, reason", [
    ("0", "--vcpus 0: a guest has 1 to 64 vCPUs"), ("1,0,2", "--vcpus 0: "), ("65", "1 to 64"),
    ("two", "--vcpus 'two' is not a list of numbers such as 1,2,4"), ("", "not a list"),
    ("-1", "not a list"), ("1,", "not a list"), ("1 2", "not a list"), ("1.5", "not a list"),
    ("1,2,1", "names a count twice"), ("1,01", "names a count twice")])
def test_vcpu_counts_that_are_none(text, reason):
    with pytest.raises(Usage, match=reason):
        bench.vcpu_counts(text)


def test_points_are_base_series_and_steps(mini):
    assert bench.points(mini, "base,series,upto:rwlock,upto:1") == (
        bench.Point("base", 0), bench.Point("series", 3), bench.Point("upto:rwlock", 2),
        bench.Point("upto:1", 1))


@pytest.mark.parametrize("text, reason", [
    ("x", "unknown kernel 'x': --kernels takes base, series and upto:STEP"), ("", "unknown kernel"),
    ("base,", "unknown kernel ''"), ("base,base", "names a kernel twice"),
    ("upto:9", "beyond the end"), ("upto:nope", "no milestone 'nope'"), ("upto:", "no milestone")])
def test_points_that_are_none(mini, text, reason):
    with pytest.raises(Usage, match=reason):
        bench.points(mini, text)


def test_an_unknown_test_is_answered_with_those_that_there_are():
    with pytest.raises(Usage, match=f"unknown test 'nope': .* knows {TEST}"):
        bench.settings("nope")


def test_defaults_are_those_of_the_arch():
    arm = bench.arguments(TEST, "arm64", "")
    assert "-m" in arm and "-m" not in bench.arguments(TEST, "x86_64", None)
    assert all(isinstance(word, str) for word in arm)
    assert "None" not in arm and "-g" in arm


def test_given_arguments_replace_defaults_of_their_name_and_extend_the_others():
    plain = bench.arguments(TEST, "arm64", "")
    line = bench.arguments(TEST, "arm64", "-i 7 -x 'a b'")
    position = plain.index("-i")
    assert line == plain[:position] + plain[position + 2:] + ["-i", "7", "-x", "a b"]


def test_given_arguments_may_be_all_there_is():
    assert bench.arguments(TEST, "arm64", "-i 7", alone=True) == ["-i", "7"]


@pytest.mark.parametrize("extra, reason", [("-v 4", "comes from --vcpus"), ("-v4", "from --vcpus"),
                                           ("-i '2", "No closing quotation")])
def test_arguments_that_cannot_be(extra, reason):
    with pytest.raises(Usage, match=f"--test-args.*{reason}"):
        bench.arguments(TEST, "arm64", extra)


def test_huge_pages_are_reserved_when_the_backing_needs_them():
    assert bench.kernel_params(TEST, ["-s", "anonymous_hugetlb_2mb"]) == ["series.hugepages=256"]
    assert bench.kernel_params(TEST, ["-s", "anonymous"]) == []


# The whole of bench, in fake guests

# Twice as fast, and no write lock, on the series.
GUEST = f"""\
prints() {{
	case $job in *-series-*) reads=512 writes=1 time=0.500000000 ;; *) reads=0 writes=512 time=1.000000000 ;; esac
	cat > "$job.text" <<'END'
{OUTPUT}END
	sed -i "s/dirty memory time: .*/dirty memory time: ${{time}}s/" "$job.text"
	cat "$job.text"
	case $1 in *lockphase)
		sed "s/=W /=$writes /; s/=R /=$reads /" <<'END'
{lock("Iteration 1 dirty memory time", "write", "W", 3)}{lock("Iteration 1 dirty memory time",
                                                              "read", "R", 0)}END
	esac
}}
"""


@pytest.fixture
def measured(series, built, qemu, program, patches, kernel, tmp_path):
    """measured(option...): the results of bench on vCPU counts 1 and 2, two rounds."""
    program("aarch64-linux-gnu-gcc", "echo gcc\n")
    qemu(GUEST + RUN_JOB)

    def run(*options):
        done = series("bench", "mini", "--kernel", kernel, "--vcpus", "1,2", "--samples", "2",
                      "--json", tmp_path / "kept/x.json", *options)
        assert done.status == 0, done.err
        return results.load(tmp_path / "kept/x.json"), done
    return run


def _samples(data, **wanted):
    found = [run["samples"] for run in data["runs"]
             if all(run[key] == value for key, value in wanted.items())]
    assert len(found) == 1
    return found[0]


def test_bench_measures_times_and_counts_on_their_own_kernels(measured):
    data, done = measured()
    for vcpus in (1, 2):
        for kernel, seconds, writes, reads in (("base", 1.0, 512, 0), ("series", 0.5, 1, 512)):
            about = {"kernel": kernel, "vcpus": vcpus}
            assert _samples(data, metric="dirty_memory_time", iteration=1, config="normal",
                            **about) == [seconds] * 2
            assert _samples(data, metric="mmu_lock_write_acquisitions.dirty", config="lockstat",
                            **about) == [writes]
            assert _samples(data, metric="mmu_lock_read_acquisitions", config="lockstat",
                            **about) == [reads]
    assert not [run for run in data["runs"] if (run["unit"] == "s") == (run["config"] == "lockstat")]
    assert {run["args"] for run in data["runs"]} == {"-b 1M -i 2 -m 2 -s anonymous -g"}
    assert {run["clock"] for run in data["runs"]} == {"wall"}
    assert set(data["host"]["kernels"]) == {f"{kernel} arm64 {config}" for kernel in
                                            ("base", "series") for config in ("normal", "lockstat")}
    assert "emulated" in done.out


def test_rounds_take_turns(measured, tmp_path):
    _, done = measured("--no-counts")
    titles = re.findall(rf"{TEST} on (\w+) \(times, round (\d)\) ", done.err)
    assert titles == [("base", "1"), ("series", "1"), ("series", "2"), ("base", "2")]


def test_counts_alone_boot_no_kernel_for_times(measured):
    data, _ = measured("--no-times")
    assert {run["config"] for run in data["runs"]} == {"lockstat"}


def test_a_test_that_fails_leaves_no_results_and_keeps_old_ones(measured, refused, qemu, kernel,
                                                                tmp_path):
    measured()
    old = (tmp_path / "kept/x.json").read_bytes()
    qemu("prints() { echo 'perf_test_util.h:1: assertion'; return 254; }\n" + RUN_JOB)
    assert refused("bench", "mini", "--kernel", kernel, "--vcpus", "1", "--json",
                   tmp_path / "kept/x.json") \
        .startswith(f"{TEST}-1 on base failed (status 254): perf_test_util.h:1: assertion (see ")
    assert (tmp_path / "kept/x.json").read_bytes() == old
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["x.json"]


def test_a_kernel_that_reports_a_mistake_gives_no_figures(refused, built, qemu, patches, kernel,
                                                          program, tmp_path):
    program("aarch64-linux-gnu-gcc", "echo gcc\n")
    qemu("echo '[ 1.0] WARNING: suspicious RCU usage'\n" + GUEST + RUN_JOB)
    assert refused("bench", "mini", "--kernel", kernel, "--json", tmp_path / "x.json").startswith(
        "base: the kernel reported a mistake: WARNING: suspicious RCU usage")
    assert not (tmp_path / "x.json").exists()


def test_output_that_the_parser_does_not_know_gives_no_figures(refused, built, qemu, patches,
                                                               kernel, tmp_path):
    qemu("prints() { echo 'something new'; }\n" + RUN_JOB)
    assert refused("bench", "mini", "--kernel", kernel, "--json", tmp_path / "x.json") \
        == f"{TEST} printed a line that is not known: 'something new'"
    assert not (tmp_path / "x.json").exists()
