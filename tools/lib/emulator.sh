# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the emulator breaks off is run again.

# despite_emulator LOG COMMAND...: a run of guests, up to three times more while it ends with
# 123 (tools/vm/run). LOG, a file or a directory with what their kernels said, or '', is
# kept as LOG.emulator.1 and so on. tools/test/count looks for "once more:".
despite_emulator() {
	local log=$1 again status=0
	shift
	[ -z "$log" ] || rm -rf "$log".emulator.*
	"$@" || status=$?
	for again in 1 2 3; do
		[ "$status" = 123 ] || break
		[ -z "$log" ] || mv "$log" "$log.emulator.$again"
		echo "once more: the emulator failed"
		status=0
		"$@" || status=$?
	done
	[ "$status" != 123 ] || echo "error: the emulator failed each time"
	return "$status"
}
