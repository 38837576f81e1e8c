// SPDX-License-Identifier: GPL-2.0
/*
 * One live migration between two QEMUs on this machine, or one that goes wrong and
 * then one that does not:
 *
 *	driver qemu=DIR [key=value]...
 *
 * Prints a line "key value" for each figure; qemu-migration/harness.md says what they
 * mean. Exit status: 0 if the run came to its end, whatever it found; 1 with a line
 * "error TEXT" if it did not.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "busy.h"
#include "dirty.h"
#include "options.h"
#include "proxy.h"
#include "trace.h"
#include "util.h"
#include "vm.h"
#include "work.h"

/* Seconds within which QEMU must come to an end that it cannot refuse, such as of a cancel. */
#define PATIENCE 60
/* Seconds for which a stopped destination may keep the source from answering. */
#define HELD 10

/* What happens to a migration. */
struct scenario {
	const char *name;
	void (*strike)(void);	/* in the middle of it */
	bool disturbed;		/* it may fail; then there is another that is left alone */
	bool cut;		/* its connection breaks */
	bool postcopy;
	bool run;		/* the guest runs before it has all pages */
};

static struct options options;
static const struct scenario *scenario;
static struct vm source, target;
static char *socket_path, *proxy_path;
static pid_t proxy;
static volatile sig_atomic_t held;

static void key(const char *name, double value)
{
	printf("%s %.6g\n", name, value);
}

static void whole(const char *name, long long value)
{
	printf("%s %lld\n", name, value);
}

static void capability(struct vm *vm, const char *name, bool on)
{
	qmp_run(&vm->qmp, "{\"execute\": \"migrate-set-capabilities\", \"arguments\": "
		"{\"capabilities\": [{\"capability\": \"%s\", \"state\": %s}]}}", name,
		on ? "true" : "false");
}

static void parameters(void)
{
	char *throttle = text("%s", "");
	const char *known;

	known = qmp_run(&source.qmp, "{\"execute\": \"query-migrate-parameters\"}");
	if (strstr(known, options.computed_name)) {
		throttle = text(", \"%s\": %s", options.computed_name,
				options.computed ? "true" : "false");
		whole("computed", options.computed);
	} else {
		whole("computed", 0);
	}
	if (options.initial)
		throttle = text("%s, \"cpu-throttle-initial\": %lu", throttle, options.initial);
	if (options.increment)
		throttle = text("%s, \"cpu-throttle-increment\": %lu", throttle, options.increment);
	qmp_run(&source.qmp, "{\"execute\": \"migrate-set-parameters\", \"arguments\": "
		"{\"max-bandwidth\": %lu, \"downtime-limit\": %lu%s}}", options.bandwidth,
		options.downtime, throttle);
	capability(&source, "auto-converge", options.auto_converge);
	capability(&source, "postcopy-ram", scenario->postcopy);
}

static void start_target(void)
{
	vm_end(&target);
	vm_start(&target, &options, "target", socket_path);
	capability(&target, "postcopy-ram", scenario->postcopy);
}

static void start_migration(bool through_proxy)
{
	if (through_proxy)
		proxy = proxy_start(proxy_path, socket_path, options.cut);
	qmp_run(&source.qmp, "{\"execute\": \"migrate\", \"arguments\": {\"uri\": \"unix:%s\"}}",
		through_proxy ? proxy_path : socket_path);
}

/* "status" of query-migrate at the source. */
static const char *migration_status(void)
{
	return qmp_string(qmp_run(&source.qmp, "{\"execute\": \"query-migrate\"}"), "status");
}

static bool ended(const char *status)
{
	return !strcmp(status, "completed") || !strcmp(status, "failed") ||
	       !strcmp(status, "cancelled") || !strcmp(status, "postcopy-paused");
}

/* The time between samples with the same throttle: s, of it what was asked for, pages written. */
static struct { double at, seconds, asked; uint64_t work, written; long long percent; } throttled;

static void note_throttled(long long percent)
{
	double now = seconds();
	uint64_t work = work_now(&source, &options).iterations;

	if (percent && percent == throttled.percent) {
		throttled.seconds += now - throttled.at;
		throttled.asked += (now - throttled.at) * (100 - percent) / 100;
		throttled.written += work - throttled.work;
	}
	throttled.at = now;
	throttled.work = work;
	throttled.percent = percent;
}

/* A line of the time series: s since the wait began, bytes left, throttle in percent, bytes sent, passes. */
static void print_sample(const char *reply, double begin)
{
	printf("sample %.2f %lld %lld %lld %lld\n", seconds() - begin,
	       qmp_number(reply, "remaining", 0), qmp_number(reply, "cpu-throttle-percentage", 0),
	       qmp_number(reply, "transferred", 0), qmp_number(reply, "dirty-sync-count", 0));
}

