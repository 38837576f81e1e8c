#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs a command, its arguments but for the first, with aging delayed by up to so many us, and prints how aging raced
# meanwhile. For a kernel of linux 7.3 with patches/debug/v7.3-aging-delays.patch, which counts the races.

cd /sys/kernel/debug/stage2_ages || exit 2
echo "$1" > delay_us || exit 2
shift

for what in *; do
	[ "$what" = delay_us ] || eval "before_$what=$(cat "$what")"
done
"$@"
status=$?

# The counts are of all commands of this guest.
for what in *; do
	[ "$what" = delay_us ] || echo "Walks that age: $what $(($(cat "$what") - before_$what))"
done
exit $status
