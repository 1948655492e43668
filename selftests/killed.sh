#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Processes are killed in the middle of direct I/O, when a device still reads
# or writes their memory. The connection survives, the file holds nothing but
# what was written to it, and nobody else's memory changes.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# By how much more the long variant does.
TIMES=${LONG:+10}
TIMES=${TIMES:-1}

helper() { "$HELPERS/killed_helper" "$@"; }

# A tenth of a second at most, to fall anywhere into a transfer.
a_moment() { sleep "0.0$((RANDOM % 90 + 10))"; }

kill_a_writer() {
	local generation=$1 writer

	"$HELPERS/killed_helper" write "$WORK/written" "$generation" &
	writer=$!
	a_moment
	kill -KILL "$writer"
	wait "$writer" 2>/dev/null || true
}

kill_a_reader() {
	local reader

	"$HELPERS/killed_helper" read "$WORK/read" &
	reader=$!
	a_moment
	kill -KILL "$reader"
	wait "$reader" 2>/dev/null || true
}

# killed VERSION KILLS: half of them hit a writer, half a reader.
killed() {
	local version=$1 kills=$(($2 * TIMES)) each connects canary

	nfs_mount "$version" rdma
	work_dir "killed-$version"
	helper once "$WORK/written" 1
	helper once "$WORK/read" 1
	rm -f "$ktap_dir/stop"
	helper canary "$ktap_dir/stop" &
	canary=$!
	connects=$(xprt_stat connect_count)
	for each in $(seq 2 2 "$kills"); do
		kill_a_writer "$each"
		kill_a_reader
		# Truncation waits for direct I/O that is still under way.
		truncate -s 4M "$WORK/written"
		helper check "$WORK/written" 0 || fail "after kill $each"
		if [ $((each % 10)) -eq 0 ]; then
			helper once "$WORK/written" $((each + 1))
			helper check "$WORK/written" $((each + 1)) ||
				fail "a dead writer still wrote after kill $each"
		fi
	done
	touch "$ktap_dir/stop"
	wait "$canary" || fail "memory of others was changed"
	[ "$(xprt_stat connect_count)" -eq "$connects" ] ||
		fail "connections were lost"
	if bed_is_local; then
		helper check "$WORK_ON_SERVER/written" 0 ||
			fail "the server has other data"
	fi
	rm -r "$WORK"
}

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2 * TIMES))
ktap_run "killed 4.2 100" "killed 3 30"
