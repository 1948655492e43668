#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The transport's line in /proc/self/mountstats: 27 counters. Each counter of normal operation
# advances with what it counts, and not otherwise. Counters of failures and of full queues are not
# tested here.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

FIELDS=27
SWITCH=/proc/sys/sunrpc/rdma_remote_invalidation

mounted_with_file() {
	nfs_mount 4.2 rdma "$@"
	work_dir mountstats
	head -c 1048576 /dev/zero >"$WORK/file"
	sync
}

write_direct() {
	dd if=/dev/zero of="$WORK/file" bs="$1" count="$2" oflag=direct \
		conv=notrunc status=none
}

read_direct() {
	dd if="$WORK/file" of=/dev/null bs="$1" count="$2" iflag=direct \
		status=none
}

# moves NAME MIN MAX COMMAND...: fails unless COMMAND increases the counter by MIN to MAX.
moves() {
	local name=$1 min=$2 max=$3 delta
	shift 3

	delta=$(stat_delta "$name" "$@")
	echo "$name increases by $delta on $*"
	if [ "$delta" -lt "$min" ] || [ "$delta" -gt "$max" ]; then
		fail "expected $min to $max"
	fi
}

# stays NAME COMMAND...: fails if COMMAND changes the counter.
stays() { moves "$1" 0 0 "${@:2}"; }

line_format() {
	mounted_with_file
	[ "$(xprt_lines | wc -l)" -eq 1 ] || fail "$(xprt_lines | wc -l) lines"
	xprt_lines | grep -Eqx "([0-9]+ ){$((FIELDS - 1))}[0-9]+" ||
		fail "not $FIELDS counters: $(xprt_lines)"
	grep -q $'^\txprt:\trdma [0-9]' /proc/self/mountstats ||
		fail "the line does not start with xprt: rdma"
}

line_per_connection() {
	mounted_with_file nconnect=4
	[ "$(xprt_lines | wc -l)" -eq 4 ] || fail "$(xprt_lines | wc -l) lines"
}

always_zero() {
	mounted_with_file
	[ "$(xprt_stat port)" -eq 0 ] || fail "port is not zero"
	[ "$(xprt_stat reply_waits)" -eq 0 ] || fail "reply_waits is not zero"
	[ "$(xprt_stat bad_xids)" -eq 0 ] || fail "bad_xids is not zero"
	[ "$(xprt_stat bad_reply)" -eq 0 ] || fail "bad_reply is not zero"
	[ "$(xprt_stat failed_marshal)" -eq 0 ] || fail "failed_marshal is not zero"
}

# siw may not deliver the first Call until the client disconnects: mount again in that case.
connect_count() {
	local _

	for _ in 1 2 3; do
		mounted_with_file
		[ "$BED_RDMA" = siw ] && [ "$(xprt_stat connect_count)" -gt 1 ] || break
		umount_all
	done
	[ "$(xprt_stat connect_count)" -eq 1 ] ||
		fail "$(xprt_stat connect_count) connections"
	stays connect_count read_direct 4096 10
}

calls_and_replies() {
	mounted_with_file
	moves sends 10 30 read_direct 4096 10
	moves recvs 10 30 read_direct 4096 10
	# After each Send, SUNRPC adds the number of Calls without a Reply; some Replies are faster.
	moves req_u 1 10000 read_direct 4096 100
}

# Idle time rises without I/O, although the client renews its lease, and drops with a READ. More
# than a second may pass between the READ and the check, but not every time.
idle_time() {
	local deadline=$((SECONDS + 60)) try idle

	mounted_with_file
	until [ "$(xprt_stat idle_time)" -ge 2 ]; do
		[ "$SECONDS" -lt "$deadline" ] || fail "idle_time does not rise"
		sleep 0.5
	done
	for try in {1..10}; do
		read_direct 4096 1
		idle=$(xprt_stat idle_time)
		[ "$idle" -gt 1 ] || return 0
	done
	fail "idle_time is $idle after a READ, in $try attempts"
}

inline_transfers() {
	mounted_with_file
	for each in read_chunks write_chunks reply_chunks rdma_request \
			rdma_reply nomsg_calls; do
		stays "$each" write_direct 100 10
		stays "$each" read_direct 100 10
	done
}

read_chunks() {
	mounted_with_file
	moves read_chunks 10 110 write_direct 65536 10
	stays write_chunks write_direct 65536 10
	stays rdma_reply write_direct 65536 10
}

write_chunks() {
	mounted_with_file
	moves write_chunks 10 110 read_direct 65536 10
	# The size of the Write chunks, and the data in them.
	moves rdma_request 655360 655360 read_direct 65536 10
	moves rdma_reply 655360 655360 read_direct 65536 10
	stays read_chunks read_direct 65536 10
}

reply_chunks() {
	set_pulled_replies 0 0
	mounted_with_file
	set_pulled_replies
	mkdir "$WORK/directory"
	touch "$WORK/directory/file"
	moves reply_chunks 1 100 ls -l "$WORK/directory"
}

# An attribute's value is not DDP-eligible, so the Call is a long Call.
long_call() { setfattr -n user.long -v "$(printf '%020000d' 1)" "$WORK/file"; }

nomsg_calls() {
	mounted_with_file
	moves nomsg_calls 1 10 long_call
}

pullup_and_fixup() {
	mounted_with_file
	# The data of a short WRITE is copied behind the Call's header.
	moves pullup 1 100000 write_direct 8 10
	# The data of a short READ arrives inline and is copied to its pages.
	moves fixup 1 1000000 read_direct 8 10
}

# MRs are allocated once and reused for every READ with a Write chunk.
mr_counters() {
	mounted_with_file
	[ "$(xprt_stat mrs_allocated)" -gt 0 ] || fail "no MR was allocated"
	[ "$(xprt_stat mrs_recycled)" -eq 0 ] || fail "MRs were recycled"
	moves mrs_allocated 0 64 read_direct 65536 10
	[ "$(xprt_stat mrs_orphaned)" -eq 0 ] || fail "MRs were orphaned"
}

# Each READ has one MR or more.
local_invalidation() {
	[ -e "$SWITCH" ] || skip "this end cannot disable Remote Invalidation"
	echo 0 >"$SWITCH"
	mounted_with_file
	moves local_inv 10 200 read_direct 65536 10
}

remote_invalidation() {
	need_remote_invalidation
	mounted_with_file
	stays local_inv read_direct 65536 10
}

test_cleanup() {
	cd /
	[ ! -e "$SWITCH" ] || echo 1 >"$SWITCH"
	umount_all
}

bed_up
[ $# -gt 0 ] || set -- line_format line_per_connection always_zero connect_count \
	calls_and_replies idle_time inline_transfers read_chunks write_chunks \
	reply_chunks nomsg_calls pullup_and_fixup mr_counters local_invalidation \
	remote_invalidation
ktap_run "$@"
