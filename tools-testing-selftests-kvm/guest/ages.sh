#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs a command, its arguments but for the first, with aging delayed by so many us, and prints how many
# walks that age raced meanwhile. For a kernel with patches/debug/v5.10-delays.patch, which counts them;
# checks/test_6_aging.py gives it to `sh -c`.

cd /sys/kernel/debug/kvm || exit 2
echo "$1" > stage2_delay_age_us || exit 2
# The random delays are for faults alone.
echo 0 > stage2_delay_one_in || exit 2
shift

"$@"
status=$?

# Of all VMs, and no less than zero before: each guest runs one command.
for what in done lost unmapped replaced late overtaken; do
	echo "Walks that age: $what $(cat stage2_age_walks_$what)"
done
exit $status
