// SPDX-License-Identifier: GPL-2.0
/*
 * lockphase: count lock acquisitions and contentions per phase of a test
 *
 * A selftest such as dirty_log_perf_test prints one line at the end of each of
 * its phases ("Iteration 1 dirty memory time: ..."). lockphase runs the test,
 * and when the main thread has written such a line, holds that thread, prints
 * what /proc/lock_stat counted since the last one, clears the statistics and
 * lets the thread go on. The test itself needs no change, and base and series
 * run the same binary.
 *
 * Only the main thread is traced: no PTRACE_O_TRACECLONE, so vCPU threads never
 * stop in the tracer and their KVM_RUN is not slowed. The main thread stops at
 * every system call it makes, which costs it time; a kernel with LOCK_STAT is
 * for counts and never for times.
 *
 * While the main thread is held the vCPU threads do run. The counts of a phase
 * are exact as long as the vCPUs do nothing between two phases, which holds for
 * a test whose main thread starts each phase.
 *
 * Output, one line for each class and mode, zeros when nothing was counted:
 *
 * @@ lock phase="Populate memory time" class="&kvm->mmu_lock" mode=write
 *	con-bounces=0 contentions=0 ... acquisitions=5 ... holdtime-avg=1.50
 *
 * and acquisitions and contentions of KVM's mmu_lock as metrics, by phase and
 * in all phases but the setup:
 *
 * # metric mmu_lock_write_acquisitions.dirty/1 5 count
 * # metric mmu_lock_write_acquisitions 12 count
 *
 * The last phase, "exit", goes from the last phase line to the end of the
 * process: that is the teardown of the VM.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MAX_PATTERNS	32
#define MAX_ROWS	64
#define NR_FIELDS	12
#define LINE_SIZE	512
#define NAME_SIZE	64

/* The columns of "lock_stat version 0.4", the format of 5.10 and of 7.3. */
static const char * const fields[NR_FIELDS] = {
	"con-bounces", "contentions", "waittime-min", "waittime-max",
	"waittime-total", "waittime-avg", "acq-bounces", "acquisitions",
	"holdtime-min", "holdtime-max", "holdtime-total", "holdtime-avg",
};

/*
 * "guest physical ..." ends the setup, so that populating counts for itself. With
 * each, the name of the phase in metrics.
 */
static const struct phase {
	const char *line, *name;
} default_phases[] = {
	{ "guest physical test memory", "setup" },
	{ "Populate memory time", "populate" },
	{ "Enabling dirty logging time", "enable" },
	{ " dirty memory time", "dirty" },
	{ " get dirty log time", "get" },
	{ " clear dirty log time", "clear" },
	{ "Disabling dirty logging time", "disable" },
	{ " age idle memory time", "age" },
	{ " access memory time", "access" },
	{ " fault memory in time", "fault" },
	{ " discard fresh memory time", "discard" },
	{ " check idle memory time", "check" },
	{ "exit", "exit" },
};

/* Of mmu_lock: what is a metric, and its sums, for write and for read */
static const struct {
	const char *name;
	int field;
} counted[] = { { "acquisitions", 7 }, { "contentions", 1 } };

struct row {
	char name[NAME_SIZE];
	bool read;
	char value[NR_FIELDS][24];
};

static const char *phases[MAX_PATTERNS];
static const char *classes[MAX_PATTERNS];
static unsigned int nr_phases, nr_classes;
static unsigned long sums[2][ARRAY_SIZE(counted)];
static const char *lock_stat = "/proc/lock_stat";
static bool counts_lost;

/* The line that the test is writing, which may take several system calls. */
static char line[LINE_SIZE];
static size_t line_len;

/* Names of phases that ended in the system call at hand. */
static char ended[2 * LINE_SIZE];

/*
 * The name that a class had when it was last seen, to print zeros under the
 * same name in a phase that did not take the lock at all.
 */
static char class_name[MAX_PATTERNS][NAME_SIZE];

