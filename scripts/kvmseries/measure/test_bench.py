import contextlib
import json
import re
import shutil
import subprocess

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail, Usage
from kvmseries.conftest import QEMU, replaced, RUN_JOB, write
from kvmseries.data import ids, results
from kvmseries.data.test_parse import lock, OUTPUT
from kvmseries.kernel import selftests
from kvmseries.measure import bench
from kvmseries.source import catalog
from vtime import vtime

TEST = "dirty_log_perf_test"
KERNEL = "5.10.262"


@pytest.fixture
def other(patches):
    """A second series, "other"."""
    shutil.copytree(patches, patches.parent / "other")
    return catalog.load("other")


def test_points_are_base_series_steps_and_bases_of_other_series(mini, other):
    assert catalog.points(mini, "base,series,upto:rwlock,upto:1,other:base") == (
        catalog.Point("base", 0, mini),
        catalog.Point("series", 3, mini),
        catalog.Point("upto:rwlock", 2, mini),
        catalog.Point("upto:1", 1, mini),
        catalog.Point("other:base", 0, other),
    )


HEAD = "speed_test:\n  timeout: 1\n"
BENCH = f"""\
{HEAD}  args:
    arm64: {{-b: 1M, -m: 2, -g: null}}
  since:
    "10.0": {{arm64: {{-m: 9}}}}
    "6.10": {{arm64: {{-m: 3, -x: 1}}, x86_64: {{-b: 4M}}}}
"""


@pytest.mark.parametrize(
    "kernel, arm, x86",
    [
        ("10.0.1", {"-b": "1M", "-m": 9, "-g": None, "-x": 1}, {"-b": "4M"}),
        ("6.10", {"-b": "1M", "-m": 3, "-g": None, "-x": 1}, {"-b": "4M"}),
        ("6.9.0", {"-b": "1M", "-m": 2, "-g": None}, {}),
        ("5.10.262", {"-b": "1M", "-m": 2, "-g": None}, {}),
    ],
)
def test_the_latest_defaults_that_are_not_later_than_the_kernel_count(tmp_path, monkeypatch, kernel, arm, x86):
    """And a value that is replaced keeps its place."""
    monkeypatch.setattr(paths, "TESTS", tmp_path)
    write(tmp_path / "bench.yaml", BENCH)
    for _ in range(2):
        found = bench.defaults("speed_test", "arm64", kernel)
        assert list(found.items()) == list(arm.items())
        found["-m"] = 99  # The next answer is another one.
        assert bench.defaults("speed_test", "x86_64", kernel) == x86


@pytest.mark.parametrize(
    "version, why",
    [
        ("6.10", "the key 6.1 is a number with a point: write an integer, or text in quotes"),
        ("seven", "speed_test.since: 'seven' .*: a kernel version in quotes"),
        ("'7'", "speed_test.since: '7' .*: a kernel version in quotes"),
        ("'x.y'", "speed_test.since: 'x.y' .*: a kernel version in quotes"),
    ],
)
def test_a_version_that_is_none_is_quoted(tmp_path, monkeypatch, version, why):
    """6.10 without quotes is the number 6.1."""
    monkeypatch.setattr(paths, "TESTS", tmp_path)
    write(tmp_path / "bench.yaml", f"{HEAD}  args: {{arm64: {{-b: 1M}}}}\n  since: {{{version}: {{}}}}\n")
    with pytest.raises(Fail, match=f"bench.yaml: {why}"):
        bench.defaults("speed_test", "arm64", "7.3.4")


@pytest.mark.parametrize(
    "extra, gone, less, more",
    [
        ("-i 7 -x 'a b'", "-i", "", ["-i", "7", "-x", "a b"]),
        # A minus sign behind an option takes its default away.
        ("-g- -m- -x 1", "-m", "-g", ["-x", "1"]),
    ],
)
def test_given_arguments_replace_defaults_of_their_name_and_extend_the_others(extra, gone, less, more):
    plain = bench.arguments(TEST, "arm64", "", KERNEL)
    position = plain.index(gone)
    left = [word for word in plain[:position] + plain[position + 2 :] if word != less]
    assert bench.arguments(TEST, "arm64", extra, KERNEL) == left + more


