"""Tests of what the driver is told and of what is made of its figures."""

import subprocess
from types import SimpleNamespace

import pytest

from kvmseries.base.errors import Fail
from kvmseries.conftest import write
from migrate import driver

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
KICKS = "trace kvm_dirty_ring_kick 12\ntrace kvm_dirty_ring_kick_asleep 19\n"
SHARES = "throttle_share 0.02\nthrottle_share_asked 0.01\n"
GIVEN_UP = PRINTED.replace("completed 1\n", "completed 0\n").replace("pages_lost 0\n", "")


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


@pytest.mark.parametrize(
    "text, events, wanted",
    [
        # Of base each flush kicks all vCPUs, and has a line when it begins and one when it ends; the series counts its own.
        (PRINTED, ("kvm_dirty_ring_flush",), {"kicks": 22 * 4, "flushes": 22, "syncs": 22, "ring_full_exits": 30}),
        (PRINTED, (), {"guest_work_lost": 20.9404, "pages_lost": 0, "completed": 1, "dirty_true": None}),
        (PRINTED, driver.EVENTS, {"kicks": 0}),
        (PRINTED + KICKS, driver.EVENTS, {"kicks": 12, "kicks_skipped": 19}),
        (PRINTED + "trace kvm_dirty_ring_reaper_look 7\n", driver.EVENTS, {"looks": 7}),
        (PRINTED + "dirty_counted 90\ndirty_true 100\n", (), {"dirty_counted": 90, "dirty_true": 100}),
        (PRINTED, (), {"throttle_share": None}),
        (PRINTED + SHARES, (), {"throttle_share": 0.02, "throttle_share_asked": 0.01}),
        # What the guest found counts as lost; of a migration that did not end nothing was compared.
        (PRINTED.replace("stale 0", "stale 2"), (), {"pages_lost": 2}),
        (GIVEN_UP, (), {"completed": 0, "pages_lost": None, "downtime": None}),
    ],
)
def test_metrics(text, events, wanted):
    setting = driver.Setting(ring=1024, vcpus=4)
    values = {name: value for name, _, value in driver.metrics(driver.parse(text), setting, events)}
    assert {name: values.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    "old, new, what",
    [
        ("pages_lost 0", "pages_lost 3", "3 pages differ between the two sides"),
        ("pages_lost 0", "pages_lost 13\nfirst_lost 0x40", "13 pages differ between the two sides (the first at 0x40)"),
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


def test_ticks_are_those_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("SERIES_OUT", str(tmp_path))
    monkeypatch.setattr(driver.debian, "install", lambda *_: None)
    # Of arm64 machines from 19.2 MHz on.
    assert 19000 < driver.ticks() < 10000000


LAYOUT = """
#include <string.h>
#include "layout.h"
_Static_assert(GUEST_STATE + MAX_VCPUS * PAGE <= GUEST_WINDOWS, "states run into the windows");
_Static_assert(GUEST_WINDOWS + MAX_VCPUS * WINDOWS * sizeof(struct window) <= GUEST_DATA, "windows run into the data");
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


def test_layout_leaves_room_and_every_page_is_written_once_in_a_pass(tmp_path):
    """Of the guest's layout.h, compiled for this machine: the places do not overlap, and permute() is a permutation."""
    code = write(tmp_path / "layout.c", LAYOUT)
    includes = f"-I{driver.FOLDER / 'guest'}"
    subprocess.run(["gcc", "-O2", includes, "-o", str(tmp_path / "layout"), str(code)], check=True)
    assert subprocess.run([str(tmp_path / "layout")], check=False).returncode == 0
