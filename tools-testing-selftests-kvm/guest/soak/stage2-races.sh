#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
#
# stage2-races.sh AGES_US LOCKED_US UNDOS_US WALKS_US COMMAND...: runs a command with delays of so many us, of walks that
# age, of entries that are locked, of faults that undo the dirty log's write-protection, and of the walks of these faults,
# and prints how these raced meanwhile. For a kernel of linux 6.12 or 7.3 with patches/instruments/v7.3/aging-delays.patch and
# undo-delays.patch, which count the races.

cd /sys/kernel/debug || exit 2
echo "$1" > stage2_ages/delay_us || exit 2
echo "$2" > stage2_ages/locked_us || exit 2
echo "$3" > stage2_undos/delay_us || exit 2
echo "$4" > stage2_undos/walk_us || exit 2
shift 4

for what in stage2_ages/* stage2_undos/*; do
	eval "before_$(echo "$what" | tr / _)=$(cat "$what")"
done
"$@"
status=$?

# The counts are of all commands of this guest.
for what in stage2_ages/* stage2_undos/*; do
	name=${what#*/}
	[ "${name%_us}" = "$name" ] || continue
	eval "before=\$before_$(echo "$what" | tr / _)"
	case $what in
	stage2_ages/*) who="Walks that age" ;;
	*) who="Faults that undo" ;;
	esac
	echo "$who: $name $(($(cat "$what") - before))"
done
exit $status
