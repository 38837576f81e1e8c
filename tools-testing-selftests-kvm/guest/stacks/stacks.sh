# SPDX-License-Identifier: GPL-2.0
#
# Functions for /job in real time: a command whose time is up first tells where
# its threads are. Not in virtual time, where a process more would be measured.
#
#	. /job.sh
#	. /stacks.sh
#	watched change-pte 138 /tests/change_pte_test -t 6
#
# What is printed is a part of the command's output, twice, one second apart: what
# differs has run meanwhile. It begins ten seconds before the time is up: on a busy
# host it takes a few.

# Each user thread, and each kernel thread in uninterruptible sleep: state, ticks
# in user and kernel mode, system call, and kernel stack if the kernel tells it.
# And the timers of each CPU, for a sleep that does not end.
threads() {
	local task comm state

	echo "== threads after $(cut -d ' ' -f 1 /proc/uptime) s"
	for task in /proc/[0-9]*/task/[0-9]*; do
		[ -r "$task/stat" ] || continue
		# The name is in parentheses and may have blanks.
		comm=$(sed 's/^\([0-9]*\) (\(.*\)) .*/\1 \2/' "$task/stat")
		set -- $(sed 's/.*) //' "$task/stat")
		state=$1
		[ -n "$(tr -d '\0' < "$task/cmdline")" ] || [ "$state" = D ] || continue
		echo "== $comm: state $state, ticks ${12} ${13}, cpu ${37}, in $(cat "$task/wchan"), syscall $(cat "$task/syscall" 2> /dev/null)"
		cat "$task/stack" 2> /dev/null
	done
	grep -E 'CPU0|LOC:|arch_timer' /proc/interrupts
	grep -E '^now at|^cpu:|expires_next|^ next_event|idle_expires' /proc/timer_list
}

# run() of job.sh, see there.
watched() {
	local watch= rc

	if [ "$2" -gt 11 ]; then
		setsid sh -c ". /stacks.sh; sleep $(($2 - 10)); threads; sleep 1; threads" &
		watch=$!
	fi
	run "$@"
	rc=$?
	if [ -n "$watch" ]; then
		kill -KILL -$watch 2> /dev/null || kill -KILL $watch 2> /dev/null
		wait $watch 2> /dev/null
	fi
	return $rc
}
