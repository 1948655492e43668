# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Repeats runs that failed because of the emulator.

# despite_emulator LOG COMMAND...: runs COMMAND, and runs it again up to three times while
# it ends with 123, which is tools/vm/run's status for a failure of the emulator. LOG is
# the file or directory of the guests' kernel logs, or ''; the log of failed run N is kept
# as LOG.emulator.N. tools/test/count looks for "retry:".
despite_emulator() {
	local log=$1 again status=0
	shift
	[ -z "$log" ] || rm -rf "$log".emulator.*
	"$@" || status=$?
	for again in 1 2 3; do
		[ "$status" = 123 ] || break
		[ -z "$log" ] || mv "$log" "$log.emulator.$again"
		echo "retry: the emulator failed"
		status=0
		"$@" || status=$?
	done
	[ "$status" != 123 ] || echo "error: the emulator failed each time"
	return "$status"
}
