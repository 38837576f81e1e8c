#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs a command, its arguments but for the first, with aging delayed by so many us, and prints how many
# walks that age raced meanwhile. For a kernel with patches/instruments/v5.10/delays.patch (arm64) or
# v5.10-x86-delays.patch, which count them; tests/v5.10/test_aging.py and v5.10/test_aging_x86.py give it
# to `sh -c`.

cd /sys/kernel/debug/kvm || exit 2
mmu=stage2
[ -e mmu_delay_age_us ] && mmu=mmu
echo "$1" > ${mmu}_delay_age_us || exit 2
# The random delays are for faults alone.
[ $mmu = mmu ] || echo 0 > stage2_delay_one_in || exit 2
shift

"$@"
status=$?

# Of all VMs, and no less than zero before: each guest runs one command.
for what in ${mmu}_age_walks_*; do
	echo "Walks that age: ${what#*_walks_} $(cat $what)"
done
exit $status