/* Wait for the end of the migration; its status, or "" if the time was up. */
static const char *wait_migration(double limit)
{
	double begin = seconds(), end = begin + limit;
	int i;

	for (;;) {
		const char *reply = qmp_run(&source.qmp, "{\"execute\": \"query-migrate\"}");
		const char *status = qmp_string(reply, "status");

		print_sample(reply, begin);
		note_throttled(qmp_number(reply, "cpu-throttle-percentage", 0));
		if (ended(status))
			return text("%s", status);
		if (seconds() > end)
			return "";
		for (i = 0; i < 5; i++) {
			dirty_note(&source, &options);
			nap(0.02);
		}
	}
}

/* Returns the status with which the migration ended: it may complete before it is cancelled. */
static const char *cancel(void)
{
	const char *status;

	qmp_run(&source.qmp, "{\"execute\": \"migrate_cancel\"}");
	status = wait_migration(PATIENCE);
	if (!*status)
		die("hang: a cancelled migration does not end");
	printf("cancel_status %s\n", status);
	return status;
}

static void let_go(int number)
{
	(void)number;
	held = 1;
	kill(target.pid, SIGCONT);
}

static void strike_cancel(void)
{
	cancel();
}

static void strike_kill(void)
{
	kill(target.pid, SIGKILL);
}

static void strike_stop(void)
{
	kill(target.pid, SIGSTOP);
	nap(options.hold / 1000.0);
	kill(target.pid, SIGCONT);
}

/*
 * Cancel while the destination is stopped. In the last stage QEMU writes with the BQL held,
 * so that a source whose socket is full answers nobody until the destination reads on (or
 * is yanked); "held" tells how often that was so.
 */
static void strike_stop_cancel(void)
{
	kill(target.pid, SIGSTOP);
	nap(options.hold / 1000.0);
	signal(SIGALRM, let_go);
	alarm(HELD);
	cancel();
	alarm(0);
	whole("held", held);
	kill(target.pid, SIGCONT);
}

static const struct scenario scenarios[] = {
	{ .name = "plain" },
	{ .name = "cancel", .disturbed = true, .strike = strike_cancel },
	{ .name = "kill", .disturbed = true, .strike = strike_kill },
	{ .name = "stop", .disturbed = true, .strike = strike_stop },
	{ .name = "stop-cancel", .disturbed = true, .strike = strike_stop_cancel },
	{ .name = "cut", .disturbed = true, .cut = true },
	{ .name = "postcopy", .postcopy = true },
	{ .name = "postcopy-run", .postcopy = true, .run = true },
};

static const struct scenario *find_scenario(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (!strcmp(scenarios[i].name, name))
			return &scenarios[i];
	}
	die("scenario=%s: unknown", name);
}

/* Whether the guest works; if not, what each vCPU was at. */
static void print_lives(const char *name, struct vm *vm)
{
	static const char * const asked[] = { ASKED_OF_STUCK };
	struct work before = work_now(vm, &options);
	bool lives = work_goes_on(vm, &options, PATIENCE);
	uint64_t i;
	size_t j;

	whole(name, lives);
	if (lives)
		return;
	printf("%s_status %s\n", name, vm_status(vm));
	whole(text("%s_written", name), work_now(vm, &options).iterations - before.iterations);
	for (i = 0; i < options.vcpus; i++) {
		const volatile struct state *s = vm_state(vm, i);

		printf("%s_vcpu_%lu pass %lu iterations %lu pages %lu now %lu\n", name, i, s->pass,
		       s->iterations, s->pages, s->now);
		for (j = 0; j < sizeof(asked) / sizeof(asked[0]); j++) {
			const char *reply = qmp_try(&vm->qmp, PATIENCE, "{\"execute\": "
				"\"human-monitor-command\", \"arguments\": {\"cpu-index\": %lu, "
				"\"command-line\": \"%s\"}}", i, asked[j]);

			printf("%s_vcpu_%lu_%zu %s: %s\n", name, i, j, asked[j], reply ? reply : "");
		}
	}
}

/* The guest on the source must work on after a migration that did not come to its end. */
static void check_source(double speed)
{
	bool steady;

	if (!vm_wait_status(&source, "running", PATIENCE)) {
		printf("source_status %s\n", vm_status(&source));
		whole("source_lives", 0);
		return;
	}
	print_lives("source_lives", &source);
	work_print_stale(&source, &options, "source_stale");
	key("source_speed", work_speed(&source, &options, &steady));
	key("source_speed_before", speed);
}