static void die(const char *what)
{
	fprintf(stderr, "lockphase: %s: %s\n", what, strerror(errno));
	exit(125);
}

/*
 * One row of /proc/lock_stat: "NAME:", then twelve numbers. An rwlock has a row
 * "NAME-W:" and a row "NAME-R:", but where it was never taken for read since
 * the statistics were cleared, the -W is left out and the row looks like that
 * of a spinlock: no suffix means write.
 */
static bool parse_row(const char *text, struct row *row)
{
	const char *colon = strrchr(text, ':');
	size_t len;
	int used;
	int i;

	if (!colon)
		return false;
	while (*text == ' ')
		text++;
	len = colon - text;
	if (colon <= text || len >= NAME_SIZE)
		return false;

	memcpy(row->name, text, len);
	row->name[len] = '\0';
	row->read = false;
	if (len > 2 && !strcmp(row->name + len - 2, "-R"))
		row->read = true;
	if (row->read || (len > 2 && !strcmp(row->name + len - 2, "-W")))
		row->name[len - 2] = '\0';

	for (i = 0, text = colon + 1; i < NR_FIELDS; i++, text += used) {
		if (sscanf(text, " %23[0-9.]%n", row->value[i], &used) != 1)
			return false;
	}
	return true;
}

static unsigned int read_rows(struct row *rows, const char *class)
{
	unsigned int nr = 0;
	char text[LINE_SIZE];
	FILE *f;

	f = fopen(lock_stat, "r");
	if (!f)
		die(lock_stat);
	while (fgets(text, sizeof(text), f)) {
		/* After a lockdep report nothing is counted any more. */
		if (strstr(text, "*WARNING*") && !counts_lost) {
			counts_lost = true;
			printf("@@ lock-error lock debugging is off, see the kernel log\n");
		}
		if (nr < MAX_ROWS && parse_row(text, &rows[nr]) &&
		    strstr(rows[nr].name, class))
			nr++;
	}
	fclose(f);
	return nr;
}

static void print_metrics(const char *phase, bool read, const struct row *row)
{
	unsigned long iteration = 0, value;
	unsigned int i, p;

	for (p = 0; p < ARRAY_SIZE(default_phases); p++)
		if (strstr(phase, default_phases[p].line))
			break;
	if (p == ARRAY_SIZE(default_phases) || strstr(phase, " + "))
		return;
	sscanf(phase, "Iteration %lu ", &iteration);
	for (i = 0; i < ARRAY_SIZE(counted); i++) {
		value = row ? strtoul(row->value[counted[i].field], NULL, 10) : 0;
		printf("# metric mmu_lock_%s_%s.%s", read ? "read" : "write", counted[i].name,
		       default_phases[p].name);
		if (iteration)
			printf("/%lu", iteration);
		printf(" %lu count\n", value);
		if (strcmp(default_phases[p].name, "setup"))
			sums[read][i] += value;
	}
}

static void print_sums(void)
{
	unsigned int i, read;

	for (read = 0; read < 2; read++)
		for (i = 0; i < ARRAY_SIZE(counted); i++)
			printf("# metric mmu_lock_%s_%s %lu count\n", read ? "read" : "write",
			       counted[i].name, sums[read][i]);
	printf("# metric mmu_lock_contentions %lu count\n", sums[0][1] + sums[1][1]);
}

static void print_row(const char *phase, const char *name, bool read,
		      const struct row *row)
{
	int i;

	printf("@@ lock phase=\"%s\" class=\"%s\" mode=%s", phase, name,
	       read ? "read" : "write");
	for (i = 0; i < NR_FIELDS; i++)
		printf(" %s=%s", fields[i], row ? row->value[i] : "0");
	printf("\n");
	if (strstr(name, "mmu_lock"))
		print_metrics(phase, read, row);
}

