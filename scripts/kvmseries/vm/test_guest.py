"""Guests that are shell scripts: what they print and how they end is QEMU's and job.sh's."""

import functools
import time

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import QEMU, RUN_JOB, write
from kvmseries.vm import run as guest
from kvmseries.vm.machine import Machine

JOB = """\
@@ begin one
hello
world

@@ end one rc=0 seconds=1.25
@@ begin two
half a line
@@ end two rc=124 seconds=60.01
@@ taint two before=0 after=512
@@ done

@@ exit rc=0
"""
COMMANDS = [("one", 60, ["/tests/one", "-v", "2"]), ("two", 60, ["/tests/two"])]


def test_a_job_is_taken_apart():
    outcomes, done = guest.parse_job(JOB)
    assert done
    one, two = guest.Outcome("one", 0, 1.25, "hello\nworld\n"), guest.Outcome("two", 124, 60.01, "half a line\n")
    assert outcomes == [one, two]


@pytest.mark.parametrize(
    "text, outputs",
    [
        (JOB[: JOB.index("@@ done")], ["hello\nworld\n", "half a line\n"]),
        (JOB[: JOB.index("@@ end two")], ["hello\nworld\n"]),
        ("@@ begin a\nwe are @@ done\n", []),
        # A name that runs twice has two outputs.
        ("".join(f"@@ begin a\n{word}\n@@ end a rc=0 seconds=0.10\n" for word in "xy"), ["x\n", "y\n"]),
        ("", []),
    ],
)
def test_a_job_that_breaks_off_is_not_done(text, outputs):
    outcomes, done = guest.parse_job(text)
    assert not done and [outcome.output for outcome in outcomes] == outputs
    with pytest.raises(Fail, match="ends 'a', which never began"):
        guest.parse_job("@@ begin b\n@@ end a rc=0 seconds=0.10\n")


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: CPU: 0 PID: 12 at virt/kvm/kvm_main.c:12 f+0x0/0x10",
        "BUG: KASAN: use-after-free in f",
        "kernel BUG at mm/slub.c:305!",
        "INFO: possible recursive locking detected",
        "INFO: task a:1 blocked for more than 120 seconds.",
        "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000010",
        "Internal error: Oops: 96000004 [#1] SMP",
        "Kernel panic - not syncing: Fatal exception",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "BUG: Bad page state in process a  pfn:1",
        # A write to a page that is free: by pr_err() and dump_stack() alone.
        "pagealloc: memory corruption",
        "pagealloc: single bit error",
        "page dumped because: VM_BUG_ON_PAGE(page_ref_count(page) == 0)",
        "mm/pgtable-generic.c:50: bad pmd 00e0000012c00f52.",
        "get_swap_device: Bad swap file entry 3ffffffffffff",
        "swap_info_get: Unused swap offset entry 00000b2c",
        "list_add corruption. next->prev should be prev (ffff800011c8d3a0), but was aaaaaaaaaaaaaaaa. "
        "(next=ffff0000c3f2a008).",
        "list_add double add: new=ffff0000c3f2a008, prev=ffff0000c3f2a008, next=ffff800011c8d3a0.",
        "list_del corruption, ffff0000c3f2a008->next is LIST_POISON1 (dead000000000100)",
        "BUG kmalloc-64 (Not tainted): Poison overwritten",
        "BUG kvm_mmu_page_header (Tainted: G    B  W        ): Object already free",
        "kmem_cache_destroy pte_list_desc: Slab cache still has objects",
        "refcount_t: underflow; use-after-free.",
        "ODEBUG: activate active (active state 1) object type: rcu_head hint: 0x0",
        "ODEBUG: Out of memory. ODEBUG disabled",
        "UBSAN: shift-out-of-bounds in arch/x86/kvm/mmu/mmu.c:2219:13",
        "pte_list_remove: 0000000012345678 0->BUG",
        "__pte_list_remove: 0000000012345678 many->many",
        "gfn mismatch under direct page 1000 (expected 1001, got 1002)",
        "Invalid SPTE change: cannot replace a present leaf",
        "Unexpected SPTE change! Nonpresent SPTEs",
        "get_mmio_spte: detect reserved bits on spte, addr 0xc0000000, dump hierarchy:",
        "kvm [71]: Unexpected L2 read permission error",
        "kvm [71]: Unsupported FSC: EC=0x24 xFSC=0x10 ESR_EL2=0x92000010",
        "kvm [1]: nVHE hyp BUG at: arch/arm64/kvm/hyp/nvhe/../pgtable.c:512!",
        "invalid opcode: 0000 [#1] PREEMPT SMP NOPTI",
        "traps: PANIC: double fault, error_code: 0x0",
        "stage2_fault_st: Corrupted page table at address 7f12a0000000",
        "general protection fault, probably for non-canonical address 0xaaaaaaaaaaaaaaaa: 0000 [#1] SMP NOPTI",
        "unchecked MSR access error: WRMSR to 0xc0010117 (tried to write 0x0) at rIP: 0xffffffff8105a0c4 (f+0x24/0x30)",
        "Insufficient stack space to handle exception!",
        "Thread overran stack, or stack corrupted",
        "INFO: trying to register non-static key.",
        "rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 1-... } 6309 jiffies s: 57 root: 0x2/.",
        "DEBUG_LOCKS_WARN_ON(depth <= 0)",
        "[ BUG: Invalid wait context ]",
        "Double-freed CB 0000000012345678->f+0x0/0x10()!!!   slab kmalloc-64 start 0000000012345678 pointer offset 0",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [vcpu:71]",
    ],
)
def test_a_kernels_report_is_seen_and_loses_its_time(line):
    console = f"[    1.000000] fine\n[   12.345678] {line}\n[   13.000000][  T42] {line}\n"
    assert guest.splats(console) == [line]


