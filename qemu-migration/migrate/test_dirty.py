"""Tests of the driver's count of the pages that a guest dirtied from sync to sync, compiled for this machine."""

import platform
import subprocess

import pytest

from kvmseries.base import proc
from migrate import driver

# A guest of one vCPU with 100 pages.  In each line of the trace "T" is a time: T0 when the first note was made, T1 the
# second.  Between them the vCPU goes from iteration FROM to UNTIL.
PROGRAM = """
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include "dirty.h"
#include "util.h"

static double now(void)
{
    struct timeval now;

    gettimeofday(&now, NULL);
    return now.tv_sec + now.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    struct vm vm = { .ram = calloc(1, GUEST_DATA - GUEST_RAM), .trace = argv[1] };
    struct options options = { .vcpus = 1 };
    struct state *state = (struct state *)(vm.ram + GUEST_STATE - GUEST_RAM);
    double times[2];
    FILE *file;
    int i;

    state->pages = 100;
    state->iterations = atoi(argv[2]);
    dirty_note(&vm, &options);
    times[0] = now();
    nap(0.2);
    state->iterations = atoi(argv[3]);
    times[1] = now();
    dirty_note(&vm, &options);
    file = fopen(argv[1], "w");
    fprintf(file, "not an event\\n");
    for (i = 4; i + 1 < argc; i += 2)
        fprintf(file, "7@%.6f:%s\\n", times[0] + atof(argv[i]) * (times[1] - times[0]), argv[i + 1]);
    fclose(file);
    dirty_print(&vm, &options, 0);
    printf("written %lu\\n", (unsigned long)dirty_written(&vm, &options));
    printf("measured %lu\\n", (unsigned long)dirty_written_measured(&vm, &options, 0.1));
    return 0;
}
"""
START, END = "migration_bitmap_sync_start ", "migration_bitmap_sync_end dirty_pages {}"


@pytest.fixture(scope="module", name="program")
def _program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dirty")
    (folder / "main.c").write_text(PROGRAM, encoding="utf-8")
    sources = [str(driver.FOLDER / "driver" / f"{name}.c") for name in ("dirty", "trace", "util")]
    flags = ["-Wall", "-Wextra", "-Werror", "-std=gnu11", "-D_GNU_SOURCE"]
    includes = [f"-I{driver.FOLDER / name}" for name in ("driver", "guest")]
    proc.run(["gcc", *flags, *includes, "-o", str(folder / "dirty"), str(folder / "main.c"), *sources], "gcc")
    return folder / "dirty"


def run(program, tmp_path, before, after, *events):
    """The figures that the program prints for (time, event)s."""
    words = [word for at, event in events for word in (str(at), event)]
    ran = subprocess.run(
        [program, tmp_path / "trace", str(before), str(after), *words], check=True, capture_output=True, text=True
    )
    return driver.parse(ran.stdout)


def counts(program, tmp_path, before, after, *events):
    """(counted, true) of what the program prints for (time, event)s; None if there is none."""
    found = run(program, tmp_path, before, after, *events)
    return (found["dirty_counted"], found["dirty_true"]) if "dirty_true" in found else None


def syncs(*ends):
    return [(0, START), *((at, END.format(pages)) for at, pages in ends)]


# Pages that the vCPU writes beside its 100, on this machine's architecture: its state, a window; on x86-64 its stack and two page
# tables.
OWN = {"aarch64": 2, "x86_64": 5}[platform.machine()]


# A whole pass, a part of one; the second of three is whole.
@pytest.mark.parametrize("before, after, true", [(0, 100, 100), (100, 140, 40), (50, 249, 100), (0, 5000, 100)])
def test_pages_written_are_counted_once(program, tmp_path, before, after, true):
    found = counts(program, tmp_path, before, after, *syncs((0.0001, 7), (0.9999, 50)))
    # What QEMU counts in a period goes on from sync to sync.  The times are a little within the notes.
    assert found[0] == 43 and found[1] == pytest.approx(true + OWN, abs=1)


def permute(number, pages, pass_):
    """The guest's order of a pass, once more."""
    bits = (pages - 1).bit_length()
    mask = (1 << bits) - 1
    salt = (pass_ * 0x9E3779B97F4A7C15 % 2**64) >> 20
    while True:
        number = (number + salt) & mask
        number = number * 0x2545F4914F6CDD1D & mask
        number ^= number >> (bits // 2 + 1)
        number = number * 0xD1342543DE82EF95 & mask
        if number < pages:
            return number


@pytest.mark.parametrize("before, after", [(40, 160), (70, 130), (290, 310), (1020, 1180), (1090, 1205)])
def test_two_passes_in_part_have_pages_in_common(program, tmp_path, before, after):
    _, true = counts(program, tmp_path, before, after, *syncs((0.0001, 0), (0.9999, 50)))
    wanted = len({permute(one % 100, 100, one // 100 + 1) for one in range(before, after)})
    # An iteration at either end is beyond the times of the syncs.
    assert true == pytest.approx(wanted + OWN, abs=2)


def test_a_sync_that_the_notes_do_not_cover_is_left_out(program, tmp_path):
    assert counts(program, tmp_path, 0, 100, *syncs((0.0001, 0), (1.5, 50))) is None
    assert counts(program, tmp_path, 0, 100, *syncs((0.5, 5))) is None
    counted, true = counts(program, tmp_path, 0, 100, *syncs((0.0001, 0), (0.5, 33), (1.5, 50)))
    assert counted == 33 and true == pytest.approx(50 + OWN, abs=1)


def test_qemus_count_begins_anew_after_a_period(program, tmp_path):
    # The start is 1.2 s before the second sync: the period ends there.
    events = [(-5, START), (0.0001, END.format(20)), (0.5, END.format(45)), (0.9999, END.format(60))]
    counted, _ = counts(program, tmp_path, 0, 100, *events)
    # 0.2 s are 1: the first sync ended a period; the two others are in one.
    assert counted == 45 + 15


def test_the_first_pass_and_the_order_are_the_guests():
    guest = (driver.FOLDER / "guest/main.c").read_text(encoding="utf-8")
    own = (driver.FOLDER / "driver/dirty.c").read_text(encoding="utf-8")
    assert "for (pass = 1;; pass++)" in guest and "first + permute(i, pages, bits, pass)" in guest
    assert "permute(from % pages, pages, bits, from / pages + 1)" in own


def test_what_was_written_in_all_and_while_a_rate_was_measured(program, tmp_path):
    found = run(program, tmp_path, 0, 80, (0, "other"), (0.75, "dirtyrate_calculate dirty rate: 5 MB/s"))
    # The notes are 0.2 s apart, and the 0.1 s before three quarters of that count.
    assert found["written"] == 80 + OWN and found["measured"] == pytest.approx(40 + OWN, abs=2)


@pytest.mark.parametrize("at", [0.4, 1.2])
def test_a_time_that_the_notes_do_not_cover_says_nothing(program, tmp_path, at):
    assert run(program, tmp_path, 0, 80, (at, "dirtyrate_calculate dirty rate: 5 MB/s"))["measured"] == 0
    assert run(program, tmp_path, 0, 80, (0.8, "other"))["measured"] == 0