static const struct row *find_row(const struct row *rows, unsigned int nr,
				  const char *name, bool read)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (rows[i].read == read && !strcmp(rows[i].name, name))
			return &rows[i];
	}
	return NULL;
}

static void print_class(const char *phase, unsigned int class)
{
	static struct row rows[MAX_ROWS];
	unsigned int nr = read_rows(rows, classes[class]);
	unsigned int i;

	for (i = 0; i < nr; i++) {
		/* Both modes are printed at the first row of a name. */
		if (find_row(rows, i, rows[i].name, true) ||
		    find_row(rows, i, rows[i].name, false))
			continue;
		strcpy(class_name[class], rows[i].name);
		print_row(phase, rows[i].name, false,
			  find_row(rows, nr, rows[i].name, false));
		print_row(phase, rows[i].name, true,
			  find_row(rows, nr, rows[i].name, true));
	}
	if (!nr) {
		print_row(phase, class_name[class], false, NULL);
		print_row(phase, class_name[class], true, NULL);
	}
}

static void clear_lock_stat(void)
{
	int fd = open(lock_stat, O_WRONLY);

	if (fd < 0 || write(fd, "0", 1) != 1)
		die(lock_stat);
	close(fd);
}

static void end_phase(const char *phase)
{
	unsigned int i;

	for (i = 0; i < nr_classes; i++)
		print_class(phase, i);
	fflush(stdout);
	clear_lock_stat();
}

static void end_line(void)
{
	unsigned int i;
	size_t len;

	line[line_len] = '\0';
	line_len = 0;
	for (i = 0; i < nr_phases && !strstr(line, phases[i]); i++)
		;
	if (i == nr_phases)
		return;

	/* The name of the phase is what stands before the figures. */
	line[strcspn(line, ":\"\r")] = '\0';
	len = strlen(ended);
	snprintf(ended + len, sizeof(ended) - len, "%s%s", len ? " + " : "",
		 line);
}

static void add_output(const char *text, size_t len)
{
	for (; len; text++, len--) {
		if (*text == '\n')
			end_line();
		else if (line_len < LINE_SIZE - 1)
			line[line_len++] = *text;
	}
}

/*
 * Not process_vm_readv(), which a kernel may be without; /proc is there where
 * lock_stat is. Opened for each read, as exec() changes what it refers to.
 */
static void copy_from_tracee(pid_t pid, void *buf, __u64 addr, size_t len)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0 || pread(fd, buf, len, addr) != (ssize_t)len)
		die(path);
	close(fd);
}

static void read_output(pid_t pid, __u64 addr, __u64 len)
{
	char buf[1024];

	while (len) {
		size_t n = len < sizeof(buf) ? len : sizeof(buf);

		copy_from_tracee(pid, buf, addr, n);
		add_output(buf, n);
		addr += n;
		len -= n;
	}
}

/*
 * A write to stdout has returned. Look at it now, not at its entry: the line is
 * out before its counts are, and the return value says how much of it is.
 */
static void output_written(pid_t pid, const __u64 *args, bool vec,
			   __u64 written)
{
	__u64 i;

	if (!vec) {
		read_output(pid, args[1], written);
	} else {
		for (i = 0; i < args[2] && written; i++) {
			struct iovec seg;
			__u64 len;

			copy_from_tracee(pid, &seg, args[1] + i * sizeof(seg),
					 sizeof(seg));
			len = seg.iov_len < written ? seg.iov_len : written;
			read_output(pid, (uintptr_t)seg.iov_base, len);
			written -= len;
		}
	}

	/*
	 * Several phase lines in one write happen when stdout is no tty. Their
	 * counts cannot be told apart: they are printed once, under all names.
	 */
	if (ended[0]) {
		end_phase(ended);
		ended[0] = '\0';
	}
}

