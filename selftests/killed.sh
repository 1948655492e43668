#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Processes are killed in the middle of direct I/O, when a device still reads
# or writes their memory. The connection survives, the file holds nothing but
# what was written to it, and nobody else's memory changes.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe tells of each connection that ran out of retries (12).
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'

# The C module loses connections when RPCs are cancelled: the device tells of each Write
# to what is not there any more (10).
[ "$(module_kind)" != c ] ||
	LOG_EXPECTED+='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 10
'

# By how much more the long variant does.
TIMES=${LONG:+10}
TIMES=${TIMES:-1}

helper() { "$HELPERS/killed_helper" "$@"; }

# A tenth of a second at most, to fall anywhere into a transfer.
a_moment() { sleep "0.0$((RANDOM % 90 + 10))"; }

# kill_amid write|read FILE [GENERATION]: the helper says when it begins.
kill_amid() {
	local killed how=0 began="$ktap_dir/began"

	[ -p "$began" ] || mkfifo "$began"
	"$HELPERS/killed_helper" "$@" >"$began" &
	killed=$!
	read -r -N 1 _ <"$began" || fail "$1: it never began"
	a_moment
	kill -KILL "$killed" || :
	wait "$killed" 2>/dev/null || how=$?
	[ "$how" -eq 137 ] || fail "$1: it ended by itself, with $how"
}

# kills COUNT: half of them hit a writer, half a reader.
kills() {
	local each

	for each in $(seq 2 2 "$1"); do
		kill_amid write "$WORK/written" "$each"
		kill_amid read "$WORK/read"
		# Truncation waits for direct I/O that is still under way.
		truncate -s 4M "$WORK/written"
		helper check "$WORK/written" 0 || fail "after kill $each"
		if [ $((each % 10)) -eq 0 ] || [ "$each" -ge $(($1 - 1)) ]; then
			helper once "$WORK/written" $((each + 1))
			helper check "$WORK/written" $((each + 1)) ||
				fail "a dead writer still wrote after kill $each"
		fi
	done
}

# killed_direct_io VERSION KILLS: what is left of the dead harms nobody. Where all takes many times
# as long there are fewer.
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
	# rxe itself loses one when an acknowledgement comes half a second late and a
	# registration waited behind that. That does not happen twice.
	if [ "$(xprt_stat connect_count)" -ne "$connects" ]; then
		connects=$(xprt_stat connect_count)
		echo "a connection was lost, and once more"
		kills "$count"
	fi
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

# Whichever way a test ended, the next one finds mountd and the wire as usual.
test_cleanup() {
	cd /
	! bed_is_local || pkill -CONT -x rpc.mountd || :
	umount_all
	! bed_has_link || link_clear_delay "$BED_CLIENT_PORT" || :
	unload_fault_modules
} 2>/dev/null

# ask_and_die [sent]: sixteen tasks, which never get an answer; some have sent their Calls.
ask_and_die() {
	local each asking=() before

	before=$(xprt_stat sends)
	for each in {0..15}; do
		(test -e "$WORK/$each") &
		asking+=($!)
	done
	for each in {1..100}; do
		[ -n "${1:-}" ] && [ "$(xprt_stat sends)" -eq "$before" ] || break
		sleep 0.1
	done
	sleep 0.4
	kill -KILL "${asking[@]}"
	wait "${asking[@]}" 2>/dev/null || true
}