def test_cases_are_arguments_that_the_test_takes():
    assert bench.case(TEST, "") == {"args": ""}
    for name in bench.settings(TEST)["cases"]:
        line = bench.arguments(TEST, "arm64", bench.case(TEST, name)["args"], KERNEL)
        # Rings need more pages than a ring has entries, or it is never full.
        assert line[line.index("-b") + 1] == ("8M" if name == "rings" else "2M") and line.count("-s") == 1
        assert ("-g" in line) == (name not in ("upton2022", "rings", "eager-split")) and "-g-" not in line


NEWER = "v6.12 on arm64 and v7.3 on arm64"


@pytest.mark.parametrize(
    "series, arch, test, name, reason",
    [
        ("v5.10", "arm64", "dirty_hold_test", "", f"of {NEWER}, and not of v5.10 on arm64"),
        ("v7.3", "x86_64", "vm_killed_test", "", f"of v5.10 on arm64 and {NEWER}, and not of v7.3 on x86_64"),
        ("v5.10", "arm64", TEST, "rings", f"'rings' of {TEST} is for linux 7.0 and later, and not for 5.10"),
        ("v7.3", "arm64", TEST, "rings", ""),
        ("v7.3", "arm64", "vm_killed_test", "2g", ""),
        ("v5.10", "arm64", "vm_killed_test", "", ""),
        ("v5.10", "x86_64", TEST, "stall", ""),
    ],
)
def test_what_a_series_does_not_have_is_refused_at_once(series, arch, test, name, reason):
    with pytest.raises(Usage, match=reason) if reason else contextlib.nullcontext():
        bench.able(catalog.load(series), arch, test, name, bench.case(test, name).get("since"))


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
	sed -i "s/^\\(# metric dirty_memory_time[^ ]*\\) .*/\\1 ${{time}} s/" "$job.text"
	cat "$job.text"
	case $* in *lockphase*)
		sed "s/=W /=$writes /; s/=R /=$reads /" <<'END'
{lock("Iteration 1 dirty memory time", "write", "W", 3)}{lock("Iteration 1 dirty memory time", "read", "R", 0)}END
	esac
}}
"""


WALL = ("bench", "mini", "--clock", "wall")


@pytest.fixture(autouse=True)
def kept(tmp_path):
    """Where results are kept: bench makes no directory."""
    (tmp_path / "kept").mkdir()


@pytest.fixture
def measured(series, built, qemu, program, patches, kernel, tmp_path):
    """measured(option...): the results of bench by the wall clock, two rounds on vCPU counts 1 and 2, and what it printed."""
    program("aarch64-linux-gnu-gcc", "echo gcc\n")
    qemu(GUEST + RUN_JOB)

    def run(*options):
        common = ("--tree", kernel, "--vcpus", "1,2", "--samples", "2", "--json", tmp_path / "kept/x.json")
        done = series(*WALL, *common, *options)
        assert done.status == 0, done.err
        return results.load(tmp_path / "kept/x.json"), done

    return run


def _run(data, **wanted):
    (found,) = [run for run in data["runs"] if wanted.items() <= run.items()]
    return found


def _samples(data, **wanted):
    return _run(data, **wanted)["samples"]


def test_bench_measures_times_and_counts_on_their_own_kernels(measured):
    data, done = measured()
    for vcpus in (1, 2):
        for kernel, seconds, writes, reads in (("base", 1.0, 512, 0), ("series", 0.5, 1, 512)):
            about = {"kernel": kernel, "vcpus": vcpus}
            assert _samples(data, metric="dirty_memory_time", iteration=1, config="normal", **about) == [seconds] * 2
            assert _samples(data, metric="mmu_lock_write_acquisitions.dirty", config="lockstat", **about) == [writes]
            assert _samples(data, metric="mmu_lock_read_acquisitions", config="lockstat", **about) == [reads]
    assert not [run for run in data["runs"] if (run["unit"] == "s") == (run["config"] == "lockstat")]
    assert {run["args"] for run in data["runs"]} == {"-b 1M -i 2 -m 2 -s anonymous -g"}
    assert {(run["clock"], run["model"], run["cpu"]) for run in data["runs"]} == {("wall", "", "max")}
    assert set(data["host"]["kernels"]) == {
        f"{kernel} arm64 {config}" for kernel in ("base", "series") for config in ("normal", "lockstat")
    }
    assert "emulated" in done.out


def test_results_say_what_they_are_of(measured, kernel, tmp_path):
    """The ids of what was applied, and a command without a path of the user's."""
    data, _ = measured()
    made, tree = data["made"], next((tmp_path / "out/trees").glob("*/series"))
    assert made["ids"]["kernels"] == {"base": ids.source(kernel, "arm64"), "series": ids.source(tree, "arm64")}
    assert made["ids"]["tests"] == {"mini": ids.source(tree, ids.TESTS), "programs": ids.programs()}
    assert made["ids"]["instrument"] == ids.instrument() and set(made["ids"]) == {"kernels", "tests", "instrument"}
    assert made["rounds"] == 2
    assert str(tmp_path) not in json.dumps(made)