def test_ordinary_lines_are_no_reports():
    assert not guest.splats(
        "[    0.1] Linux version 5.10.262\n[    0.2] rcu: Hierarchical RCU\n"
        "[    0.3] Booting Linux on physical CPU 0\n"
        "[    0.4] kvm [1]: Hyp mode initialized successfully\n"
        "[    0.5] ODEBUG: 16 of 16 active objects replaced\n"
        "[    0.6] DMA: preallocated 512 KiB GFP_KERNEL pool for atomic allocations\n"
        "[    0.7] list_add_test: 1..1\n"
        "[    0.8] Adding 102396k swap on /dev/zram0.  Priority:-2 extents:1 across:102396k SS\n"
    )


@pytest.fixture
def run(built):
    """run(): boots the fake guest with COMMANDS."""
    return lambda note=None, silence=3, commands=COMMANDS, cpu="max": guest.run(
        built.kernel, built.initrd, Machine("arm64", cpu), commands, "test-run", note, silence
    )


@pytest.fixture
def started(built, qemu, program, monkeypatch):
    """started(machine): boots the fake guest there, and returns what it got as job, and QEMU's command line."""
    monkeypatch.setattr(guest.machines, "check", lambda machine: None)
    qemu("")
    for name in ("qemu-system-aarch64", "qemu-system-x86_64"):
        program(name, QEMU + 'cp "$initrd" "${job%job.log}kept"\nprints() { :; }\n' + RUN_JOB)

    def boot(machine):
        folder = guest.run(built.kernel, built.initrd, machine, COMMANDS, "test-run").folder
        return tuple((folder / name).read_text(encoding="utf-8") for name in ("kept", "qemu.sh"))

    return boot


@pytest.mark.parametrize(
    "machine, held, spared",
    [
        (Machine("arm64"), True, False),
        (Machine("arm64", accel="kvm"), False, False),
        (Machine("x86_64"), False, True),
        (Machine("x86_64", accel="kvm"), False, False),
    ],
)
def test_what_a_job_begins_with(started, machine, held, spared):
    """A VM is held where branches are patched and CPUs emulated.  Commands keep off CPU 0 of emulated x86-64 alone: they
    have as many CPUs as elsewhere."""
    job, line = started(machine)
    assert ("\n/hold_vm || " in job, "the program hold_vm\n" in job) == (held, held)
    assert ("\ntaskset -p 1e $$ " in job, f"-smp {5 if spared else 4} " in line) == (spared, True)


