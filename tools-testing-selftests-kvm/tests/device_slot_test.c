// SPDX-License-Identifier: GPL-2.0
/*
 * What a memslot of a device gives a guest: what its userspace may do, and no more
 *
 * The memslot is of memory that userspace may only read: QEMU's PL031, a real-time
 * clock. The guest reads the time, and then writes to the device. arm64.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/bitops.h>

#include "compat.h"
#include "old_vgic.h"

#define TEST_SLOT	1
#define ADDR		(64ul << 30)
#define DEVICE		0x9010000ul
#define NODE		"/sys/firmware/devicetree/base/pl031@9010000"
/* Registers: the time, and the time of the next alarm, which nobody waits for */
#define RTCDR		0x0
#define RTCMR		0x4

static void guest_code(void)
{
	GUEST_SYNC(READ_ONCE(*(u32 *)(ADDR + RTCDR)));
	WRITE_ONCE(*(u32 *)(ADDR + RTCMR), 1);
	GUEST_SYNC(0);
}

int main(void)
{
	size_t size = getpagesize();
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;
	struct ucall uc;
	void *device;
	int fd, ret;

	TEST_REQUIRE(!access(NODE, F_OK));
	fd = open("/dev/mem", O_RDONLY | O_SYNC);
	TEST_REQUIRE(fd >= 0);
	device = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, DEVICE);
	TEST_REQUIRE(device != MAP_FAILED);

	vm = vm_create_with_one_vcpu(&vcpu, guest_code);
	setup_old_vgic(vm, 1);
	vm_set_user_memory_region(vm, TEST_SLOT, 0, ADDR, size, device);
	virt_map(vm, ADDR, ADDR, 1);

	vcpu_run(vcpu);
	TEST_ASSERT(get_ucall(vcpu, &uc) == UCALL_SYNC && uc.args[1],
		    "the guest has not read the time");
	ret = _vcpu_run(vcpu);
	TEST_ASSERT(ret == -1 && errno == EFAULT,
		    "the guest has written to a device that its userspace may only read");
	kvm_vm_free(vm);
	return 0;
}