# A Call whose task was killed is still outstanding: until the server has answered
# it, no other may go out in its place. Here nothing is answered while tasks come and go:
# nfsd waits for mountd to say who the client is.
killed_calls_hold_credits() {
	local file=/proc/sys/sunrpc/svc_rdma/max_requests before each most late connects

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
		pkill -STOP -x rpc.mountd
		exportfs -f
		ask_and_die sent
		ask_and_die
		pkill -CONT -x rpc.mountd
		stat "$WORK"/* >/dev/null || fail "nothing works after round $each"
	done
	trace_off
	read -r most late <<<"$(awk '
		/ xprtrdma_post_send: / { if (++n > most) most = n }
		/ xprtrdma_reply(_rqst_err)?: / { n-- }
		/ xprtrdma_reply_rqst_err: / { late++ }
		# What was outstanding before is not any more.
		/ xprtrdma_connect: / { n = 0 }
		END { print most + 0, late + 0 }' "$TRACING/trace")"
	echo "at most $most Calls outstanding, $late Replies too late"
	[ "$(events_lost)" -eq 0 ] || fail "events were lost"
	[ "$late" -gt 0 ] || fail "no Call was given up"
	[ "$most" -le 4 ] || fail "more Calls outstanding than granted"
	[ "$most" -eq 4 ] || fail "fewer Calls outstanding than granted"
	# A connection that was lost has no credits, and is not counted before the next Call.
	stat "$WORK/0" >/dev/null
	credits_come_back
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || fail "the connection was lost"
	rm -r "$WORK"
}

# Credits that the client's connections have taken, as SUNRPC counts them.
credits_in_use() {
	# shellcheck disable=SC2016 # expanded there
	with_client_sysfs sh -c 'cat /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/xprt_info' |
		awk -F= '$1 == "cur_cong" { sum += $2; n++ } END { print n ? sum / 256 : "unknown" }'
}

# When nothing is under way, no credit is in use.
credits_come_back() {
	local i

	for ((i = 0; i < 100; i++)); do
		[ "$(credits_in_use)" != 0 ] || return 0
		sleep 0.1
	done
	fail "$(credits_in_use) credits are in use"
}

# A server may take as long for the Reply that nobody waits for any more as it might have for
# one that somebody waits for, which is up to who mounts.
late_reply_to_killed_task() {
	local connects

	need_local_bed
	nfs_mount 3 rdma actimeo=0,timeo=1200
	work_dir killed-slow
	touch "$WORK/file"
	connects=$(xprt_stat connect_count)
	trace_on xprtrdma_disconnect
	pkill -STOP -x rpc.mountd
	exportfs -f
	timeout -s KILL 1 stat "$WORK/file" >/dev/null 2>&1 || :
	sleep 100
	pkill -CONT -x rpc.mountd
	trace_off
	[ "$(traced xprtrdma_disconnect)" -eq 0 ] || xfail_on_c "the connection was given up"
	stat "$WORK/file" >/dev/null
	credits_come_back
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || fail "the connection was lost"
	rm -r "$WORK"
}

# The Reply comes when SUNRPC has taken the Call out of its queue and its credit is not
# given back yet, which is a while here.
reply_during_abort() {
	local asking late slow connects

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
		# On a machine that stands still it may have its answer.
		kill -KILL "$asking" || :
		wait "$asking" 2>/dev/null || true
	done
	sleep 1
	late=$(traced xprtrdma_reply_rqst_err)
	slow=$(delay_hits)
	trace_off
	unload_fault_modules
	link_clear_delay "$BED_CLIENT_PORT"
	echo "$late Replies too late, $slow Calls taken out slowly"
	[ "$slow" -gt 0 ] || fail "no call was delayed"
	[ "$late" -gt 0 ] || fail "no Call was given up"
	stat "$WORK/file" >/dev/null
	credits_come_back
	# A credit that is waited for in vain costs the connection in the end.
	stat "$WORK/file" >/dev/null
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || fail "the connection was lost"
	rm -r "$WORK"
}

# killed_getacl KILLS: RPCs whose Replies may be long or not are given up in flight. Nothing
# of theirs is there to be written to when the Reply comes, so that no connection is lost.
# The server has a place for each of them: one that is refused for want of a place is sent
# again with a Reply chunk, and with that a kill costs the connection (RFC 8166).
killed_getacl() {
	need_local_bed
	bed_has_link || skip "over iWARP nothing is pulled, and a kill may cost the connection"
	local kills=$(($1 * TIMES)) places=/proc/sys/sunrpc/svc_rdma/max_exposed_replies
	local connects late lost before=

	[ ! -e $places ] || { before=$(cat $places); echo 256 >$places; }
	set_pulled_replies 2 1
	nfs_mount 4.2 rdma noac
	set_pulled_replies
	[ ! -e $places ] || echo "$before" >$places
	work_dir cancelled
	touch "$WORK/file" "$WORK/other"
	{
		printf '%s\n' user::rw- group::r-- mask::rwx other::---
		seq -f "user:%.0f:r-x" 100001 100400
	} | setfacl --set-file=- "$WORK_ON_SERVER/file"
	connects=$(xprt_stat connect_count)
	trace_on xprtrdma_reply_rqst_err xprtrdma_err_chunk
	"$HELPERS/killed_getacl_helper" "$WORK/file" "$WORK/other" "$kills" ||
		fail "something else ended an RPC"
	trace_off
	late=$(traced xprtrdma_reply_rqst_err)
	stat "$WORK/file" >/dev/null
	lost=$(($(xprt_stat connect_count) - connects))
	echo "$kills kills, $late Replies that nobody waited for," \
		"$(traced xprtrdma_err_chunk) refused, $lost connections lost"
	[ "$lost" -eq 0 ] || xfail_on_c "$lost connections were lost"
	[ "$late" -ge $((kills / 20)) ] || fail "too few were in flight"
	rm -r "$WORK"
}

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2 * TIMES))
if [ $# -eq 0 ]; then
	set -- "killed_direct_io 4.2 40" "killed_direct_io 3 20" killed_calls_hold_credits \
		"reply_during_abort 3"
	[ -z "$LONG" ] || set -- "$@" late_reply_to_killed_task
	# The kernel does not always outlive it with the C module.
	[ "$(module_kind)" = c ] || set -- "$@" "killed_getacl 1000"
fi
ktap_run "$@"
