"""Tests of what the driver is told and of what is made of its figures."""

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvmseries.base.errors import Fail
from kvmseries.kernel import toolchain
from migrate import build, driver, migration, soak

PRINTED = """\
computed 0
speed 1834.78
steady 1
undisturbed_slow_share 0.04
undisturbed_stall_s 0.087
seconds 50.2
status completed
completed 1
total_time_ms 50230
downtime_ms 47
bytes_sent 128373196
guest_seconds 50.25
work_done 53780
work_lost 38421
work_lost_s 20.9404
slow_s 21.847
slow_share 0.435
stall_s 0.115169
trace migration_bitmap_sync_start 22
trace kvm_dirty_ring_flush 44
trace kvm_dirty_ring_reap 101
trace kvm_dirty_ring_full 30
reaped_pages 62197
throttle_steps 8
throttle_last 90
throttle_values 20,30,40,50,60,70,80,90
pages_compared 16384
pages_lost 0
target_lives 1
stale 0
"""


def test_words_are_options_of_the_driver():
    source = (driver.FOLDER / "driver/options.c").read_text(encoding="utf-8")
    known = set(re.findall(r"(?:WORD|NUMBER)\((\w+)\)", source))
    assert {word.split("=")[0] for word in driver.Setting().words()} <= known


def test_scenarios_of_the_soak_are_those_of_the_driver():
    source = (driver.FOLDER / "driver/main.c").read_text(encoding="utf-8")
    table = source[source.index("scenario scenarios[]") :]
    assert set(re.findall(r'[.]name = "([\w-]+)"', table[: table.index("};")])) == set(soak.SCENARIOS)


def test_what_headers_of_the_driver_declare_is_called():
    """Each function of a header is called in another file than its own."""
    folder = driver.FOLDER / "driver"
    sources = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.c")}
    for header in folder.glob("*.h"):
        for name in re.findall(r"^(?!static)[a-z][\w ]*[ *](\w+)\(", header.read_text(encoding="utf-8"), re.M):
            assert unused(name, header.stem, sources) == [], name


def unused(name, own, sources):
    """[name] if no source but `own` has a call of it."""
    return [] if any(re.search(rf"\b{name}\(", text) for stem, text in sources.items() if stem != own) else [name]


def test_negative_control_a_function_that_nothing_calls():
    assert unused("vm_alive", "vm", {"vm": "bool vm_alive(struct vm *vm)", "main": "vm_end(&vm);"}) == ["vm_alive"]


def test_a_rate_and_a_busy_main_loop_are_asked_for_by_number():
    assert {"dirty_rate=1000", "busy=1"} <= set(driver.Setting(dirty_rate=1000, busy=1).words())
    # A migration of bench has neither.
    assert {"dirty_rate=0", "busy=0"} <= set(driver.Setting().words())


def test_memory_holds_the_pages():
    assert driver.Setting(working_set=2048).memory == 64
    # 8 MiB are below the data.
    assert driver.Setting(working_set=64 << 10, static_set=1).memory * 1024 >= 8192 + (64 << 10) + 1


def test_parse():
    found = driver.parse(PRINTED)
    assert found["speed"] == 1834.78 and found["status"] == "completed"
    assert found["trace kvm_dirty_ring_full"] == 30
    assert found["throttle_values"] == "20,30,40,50,60,70,80,90"
    # The worse of two.
    found = driver.parse("source_lives 0\nsource_stale 3\nspeed 1\nsource_lives 1\nsource_stale 0\nspeed 2\n")
    assert found == {"source_lives": 0, "source_stale": 3, "speed": 2}


def test_parse_names_the_error():
    with pytest.raises(Fail, match="^hang: source: no answer$"):
        driver.parse("speed 1\nerror hang: source: no answer\n")
    with pytest.raises(Fail, match="no figure"):
        driver.parse("speed nan\n")


def _values(text, events=("kvm_dirty_ring_flush",)):
    """{metric: value} of what the driver printed; events: that its QEMU has."""
    setting = driver.Setting(ring=1024, vcpus=4)
    return {name: value for name, _, value in driver.metrics(driver.parse(text), setting, events)}


def test_kicks_of_base_are_its_flushes():
    # Each flush has a line when it begins and one when it ends.
    values = _values(PRINTED)
    assert values["kicks"] == 22 * 4 and values["syncs"] == 22 and values["ring_full_exits"] == 30
    assert values["guest_work_lost"] == pytest.approx(20.9404)
    assert values["pages_lost"] == 0 and values["completed"] == 1


def test_kicks_of_the_series_are_its_own():
    values = _values(PRINTED + "trace kvm_dirty_ring_kick 12\ntrace kvm_dirty_ring_kick_asleep 19\n", driver.EVENTS)
    assert values["kicks"] == 12 and values["kicks_skipped"] == 19
    assert _values(PRINTED, driver.EVENTS)["kicks"] == 0


def test_of_a_migration_that_did_not_end_nothing_was_compared():
    values = _values(PRINTED.replace("completed 1\n", "completed 0\n").replace("pages_lost 0\n", ""))
    assert "pages_lost" not in values and "downtime" not in values and values["completed"] == 0


def test_what_mechanisms_move_is_among_the_metrics():
    found = _values(PRINTED + "dirty_counted 90\ndirty_true 100\ntrace kvm_dirty_ring_reaper_look 7\n")
    assert (found["flushes"], found["looks"], found["dirty_counted"], found["dirty_true"]) == (22, 7, 90, 100)
    # Of a migration with one sync there is no count.
    assert "dirty_true" not in _values(PRINTED)


