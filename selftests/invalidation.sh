#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Invalidation of the memory that Calls expose. If both ends support Remote Invalidation, the Reply
# invalidates one rkey of each Call; the client invalidates all others. The client's counters and
# the trace events must agree.
#
#   invalidation.sh [CASE...]    runs these cases only, each with its arguments
#
# With an external server (RPCRDMA_SERVER), its setting is not changed.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports failed invalidations (2), which some cases provoke.
LOG_EXPECTED='rxe_c: qp#[0-9]+ make_send_cqe: non-flush error status = 2
'

CLIENT_SWITCH=/proc/sys/sunrpc/rdma_remote_invalidation
SERVER_SWITCH=/proc/sys/sunrpc/svc_rdma/remote_invalidation

# Number of small and of large transfers.
MANY=${LONG:+5000}
MANY=$((${MANY:-1000} / PACE_CUBED))
TIMES=${LONG:+100}
TIMES=$((${TIMES:-50} / PACE_CUBED + 1))

# set_switch FILE 0|1: an end that always supports Remote Invalidation has no such file.
set_switch() {
	if [ -e "$1" ]; then
		echo "$2" >"$1"
	else
		[ "$2" = 1 ] || skip "this end cannot disable Remote Invalidation"
	fi
}

# mount_with CLIENT SERVER: mounts with Remote Invalidation enabled (1) or disabled (0) at either
# end.
mount_with() {
	set_switch "$CLIENT_SWITCH" "$1"
	! bed_is_local || set_switch "$SERVER_SWITCH" "$2"
	nfs_mount 4.2 rdma
	set_switch "$CLIENT_SWITCH" 1
	! bed_is_local || set_switch "$SERVER_SWITCH" 1
	work_dir invalidation
}

# Prints the number of chunks for READ and WRITE data.
data_chunks() { echo $(($(xprt_stat read_chunks) + $(xprt_stat write_chunks))); }

# measure COUNT MIN MAX STEP: performs direct I/O and counts the rkeys and their invalidations: sets
# rkeys (of data), others (of other Calls), here (invalidated by the client) and there (by the
# server). An OPEN may have an rkey, too: its Reply may be long, most of all the first one.
measure() {
	local connects

	"$HELPERS/direct_helper" "$WORK/file" 2 4096 4096 0 || fail "wrong data"
	connects=$(xprt_stat connect_count)
	rkeys=$(data_chunks)
	others=$(xprt_stat reply_chunks)
	here=$(xprt_stat local_inv)
	trace_on xprtrdma_mr_reminv xprtrdma_mr_localinv
	"$HELPERS/direct_helper" "$WORK/file" "$@" || fail "wrong data"
	trace_off
	rkeys=$(($(data_chunks) - rkeys))
	others=$(($(xprt_stat reply_chunks) - others))
	here=$(($(xprt_stat local_inv) - here))
	there=$(traced xprtrdma_mr_reminv)
	echo "$1 transfers of $2 to $3 bytes: $rkeys rkeys, $others of other Calls;" \
		"$there invalidated by the server, $here by the client"
	[ "$(xprt_stat connect_count)" -eq "$connects" ] ||
		connection_lost fail "the connection was lost"
	[ "$rkeys" -ge "$1" ] || fail "some transfers had no rkey"
	[ "$others" -le 2 ] || fail "too many other Calls"
	[ "$(traced xprtrdma_mr_localinv)" -eq "$here" ] ||
		fail "$(traced xprtrdma_mr_localinv) events, but the counter rose by $here"
	# The C module also counts rkeys of Calls that it marshals but does not send.
	[ $((here + there)) -eq $((rkeys + others)) ] ||
		{ [ "$(module_kind)" = c ] && [ $((here + there)) -lt $((rkeys + others)) ]; } ||
		fail "some rkeys were not invalidated"
}

