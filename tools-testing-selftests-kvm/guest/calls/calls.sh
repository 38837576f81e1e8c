#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
#
# calls.sh COMMAND...: runs a command, and prints how often the kernel, for whatever process, took mmap_lock, looked a page up
# in the host's page tables (gup_fast, gup_slow), and waited for an expedited grace period of RCU. For a kernel with the
# overlay kprobes.

cd /sys/kernel/tracing || exit 2
echo "p:gup_fast get_user_pages_fast_only" > kprobe_events || exit 2
echo "p:gup_slow get_user_pages_unlocked" >> kprobe_events || exit 2
echo "p:grace_period synchronize_rcu_expedited" >> kprobe_events || exit 2
echo 1 > events/kprobes/enable || exit 2
# No kprobe may be on what mmap_lock calls: an instance has that tracepoint alone, and counts what it drops.
mkdir instances/mmap || exit 2
echo 1 > instances/mmap/events/mmap_lock/mmap_lock_start_locking/enable || exit 2

"$@"
status=$?

while read -r name hits missed; do
	echo "Calls: $name $((hits + missed))"
done < kprobe_profile
echo 0 > instances/mmap/events/mmap_lock/mmap_lock_start_locking/enable
locks=0
for count in $(sed -n 's/^\(entries\|overrun\): //p' instances/mmap/per_cpu/cpu*/stats); do
	locks=$((locks + count))
done
echo "Calls: mmap_lock $locks"
rmdir instances/mmap
# Another command begins at 0.
echo 0 > events/kprobes/enable
echo > kprobe_events
exit $status