def test_results_whose_sources_change_meanwhile_are_of_an_unknown_state(measured, monkeypatch):
    numbers = iter(range(100))
    monkeypatch.setattr(ids, "programs", lambda: str(next(numbers)))
    data, done = measured("--no-counts")
    assert data["made"]["ids"] == {}
    assert "have changed meanwhile: these results are of an unknown state" in done.err


def test_counts_come_first_and_rounds_take_turns(measured):
    data, done = measured("--config", "64k")
    titles = re.findall(rf"{TEST} on (\w+) \((lock counts|times, round \d)\) ", done.err)
    assert titles == [
        *((kernel, "lock counts") for kernel in ("base", "series")),
        *((kernel, "times, round 1") for kernel in ("base", "series")),
        *((kernel, "times, round 2") for kernel in ("series", "base")),
    ]
    assert {run["config"] for run in data["runs"]} == {"64k", "64k+lockstat"}


def test_counts_alone_boot_no_kernel_for_times(measured):
    data, _ = measured("--no-times", "--samples", "1")
    assert {run["config"] for run in data["runs"]} == {"lockstat"}


@pytest.mark.parametrize(
    "guest, reason",
    [
        (
            "prints() { echo 'perf_test_util.h:1: assertion'; return 254; }\n",
            f"{TEST}-1 on base failed (status 254): perf_test_util.h:1: assertion (see ",
        ),
        (
            f"echo '[ 1.0] WARNING: suspicious RCU usage'\n{GUEST}",
            "base: the kernel reported a mistake: WARNING: suspicious RCU usage",
        ),
    ],
)
def test_what_fails_gives_no_figures_and_keeps_old_ones(refused, built, qemu, patches, kernel, tmp_path, guest, reason):
    (tmp_path / "kept/x.json").write_text("old", encoding="utf-8")
    qemu(guest + RUN_JOB)
    assert refused(*WALL, "--tree", kernel, "--vcpus", "1", "--json", tmp_path / "kept/x.json").startswith(reason)
    assert (tmp_path / "kept/x.json").read_text(encoding="utf-8") == "old"
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["x.json"]


# In virtual time

PHASE = {
    **dict.fromkeys(("exceptions", "dsb", "dc", "faults_access", "faults_other", "inversions", "forced", "strays"), 0),
    **{"ps": 1, "instructions": 9, "tlbi_local": 1, "tlbi_broadcast": 2, "atomics": 40, "foreign_atomics": 4},
    **{"faults_permission": 10, "faults_translation": 20, "faults_handled": 5, "instructions_per_fault": 1000},
    **{"accesses": 1000, "turns": 10, "passes": 4},
}
HEALTH = {"end": True, "late": 0, "polls": 1, "reads": 1}
SYMBOLS = "".join(
    f"ff8{number} T {name}\n"
    for number, name in enumerate(("n_tty_write", "__guest_exit", "__guest_enter", "kvm_handle_guest_abort"), 1)
)
DIRTY = "Iteration 1 dirty memory time: 1.21s"
# A guest whose QEMU is new enough, keeps counters, and logs model, slice and arguments.
VIRTUAL = """\
for word; do case $word in
*,counters=*)
	counters=${{word#*,counters=}}; counters=${{counters%%,*}}
	slice=${{word#*,slice=}}; slice=${{slice%%,*}}
	line=${{word#*,line=}}; line=${{line%%,*}} ;;
esac; done
case $job in *-series-*) kernel=series ;; *-other-*) kernel=other ;; *) kernel=base ;; esac
echo "$kernel line=$line slice=$slice" >> '{log}'
prints() {{ {prints}
	echo "$kernel $*" >> '{log}.args'; cat "{output}"; }}
{job}
cat > "$counters" <<'END'
{counters}
END
"""