# single_mr_invalidation CLIENT SERVER COUNT: transfers of one rkey each.
single_mr_invalidation() {
	[ "$1$2" != 11 ] || need_remote_invalidation
	mount_with "$1" "$2"
	measure "$3" 4096 131072 4096
	[ "$rkeys" -eq "$3" ] || fail "some transfers had several rkeys"
	if [ "$1$2" = 11 ]; then
		[ "$here" -eq 0 ] || fail "the client invalidated rkeys"
	else
		[ "$there" -eq 0 ] || fail "the server invalidated rkeys without agreement"
	fi
}

# multi_mr_invalidation CLIENT SERVER [REMOTE]: transfers of several rkeys each, REMOTE of which the
# server invalidates.
multi_mr_invalidation() {
	local calls

	[ "$1$2" != 11 ] || need_remote_invalidation
	mount_with "$1" "$2"
	calls=$((TIMES * (1048576 / $(transfer_size r) + 1048576 / $(transfer_size w))))
	measure $((2 * TIMES)) 1048576 1048576 0
	[ "$rkeys" -gt "$calls" ] || skip "this device needs one rkey per transfer"
	echo "$calls Calls"
	if [ "$1$2" = 11 ]; then
		[ "$there" -eq $((calls * $3 + others)) ] || fail "the server did not invalidate $3 each"
	else
		[ "$there" -eq 0 ] || fail "the server invalidated rkeys without agreement"
	fi
}

# A Reply invalidates the rkey of an RPC that was aborted in the meantime. The RPC reads an
# attribute, synchronously in the task that is killed. The value is short, so that the Reply does
# not write to the Reply chunk, which is invalid by then. A task may be killed before it has sent
# the Call; then another one reads another attribute.
#
# nfsd delays the Reply because mountd is stopped. A slow link would not do: rxe would retransmit,
# repeat the registrations queued behind, fail, and disconnect.
late_reply_invalidates_aborted_rpc() {
	local each asking connects aborted late

	need_local_bed
	set_pulled_replies 0 0
	mount_with 1 1
	touch "$WORK/file"
	for each in first {1..30}; do
		setfattr -n "user.$each" -v value "$WORK_ON_SERVER/file"
	done
	nfs_umount
	nfs_mount 4.2 rdma actimeo=600
	set_pulled_replies
	getfattr -n user.first "$WORK/file" >/dev/null
	connects=$(xprt_stat connect_count)
	trace_on xprtrdma_mrs_zap xprtrdma_reply_rqst_err
	for each in {1..30}; do
		mountd_signal STOP
		exportfs -f
		getfattr -n "user.$each" "$WORK/file" >/dev/null &
		asking=$!
		sleep "0.$((RANDOM % 10))5"
		kill -KILL "$asking" || :
		! wait "$asking" || fail "the Reply arrived before the kill"
		mountd_signal CONT
		# When this returns, mountd has answered all of nfsd's earlier upcalls. Flushing
		# nfsd's cache during such an upcall would end the connection.
		stat -f "$MNT" >/dev/null
		aborted=$(traced xprtrdma_mrs_zap)
		for _ in {1..120}; do
			late=$(traced xprtrdma_reply_rqst_err)
			[ "$late" -lt "$aborted" ] || break
			sleep 0.5
		done
		[ "$aborted" -lt 3 ] || break
	done
	trace_off
	echo "$each tasks, $aborted RPCs aborted, $late late Replies"
	[ "$(xprt_stat connect_count)" -eq "$connects" ] ||
		connection_lost fail "the connection was lost"
	[ "$aborted" -ge 3 ] || fail "fewer than three RPCs were aborted"
	[ "$late" -ge "$aborted" ] || fail "some of their Replies did not arrive"
	getfattr -n user.1 "$WORK/file" >/dev/null || fail "the mount does not work any more"
}

