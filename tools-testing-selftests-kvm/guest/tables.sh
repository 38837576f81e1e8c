#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
#
# Fails if a command, its arguments, which runs VMs, leaves tables of stage 2 behind. For a kernel with
# patches/instruments/v5.10/delays.patch, which counts them; tests/v5.10/test_stress.py gives it to `sh -c`.

count=/sys/kernel/debug/kvm/stage2_tables

# Reading it waits for those that are to be freed after an RCU grace period.
before=$(cat $count) || exit 2
"$@" || exit
after=$(cat $count)
echo "Tables of stage 2: $before before, $after after"
[ "$before" = "$after" ]
