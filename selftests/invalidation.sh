#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Who invalidates the memory that Calls expose: the Reply, if both ends are
# willing, and then one tag of each Call; the client in all other cases. The
# client's count and the trace events must agree.
#
#   invalidation.sh [CASE...]    these cases only, each with its arguments
#
# vm: --memory 6G
# With a server elsewhere (RPCRDMA_SERVER) its side is as it was set there.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# The client's device tells of an invalidation that failed (2), as some cases want it to.
LOG_EXPECTED='rxe_c: qp#[0-9]+ make_send_cqe: non-flush error status = 2
'

CLIENT_SWITCH=/proc/sys/sunrpc/rdma_remote_invalidation
SERVER_SWITCH=/proc/sys/sunrpc/svc_rdma/remote_invalidation

# How often something small is transferred, and something large.
MANY=${LONG:+5000}
MANY=$((${MANY:-1000} / PACE_CUBED))
TIMES=${LONG:+100}
TIMES=$((${TIMES:-50} / PACE_CUBED + 1))

# set_switch FILE 0|1: an end that is always willing has no such file.
set_switch() {
	if [ -e "$1" ]; then
		echo "$2" >"$1"
	else
		[ "$2" = 1 ] || skip "this end is always willing"
	fi
}

# mount_with CLIENT SERVER: a mount whose ends are willing (1) or not (0).
mount_with() {
	set_switch "$CLIENT_SWITCH" "$1"
	! bed_is_local || set_switch "$SERVER_SWITCH" "$2"
	nfs_mount 4.2 rdma
	set_switch "$CLIENT_SWITCH" 1
	! bed_is_local || set_switch "$SERVER_SWITCH" 1
	work_dir invalidation
}

# transfer_size r|w: the octets of the largest READ or WRITE.
transfer_size() {
	awk -v at="$MNT" '$2 == at { print $4 }' /proc/self/mounts |
		sed "s/.*\\b$1size=\\([0-9]*\\).*/\\1/"
}

# Tags of data, READ or written.
data_tags() { echo $(($(xprt_stat read_chunks) + $(xprt_stat write_chunks))); }

# measure COUNT LEAST MOST STEP: direct I/O, and what became of its tags. An OPEN
# may have a tag, too: there may be much to say about a file, and most at first.
measure() {
	"$HELPERS/direct_helper" "$WORK/file" 2 4096 4096 0 || fail "wrong data"
	tags=$(data_tags)
	others=$(xprt_stat reply_chunks)
	here=$(xprt_stat local_inv)
	trace_on xprtrdma_mr_reminv xprtrdma_mr_localinv
	"$HELPERS/direct_helper" "$WORK/file" "$@" || fail "wrong data"
	trace_off
	tags=$(($(data_tags) - tags))
	others=$(($(xprt_stat reply_chunks) - others))
	here=$(($(xprt_stat local_inv) - here))
	there=$(traced xprtrdma_mr_reminv)
	echo "$1 transfers of $2 to $3 octets: $tags tags, and $others of other Calls;" \
		"$there invalidated by the server, $here by the client"
	[ "$tags" -ge "$1" ] || fail "not every transfer had a tag"
	[ "$others" -le 2 ] || fail "what Calls were those?"
	[ "$(traced xprtrdma_mr_localinv)" -eq "$here" ] ||
		fail "$(traced xprtrdma_mr_localinv) events, but a count of $here"
	# The C module also counts those of Calls that it composes in vain.
	[ $((here + there)) -eq $((tags + others)) ] ||
		{ [ "$(module_kind)" = c ] && [ $((here + there)) -lt $((tags + others)) ]; } ||
		fail "some tags are unaccounted for"
}

# single_mr_invalidation CLIENT SERVER COUNT: a tag each.
single_mr_invalidation() {
	[ "$1$2" != 11 ] || need_remote_invalidation
	mount_with "$1" "$2"
	measure "$3" 4096 131072 4096
	[ "$tags" -eq "$3" ] || fail "not a tag each"
	if [ "$1$2" = 11 ]; then
		[ "$here" -eq 0 ] || fail "the client had to"
	else
		[ "$there" -eq 0 ] || fail "the server did, unasked"
	fi
}