# A peer can only invalidate rkeys of its own connection: each connection has its own protection
# domain.
RI3_7_2_one_pd_per_connection() {
	local device connections pds each

	nfs_mount 4.2 rdma nconnect=4
	work_dir pds
	for each in {1..16}; do
		echo "over one of the connections" >"$WORK/$each"
	done
	for device in "$BED_CLIENT_DEV" "$BED_SERVER_DEV"; do
		# Connections of earlier mounts are destroyed asynchronously.
		for each in {1..120}; do
			connections=$(rdma resource show qp link "$device/1" | grep -c 'type RC ' || true)
			pds=$(rdma resource show pd dev "$device" |
				grep 'comm \[rpcrdma\]' | grep -vc 'users 0 ' || true)
			[ "$connections" -lt 4 ] || [ "$pds" -ne "$connections" ] || break
			sleep 1
		done
		echo "$device: $connections connections, $pds PDs"
		[ "$connections" -ge 4 ] || fail "too few connections"
		[ "$pds" -eq "$connections" ] || fail "not one PD per connection"
	done
}

# resent PROCEDURE: succeeds if a Call of that procedure was retransmitted after a disconnect and
# its task did not end before.
resent() {
	awk -v call=" nfsv[34] $1 " '
		!match($0, /task:[0-9a-f]+@[0-9a-f]+/) {
			if (/ xprt_disconnect_[a-z]+: / && sent) lost = 1
			next
		}
		{ task = substr($0, RSTART, RLENGTH) }
		/ rpc_request: / && $0 ~ call && !which { which = task }
		task != which { next }
		/ xprt_transmit: / { sent++; if (lost) again = 1 }
		/ rpc_task_end: / { if (again) good = 1; exit }
		END { exit !good }' "$TRACING/trace"
}

# R8166_4_5_4_2_failed_invalidation FAIL_POST: a LOCAL_INV of the client fails, or posting it does.
# The RPC must not end before the connection has, since the server could still write to the memory.
R8166_4_5_4_2_failed_invalidation() {
	local connects each

	need_local_bed
	mount_with 0 1
	yes "what was READ" | head -c 65536 >"$WORK_ON_SERVER/file"
	exec 7<"$WORK/file"
	connects=$(xprt_stat connect_count)
	insmod "$HELPERS/fail_local_inv.ko" device="$BED_CLIENT_DEV" fail_post="$1"
	trace_on
	for each in rpc_request xprt_transmit xprt_disconnect_{auto,done,force} rpc_task_end; do
		echo 1 >"$TRACING/events/sunrpc/$each/enable"
	done
	dd bs=64k count=1 iflag=direct <&7 2>/dev/null | cmp - "$WORK_ON_SERVER/file" ||
		fail "wrong data"
	trace_off
	exec 7<&-
	[ "$(cat /sys/module/fail_local_inv/parameters/injected)" -eq 1 ] ||
		fail "the client posted no LOCAL_INV"
	unload_fault_modules
	resent READ || fail "the READ ended before the connection"
	[ "$(xprt_stat connect_count)" -eq $((connects + 1)) ] ||
		connection_lost fail "connected $(xprt_stat connect_count) times, not $((connects + 1))"
}

# mountd may still be stopped.
test_cleanup() {
	cd /
	unload_fault_modules
	! bed_is_local || mountd_signal CONT || :
	umount_all
} 2>/dev/null

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 3))
[ $# -gt 0 ] || set -- "single_mr_invalidation 1 1 $((MANY * 2))" \
	"single_mr_invalidation 0 1 $((500 / PACE_CUBED * 2))" \
	"single_mr_invalidation 1 0 $((500 / PACE_CUBED * 2))" \
	"multi_mr_invalidation 1 1 1" "multi_mr_invalidation 0 1" \
	late_reply_invalidates_aborted_rpc RI3_7_2_one_pd_per_connection \
	"R8166_4_5_4_2_failed_invalidation 0" \
	"R8166_4_5_4_2_failed_invalidation 1"
ktap_run "$@"
