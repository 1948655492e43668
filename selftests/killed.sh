#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Processes are killed during direct I/O, while a device reads or writes their memory. The
# connection survives, the file contains only data that was written to it, and no freed memory
# changes.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12).
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'

# The C module loses connections when RPCs are aborted: rxe reports RDMA Writes to invalidated
# memory (10).
[ "$(module_kind)" != c ] ||
	LOG_EXPECTED+='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 10
'

# Factor for the long variant.
TIMES=${LONG:+10}
TIMES=${TIMES:-1}

helper() { "$HELPERS/killed_helper" "$@"; }

# At most 0.1 s, to kill at any point of a transfer.
random_delay() { sleep "0.0$((RANDOM % 90 + 10))"; }

# kill_during write|read FILE [GENERATION]: kills the helper after it has reported that it starts.
kill_during() {
	local killed status=0 began="$ktap_dir/began"

	[ -p "$began" ] || mkfifo "$began"
	"$HELPERS/killed_helper" "$@" >"$began" &
	killed=$!
	read -r -N 1 _ <"$began" || fail "$1: the helper did not start"
	random_delay
	kill -KILL "$killed" || :
	wait "$killed" 2>/dev/null || status=$?
	[ "$status" -eq 137 ] || fail "$1: the helper exited with $status before it was killed"
}

# kills COUNT: kills COUNT / 2 writers and as many readers, and checks the data.
kills() {
	local each

	for each in $(seq 2 2 "$1"); do
		kill_during write "$WORK/written" "$each"
		kill_during read "$WORK/read"
		# truncate waits for direct I/O in progress.
		truncate -s 4M "$WORK/written"
		helper check "$WORK/written" 0 || fail "after kill $each"
		if [ $((each % 10)) -eq 0 ] || [ "$each" -ge $(($1 - 1)) ]; then
			helper once "$WORK/written" $((each + 1))
			helper check "$WORK/written" $((each + 1)) ||
				fail "a killed writer still wrote after kill $each"
		fi
	done
}

# killed_direct_io VERSION KILLS: I/O of killed processes corrupts neither the file nor freed
# memory. There are fewer kills on a slow kernel.
killed_direct_io() {
	local version=$1 count=$(($2 * TIMES / PACE)) connects canary

	nfs_mount "$version" rdma
	work_dir "killed-$version"
	helper once "$WORK/written" 1
	helper once "$WORK/read" 1
	rm -f "$ktap_dir/stop"
	helper canary "$ktap_dir/stop" &
	canary=$!
	connects=$(xprt_stat connect_count)
	kills "$count"
	# rxe loses a connection when an ACK is half a second late while a registration is queued.
	# That is accepted once.
	if [ "$(xprt_stat connect_count)" -ne "$connects" ]; then
		connects=$(xprt_stat connect_count)
		echo "a connection was lost; trying again"
		kills "$count"
	fi
	touch "$ktap_dir/stop"
	wait "$canary" || fail "freed memory was written to"
	[ "$(xprt_stat connect_count)" -eq "$connects" ] ||
		connection_lost fail "connections were lost"
	if bed_is_local; then
		helper check "$WORK_ON_SERVER/written" 0 ||
			fail "the server has wrong data"
	fi
	rm -r "$WORK"
}

# Restores mountd and the link, however the test ended.
test_cleanup() {
	cd /
	! bed_is_local || mountd_signal CONT || :
	umount_all
	! bed_has_link || link_clear_delay "$BED_CLIENT_PORT" || :
	unload_fault_modules
} 2>/dev/null

# kill_pending [sent]: starts sixteen tasks that get no Reply and kills them; with "sent", after
# they have sent as many Calls as they may.
kill_pending() {
	local each asking=() before

	before=$(xprt_stat sends)
	for each in {0..15}; do
		(test -e "$WORK/$each") &
		asking+=($!)
	done
	# The server grants four credits. Calls of earlier rounds may still have some of them.
	for each in {1..100}; do
		[ -n "${1:-}" ] && [ "$(xprt_stat sends)" -lt $((before + 4)) ] || break
		sleep 0.1
	done
	sleep 0.4
	kill -KILL "${asking[@]}"
	wait "${asking[@]}" 2>/dev/null || true
}