static void syscall_stop(pid_t pid)
{
	static struct __ptrace_syscall_info entry;
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0)
		die("PTRACE_GET_SYSCALL_INFO");

	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		entry = info;
		return;
	}
	if (info.op != PTRACE_SYSCALL_INFO_EXIT || info.exit.is_error ||
	    entry.op != PTRACE_SYSCALL_INFO_ENTRY)
		return;
	if (entry.entry.args[0] != STDOUT_FILENO)
		return;
	if (entry.entry.nr == SYS_write || entry.entry.nr == SYS_writev)
		output_written(pid, (const __u64 *)entry.entry.args,
			       entry.entry.nr == SYS_writev, info.exit.rval);
}

static int trace(pid_t pid)
{
	int status;
	int sig;

	for (;;) {
		if (waitpid(pid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			die("waitpid");
		}
		if (!WIFSTOPPED(status))
			return status;

		sig = WSTOPSIG(status);
		if (sig == (SIGTRAP | 0x80)) {
			syscall_stop(pid);
			sig = 0;
		} else if (status >> 16) {
			/* PTRACE_EVENT_EXEC: no signal of the test's. */
			sig = 0;
		}
		/* ESRCH: killed while it was stopped. waitpid() tells. */
		if (ptrace(PTRACE_SYSCALL, pid, 0, sig) < 0 && errno != ESRCH)
			die("PTRACE_SYSCALL");
	}
}

static pid_t start(char **argv)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			die("PTRACE_TRACEME");
		raise(SIGSTOP);
		execvp(argv[0], argv);
		fprintf(stderr, "lockphase: %s: %s\n", argv[0],
			strerror(errno));
		_exit(127);
	}
	if (waitpid(pid, &status, __WALL) < 0 || !WIFSTOPPED(status))
		die("waitpid");
	/* A tracer that dies must not leave a stopped test behind. */
	if (ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD |
		   PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) < 0)
		die("PTRACE_SETOPTIONS");
	clear_lock_stat();
	if (ptrace(PTRACE_SYSCALL, pid, 0, 0) < 0)
		die("PTRACE_SYSCALL");
	return pid;
}

static void help(FILE *f)
{
	fprintf(f,
		"usage: lockphase [-p LINE]... [-c CLASS]... [-f FILE] -- TEST [ARG]...\n"
		"  -p LINE   a phase ends when TEST prints a line that contains LINE\n"
		"            (default: the lines of dirty_log_perf_test)\n"
		"  -c CLASS  count lock classes whose name contains CLASS (default: mmu_lock)\n"
		"  -f FILE   read FILE (default: /proc/lock_stat)\n"
		"Exits as TEST does; 125: the counts are not complete.\n");
}

int main(int argc, char **argv)
{
	unsigned int i;
	int status;
	int opt;

	while ((opt = getopt(argc, argv, "+p:c:f:h")) != -1) {
		switch (opt) {
		case 'p':
			if (nr_phases < MAX_PATTERNS)
				phases[nr_phases++] = optarg;
			break;
		case 'c':
			if (nr_classes < MAX_PATTERNS)
				classes[nr_classes++] = optarg;
			break;
		case 'f':
			lock_stat = optarg;
			break;
		case 'h':
			help(stdout);
			return 0;
		default:
			help(stderr);
			return 125;
		}
	}
	if (optind == argc) {
		help(stderr);
		return 125;
	}
	/* The last is the end of the test. */
	for (i = 0; !nr_phases && i < ARRAY_SIZE(default_phases) - 1; i++)
		phases[i] = default_phases[i].line;
	nr_phases = nr_phases ? nr_phases : i;
	if (!nr_classes)
		classes[nr_classes++] = "mmu_lock";
	for (i = 0; i < nr_classes; i++)
		snprintf(class_name[i], NAME_SIZE, "%s", classes[i]);

	status = trace(start(argv + optind));
	end_phase("exit");
	print_sums();
	fflush(stdout);

	if (WIFSIGNALED(status)) {
		/* Die of the same signal, but dump no core of our own. */
		const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	if (!WEXITSTATUS(status) && counts_lost)
		return 125;
	return WEXITSTATUS(status);
}