@pytest.fixture
def virtual(series, built, program, qemu, patches, kernel, tmp_path, monkeypatch):
    """virtual(option..., health={}, prints=""): what bench in virtual time did with 1 vCPU:
    (its result, the results file or None, a line for each boot)."""
    qemu("")
    program("aarch64-linux-gnu-gcc", "echo gcc\n")
    monkeypatch.setattr(vtime, "library", lambda: "libc.so.6")
    built.kernel.image.with_name("System.map").write_text(
        f"ff80 T other\n{SYMBOLS}ff90 t stage2_map_walker\nffa0 T other\n", encoding="utf-8"
    )
    (tmp_path / "output").write_text(OUTPUT, encoding="utf-8")

    def run(*options, health=None, prints=":"):
        lines = [
            {"line": line, **PHASE, **(health or {})} for line in (f"@@ begin {TEST}-1", DIRTY, f"@@ end {TEST}-1 rc=0")
        ]
        lines.append({**HEALTH, **(health or {})})
        program(
            "qemu-system-aarch64",
            QEMU.replace("version 0.0", "version 10.0")
            + VIRTUAL.format(
                log=tmp_path / "boots",
                job=RUN_JOB.replace("prints() ", ""),
                prints=prints,
                output=tmp_path / "output",
                counters="\n".join(map(json.dumps, lines)),
            ),
        )
        done = series("bench", "mini", "--tree", kernel, "--vcpus", "1", "--json", tmp_path / "kept/x.json", *options)
        data = results.load(tmp_path / "kept/x.json") if done.status == 0 else None
        boots = (tmp_path / "boots").read_text(encoding="utf-8").splitlines()
        return done, data, boots

    return run


def test_emulated_kernels_are_timed_in_virtual_time_by_default(virtual, tmp_path):
    done, data, _ = virtual("--no-counts")
    assert done.status == 0, done.err
    assert {(run["clock"], run["model"], run["cpu"]) for run in data["runs"]} == {("virtual", "nominal", "neoverse-n1")}
    assert _samples(data, metric="dirty_memory_time", iteration=1, kernel="base") == [1.21] * 3
    assert data["host"]["vtime"]["slice_ns"] == 500
    assert data["host"]["vtime"]["parameters"]["line"]["source"]
    assert data["made"]["ids"]["instrument"] == ids.instrument()
    line = (tmp_path / "out/runs/bench-mini-arm64-base-normal/qemu.sh").read_text(encoding="utf-8")
    assert line.startswith("env LD_PRELOAD=libc.so.6 ")
    assert (tmp_path / "out/runs/bench-mini-arm64-base-normal/marks").read_text(encoding="utf-8") == "".join(
        f"{name} {address}\n" for address, _, name in map(str.split, SYMBOLS.splitlines())
    ) + "tables_from ff90\ntables_to ffa0\n"


def test_counters_of_the_instrument_come_from_the_kernels_that_are_timed(virtual):
    """Of one round: the others would only repeat them."""
    _, data, _ = virtual("--samples", "3")
    counts = {"instructions_per_fault": 1000, "faults_permission": 10, "tlbi_broadcast": 2, "foreign_atomics": 4}
    for name, value in counts.items():
        assert _samples(data, metric=f"{name}.dirty", kernel="base", iteration=1, config="normal") == [value]
        assert not [run for run in data["runs"] if run["metric"].startswith(name) and run["config"] != "normal"]


