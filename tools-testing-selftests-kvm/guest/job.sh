# SPDX-License-Identifier: GPL-2.0
#
# Functions for /job, the script that the tool puts into the initramfs:
#
#	. /job.sh
#	run dirty-log-1 120 /tests/dirty_log_perf_test -v 1
#	run dirty-log-2 120 /tests/dirty_log_perf_test -v 2
#	finish
#
# The command is named by a path: a selftest opens argv[0] for its guest code.
# What appears on /dev/hvc0, each at the start of a line:
#
#	@@ begin NAME
#	... what the command writes to stdout and stderr ...
#	@@ end NAME rc=N seconds=S.SS
#	@@ taint NAME before=N after=N		only if the kernel got tainted:
#						a WARN, an oops, a lockdep report
#	@@ done
#
# rc is that of the command; 124 means that its time was up, 127 that it could
# not be started, 128+N that signal N ended it (137: SIGKILL, also by the OOM
# killer).

# Centiseconds since boot: the guest's clock, which is virtual time where the
# emulated machine has one.
uptime_cs() {
	local up idle

	read -r up idle < /proc/uptime
	up=${up%.*}${up#*.}
	# A leading zero would make the shell read it as octal.
	while [ "$up" != "${up#0}" ]; do up=${up#0}; done
	echo "${up:-0}"
}

# run NAME SECONDS COMMAND [ARG]...
run() {
	local name=$1 limit=$2 start cs pid watchdog rc before after
	shift 2

	echo "@@ begin $name"
	read -r before < /proc/sys/kernel/tainted
	rm -f /tmp/timed-out
	start=$(uptime_cs)

	# A process group of its own, so that what the command started dies with
	# it: timeout(1) would kill the command alone. The shell's background
	# child leads no group, so setsid keeps its process id.
	setsid "$@" &
	pid=$!
	setsid sh -c "sleep $limit; : > /tmp/timed-out; kill -KILL -$pid" &
	watchdog=$!

	# The shell's "Killed" would end up inside the test's last line. rc says it.
	wait $pid 2> /dev/null
	rc=$?
	cs=$(($(uptime_cs) - start))

	kill -KILL -$watchdog 2> /dev/null || kill -KILL $watchdog 2> /dev/null
	wait $watchdog 2> /dev/null
	kill -KILL -$pid 2> /dev/null
	[ -e /tmp/timed-out ] && rc=124

	# A command that was killed in the middle of a line left it open.
	printf '\n@@ end %s rc=%d seconds=%d.%02d\n' \
		"$name" $rc $((cs / 100)) $((cs % 100))
	read -r after < /proc/sys/kernel/tainted
	[ "$before" = "$after" ] ||
		echo "@@ taint $name before=$before after=$after"
	return $rc
}

finish() {
	echo "@@ done"
}