/*
 * Compare the guest's RAM on both sides, page by page; both must have stopped. Some
 * pages may be spoilt before, to see that it is noticed.
 */
static void compare(void)
{
	unsigned char *spoilt = malloc(PAGE);
	uint64_t page, pages = source.size / PAGE, lost = 0, spoil = options.corrupt, nonzero = 0;
	static const unsigned char zeros[PAGE];
	long first = -1;

	for (page = 0; page < pages; page++) {
		const unsigned char *a = source.ram + page * PAGE, *b = target.ram + page * PAGE;

		nonzero += !!memcmp(a, zeros, PAGE);
		if (spoil && page >= (GUEST_DATA - GUEST_RAM) / PAGE) {
			memcpy(spoilt, b, PAGE);
			spoilt[page % PAGE] ^= 1;
			b = spoilt;
			spoil--;
		}
		if (memcmp(a, b, PAGE)) {
			if (!lost)
				first = page;
			lost++;
		}
	}
	free(spoilt);
	whole("pages_compared", pages);
	whole("pages_nonzero", nonzero);
	whole("pages_lost", lost);
	if (lost)
		printf("first_lost %#lx\n", GUEST_RAM + first * PAGE);
}

static void print_migration(void)
{
	const char *reply = qmp_run(&source.qmp, "{\"execute\": \"query-migrate\"}");

	printf("status %s\n", qmp_string(reply, "status"));
	if (*qmp_string(reply, "error-desc"))
		printf("error_desc %s\n", qmp_string(reply, "error-desc"));
	whole("completed", !strcmp(qmp_string(reply, "status"), "completed"));
	whole("total_time_ms", qmp_number(reply, "total-time", -1));
	whole("downtime_ms", qmp_number(reply, "downtime", -1));
	whole("bytes_sent", qmp_number(reply, "transferred", -1));
	whole("dirty_sync_count", qmp_number(reply, "dirty-sync-count", -1));
	whole("pages_sent", qmp_number(reply, "normal", -1));
}

/* What the guest lost between two moments, by the clock of the guest and the downtime. */
static void print_work(struct vm *vm, struct work begin, struct work end, double speed)
{
	const char *reply = qmp_run(&source.qmp, "{\"execute\": \"query-migrate\"}");
	double downtime = qmp_number(reply, "downtime", 0) / 1000.0;
	double length = end.now - begin.now + downtime;
	double done = end.iterations - begin.iterations;
	struct pace pace = work_pace(vm, &options, begin.now, end.now, speed);
	double window = options.window_us / 1e6;

	key("guest_seconds", length);
	key("work_done", done);
	key("work_lost", speed * length - done);
	key("work_lost_s", length - done / speed);
	/* In the downtime all of the speed is lost. */
	key("slow_s", pace.slow_seconds + downtime);
	key("slow_share", (pace.slow_seconds + downtime) / (pace.windows * window + downtime));
	key("stall_s", pace.stall > downtime ? pace.stall : downtime);
	key("stall_running_s", pace.stall);
	whole("windows", pace.windows);
}

/* What there is to see once the source says that the migration has completed. */
static void arrive(void)
{
	double start = seconds();

	/* The destination has everything when it says so, too. */
	while (strcmp(qmp_string(qmp_run(&target.qmp, "{\"execute\": \"query-migrate\"}"), "status"),
		      "completed")) {
		if (seconds() - start > PATIENCE)
			die("hang: the destination does not complete");
		nap(0.02);
	}
	if (!scenario->run) {
		if (strcmp(vm_status(&source), "postmigrate") || strcmp(vm_status(&target), "paused"))
			die("both sides should have stopped: source %s, destination %s",
			    vm_status(&source), vm_status(&target));
		compare();
		qmp_run(&target.qmp, "{\"execute\": \"cont\"}");
	}
	print_lives("target_lives", &target);
	work_print_stale(&target, &options, "stale");
}

/* A migration to its end, and all that is to be said of it. */
static void migrate(double speed)
{
	long trace = vm_trace_size(&source);
	struct work begin = work_now(&source, &options), end;
	double start = seconds();
	const char *status;

	memset(&throttled, 0, sizeof(throttled));
	if (options.busy)
		busy_start(text("%s/busy", options.folder));
	dirty_note(&source, &options);
	start_migration(false);
	if (scenario->postcopy) {
		nap(options.after / 1000.0);
		/* It may have completed by then. */
		qmp_try(&source.qmp, 120, "{\"execute\": \"migrate-start-postcopy\"}");
		if (scenario->run) {
			while (!strcmp(migration_status(), "active"))
				nap(0.02);
			/* Without waiting for the pages: the guest asks for them. */
			qmp_run(&target.qmp, "{\"execute\": \"cont\"}");
		}
	}
	status = wait_migration(options.limit);
	end = work_now(&source, &options);
	dirty_note(&source, &options);
	key("seconds", seconds() - start);
	if (options.busy)
		whole("busy_commands", busy_end());
	print_migration();
	print_work(&source, begin, end, speed);
	if (throttled.seconds) {
		key("throttle_share", throttled.written / speed / throttled.seconds);
		key("throttle_share_asked", throttled.asked / throttled.seconds);
	}
	trace_print(source.trace, trace);
	dirty_print(&source, &options, trace);
	whole("pages_written", dirty_written(&source, &options));
	if (strcmp(status, "completed")) {
		if (!*status)
			status = cancel();
		if (strcmp(status, "completed")) {
			check_source(speed);
			return;
		}
	}
	arrive();
}