def test_what_the_guest_found_counts_as_lost():
    assert _values(PRINTED.replace("stale 0", "stale 2"))["pages_lost"] == 2


@pytest.mark.parametrize(
    "old, new, what",
    [
        ("pages_lost 0", "pages_lost 3", "3 pages differ between the two sides"),
        (
            "pages_lost 0",
            "pages_lost 13\nfirst_lost 0x40203000",
            "13 pages differ between the two sides (the first at 0x40203000)",
        ),
        ("stale 0", "stale 1", "1 stale pages found by the guest on the destination"),
        (
            "stale 0",
            "stale_at 0x40805000 0x50000000007 0x50000000006\nstale 8",
            "8 stale pages found by the guest on the destination (the first at 0x40805000: 0x50000000006 instead of 0x50000000007)",
        ),
        ("stale 0", "source_stale 4", "4 stale pages found by the guest on the source"),
        (
            "stale 0",
            "source_stale_at 0x40805000 0x7 0x6\nsource_stale 1",
            "1 stale pages found by the guest on the source (the first at 0x40805000: 0x6 instead of 0x7)",
        ),
        ("target_lives 1", "target_lives 0", "the guest does not work on the destination"),
        (
            "target_lives 1",
            "target_lives 0\ntarget_lives_written 19",
            "the guest does not work on the destination, its vCPUs wrote 19 pages in 60 s",
        ),
        ("stale 0", "source_lives 0", "the guest does not work on the source"),
        ("pages_lost 0\ntarget_lives 1", "", "the driver compared nothing"),
    ],
)
def test_complaints(old, new, what):
    assert not driver.complaints(driver.parse(PRINTED))
    assert old in PRINTED and driver.complaints(driver.parse(PRINTED.replace(old, new))) == [what]


def test_bundle(tmp_path):
    library = tmp_path / "libz.so.1"
    library.write_text("z")
    path = tmp_path / "qemu-system-x86_64"
    path.write_bytes(b"\0kvm_dirty_ring_flush\0kvm_dirty_ring_reaper\0cpu_throttle_set\0")
    program = SimpleNamespace(path=path, libraries=[library])
    events = driver.bundle(program, tmp_path / "q")
    assert events == ["cpu_throttle_set", "kvm_dirty_ring_flush", "kvm_dirty_ring_reaper"]
    assert (tmp_path / "q/lib/libz.so.1").read_text() == "z"
    assert (tmp_path / "q/events").read_text().split() == events
    assert (tmp_path / "q/qemu-system-x86_64").exists()


@pytest.mark.parametrize("arch", driver.NAMES)
def test_the_driver_starts_the_program_that_is_built(arch):
    source = (driver.FOLDER / "driver/arch.h").read_text(encoding="utf-8")
    part = source[source.index(f"defined(__{toolchain.machine(arch)}__)") :]
    assert re.search(r'#define PROGRAM\s+"(.*)"', part)[1] == build.binary(arch)


def test_ticks_are_those_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("SERIES_OUT", str(tmp_path))
    monkeypatch.setattr(driver.debian, "install", lambda *_: None)
    # Of arm64 machines from 19.2 MHz on.
    assert 19000 < driver.ticks() < 10000000


@pytest.mark.parametrize("accel", ("tcg", "kvm"))
def test_no_word_of_the_driver_has_a_colon(accel, tmp_path):
    assert driver.place(Path("/q"), "upto:ring") == Path("/q/upto-ring")
    runner = object.__new__(migration.Runner)
    runner.accel, runner.name, runner.folder, runner.tools = accel, "migration", tmp_path, tmp_path
    assert not [word for word in runner.words("upto:ring", SimpleNamespace(words=lambda: [])) if ":" in word]


def test_layout_leaves_room():
    """The places of layout.h do not overlap, whatever the number of vCPUs."""
    source = (driver.FOLDER / "guest/layout.h").read_text(encoding="utf-8")
    place = {name: int(value, 16) for name, value in re.findall(r"#define (GUEST_\w+)\s+(0x[0-9a-f]+)UL", source)}
    vcpus, windows = (int(re.search(rf"#define {name}\s+(\d+)", source)[1]) for name in ("MAX_VCPUS", "WINDOWS"))
    assert place["GUEST_STATE"] + vcpus * 4096 <= place["GUEST_WINDOWS"]
    assert place["GUEST_WINDOWS"] + vcpus * windows * 8 <= place["GUEST_DATA"]


PERMUTE = """
#include <stdio.h>
#include <string.h>
#define start_vcpu unused_start
%s
int main(void)
{
	static unsigned char seen[5000];
	for (uint64_t n = 1; n < 5000; n = n * 3 + 1)
		for (uint64_t pass = 1; pass < 50; pass++) {
			unsigned int bits = 0;
			while ((1UL << bits) < n)
				bits++;
			memset(seen, 0, sizeof(seen));
			for (uint64_t i = 0; i < n; i++) {
				uint64_t at = permute(i, n, bits, pass);
				if (at >= n || seen[at]++)
					return 1;
			}
		}
	return 0;
}
"""


def test_every_page_is_written_once_in_a_pass(tmp_path):
    """permute() of the guest, compiled for this machine, is a permutation."""
    source = (driver.FOLDER / "guest/layout.h").read_text(encoding="utf-8")
    function = re.search(r"^static inline uint64_t permute\(.*?^}", source, re.M | re.S)[0]
    code = tmp_path / "permute.c"
    code.write_text("#include <stdint.h>\n" + PERMUTE % function)
    subprocess.run(["gcc", "-O2", "-o", str(tmp_path / "permute"), str(code)], check=True)
    assert subprocess.run([str(tmp_path / "permute")], check=False).returncode == 0
