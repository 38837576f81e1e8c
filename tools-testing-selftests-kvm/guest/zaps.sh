#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs a command, its arguments but for the first, while all page tables of all VMs are zapped each so many
# us, by x86's module parameter nx_huge_pages. tests/v5.10/test_aging_x86.py gives it to `sh -c`.

while :; do
	for say in force off; do
		echo $say > /sys/module/kvm/parameters/nx_huge_pages || exit 2
		usleep "$1"
	done
done &
zaps=$!
shift

"$@"
status=$?
kill $zaps
exit $status