/* A migration that something happens to. Afterwards the source must be as before. */
static void disturb(double speed)
{
	const char *status;
	bool struck;

	start_migration(scenario->cut);
	if (!scenario->cut)
		nap(options.after / 1000.0);
	/* It may be too late for what was to happen. */
	struck = strcmp(migration_status(), "completed");
	whole("struck", struck);
	if (struck && scenario->strike)
		scenario->strike();
	status = wait_migration(options.limit);
	printf("disturbed_status %s\n", *status ? status : "unfinished");
	if (!*status)
		status = cancel();
	if (!strcmp(status, "completed")) {
		/* Stopped and let go, or cut too late: as good as any other. */
		whole("completed", 1);
		arrive();
		return;
	}
	check_source(speed);
}

/* What calc-dirty-rate says of a time, and what the guest did in it. */
static void measure_dirty_rate(void)
{
	double end = seconds() + options.dirty_rate / 1000.0 + 2 * PATIENCE, length;
	const char *reply;
	struct work begin;

	if (!work_goes_on(&source, &options, PATIENCE))
		die("the guest does not work");
	begin = work_now(&source, &options);
	dirty_note(&source, &options);
	qmp_run(&source.qmp, "{\"execute\": \"calc-dirty-rate\", \"arguments\": {\"calc-time\": %lu, "
		"\"calc-time-unit\": \"millisecond\", \"mode\": \"%s\"}}", options.dirty_rate,
		options.ring ? "dirty-ring" : "dirty-bitmap");
	do {
		if (seconds() > end)
			die("hang: calc-dirty-rate does not end");
		nap(0.02);
		dirty_note(&source, &options);
		reply = qmp_run(&source.qmp, "{\"execute\": \"query-dirty-rate\", \"arguments\": "
				"{\"calc-time-unit\": \"millisecond\"}}");
	} while (strcmp(qmp_string(reply, "status"), "measured"));
	dirty_note(&source, &options);
	length = qmp_number(reply, "calc-time", 0) / 1000.0;
	key("dirty_rate_seconds", length);
	whole("dirty_rate", qmp_number(reply, "dirty-rate", -1));
	whole("dirty_rate_writes", work_now(&source, &options).iterations - begin.iterations);
	/* MiB/s, as QEMU has it */
	key("dirty_rate_true", dirty_written_measured(&source, &options, length) * PAGE / 1048576.0 / length);
}

static void clean(void)
{
	if (proxy > 0) {
		kill(proxy, SIGKILL);
		waitpid(proxy, NULL, 0);
	}
	busy_end();
	vm_end(&target);
	vm_end(&source);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct pace before;
	struct work begin;
	bool steady;
	double speed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	options_parse(&options, argc - 1, argv + 1);
	scenario = find_scenario(options.scenario);
	signal(SIGPIPE, SIG_IGN);
	if (mkdir(options.folder, 0700) && errno != EEXIST)
		die("%s: %s", options.folder, strerror(errno));
	atexit(clean);
	socket_path = text("%s/migration", options.folder);
	proxy_path = text("%s/proxy", options.folder);

	vm_start(&source, &options, "source", NULL);
	work_wait(&source, &options);
	if (options.dirty_rate) {
		measure_dirty_rate();
		return 0;
	}
	start_target();
	parameters();
	begin = work_now(&source, &options);
	speed = work_speed(&source, &options, &steady);
	key("speed", speed);
	whole("steady", steady);
	/* How much of that is noise: what the same figures say of a guest left alone. */
	before = work_pace(&source, &options, begin.now, work_now(&source, &options).now, speed);
	key("undisturbed_slow_share", before.slow_share);
	key("undisturbed_stall_s", before.stall);

	if (scenario->disturbed) {
		disturb(speed);
		if (strcmp(migration_status(), "completed")) {
			start_target();
			migrate(speed);
		}
	} else {
		migrate(speed);
	}
	return 0;
}