def test_a_guest_that_ends_well_gives_its_outcomes(run, qemu):
    """A command that fails is one, too."""
    qemu(
        'prints() { echo "$*"; sleep 0.2; case $1 in */two) return 124 ;; esac; }\n'
        + RUN_JOB
        + "echo '[    3.000000] WARNING: CPU: 1 PID: 2 at x.c:3 f+0x1/0x2'\n"
    )
    notes = []
    result = run(notes.append)
    ran = [(one.name, one.status, one.output) for one in result.outcomes]
    assert ran == [("one", 0, "/tests/one -v 2\n"), ("two", 124, "/tests/two\n")]
    assert result.version == "5.10.262-fake"
    assert result.splats == ["WARNING: CPU: 1 PID: 2 at x.c:3 f+0x1/0x2"]
    assert "one (1 of 2)" in notes and "two (2 of 2)" in notes
    assert result.folder == paths.out("runs", "test-run")
    assert {path.name for path in result.folder.iterdir()} >= {"console.log", "job.log", "qemu.sh"}
    assert "qemu-system-aarch64" in (result.folder / "qemu.sh").read_text(encoding="utf-8")
    # The logs of an earlier run are not taken for this one.
    qemu("exit 0\n")
    with pytest.raises(Fail, match="ended before its job"):
        run()


def test_a_guest_that_hangs_is_killed_and_its_last_words_told(run, qemu, tmp_path):
    qemu(f"say '@@ begin one'; say 'about to hang'; echo $$ > '{tmp_path}/pid'\nexec sleep 1000\n")
    begin = time.monotonic()
    why = r"the guest hangs: nothing for \d+ s; it last printed: 'about to hang' \(see .*runs/test-run\)"
    with pytest.raises(Fail, match=why):
        run(silence=0.6, commands=[("one", 0.2, ["/tests/one"])])
    assert 0.7 < time.monotonic() - begin < 10
    assert not _alive(int((tmp_path / "pid").read_text(encoding="utf-8")))


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "says, cpu, line",
    [
        ("echo '[    0.5] Waiting for root device'", "max", r"'\[ 0.5\] Waiting for root device' \(see [^;]*$"),
        (":", "max", r"nothing \(see .*\); try --cpu max,lpa2=off$"),
        (":", "cortex-a72", r"nothing \(see [^;]*$"),
    ],
)
def test_a_guest_that_hangs_while_booting_is_told_by_its_console(run, qemu, program, says, cpu, line):
    qemu("")
    version = "--version|-cpu) echo QEMU emulator version 0.0; exit"
    program("qemu-system-aarch64", f'case "$1" in {version} ;; esac\n{says}\nexec sleep 1000\n')
    with pytest.raises(Fail, match=f"hangs: .* it last printed: {line}"):
        run(silence=0.5, cpu=cpu)


def test_a_guest_that_keeps_talking_and_a_command_in_its_own_time_do_not_hang(run, qemu):
    qemu('prints() { for i in 1 2 3 4 5; do echo $i >> "$job"; sleep 0.3; done; }\n' + RUN_JOB)
    assert len(run(silence=0.9, commands=[("one", 1, ["/tests/one"])]).outcomes) == 1
    qemu("prints() { sleep 1.2; }\n" + RUN_JOB)
    assert len(run(silence=0.6, commands=[("one", 60, ["/tests/one"])]).outcomes) == 1


def test_a_guest_that_does_not_power_off_is_killed_and_told(run, qemu):
    """Its kernel may go on to say where it hangs."""
    qemu(f"{RUN_JOB}\nwhile sleep 0.1; do echo 'rcu: INFO: rcu_sched self-detected stall on CPU'; done\n")
    begin = time.monotonic()
    result = run(silence=0.5, commands=[("one", 0, ["/tests/one"])])
    assert 0.5 < time.monotonic() - begin < 10
    assert len(result.outcomes) == 1
    assert guest.STAYS_ON in result.splats


FOREVER = """echo '@@ begin one' >> "$job"
echo 'WARNING: CPU: 2 PID: 85 at arch/arm64/kvm/mmu.c:363 kvm_s2_put_page+0x11c/0x124'
while sleep 0.1; do echo 'rcu: INFO: rcu_sched self-detected stall on CPU'; done
"""