# multi_mr_invalidation CLIENT SERVER [SPARED]: several tags each, of which so many are spared.
# A server with little memory takes less than 1 MiB at a time.
multi_mr_invalidation() {
	local calls

	[ "$1$2" != 11 ] || need_remote_invalidation
	mount_with "$1" "$2"
	calls=$((TIMES * (1048576 / $(transfer_size r) + 1048576 / $(transfer_size w))))
	measure $((2 * TIMES)) 1048576 1048576 0
	[ "$tags" -gt "$calls" ] || skip "this device has one tag for a transfer"
	echo "$calls Calls"
	if [ "$1$2" = 11 ]; then
		[ "$there" -eq $((calls * $3 + others)) ] || fail "not $3 each"
	else
		[ "$there" -eq 0 ] || fail "the server did, unasked"
	fi
}

# A Reply that invalidates a tag of an RPC that was given up in the meantime. The
# RPC is one that its task waits for itself: an attribute is read. The value is
# short, so that the Reply does not write to the memory that it was offered: that
# is gone. Who is killed may not have asked yet, and then another asks for another value.
#
# nfsd holds the Reply back, while mountd does not say who the client is. On a slow link
# rxe would send again, and then it also registers again what waits behind: it cannot,
# and gives the connection up.
late_reply_invalidates_aborted_rpc() {
	local each asking connects given_up late

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
		pkill -STOP -x rpc.mountd
		exportfs -f
		getfattr -n "user.$each" "$WORK/file" >/dev/null &
		asking=$!
		sleep "0.$((RANDOM % 10))5"
		kill -KILL "$asking" || :
		! wait "$asking" || fail "the Reply was not late"
		pkill -CONT -x rpc.mountd
		# It has answered all that nfsd asked when it answers this: to empty nfsd's cache
		# under such a question costs the connection.
		stat -f "$MNT" >/dev/null
		given_up=$(traced xprtrdma_mrs_zap)
		for _ in {1..20}; do
			late=$(traced xprtrdma_reply_rqst_err)
			[ "$late" -lt "$given_up" ] || break
			sleep 0.5
		done
		[ "$given_up" -lt 3 ] || break
	done
	trace_off
	echo "$each asked, $given_up RPCs given up, $late late Replies"
	[ "$given_up" -ge 3 ] || fail "not three RPCs were given up"
	[ "$late" -ge "$given_up" ] || fail "not each of their Replies was late"
	[ "$(xprt_stat connect_count)" -eq "$connects" ] ||
		fail "that cost the connection"
	getfattr -n user.1 "$WORK/file" >/dev/null || fail "and more"
}

# What a peer can invalidate is what its own connection exposes: no two have a domain in common.
RI3_7_2_one_pd_per_connection() {
	local device connections domains each

	nfs_mount 4.2 rdma nconnect=4
	work_dir domains
	for each in {1..16}; do
		echo "over one of the connections" >"$WORK/$each"
	done
	for device in "$BED_CLIENT_DEV" "$BED_SERVER_DEV"; do
		connections=$(rdma resource show qp link "$device/1" | grep -c 'type RC ' || true)
		domains=$(rdma resource show pd dev "$device" |
			grep 'comm \[rpcrdma\]' | grep -vc 'users 0 ' || true)
		echo "$device: $connections connections, $domains domains"
		[ "$connections" -ge 4 ] || fail "too few connections"
		[ "$domains" -eq "$connections" ] || fail "not a domain for each"
	done
}

# resent PROCEDURE: whether a Call of that was sent again after the connection had been
# given up, and did not end before.
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

# What the client has to invalidate itself it cannot: the device fails, or does not even try.
# Until the connection has gone the server might still write to that memory.
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
		fail "nothing was to be invalidated"
	unload_fault_modules
	resent READ || fail "the READ ended before the connection did"
	[ "$(xprt_stat connect_count)" -eq $((connects + 1)) ] ||
		fail "connected $(xprt_stat connect_count) times, $connects before"
}

# Whichever way a test ended, the next one finds mountd as usual.
test_cleanup() {
	cd /
	unload_fault_modules
	! bed_is_local || pkill -CONT -x rpc.mountd || :
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
