// SPDX-License-Identifier: GPL-2.0
/*
 * The guest's RAM is a file in a tmpfs that QEMU maps shared. The driver maps it,
 * too, and so reads the guest's counters without a word to QEMU, and compares the
 * RAM of both sides without a copy. It never writes there while a machine may run:
 * dirty logging would not see it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "util.h"
#include "vm.h"

static void write_params(const struct options *options, const char *path)
{
	struct params params = {
		.magic = PARAMS_MAGIC,
		.vcpus = options->vcpus,
		.pages = options->working_set * 1024 / PAGE,
		.rate = options->rate,
		.static_pages = options->static_set * 1024 / PAGE,
		.window_us = options->window_us,
		.words = options->words,
	};
	FILE *file = fopen(path, "w");

	if (!file || fwrite(&params, sizeof(params), 1, file) != 1 || fclose(file))
		die("%s: %s", path, strerror(errno));
}

/* The program of a directory, by its own dynamic linker if one is there. */
static int program(char **line, const char *folder)
{
	char *loader = text("%s/lib/" LOADER, folder);
	int count = 0;

	if (!access(loader, X_OK)) {
		line[count++] = loader;
		line[count++] = "--library-path";
		line[count++] = text("%s/lib", folder);
	}
	line[count++] = text("%s/" PROGRAM, folder);
	return count;
}

void vm_start(struct vm *vm, const struct options *options, const char *name, const char *incoming)
{
	char *ram = text("%s/%s.ram", options->folder, name);
	char *qmp = text("%s/%s.qmp", options->folder, name);
	char *log = text("%s/%s.log", options->folder, name);
	char *params = text("%s/params", options->folder);
	char *line[64], *events;
	int count, fd;

	memset(vm, 0, sizeof(*vm));
	vm->name = name;
	vm->trace = text("%s/%s.trace", options->folder, name);
	vm->size = options->memory << 20;
	unlink(qmp);
	unlink(vm->trace);
	unlink(ram);
	write_params(options, params);
	fd = open(ram, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, vm->size))
		die("%s: %s", ram, strerror(errno));
	vm->ram = mmap(NULL, vm->size, PROT_READ, MAP_SHARED, fd, 0);
	if (vm->ram == MAP_FAILED)
		die("%s: %s", ram, strerror(errno));
	close(fd);

	count = program(line, incoming ? options->target : options->qemu);
#define ADD(word) (line[count++] = (char *)(word))
	ADD("-nodefaults"), ADD("-no-user-config"), ADD("-display"), ADD("none");
	ADD("-M"), ADD(text(MACHINE ",memory-backend=ram%s%s", *options->machine ? "," : "",
			    options->machine));
	ADD("-accel"), ADD(options->ring ? text("%s,dirty-ring-size=%lu", options->accel, options->ring)
			   : options->accel);
	ADD("-cpu"), ADD("host");
	ADD("-smp"), ADD(text("%lu", options->vcpus));
	ADD("-m"), ADD(text("%luM", options->memory));
	ADD("-object"), ADD(text("memory-backend-file,id=ram,size=%luM,mem-path=%s,share=on",
				 options->memory, ram));
	count = boot(line, count, options->guest);
	ADD("-device"), ADD(text("loader,file=%s,addr=0x%lx,force-raw=on", params,
				 GUEST_PARAMS - GUEST_RAM + RAM_START));
	ADD("-qmp"), ADD(text("unix:%s,server=on,wait=off", qmp));
	if (options->busy && !incoming)
		ADD("-qmp"), ADD(text("unix:%s/busy,server=on,wait=off", options->folder));
	events = text("%s/events", incoming ? options->target : options->qemu);
	if (!access(events, R_OK))
		ADD("-trace"), ADD(text("events=%s", events));
	/* The log of trace events has times, too. */
	ADD("-msg"), ADD("timestamp=on");
	ADD("-D"), ADD(vm->trace);
	if (incoming)
		ADD("-S"), ADD("-incoming"), ADD(text("unix:%s", incoming));
#undef ADD
	line[count] = NULL;

	fflush(stdout);
	vm->pid = fork();
	if (vm->pid < 0)
		die("fork: %s", strerror(errno));
	if (!vm->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
		dup2(fd, 1);
		dup2(fd, 2);
		execv(line[0], line);
		_exit(127);
	}
	qmp_open(&vm->qmp, qmp, name, 60);
}

void vm_end(struct vm *vm)
{
	if (vm->pid > 0) {
		kill(vm->pid, SIGKILL);
		waitpid(vm->pid, NULL, 0);
	}
	if (vm->ram)
		munmap(vm->ram, vm->size);
	qmp_close(&vm->qmp);
	memset(vm, 0, sizeof(*vm));
}

const char *vm_status(struct vm *vm)
{
	return qmp_string(qmp_run(&vm->qmp, "{\"execute\": \"query-status\"}"), "status");
}

bool vm_wait_status(struct vm *vm, const char *status, double limit)
{
	double end = seconds() + limit;

	while (strcmp(vm_status(vm), status)) {
		if (seconds() > end)
			return false;
		nap(0.05);
	}
	return true;
}

long vm_trace_size(struct vm *vm)
{
	struct stat stat_;

	return stat(vm->trace, &stat_) ? 0 : stat_.st_size;
}