# A Call whose task was killed stays outstanding and keeps its credit until the server answers it.
# The server answers nothing while tasks are killed: nfsd waits for mountd, which is stopped.
killed_calls_hold_credits() {
	local file=/proc/sys/sunrpc/svc_rdma/max_requests before each max late connects

	need_local_bed
	before=$(cat "$file")
	echo 4 >"$file"
	nfs_mount 3 rdma actimeo=0
	echo "$before" >"$file"
	work_dir killed-credits
	connects=$(xprt_stat connect_count)
	for each in {0..15}; do
		echo "$each" >"$WORK/$each"
	done
	trace_on xprtrdma_post_send xprtrdma_reply xprtrdma_reply_rqst_err \
		xprtrdma_connect
	for each in $(seq $((5 * TIMES))); do
		mountd_signal STOP
		exportfs -f
		kill_pending sent
		kill_pending
		mountd_signal CONT
		stat "$WORK"/* >/dev/null || fail "the mount does not work after round $each"
	done
	trace_off
	read -r max late <<<"$(awk '
		/ xprtrdma_post_send: / { if (++n > max) max = n }
		/ xprtrdma_reply(_rqst_err)?: / { n-- }
		/ xprtrdma_reply_rqst_err: / { late++ }
		# A new connection has no Calls outstanding.
		/ xprtrdma_connect: / { n = 0 }
		END { print max + 0, late + 0 }' "$TRACING/trace")"
	echo "at most $max Calls outstanding, $late Replies without a task"
	[ "$(events_lost)" -eq 0 ] || fail "events were lost"
	[ "$late" -gt 0 ] || fail "no Call was aborted"
	[ "$max" -le 4 ] || fail "more Calls outstanding than granted"
	[ "$max" -eq 4 ] || fail "fewer Calls outstanding than granted"
	# A lost connection has no credits in use, and connect_count rises with the next Call only.
	stat "$WORK/0" >/dev/null
	wait_no_credits_in_use
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || connection_lost fail "the connection was lost"
	rm -r "$WORK"
}

# Prints the credits in use on the client's connections, as SUNRPC counts them.
credits_in_use() {
	# shellcheck disable=SC2016 # expanded there
	with_client_sysfs sh -c 'cat /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/xprt_info' |
		awk -F= '$1 == "cur_cong" { sum += $2; n++ } END { print n ? sum / 256 : "unknown" }'
}

# On an idle mount no credit is in use.
wait_no_credits_in_use() {
	local i

	for ((i = 0; i < 600; i++)); do
		[ "$(credits_in_use)" != 0 ] || return 0
		sleep 0.1
	done
	fail "$(credits_in_use) credits are in use"
}

# For the Reply to a killed task, the server has as much time as for any Reply, which timeo
# determines.
late_reply_to_killed_task() {
	local connects

	need_local_bed
	nfs_mount 3 rdma actimeo=0,timeo=1200
	work_dir killed-slow
	touch "$WORK/file"
	connects=$(xprt_stat connect_count)
	trace_on xprtrdma_disconnect
	mountd_signal STOP
	exportfs -f
	timeout -s KILL 1 stat "$WORK/file" >/dev/null 2>&1 || :
	sleep 100
	mountd_signal CONT
	trace_off
	[ "$(traced xprtrdma_disconnect)" -eq 0 ] || xfail_on_c "the client disconnected"
	stat "$WORK/file" >/dev/null
	wait_no_credits_in_use
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || fail "the connection was lost"
	rm -r "$WORK"
}

# The Reply arrives after SUNRPC has dequeued the Call of a killed task and before the task's credit
# is returned. The delay widens that window.
reply_during_abort() {
	local asking late delayed connects

	need_link
	nfs_mount "$1" rdma actimeo=0
	work_dir killed-just-now
	touch "$WORK/file"
	connects=$(xprt_stat connect_count)
	delay_fn return '^xprt_request_dequeue_xprt$' 100
	link_set_delay "$BED_CLIENT_PORT" 400
	trace_on xprtrdma_reply_rqst_err
	for _ in $(seq $((20 * TIMES))); do
		stat "$WORK/file" >/dev/null 2>&1 &
		asking=$!
		sleep 0.4
		# If the machine stalls, the task may have its Reply already.
		kill -KILL "$asking" || :
		wait "$asking" 2>/dev/null || true
	done
	sleep 1
	late=$(traced xprtrdma_reply_rqst_err)
	delayed=$(delay_hits)
	trace_off
	unload_fault_modules
	link_end_delay "$BED_CLIENT_PORT"
	echo "$late Replies without a task, $delayed Calls dequeued with a delay"
	[ "$delayed" -gt 0 ] || fail "no call was delayed"
	[ "$late" -gt 0 ] || fail "no Call was aborted"
	stat "$WORK/file" >/dev/null
	wait_no_credits_in_use
	# A leaked credit would end the connection.
	stat "$WORK/file" >/dev/null
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || connection_lost fail "the connection was lost"
	rm -r "$WORK"
}

# killed_getacl KILLS: kills tasks that wait for Replies that may be long. With pulled Replies no
# memory of theirs is exposed when the Reply is sent, so that no connection is lost. The server may
# expose enough Replies for all: a Call that it refuses is sent again with a Reply chunk, and
# aborting that ends the connection (RFC 8166).
killed_getacl() {
	need_local_bed
	bed_has_link || skip "over iWARP Replies are not pulled, and a kill may end the connection"
	local kills=$(($1 * TIMES)) max_exposed=/proc/sys/sunrpc/svc_rdma/max_exposed_replies
	local connects late lost before=

	[ ! -e $max_exposed ] || { before=$(cat $max_exposed); echo 256 >$max_exposed; }
	set_pulled_replies 2 1
	nfs_mount 4.2 rdma noac
	set_pulled_replies
	[ ! -e $max_exposed ] || echo "$before" >$max_exposed
	work_dir killed-getacl
	touch "$WORK/file" "$WORK/other"
	{
		printf '%s\n' user::rw- group::r-- mask::rwx other::---
		seq -f "user:%.0f:r-x" 100001 100400
	} | setfacl --set-file=- "$WORK_ON_SERVER/file"
	connects=$(xprt_stat connect_count)
	trace_on xprtrdma_reply_rqst_err xprtrdma_err_chunk
	"$HELPERS/killed_getacl_helper" "$WORK/file" "$WORK/other" "$kills" ||
		fail "an RPC failed for another reason"
	trace_off
	late=$(traced xprtrdma_reply_rqst_err)
	stat "$WORK/file" >/dev/null
	lost=$(($(xprt_stat connect_count) - connects))
	echo "$kills kills, $late Replies without a task," \
		"$(traced xprtrdma_err_chunk) refused, $lost connections lost"
	[ "$lost" -eq 0 ] || connection_lost xfail_on_c "$lost connections were lost"
	[ "$late" -ge $((kills / 20)) ] || fail "too few RPCs were in flight"
	rm -r "$WORK"
}

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2 * TIMES))
if [ $# -eq 0 ]; then
	set -- "killed_direct_io 4.2 40" "killed_direct_io 3 20" killed_calls_hold_credits \
		"reply_during_abort 3"
	[ -z "$LONG" ] || set -- "$@" late_reply_to_killed_task
	# With the C module this may crash the kernel.
	[ "$(module_kind)" = c ] || set -- "$@" "killed_getacl 1000"
fi
ktap_run "$@"
