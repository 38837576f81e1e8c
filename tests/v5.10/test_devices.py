"""Memslots of devices, by tools-testing-selftests-kvm/tests/device_slot_test.c."""

import pytest

from tests.lab import Lab

pytestmark = [pytest.mark.boot, pytest.mark.slow]


@pytest.mark.parametrize(
    "kernel, said", [("series", ""), ("base", "the guest has written to a device that its userspace may only read")]
)
def test_a_guest_may_do_with_a_device_what_its_userspace_may(kernel, said):
    ran = Lab("v5.10", kernel, configs=("devmem",)).run(["/tests/device_slot_test"], 60, f"device-slot-{kernel}")
    assert (bool(ran.one().status), said in ran.output) == (bool(said), True), ran.output
