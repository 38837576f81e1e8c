"""The instrument's C, file by file: harnesses that read lines and answer each with one."""

import functools
import random
import subprocess
from collections import Counter

import pytest

from kvmseries.conftest import compiled, encodings
from vtime import vtime
from vtime.conftest import instructions

HEAD = '#include <stdio.h>\n#include <stdlib.h>\n#include "vtime.h"\n'
# Decoders: bytes in hexadecimal, the name of their kind.
KINDS = (
    HEAD
    + """
#define N(kind) [kind] = #kind
static const char *const names[] = { N(PLAIN), N(EXCEPTION), N(LOAD_EXCLUSIVE), N(ATOMIC),
	N(RELEASE), N(STORE), N(TLBI_LOCAL), N(TLBI_BROADCAST), N(DSB), N(DSB_OTHER), N(DC), N(WFE), N(SEVL),
	N(SEV), N(CLOCK), N(PAUSE), N(ENTER_GUEST) };

int main(void)
{
	unsigned int byte, size, i;

	while (scanf("%u", &size) == 1) {
		uint8_t *code = malloc(size);

		for (i = 0; i < size && scanf("%x", &byte) == 1; i++)
			code[i] = byte;
		puts(names[DECODE(code, size)]);
		free(code);
	}
}
"""
)
# "now length": when they begin; "-1 0" begins anew.
CALENDAR = (
    HEAD
    + """
int main(void)
{
	static struct calendar calendar, empty;
	long long now, length;

	while (scanf("%lld %lld", &now, &length) == 2) {
		if (now < 0)
			calendar = empty;
		printf("%lld\\n", now < 0 ? 0 : (long long)calendar_reserve(&calendar, now, length));
	}
}
"""
)
# "cpu address kind now": cost, foreign atomics so far, atomics so far, when the line counts as
# written or -1, its version, accesses out of order so far.
LINES = (
    HEAD
    + """
struct cpu cpus[MAXCPU];
struct costs costs = { .atomic = 5, .line = 47 };
struct stats stats;

void die(const char *format, ...)
{
	puts(format);
	__builtin_trap();
}

int main(void)
{
	unsigned int cpu, kind;
	long long address, now;

	while (scanf("%u %lld %u %lld", &cpu, &address, &kind, &now) == 4) {
		struct write write = { 0 };
		long long cost = line_access(cpu, address, kind, now, &write);
		long long written = write.line ? write.at : -1;

		printf("%lld %llu %llu %lld %llu %llu\\n", cost, (long long)cpus[cpu].foreign,
		       (long long)cpus[cpu].atomics, written,
		       (long long)line_version(address / 64 + 1), (long long)stats.inversions);
	}
}
"""
)
# CPU 0 waits for an event, with the line at 4096 as that of its last load-exclusive, while CPU 1, at 300, does EVENT and goes to
# sleep; then CPU 0's clock.
WFE = (
    HEAD
    + """
#include <unistd.h>
#include "clock.h"

struct costs costs = { .wfe = 1000, .atomic = 5, .line = 5 };
int64_t slice = 500000;
static struct score scores[2];
static pthread_mutex_t big = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t halt;

static void *second(void *unused)
{
	while (!cpus[0].wfe)
		usleep(1000);
	lock();
	me = 1;
	EVENT;
	unlock();
	idling = true;
	pthread_mutex_lock(&big);
	clocks_idle(&halt, &big);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	ncpu = 2;
	cpus[0].score = &scores[0];
	cpus[1].score = &scores[1];
	start_cpu(1);
	start_cpu(0);
	access_memory(1, 4096, EXCLUSIVE);
	access_memory(0, 4096, SHARED);
	cpus[1].clock = 300;
	cpus[0].clock = 0;
	pthread_create(&thread, NULL, second, NULL);
	wait_for_event(0, 0);
	printf("%d\\n", (int)cpus[0].clock);
	fflush(stdout);
	_exit(0);
}
"""
)


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    """harness(text, file..., define): the C program `text` with these files of the instrument,
    as a function of lines of input to lines of output."""

    @functools.cache
    def build(text, *files, define="HARNESS"):
        folder = tmp_path_factory.mktemp("harness")
        sources = (vtime.SOURCE / name for name in files)
        program = compiled(folder, text, sources, (vtime.SOURCE,), f"-D{define}")

        def run(lines):
            text = "".join(f"{line}\n" for line in lines)
            done = subprocess.run([program], input=text, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout.splitlines()

        return run

    return build


ARM64 = instructions("""\
LOAD_EXCLUSIVE: ldxr x0, [x1]; ldaxr w0, [x1]; ldaxrb w0, [x1]; ldxp x0, x1, [x2]; ldaxp w0, w1, [x2]
ATOMIC: stxr w0, x1, [x2]; stlxr w0, w1, [x2]; stlxrh w0, w1, [x2]; stxp w0, x1, x2, [x3]; cas x0, x1, [x2];
    casal w0, w1, [x2]; casab w0, w1, [x2]; casp x0, x1, x2, x3, [x4]; caspal w0, w1, w2, w3, [x4];
    ldadd x0, x1, [x2]; ldaddal w0, w1, [x2]; stadd x0, [x1]; ldclrh w0, w1, [x2]; ldset x0, x1, [x2];
    ldeor x0, x1, [x2]; ldsmaxl x0, x1, [x2]; ldumina w0, w1, [x2]; swp x0, x1, [x2]; swpalb w0, w1, [x2]
RELEASE: stlr x0, [x1]; stlr w0, [x1]; stlrb w0, [x1]; stlur x0, [x1, #8]; stlurh w0, [x1, #-2]
STORE: str x0, [x1]; str xzr, [x1, #8]; str x0, [x1, x2]; str x0, [x1, w2, uxtw #3]; stur x0, [x1, #1];
    str x0, [x1], #8; str x0, [x1, #8]!
TLBI_BROADCAST: tlbi vae1is, x0; tlbi vmalle1is; tlbi vmalle1os; tlbi vmalls12e1is; tlbi vmalls12e1os; tlbi alle1is;
    tlbi alle2is; tlbi aside1is, x0; tlbi vae2is, x0; tlbi vale1is, x0; tlbi vaae1os, x0; tlbi ipas2e1is, x0;
    tlbi ipas2le1is, x0; tlbi ipas2e1os, x0; tlbi ipas2le1os, x0; tlbi ripas2e1is, x0; tlbi ripas2le1is, x0;
    tlbi ripas2e1os, x0; tlbi ripas2le1os, x0; tlbi rvae1is, x0; tlbi rvae1os, x0; tlbi rvale2is, x0
TLBI_LOCAL: tlbi vae1, x0; tlbi vmalle1; tlbi vmalls12e1; tlbi alle1; tlbi alle2; tlbi aside1, x0; tlbi vae2, x0;
    tlbi ipas2e1, x0; tlbi ipas2le1, x0; tlbi ripas2e1, x0; tlbi ripas2le1, x0; tlbi rvae1, x0; tlbi rvale2, x0
DSB: dsb ish; dsb sy; dsb osh; dsb ishnxs; dsb oshnxs; dsb synxs
DSB_OTHER: dsb ishst; dsb ishld; dsb nsh; dsb nshst; dsb st; dsb ld; dsb nshnxs
DC: dc civac, x0; dc cvac, x0; dc cvau, x0; dc ivac, x0; dc cisw, x0; ic ivau, x0; ic iallu; ic ialluis
EXCEPTION: eret; eretaa; eretab
WFE: wfe
SEV: sev
SEVL: sevl
CLOCK: mrs x0, cntvct_el0; mrs x30, cntpct_el0; mrs x1, cntvctss_el0; mrs x1, cntpctss_el0; msr icc_sgi1r_el1, x0;
    msr icc_asgi1r_el1, x0; msr icc_sgi0r_el1, x30
PLAIN: ldapr x0, [x1]; ldaprb w0, [x1]; ldapur x0, [x1, #8]; ldar x0, [x1]; ldarh w0, [x1]; ldr x0, [x1];
    str x0, [sp, #8]; str w0, [x1]; sttr x0, [x1]; str x0, [sp, #-16]!; str d0, [x1]; ldr x0, [x1], #8;
    ldp x0, x1, [x2]; stp x0, x1, [x2]; ldr x0, [x1, x2]; stur w0, [x1, #1]; prfm pldl1keep, [x0, x1];
    prfm pstl1strm, [x0]; ldr q0, [x1, x2]; ssbb; pssbb; dmb ish; isb; clrex; nop; wfi; yield; hvc #0; svc #0;
    dc zva, x0; at s1e1r, x0; at s12e1w, x0; mrs x0, cntfrq_el0; mrs x0, cntv_ctl_el0; msr icc_eoir1_el1, x0;
    msr daifset, #2; ret; br x1; add x0, x1, x2
""")
X86_64 = instructions("""\
ATOMIC: lock cmpxchg %rax,(%rbx); lock cmpxchg %r9d,(%r8); lock incl (%rax); lock xaddw %ax,(%rbx);
    lock btsq $1,%gs:(%rax); lock cmpxchg16b (%rdi); xchg %rax,(%rbx); xchg %r8b,(%r9); xchg %eax,4(%rsp);
    xchg %ax,x(%rip)
TLBI_LOCAL: invlpg (%rax); invlpg (%r9); invlpga %rax,%ecx; mov %rax,%cr3; mov %r9,%cr3
CLOCK: rdtsc; rdtscp
ENTER_GUEST: vmrun
PAUSE: pause
DSB_OTHER: mfence
EXCEPTION: iretq; iretl; sysretq; sysretl
RELEASE: movb $0,(%rdi); movb $0,(%r9); movb $1,%gs:8(%rax); movb $0,x(%rip)
PLAIN: xchg %rax,%rbx; xchg %al,%bl; xchg %r8,%r9; xchg %rax,%r8; nop; cmpxchg %rax,(%rbx); incl (%rax); movb $0,%al;
    movb %al,(%rdi); movl $0,(%rdi); mov (%rdi),%rax; mov %rax,%cr0; mov %rax,%cr4; mov %cr3,%rax; lfence; sfence;
    vmload; vmsave; clgi; sgdt (%rax); lgdt (%rax); swapgs; invd; syscall; rep movsb; nopw 0(%rax,%rax,1); ret; x: hlt
""")


@pytest.mark.parametrize("arch, kinds", [("arm64", ARM64), ("x86_64", X86_64)])
def test_every_instruction_is_what_the_assembler_says(harness, tmp_path, arch, kinds):
    words = [word for word, _ in kinds]
    codes = encodings(tmp_path, arch, words)
    decode = harness(KINDS, f"{arch}.c", define=f"DECODE={arch}_kind")
    found = decode(f"{len(code)} {code.hex(' ')}" for code in codes)
    assert list(zip(words, found)) == kinds


def test_an_instruction_that_is_cut_off_is_plain(harness):
    """QEMU hands out no more than what it has translated."""
    decode = harness(KINDS, "x86_64.c", define="DECODE=x86_64_kind")
    for code in ("66 66", "48", "0f", "48 0f", "66 0f", "0f 01", "0f 22", "0f ae", "86", "c6", "f3"):
        assert decode([f"{len(code.split())} {code}"]) == ["PLAIN"]


TABLES = (
    HEAD
    + """
int main(int argc, char **argv)
{
	unsigned long long address;

	if (!tables_open(argv[1] ? argv[1] : "/dev/stdin"))
		return 0;
	puts("read");
	for (address = 0; address < 10; address++)
		printf("%d ", tables_code(address));
	puts("");
}
"""
)


def test_code_that_writes_page_tables_is_what_the_marks_say(harness):
    run = harness(TABLES, "tables.c")
    assert run(["n_tty_write 3", "tables_from 1", "tables_to 3", "x 4", "tables_from 8", "tables_to 9"]) == [
        "read",
        "0 1 1 0 0 0 0 0 1 0 ",
    ]
    assert run(["n_tty_write 3"]) == ["read", "0 0 0 0 0 0 0 0 0 0 "]


@pytest.mark.parametrize(
    "marks",
    [
        ["tables_from 3", "tables_to 3"],
        ["tables_from 3", "tables_to 2"],
        [f"tables_{end} {at * 4 + (end == 'to'):x}" for at in range(1, 66) for end in ("from", "to")],
    ],
)
def test_ranges_of_code_that_cannot_be_are_refused(harness, marks):
    assert harness(TABLES, "tables.c")(marks) == []


def _fit(busy, now, length):
    """Take the first `length` units that are free of the set `busy` from `now` on, which join it, in as many
    pieces as it takes; returns the time by which they are done, less `length`."""
    at = now
    for _ in range(length):
        while at in busy:
            at += 1
        busy.add(at)
        at += 1
    return at - length if length else now


def _calendar(reserve, asked):
    """Check the reservations `asked`, (now, length), in this order against _fit()."""
    busy = set()
    assert list(map(int, reserve(f"{now} {length}" for now, length in [(-1, 0), *asked])))[1:] == [
        _fit(busy, now, length) for now, length in asked
    ]


def test_random_reservations_are_those_of_the_model(harness):
    reserve = harness(CALENDAR, "calendar.c")
    rng = random.Random(3)
    for _ in range(60):
        # No more than there are slots, in any order.
        width = rng.choice([50, 300, 2000])
        _calendar(reserve, [(rng.randrange(width), rng.randrange(20)) for _ in range(24)])
    # More than there are slots, nearly in order: what is forgotten is what nobody asks about.
    _calendar(reserve, [(at * 100 + rng.randrange(800), rng.randrange(60)) for at in range(400)])


SHARED, EXCLUSIVE, POSTED, STORED = range(4)
ATOMIC, LINE = 5, 47


class _Line:
    """A line as scripts/vtime/README.md has it."""

    def __init__(self):
        self.asker, self.holders, self.writer = None, set(), None
        self.version, self.last, self.moves = 0, 0, set()

    def access(self, cpu, kind, now):
        """(cost, whether it moves, when it is written or -1, whether it is out of order)"""
        late = self.asker != cpu and self.last > now
        if now >= self.last:
            self.last, self.asker = now, cpu
        moves = self.writer is not None and (cpu not in self.holders if kind == SHARED else self.holders != {cpu})
        end = _fit(self.moves, now, LINE) + LINE if moves else now
        if self.writer is None or kind != SHARED:
            self.writer = cpu
        self.holders = self.holders | {cpu} if kind == SHARED else {cpu}
        self.version += kind != SHARED
        wait = end - now
        cost = {SHARED: wait, EXCLUSIVE: wait if moves else ATOMIC, POSTED: 0, STORED: wait}[kind]
        return cost, moves, -1 if kind == SHARED else end, late


def _lines(access, asked):
    """Check (cpu, address, kind, now) in this order against the model; returns the costs, and the foreign atomics of the
    CPU that was the last."""
    lines, foreign, atomics, late, wanted = {}, Counter(), Counter(), 0, []
    for cpu, address, kind, now in asked:
        line = lines.setdefault(address // 64, _Line())
        cost, moves, written, out_of_order = line.access(cpu, kind, now)
        foreign[cpu] += moves and kind == EXCLUSIVE
        atomics[cpu] += kind == EXCLUSIVE
        late += out_of_order
        wanted.append([cost, foreign[cpu], atomics[cpu], written, line.version, late])
    found = access(" ".join(map(str, one)) for one in asked)
    assert [list(map(int, line.split())) for line in found] == wanted
    return [line[0] for line in wanted], wanted[-1][1]


@pytest.mark.parametrize(
    "asked, costs, foreign",
    [
        # "cpu address kind now".  Owned: the first to come, and who has it alone.
        ("0 0 X 0; 0 8 X 10; 0 0 S 20; 0 0 P 20", [ATOMIC, ATOMIC, 0, 0], 0),
        # It moves to who wants it, and back; the next line is another.
        ("0 0 X 0; 1 63 X 100; 0 0 X 200; 1 64 X 300", [ATOMIC, LINE, LINE, ATOMIC], 1),
        # Sharers have it until somebody writes, who waits for them to lose it; 64 is another word.
        ("0 0 X 0; 64 0 S 100; 64 0 S 200; 0 0 S 300; 0 0 X 400; 64 0 S 500", [ATOMIC, LINE, 0, 0, LINE, LINE], 0),
        # Who comes while it moves waits for its turn.
        ("0 0 X 0; 1 0 X 100; 2 0 X 100; 3 0 X 110", [ATOMIC, LINE, 2 * LINE, 3 * LINE - 10], 1),
        # A release waits for nothing, but who comes next does.
        ("0 0 X 0; 1 0 P 100; 0 0 X 110", [ATOMIC, 0, 2 * LINE - 10], 1),
        # A store to a page table waits for a line that moves, and for nothing else.
        ("0 0 T 0; 0 8 T 100; 1 0 T 200; 1 0 X 300; 0 0 T 400; 1 64 T 500", [0, 0, LINE, ATOMIC, LINE, 0], 0),
        # Out of turn: it takes nothing from who came later.
        ("0 0 X 0; 1 0 X 900; 2 0 X 100", [ATOMIC, LINE, LINE], 1),
        # Load-exclusives, releases and stores move the line, but are no atomics.
        ("0 0 X 0; 1 0 S 100", [ATOMIC, LINE], 0),
        ("0 0 X 0; 1 0 P 100", [ATOMIC, 0], 0),
        ("0 0 X 0; 1 0 T 100", [ATOMIC, LINE], 0),
        # LDXR, STXR: two moves, one atomic.
        ("0 0 X 0; 1 0 S 100; 1 0 X 200", [ATOMIC, LINE, LINE], 1),
        # The last writer's own, which others hold, too.
        ("1 0 X 0; 0 0 S 100; 1 0 X 200", [ATOMIC, LINE, LINE], 1),
    ],
)
def test_an_access_costs_what_moving_its_line_takes(harness, asked, costs, foreign):
    words = [one.split() for one in asked.split(";")]
    asked = [(int(cpu), int(address), "SXPT".index(kind), int(now)) for cpu, address, kind, now in words]
    assert _lines(harness(LINES, "lines.c", "calendar.c"), asked) == (costs, foreign)


def test_random_accesses_are_those_of_the_model(harness):
    access = harness(LINES, "lines.c", "calendar.c")
    rng = random.Random(5)
    kinds = [SHARED, EXCLUSIVE, EXCLUSIVE, POSTED, STORED]
    for width in (1, 40, 400):
        asked = []
        for at in range(600):
            cpu, address = rng.choice([0, 1, 2, 63, 64, 127]), rng.randrange(3 * 64)
            asked.append((cpu, address, rng.choice(kinds), at * 20 + rng.randrange(width)))
        _lines(access, asked)


def test_more_lines_than_the_table_began_with_keep_their_owners(harness):
    count = (1 << 15) + 100
    asked = [(cpu, number << 6, EXCLUSIVE, number + cpu * 10**7) for cpu in (0, 1) for number in range(count)]
    access = harness(LINES, "lines.c", "calendar.c")
    assert _lines(access, asked)[0] == [ATOMIC] * count + [LINE] * count


@pytest.mark.parametrize(
    "event, clock",
    [
        # A write to the line, an access that writes nothing, a write to another line, SEV, the limit.
        ("access_memory(1, 4096, EXCLUSIVE)", 305),
        ("access_memory(1, 4096, SHARED)", 1000),
        ("access_memory(1, 8192, EXCLUSIVE)", 1000),
        ("send_event(cpus[1].clock)", 300),
        ("(void)0", 1000),
    ],
)
def test_what_ends_a_wait_for_an_event(harness, event, clock):
    files = ("wfe.c", "clock.c", "lines.c", "calendar.c", "machine.c")
    assert harness(WFE, *files, define=f"EVENT={event}")([]) == [str(clock)]