def test_threads_are_real_time_ones_where_that_holds_up_nobody():
    for arch, test, words in (
        ("arm64", "dirty_log_perf_test", ["/tests/spread"]),
        ("x86_64", "dirty_log_perf_test", []),
        ("x86_64", "access_tracking_stress_test", ["/tests/spread"]),
    ):
        assert bench.scheduling(arch, test, "5.10.262") == words
        # Where there is a fair server it lets kernel threads run beside them soon, if the test needs that.
        later = bench.scheduling(arch, test, "7.3.4")
        needs = words and test == "dirty_log_perf_test"
        assert later == ([*later[:4], *words] if needs else words) and (later[:2] == ["sh", "-c"]) == bool(needs)


@pytest.mark.parametrize("fails", [False, True])
def test_the_fair_server_is_set_before_the_test_runs(tmp_path, fails):
    for cpu in ("cpu0", "cpu1"):
        (tmp_path / cpu / "period").mkdir(parents=True) if fails else (tmp_path / cpu).mkdir()
    script, *words = bench.scheduling("arm64", "dirty_log_perf_test", "7.3.4")[2:4]
    script = script.replace("/sys/kernel/debug/sched/fair_server", str(tmp_path))
    done = subprocess.run(["sh", "-c", script, *words, "echo", "a b"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == ((125, "") if fails else (0, "a b\n"))
    if not fails:
        assert [(tmp_path / "cpu1" / name).read_text() for name in ("runtime", "period")] == ["1000000\n", "20000000\n"]


def test_variants_of_the_model_follow_once(virtual):
    _, data, boots = virtual("--no-counts", "--kernels", "base", "--sensitivity", "--samples", "2")
    assert boots[:2] == ["base line=47000 slice=500000", "base line=47000 slice=400000"]
    assert len(boots) == 2 + len(vtime.variants("arm64"))
    assert {"base line=94000 slice=500000", "base line=23500 slice=500000"} <= set(boots[2:])
    assert {run["model"] for run in data["runs"]} == {"nominal", *vtime.variants("arm64")}
    assert _samples(data, metric="populate_memory_time", model="line*2") == [0.340000001]


@pytest.fixture
def with_test(built):
    """The selftests that are said to be built have TEST."""
    write(built.tests / TEST, "").chmod(0o755)


def test_the_base_of_another_series_runs_the_tests_of_that_series(virtual, other, with_test, mirror, monkeypatch):
    asked = []
    build_ = selftests.build
    monkeypatch.setattr(selftests, "build", lambda series, *rest: asked.append(series.name) or build_(series, *rest))
    named = []
    source = ids.source
    monkeypatch.setattr(
        ids, "source", lambda tree, what: named.append(tree.name) if what == ids.TESTS else source(tree, what)
    )
    virtual("--no-counts", "--samples", "1", "--kernels", "series,other:base")
    assert asked == ["mini", "other"] and named == ["series", "series"]


def test_the_base_of_another_series_must_have_the_test(virtual, other, mirror, tmp_path):
    (tmp_path / "boots").touch()
    done = virtual("--no-counts", "--samples", "1", "--kernels", "base,other:base")[0]
    wanted = f"other:base: the selftests of linux {other.kernel} have no {TEST} for arm64"
    assert done.status == 1 and done.err.splitlines()[-1].endswith(wanted)


def test_the_base_of_another_series_runs_its_own_defaults(virtual, other, with_test, mirror, tmp_path):
    replaced(other.path / "base", "kernel: 5.10.262\ntag", "kernel: 7.3.4\ntag")
    boots = virtual("--no-counts", "--samples", "1", "--kernels", "base,other:base", "--case", "upton2022")[2]
    assert [boot.split()[0] for boot in boots] == ["base", "other"]
    lines = (tmp_path / "boots.args").read_text(encoding="utf-8").splitlines()
    assert [line.split(" -m ")[1].split()[0] for line in lines] == ["2", "3"]
    assert all("-s anonymous_thp" in line and " -g" not in line for line in lines)


@pytest.mark.parametrize(
    "health, reason",
    [
        ({"strays": 3}, "without their turn, 3 of 10 times"),
        ({"late": 1}, "a CPU ran without a clock 1 times"),
        ({"end": False}, "the virtual clock broke off"),
    ],
)
def test_a_virtual_clock_that_is_not_to_be_trusted_gives_no_results(virtual, tmp_path, health, reason):
    done, _, _ = virtual("--no-counts", "--kernels", "base", health=health)
    assert done.status == 1 and reason in done.err.splitlines()[-1]
    assert not (tmp_path / "kept/x.json").exists()


# Rounds that differ.  By its slice a round dirties memory in 1.5 s, 1.4 s, 1.6 s.
BY_SLICE = "sed -i \"s|^# metric dirty_memory_time/1 .*|# metric dirty_memory_time/1 1.${slice%%?????}00000000 s|\" '%s/output'"


@pytest.mark.parametrize("retries", [0, 1])
def test_rounds_that_do_not_repeat_fail_and_are_kept(virtual, tmp_path, retries):
    options = ("--no-counts", "--kernels", "base", "--retry", retries)
    done, _, boots = virtual(*options, prints=BY_SLICE % tmp_path)
    assert done.status == 1 and len(boots) == 3 * (1 + retries)
    assert done.err.splitlines()[-1] == (
        "series: error: virtual time does not repeat: dirty_memory_time of base with 1 vCPU is 1.400000 s to 1.600000 s; "
        "measure again with --retry 2"
    )
    data = results.load(tmp_path / "kept/x.json")
    assert _samples(data, metric="dirty_memory_time", iteration=1) == [1.5, 1.4, 1.6]
    assert len(_run(data, metric="dirty_memory_time", iteration=1)["earlier"]) == retries
    times = [run for run in data["runs"] if run["iteration"] in (1, None) and run["unit"] == "s"]
    others = dict.fromkeys(("get_dirty_log_time", "enable_dirty_log_time", "disable_dirty_log_time"))
    wanted = {"populate_memory_time": True, "dirty_memory_time": False, **others}
    assert {run["metric"]: run["repeats"] for run in times} == wanted
    assert "does not repeat" in done.out


# As BY_SLICE, up to the boot of this number.
UNTIL = (
    "[ $(wc -l < '%s/boots') -gt %d ] && sed -i 's|^# metric dirty_memory_time/1 .*|"
    "# metric dirty_memory_time/1 1.300000000 s|' '%s/output' || " + BY_SLICE
)


def test_a_retry_measures_all_rounds_of_the_kernel_again_and_keeps_what_was_there(virtual, tmp_path):
    done, data, boots = virtual(
        "--no-counts", "--kernels", "base", "--retry", "3", prints=UNTIL % (tmp_path, 6, tmp_path, tmp_path)
    )
    assert done.status == 0, done.err
    slices = ["base line=47000 slice=500000", "base line=47000 slice=400000", "base line=47000 slice=625000"]
    assert boots == slices * 3  # once, and two of three retries
    run = _run(data, metric="dirty_memory_time", iteration=1)
    assert run["samples"] == [1.3] * 3 and run["repeats"] is True
    assert run["earlier"] == [[1.5, 1.4, 1.6]] * 2
    assert re.findall(r"on base again \(retry (\d) of 3, round (\d)\) ", done.err) == [
        (str(one), str(two)) for one in (1, 2) for two in (1, 2, 3)
    ]
    assert "2 retries" in done.out


def test_only_the_kernel_that_does_not_repeat_is_measured_again(virtual, tmp_path):
    """And no variant of the model, and no lock counts."""
    _, _, boots = virtual(
        *("--samples", "2", "--retry", "1"),
        prints="[ $kernel = series ] || " + BY_SLICE % tmp_path + "\n[ $kernel = base ] || sed -i 's|^# metric "
        f"dirty_memory_time/1 .*|# metric dirty_memory_time/1 1.300000000 s|' '{tmp_path}/output'",
    )
    # Counts, then two rounds; both kernels have a round's slice.
    order = [("base", 500), ("series", 500)] * 2 + [("series", 400), ("base", 400)]
    assert boots[:6] == [f"{kernel} line=47000 slice={ns}000" for kernel, ns in order]
    assert [boot.split()[0] for boot in boots[6:]] == ["base", "base"]