def test_a_command_that_cannot_be_killed_is_a_hang_though_the_kernel_prints(run, qemu):
    qemu(FOREVER)
    begin = time.monotonic()
    why = r"the guest hangs: one does not end, \d+ s after it began .* it said first: .*s2_put_page"
    with pytest.raises(Fail, match=why):
        run(silence=0.5, commands=[("one", 1, ["/tests/one"])])
    assert 1.9 < time.monotonic() - begin < 12


@pytest.mark.parametrize("wall", [True, False])
def test_the_limits_of_a_virtual_clock_are_not_ours(tmp_path, wall):
    write(tmp_path / "job.log", "@@ begin one\n")
    line = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.1; done"]
    watch = functools.partial(guest._watch, line, tmp_path, [("one", 0.1, [])], None, 0.2)  # pylint: disable=protected-access
    if wall:
        with pytest.raises(Fail, match="one does not end"):
            watch(True)
    else:
        assert watch(False) == 0


DIES = "say '@@ begin one'; say 'last words'"


@pytest.mark.parametrize(
    "script, why",
    [
        (
            "say '@@ begin one'; say 'text'; say '@@ end one rc=0 seconds=0.10'; say '@@ begin two'\n"
            "echo '[    9.1] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b'",
            "the guest's kernel panicked during two: Kernel panic - not syncing: Attempted to kill init!",
        ),
        (
            "echo '[    1.1] Kernel panic - not syncing: VFS: Unable to mount root fs'",
            "the guest's kernel panicked: Kernel panic.*console.log",
        ),
        (DIES, "ended before its job during one; it last printed: 'last words'"),
        (
            "say '@@ begin one'; echo 'Triple fault' > \"${job%/*}/resets.log\"",
            "ended before its job during one by a triple fault; it last printed: ",
        ),
        (f"{DIES}; kill -SEGV $$", "QEMU ended with SIGSEGV during one; the guest last printed: 'last words'"),
        (f"{DIES}; exit 3", "QEMU ended with status 3 during one; the guest last printed: 'last words'"),
    ],
)
def test_what_a_guest_died_of_is_told(run, qemu, script, why):
    qemu(f"{script}\n")
    with pytest.raises(Fail, match=why):
        run()


def test_an_interrupt_kills_the_guest(run, qemu, tmp_path):
    qemu(f"echo $$ > '{tmp_path}/pid'; say '@@ begin one'\nexec sleep 1000\n")

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(interrupt, 5)
    assert not _alive(int((tmp_path / "pid").read_text(encoding="utf-8")))


def test_why_is_not_a_line_of_tap():
    output = "vCPU 1 does not get on\n# Totals: pass:0 fail:0\n"
    outcome = guest.Outcome("x", 254, 1.0, f"TAP version 13\n1..1\n{output}not ok 1 storm\n")
    assert outcome.why() == "status 254: vCPU 1 does not get on"
    assert guest.Outcome("x", 254, 1.0, "ok 1 merged pages\n").why() == "status 254: nothing printed"


def test_why_has_all_that_the_stress_test_tells_of_a_word():
    # TEST_FAIL()'s last line has no end, and what another thread prints follows it.
    output = """4 vCPUs, 8 MiB of anonymous_thp, seed 142
==== Test Assertion Failure ====
  stage2_fault_stress_test.c:1869: false
  pid=73 tid=80 - Success
     1\t0x0000000000402a13: fail_word at stage2_fault_stress_test.c:1869
  vCPU 1: wrong: not what was written
  word: 0x1c1 (block 0, page 0, owner 1) at place 0
  value: 0xd65f03c0d2800020 (owner 86, word 0xd2800020, generation 6227904)
  record: generation 3, page state 0, log 0
  page state: 1 before, 2 after it was readIt failed after:
9.7 s, 1253 accesses by vCPUs
"""
    assert guest.Outcome("x", 254, 1.0, output).why() == (
        "status 254: vCPU 1: wrong: not what was written, word: 0x1c1 (block 0, page 0, owner 1) at place 0, "
        "value: 0xd65f03c0d2800020 (owner 86, word 0xd2800020, generation 6227904), "
        "record: generation 3, page state 0, log 0, page state: 1 before, 2 after it was readIt failed after:"
    )
    assert len(guest.Outcome("x", 254, 1.0, "it failed\n" + "  more\n" * 1000).why()) < 700
