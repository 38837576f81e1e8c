// SPDX-License-Identifier: GPL-2.0
/*
 * The libc calls through which QEMU sees time, sleeps and wakes, for code of the program alone:
 *
 *	clock_gettime(CLOCK_MONOTONIC)	QEMU's virtual clock, so the guest's counter and timers
 *	ppoll()				the main loop sleeps until a virtual deadline
 *	pthread_cond_wait()		a vCPU sleeps (WFI), or waits for others to stop
 *	pthread_cond_broadcast/signal()	a sleeping vCPU is woken, and gets the waker's time
 *	RDTSC				an x86 guest's TSC, in ns (no call: the instruction traps)
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
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "clock.h"
#include "libc.h"

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

#define FROM_PROGRAM() in_program((uintptr_t)__builtin_return_address(0))

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*real_cond_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_cond_broadcast)(pthread_cond_t *);
static int (*real_cond_signal)(pthread_cond_t *);
static uintptr_t program_start = UINTPTR_MAX, program_end;
static int kick_fd = -1;

static bool in_program(uintptr_t address)
{
	return address >= program_start && address < program_end;
}

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

/* Ends the main loop's sleep. */
static void kick_main(void)
{
	/* Full means that it is kicked already. */
	if (write(kick_fd, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0 && errno != EAGAIN)
		die("eventfd: %s", strerror(errno));
}

/* Runs in the thread that will run QEMU's main loop. */
__attribute__((constructor)) static void preload(void)
{
	find_real();
	dl_iterate_phdr(find_program, NULL);
	kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	main_loop = true;
	clocks_kick(kick_main);
}

int64_t libc_real_ns(void)
{
	struct timespec now;

	/* Not through the vDSO, which may use a TSC that traps. */
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
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

#if defined(__x86_64__)
/*
 * QEMU answers a guest's RDTSC with the host's.  With PR_TSC_SIGSEGV the instruction faults in
 * every thread that is started from here on; where it is not the program's own, the real value is
 * meant.
 */
static uint64_t real_tsc(void)
{
	uint64_t value;

	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	value = __builtin_ia32_rdtsc();
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	return value;
}

static void on_fault(int signal_number, siginfo_t *info, void *data)
{
	greg_t *regs = ((ucontext_t *)data)->uc_mcontext.gregs;
	const uint8_t *code = (const uint8_t *)regs[REG_RIP];
	uint64_t value;

	/* SI_KERNEL: not for an address. */
	if (info->si_code != SI_KERNEL || code[0] != 0x0f || (code[1] != 0x31 &&
	    (code[1] != 0x01 || code[2] != 0xf9))) {
		signal(signal_number, SIG_DFL);
		return;
	}
	value = active && in_program((uintptr_t)code) ? (uint64_t)now_ps() / 1000 : real_tsc();
	regs[REG_RAX] = (uint32_t)value;
	regs[REG_RDX] = value >> 32;
	if (code[1] == 0x01)
		regs[REG_RCX] = 0;
	regs[REG_RIP] += code[1] == 0x31 ? 2 : 3;
}

bool libc_trap_tsc(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };

	return !sigaction(SIGSEGV, &action, NULL) && !prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}
#else
bool libc_trap_tsc(void)
{
	/* QEMU makes a TSC of clock_gettime() where the host has none. */
	return true;
}
#endif

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
	if (!active || !main_loop || !FROM_PROGRAM())
		return real_ppoll(fds, count, limit, mask);
	memcpy(all, fds, count * sizeof(*fds));
	/* A month is for ever, and fits. */
	clocks_poll(limit && limit->tv_sec < 30 * 24 * 3600 ?
		    (limit->tv_sec * 1000000000LL + limit->tv_nsec) * 1000 : FOREVER);
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
	if (!active || !FROM_PROGRAM() || !(me >= 0 || main_loop))
		return real_cond_wait(condition, held);
	if (clocks_idle(condition, held))
		return 0;
	clocks_wait(condition, held);
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
