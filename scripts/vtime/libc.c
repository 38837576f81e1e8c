// SPDX-License-Identifier: GPL-2.0
/*
 * The libc calls through which QEMU sees time, sleeps and wakes, for code of the QEMU program alone:
 *
 *	clock_gettime(CLOCK_MONOTONIC)	QEMU's virtual clock, so the guest's counter and timers
 *	ppoll()				the main loop sleeps until a virtual deadline
 *	pthread_cond_wait()		a vCPU sleeps (WFI), or waits for others to stop
 *	pthread_cond_broadcast/signal()	who sleeps is woken, and gets the waker's time
 *
 * Libraries (GLib, ...) keep the real ones.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "libc.h"
#include "vtime.h"

/* The version under which glibc exports today's condition variables. */
#if defined(__x86_64__)
#define COND_VERSION "GLIBC_2.3.2"
#elif defined(__aarch64__)
#define COND_VERSION "GLIBC_2.17"
#else
#error "glibc's symbol version of pthread_cond_wait on this host?"
#endif

/* How long the main loop sleeps at most before it looks again. */
#define LOOK_NS 50000000

EXPORT int vtime_preloaded = 1;

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*real_cond_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_cond_broadcast)(pthread_cond_t *);
static int (*real_cond_signal)(pthread_cond_t *);
static uintptr_t program_start = UINTPTR_MAX, program_end;
static pthread_t main_thread;
static int kick_fd = -1;

static int find_program(struct dl_phdr_info *info, size_t size, void *data)
{
	int i;

	(void)size, (void)data;
	for (i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		uintptr_t to = from + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		if (from < program_start)
			program_start = from;
		if (to > program_end)
			program_end = to;
	}
	return 1;	/* the program comes first, and there is no second one */
}

/* Other constructors may call before ours has run. */
static void find_real(void)
{
	if (real_cond_broadcast)
		return;
	real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	real_ppoll = dlsym(RTLD_NEXT, "ppoll");
	real_cond_wait = dlvsym(RTLD_NEXT, "pthread_cond_wait", COND_VERSION);
	real_cond_signal = dlvsym(RTLD_NEXT, "pthread_cond_signal", COND_VERSION);
	real_cond_broadcast = dlvsym(RTLD_NEXT, "pthread_cond_broadcast", COND_VERSION);
	if (!real_clock_gettime || !real_ppoll || !real_cond_wait || !real_cond_signal ||
	    !real_cond_broadcast)
		die("this libc does not have what glibc has");
}

__attribute__((constructor)) static void preload(void)
{
	find_real();
	dl_iterate_phdr(find_program, NULL);
	main_thread = pthread_self();
	kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

#define FROM_PROGRAM() ({							\
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);		\
	caller >= program_start && caller < program_end;			\
})

bool libc_is_main(void)
{
	return pthread_equal(pthread_self(), main_thread);
}

void libc_kick_main(void)
{
	/* Full means that it is kicked already. */
	if (write(kick_fd, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0 && errno != EAGAIN)
		die("eventfd: %s", strerror(errno));
}

int64_t libc_real_ns(void)
{
	struct timespec now;

	find_real();
	real_clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int64_t start_ns(void)
{
	static int64_t start;

	if (!start)
		start = libc_real_ns();
	return start;
}

EXPORT int clock_gettime(clockid_t id, struct timespec *now)
{
	int64_t ns;

	find_real();
	if (id != CLOCK_MONOTONIC || !active || !FROM_PROGRAM())
		return real_clock_gettime(id, now);
	/* On from where QEMU's own clock stood. */
	ns = start_ns() + now_ps() / 1000;
	now->tv_sec = ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
	return 0;
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit,
		 const sigset_t *mask)
{
	static const struct timespec none, look = { .tv_nsec = LOOK_NS };
	struct pollfd all[count + 1];
	bool sure = false, due = false, once = true;
	uint64_t kicks;
	nfds_t i;
	int ready;

	find_real();
	if (!active || !libc_is_main() || !FROM_PROGRAM())
		return real_ppoll(fds, count, limit, mask);
	memcpy(all, fds, count * sizeof(*fds));
	clocks_poll(limit ? (limit->tv_sec * 1000000000LL + limit->tv_nsec) * 1000 : FOREVER);
	for (;; once = false) {
		all[count] = (struct pollfd){ .fd = kick_fd, .events = POLLIN };
		ready = real_ppoll(all, count + 1, once || sure ? &none : &look, mask);
		if (ready < 0)
			break;
		if (all[count].revents) {
			ready--;
			if (read(kick_fd, &kicks, sizeof(kicks)) < 0 && errno != EAGAIN)
				die("eventfd: %s", strerror(errno));
		}
		if (ready || (due = clocks_due(&sure)))
			break;
	}
	clocks_polled(due);
	for (i = 0; i < count; i++)
		fds[i].revents = ready > 0 ? all[i].revents : 0;
	return ready;
}

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *held)
{
	int result;

	find_real();
	if (!active || !FROM_PROGRAM() || !(me >= 0 || libc_is_main()))
		return real_cond_wait(condition, held);
	if (clocks_idle(condition, held))
		return 0;
	clocks_wait(condition);
	result = real_cond_wait(condition, held);
	clocks_waited(condition, held);
	return result;
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
	find_real();
	if (active && FROM_PROGRAM())
		clocks_signal(condition, true);
	return real_cond_broadcast(condition);
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
	find_real();
	if (active && FROM_PROGRAM())
		clocks_signal(condition, false);
	return real_cond_signal(condition);
}
