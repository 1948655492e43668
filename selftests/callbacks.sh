#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NFSv4 callbacks over the backchannel. The server recalls a delegation when a process on the server
# opens the file. That open() blocks until the client has returned the delegation, or until the
# server revokes it after several recalls without effect, which takes up to three lease times.
#
#   callbacks.sh [CASE...]    runs these cases only, each with its arguments
#
# LONG=1 adds a case that leaves client and server idle for an hour. LOADED=1 adds recalls during
# writes, reconnects and a server restart, which take long; with LONG=1 ten times as many.
#
# vm: --memory 3G

# nfsd waits a tenth of a lease for the Reply to a callback. One second is not enough on an emulated
# machine under write load.
BED_LEASE=90

cd "$(dirname "$0")" && . ./lib.sh && . lib/delegations.sh || exit 1

# The C module sends to a client that is gone, which rxe reports.
[ "$(module_kind)" != c ] ||
	LOG_EXPECTED='rxe_s: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'

# Time limit of a recall on an idle connection, in ms: shorter than nfsd's timeout for a callback
# whose Call or Reply was lost. And the lease time in ms.
RECALL_MS=$((8000 * PACE))
IDLE_RECALL_MS=$((2000 * PACE))
LEASE_MS=$((BED_LEASE * 1000))

# Time limit of a recall under write load, in ms: DELEGRETURN queues behind the writes, which are
# slow on an emulated machine. Still far below the lease time.
LOADED_RECALL_MS=$((PACE > 1 ? 60000 : 30000))

# Factor for the long variant: 1,000 recalls under write load, 20 reconnects.
TIMES=${LONG:+10}
TIMES=${TIMES:-1}

count_calls() { trace_on xprtrdma_cb_call xprtrdma_cb_reply; }
calls_seen() { traced xprtrdma_cb_call; }
replies_seen() { traced xprtrdma_cb_reply; }

# Waits until the client has answered a callback. Fails after a minute.
wait_callback_reply() {
	local _

	for _ in {1..300}; do
		[ "$(replies_seen)" -eq 0 ] || return 0
		sleep 0.2
	done
	return 1
}

# Prints the longest time between a callback and its Reply, in ms.
slowest_reply() {
	awk '
		match($0, /xid=0x[0-9a-f]+/) { xid = substr($0, RSTART, RLENGTH) }
		match($0, /[0-9]+\.[0-9]+: xprtrdma_cb_/) { now = substr($0, RSTART) + 0 }
		/ xprtrdma_cb_call: / { called[xid] = now }
		/ xprtrdma_cb_reply: / {
			took = (now - called[xid]) * 1000
			if (xid in called && took > most) most = took
		}
		END { printf "%d\n", most }' "$TRACING/trace"
}

# operations NAME: prints how many operations of that name the mount has performed.
operations() {
	awk -v at="$MNT" -v op="$1:" '
		$1 == "device" { here = $5 == at }
		here && $1 == op { print $2; found = 1 }
		END { if (!found) print 0 }' /proc/self/mountstats
}

# nfsd probes the backchannel with a Call of its own.
wait_callback_state_up() {
	local _

	for _ in $(seq $((600 * PACE))); do
		! grep -q '^callback state: UP' /proc/fs/nfsd/clients/*/info || return 0
		sleep 0.1
	done
	fail "$(grep -h '^callback state' /proc/fs/nfsd/clients/*/info)"
}

# While the backchannel is down, the server sets SEQ4_STATUS_CB_PATH_DOWN in each Reply, and the
# client rebinds the connection each time.
backchannel_is_up() {
	local version=$1 i

	need_local_bed
	nfs_mount "$version" rdma
	work_dir "channel-$version"
	for i in {1..50}; do
		echo "$i" >"$WORK/$i"
	done
	wait_callback_state_up
	[ "$(operations BIND_CONN_TO_SESSION)" -eq 0 ] ||
		connection_lost fail "the client rebound its connection"
	[ "$(operations CREATE_SESSION)" -le 1 ] ||
		fail "the client created more than one session"
}

read_delegation_is_recalled() {
	local took

	with_files "$1" 0
	get_delegation read
	count_calls
	took=$(timed write_on_server "$delegated")
	echo "recalled in $took ms"
	[ "$took" -lt "$RECALL_MS" ] || fail "it took $took ms"
	# The client may return the delegation before it answers the callback.
	wait_callback_reply || fail "no backchannel Reply"
	[ "$(calls_seen)" -ge 1 ] || fail "no backchannel Call"
	grep -q "changed on the server" "$WORK/$delegated" ||
		fail "the client does not see the change"
}

# Traces the start of the timers with which SUNRPC closes idle connections.
trace_idle_timers() {
	local event=$TRACING/events/timer/timer_start address

	address=$(awk '$3 == "xprt_init_autodisconnect" { print $1; exit }' /proc/kallsyms)
	[ "$address" ] || fail "this kernel has no xprt_init_autodisconnect"
	trace_on
	echo "function == 0x$address" >"$event/filter"
	echo 1 >"$event/enable"
}

# The server may have callbacks at any time, so no timer runs that closes the connection, at any
# lease time and any number of connections that share the RPCs which renew the lease. The mount
# without a backchannel shows that the timer would be seen.
R8167_5_4_2_no_idle_timer_with_backchannel() {
	need_local_bed
	trace_idle_timers
	nfs_mount 3 rdma
	[ "$(traced timer_start)" -gt 0 ] || fail "no timer without a backchannel"
	nfs_umount
	nfs_mount "$1" rdma
	work_dir "timers-$1"
	# The first RPCs come before the backchannel.
	trace_idle_timers
	echo once >"$WORK/file"
	sync "$WORK/file"
	[ "$(xprt_stat sends)" -gt 0 ] || fail "no RPCs"
	[ "$(traced timer_start)" -eq 0 ] || fail "the timer was started: $(traced timer_start)"
	trace_off
}

# Neither end closes an idle connection that has a backchannel; SUNRPC's idle timeout is five
# minutes. Each of eight connections gets an RPC that renews the lease every eight minutes. A recall
# at any moment of an idle hour arrives at once. An open file keeps its delegation.
idle_connection_keeps_backchannel() {
	local began=$SECONDS minute minutes=(7 23 41 60) took i

	with_files "$1" 0 nconnect=8
	hold_files ${#minutes[@]}
	for i in "${!minutes[@]}"; do
		minute=${minutes[i]}
		sleep $((began + 60 * minute - SECONDS))
		took=$(timed write_on_server "${files[i]}")
		echo "recalled in $took ms in minute $minute"
		[ "$took" -lt "$IDLE_RECALL_MS" ] || fail "it took $took ms"
		# The first line is that of the connection with the backchannel.
		[ "$(xprt_lines | awk -v c="$STAT_connect_count" 'NR == 1 { print $c }')" -eq 1 ] ||
			fail "the connection was lost"
	done
	release_files
	files_are_changed
}

# The client writes its dirty data back before it returns a write delegation.
write_delegation_is_recalled() {
	local took

	with_files "$1" 0
	get_delegation write
	echo "written by the client" >&8
	took=$(timed grep -q "written by the client" "$WORK_ON_SERVER/$delegated")
	exec 8>&-
	echo "recalled in $took ms"
	[ "$took" -lt "$RECALL_MS" ] || fail "it took $took ms"
}

# Waits until the client has bound the backchannel to the next connection, which it does when a
# SEQUENCE tells it to, and nfsd has used it. nfsd drops a recall while it has no backchannel.
wait_backchannel_bound() {
	local _

	for _ in $(seq $((60 * PACE))); do
		drop_caches
		ls -l "$MNT" >/dev/null
		[ "$(operations BIND_CONN_TO_SESSION)" -eq 0 ] || break
		sleep 1
	done
	[ "$(operations BIND_CONN_TO_SESSION)" -gt 0 ] || fail "the backchannel is not bound"
	wait_callback_state_up
}

# The client sends each connection request, also for the server's Calls, and the server each answer.
R8166_2_2_3_1_client_connects() {
	local each asked answered

	need_link
	trace_on
	for each in cm_send_req cm_send_rep; do
		echo 1 >"$TRACING/events/rdma_cma/$each/enable"
	done
	with_files "$1" 0
	get_delegation write
	echo "written by the client" >&8
	reconnect
	wait_backchannel_bound
	grep -q "written by the client" "$WORK_ON_SERVER/$delegated" || fail "the delegation was not recalled"
	exec 8>&-
	trace_off
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	asked=$(grep ' cm_send_req: ' "$TRACING/trace") || fail "no connection request"
	answered=$(grep ' cm_send_rep: ' "$TRACING/trace") || fail "no answer"
	[ "$(wc -l <<<"$asked")" -ge 2 ] || fail "no connection request after the first"
	! grep -v " src=192.0.2.2:[0-9]* dst=$SERVER4:$BED_PORT " <<<"$asked" ||
		fail "a connection request that is not the client's"
	! grep -v " src=$SERVER4:$BED_PORT " <<<"$answered" || fail "an answer that is not the server's"
}

recalls_under_write_load() {
	local count=$((100 * TIMES))

	with_files "$1" 0
	hold_files "$count"
	load_start 16 4
	count_calls
	start_recalls "$LOADED_RECALL_MS"
	end_recalls
	trace_off
	echo "$(calls_seen) backchannel Calls, $(replies_seen) Replies," \
		"slowest Reply $(slowest_reply) ms"
	[ "$(calls_seen)" -ge "$count" ] || fail "too few backchannel Calls"
	load_stop
	release_files
	files_are_changed
}

# With four credits for the forechannel, they are exhausted nearly all the time.
recalls_with_few_forward_credits() {
	local count=40 file=/proc/sys/sunrpc/svc_rdma/max_requests before

	need_local_bed
	before=$(cat "$file")
	echo 4 >"$file"
	with_files "$1" 0
	echo "$before" >"$file"
	hold_files "$count"
	load_start 16 4
	start_recalls "$LOADED_RECALL_MS"
	end_recalls
	load_stop
	release_files
	files_are_changed
}

# Traces recalls that nfsd drops. If the backchannel is down when nfsd wants to send a recall, nfsd
# destroys the callback without sending or retrying it. The opener then waits until the delegation
# is revoked, after a lease time, or for ever. This is a defect of nfsd, with any transport.
trace_dropped_recalls() {
	local each

	trace_on
	for each in nfsd_cb_destroy nfsd_cb_recall_done nfsd_cb_restart; do
		echo 1 >"$TRACING/events/nfsd/$each/enable"
	done
}

# Prints how many recalls nfsd destroyed before they were answered.
dropped_by_nfsd() {
	local ended answered

	ended=$(grep -c ' nfsd_cb_destroy: .*opcode=CB_RECALL$' "$TRACING/trace" || true)
	answered=$(grep -c ' nfsd_cb_recall_done: ' "$TRACING/trace" || true)
	# A recall whose answer was lost from the trace would look dropped.
	[ "$(events_lost)" -eq 0 ] || ended=0
	echo $((ended > answered ? ended - answered : 0))
}

# recalls_through VERSION COUNT ROUNDS DISRUPTION
recalls_through() {
	local round dropped

	with_files "$1" 0
	hold_files "$2"
	load_start
	trace_dropped_recalls
	start_recalls "$LOADED_RECALL_MS"
	for ((round = 0; round < $3; round++)); do
		sleep 2
		"$4" || fail "round $round: $4"
		load_wait_progress
	done
	wait "${recalls[@]}"
	trace_off
	dropped=$(dropped_by_nfsd)
	echo "connected $(xprt_stat connect_count) times;" \
		"nfsd dropped $dropped of ${#files[@]} recalls"
	end_recalls "$dropped"
	load_stop
	release_files
	[ "$(xprt_stat connect_count)" -gt 1 ] || fail "the connection was never lost"
}

recalls_through_reconnects() {
	recalls_through "$1" $((40 * TIMES)) $((2 * TIMES)) reconnect
	files_are_changed
	# Later recalls find the backchannel up.
	work_dir "again-$RANDOM"
	hold_files 10
	start_recalls "$LOADED_RECALL_MS"
	end_recalls
	release_files
	files_are_changed
}

restart() {
	server_stop
	sleep 1
	server_start
}

# A restarted server knows of no delegations, so open() on it does not wait for any. What the client
# sees of such changes is up to NFS and not checked.
recalls_through_restart() { recalls_through "$1" 40 1 restart; }

# Prints the time between the first two backchannel Calls that the client received, in ms.
first_gap() {
	awk '
		/ xprtrdma_cb_call: / && match($0, /[0-9]+\.[0-9]+: xprtrdma_cb_/) {
			at[++n] = substr($0, RSTART) + 0
		}
		END { printf "%d\n", n < 2 ? 0 : (at[2] - at[1]) * 1000 }' "$TRACING/trace"
}

# The client grants one credit, and its messages are delayed for longer than nfsd waits for a Reply,
# a tenth of a lease. A Call that nfsd has abandoned stays outstanding until it is answered, so the
# next Call has to wait (RFC 8166 Section 3.3.1).
R8167_4_1_3_abandoned_calls_hold_credits() {
	local grant=/proc/sys/sunrpc/rdma_max_bc_requests before late=2500 each gap

	[ -e "$grant" ] || skip "only for this module's tunables"
	need_link
	# rxe disconnects when nothing is acknowledged for some time, less than four seconds.
	[ "$PACE" -eq 1 ] || skip "on a slow kernel, rxe does not survive the necessary delay"
	server_stop
	BED_LEASE=10 server_start
	before=$(cat "$grant")
	echo 1 >"$grant"
	with_files "$1" 0
	echo "$before" >"$grant"
	# See hold_files for why a file may get no delegation.
	for each in {0..39}; do
		echo "as it was $each" >"$WORK_ON_SERVER/$each"
		cat "$WORK/$each" >/dev/null
		[ "$(delegations "/$each")" -eq 0 ] || files+=("$each")
		[ ${#files[@]} -lt 2 ] || break
	done
	[ ${#files[@]} -eq 2 ] || fail "fewer than two delegations"
	count_calls
	link_set_delay "$BED_SERVER_PORT" "$late"
	start_recalls $((2 * LOADED_RECALL_MS))
	for each in {1..200}; do
		[ "$(calls_seen)" -lt 2 ] || break
		sleep 0.5
	done
	link_clear_delay "$BED_SERVER_PORT"
	end_recalls
	trace_off
	gap=$(first_gap)
	echo "$(calls_seen) backchannel Calls, the second $gap ms after the first"
	# The first line is that of the connection with the backchannel.
	[ "$(xprt_lines | awk -v c="$STAT_connect_count" 'NR == 1 { print $c }')" -eq 1 ] ||
		connection_lost fail "the connection was lost"
	[ "$(calls_seen)" -ge 2 ] || fail "fewer than two backchannel Calls"
	[ "$gap" -ge $((late - 100)) ] || fail "two Calls were outstanding"
}

# All of the client's credits are taken by Calls for which nfsd waits for mountd; a thread waits for
# five seconds. The client still answers a backchannel Call: a Reply needs no credit.
R8167_4_1_1_replies_need_no_credit() {
	local file=/proc/sys/sunrpc/svc_rdma/max_requests before each asking=() writer

	need_local_bed
	before=$(cat "$file")
	echo 4 >"$file"
	with_files "$1" 0
	echo "$before" >"$file"
	get_delegation read
	count_calls
	mountd_signal STOP
	exportfs -f
	for each in {1..16}; do
		stat "$WORK/no-$each" >/dev/null 2>"$ktap_dir/asked-$each" &
		asking+=($!)
	done
	sleep 1
	write_on_server "$delegated" &
	writer=$!
	# No credit comes back while mountd is stopped.
	wait_callback_reply || :
	trace_off
	mountd_signal CONT
	echo "$(calls_seen) backchannel Calls, $(replies_seen) Replies, slowest $(slowest_reply) ms"
	[ "$(calls_seen)" -ge 1 ] || fail "no backchannel Call"
	for each in "${asking[@]}"; do
		! wait "$each" || fail "stat found a file that does not exist"
	done
	for each in {1..16}; do
		grep -q 'No such file' "$ktap_dir/asked-$each" || fail "$(cat "$ktap_dir/asked-$each")"
	done
	wait "$writer" || fail "the recall failed"
	[ "$(xprt_stat connect_count)" -eq 1 ] || connection_lost fail "the connection was lost"
	[ "$(replies_seen)" -ge 1 ] || xfail_on_c "the Call was not answered while no credit was free"
}

# All attributes of transports in sysfs can be read, also those of backchannel transports.
sysfs_transports_are_readable() {
	local each count=0

	with_files "$1" 1
	for each in /sys/kernel/sunrpc/xprt-switches/*/xprt-*/*; do
		case $each in
		*/del_xprt) continue ;;
		esac
		# nfsd's transports may be destroyed at any time.
		cat "$each" >/dev/null || [ ! -e "$each" ] || fail "cannot read $each"
		count=$((count + 1))
	done
	[ "$count" -gt 0 ] || fail "no transport in sysfs"
}

# client_transports: prints the sysfs directory of each transport to the server. nfsd's transports
# to the client are in the same place if both ends share a network namespace.
client_transports() {
	with_client_sysfs sh -c \
		"grep -lx dst_port=$BED_PORT /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma*/xprt_info" |
		xargs -rn 1 dirname
}

# sysfs has the address and the port from which the client has connected, as the server's device
# sees them. rpcctl prints both.
sysfs_has_source_address() {
	local version=$1 proto=$2 seen transport address port _

	need_local_bed
	nfs_mount "$version" "$proto"
	# Transports of earlier mounts are destroyed asynchronously.
	for _ in {1..120}; do
		transport=$(client_transports)
		[ "$(wc -w <<<"$transport")" -ne 1 ] || break
		sleep 1
	done
	seen=$(rdma resource show cm_id link "$BED_SERVER_DEV/1" |
		sed -n 's/.* dst-addr \([^ ]*\).*/\1/p' | tr -d '[]')
	address=$(with_client_sysfs cat "$transport/srcaddr")
	port=$(with_client_sysfs sed -n 's/^src_port=//p' "$transport/xprt_info")
	echo "the server sees $(xargs <<<"$seen"), sysfs has $address and $port"
	[ "$address" != '<not a socket>' ] || xfail_on_c "sysfs does not have the address"
	[ "$port" -gt 0 ] || fail "there is no port"
	grep -qxF "$address:$port" <<<"$seen" || fail "the server has no such peer"
}

# The client unmounts while the server sends callbacks. A second mount keeps the nfs_client: a
# thread of Linux's callback service that drops the last reference to it waits for its own exit, for
# ever, with any transport (nfs4_callback_compound, nfs_callback_down).
unmount_during_recalls() {
	local version=$1 round interrupted=0

	nfs_mount_at "$MNT-beside" "$version" rdma nosharecache
	for round in 1 2 3; do
		with_files "$version" 40
		cat "$WORK"/{0..39} >/dev/null
		need_delegations 10
		start_recalls "$LEASE_MS"
		# On a fast machine, only the first round may unmount before all recalls are done.
		[ "$round" -eq 1 ] || sleep "0.$((RANDOM % 4))"
		[ "$(delegations '/[0-9]*')" -eq 0 ] || interrupted=$((interrupted + 1))
		cd / && nfs_umount
		end_recalls
	done
	[ "$interrupted" -gt 0 ] || fail "all recalls had ended before the unmount"
}

# Prints how often SUNRPC tried to send a callback.
callback_transmits() {
	awk '
		!match($0, /task:[0-9a-f]+@[0-9a-f]+/) { next }
		{ client = substr($0, RSTART, RLENGTH); sub(/.*@/, "", client) }
		/ rpc_request: / { calls[client] }
		/ xprt_transmit: / && client in calls { n++ }
		END { print n + 0 }' "$CALLBACK_TRACE/trace" "$TRACING/trace"
}

# The client has disconnected, no nfsd thread has closed the server's transport yet, and nfsd sends
# a callback. SUNRPC must not retry in a loop on a transport that it takes for connected.
dead_client_is_not_called_in_a_loop() {
	local tried calls losing

	with_files "$1" 0
	get_delegation read
	trace_on
	callback_trace_on
	echo 1 >"$TRACING/events/sunrpc/xprt_transmit/enable"
	delay_fn entry '^svc_delete_xprt$' 5000
	reconnect &
	losing=$!
	wait_delay_hits || fail "the server did not notice the disconnect"
	recall 6000 "$delegated"
	trace_off
	unload_fault_modules
	wait "$losing" || fail "the client did not reconnect"
	tried=$(callback_transmits)
	calls=$(($(grep -c ' rpc_request: ' "$CALLBACK_TRACE/trace") + $(events_lost "$CALLBACK_TRACE")))
	callback_trace_off
	echo "$tried transmits, $(events_lost) events lost, for $calls callbacks of nfsd"
	[ $((tried + $(events_lost))) -lt 20 ] || fail "callbacks to a dead client are sent in a loop"
	[ "$tried" -gt 0 ] || fail "no callback was sent"
}

# mountd may still be stopped.
test_cleanup() {
	cd /
	unload_fault_modules
	trace_off
	callback_trace_off
	! bed_is_local || mountd_signal CONT || :
	umount_all
} 2>/dev/null

shorten_grace
bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2 * TIMES))
[ $# -eq 0 ] || ktap_run "$@"
if [ -n "${LOADED:-}" ]; then
	ktap_run "recalls_under_write_load 4.1" "recalls_under_write_load 4.2" \
		"recalls_with_few_forward_credits 4.2" \
		"recalls_through_reconnects 4.2" "recalls_through_restart 4.2"
fi
ktap_run ${LONG:+"idle_connection_keeps_backchannel 4.2"} \
	"backchannel_is_up 4.1" "backchannel_is_up 4.2" \
	"read_delegation_is_recalled 4.1" "read_delegation_is_recalled 4.2" \
	"write_delegation_is_recalled 4.2" \
	"R8166_2_2_3_1_client_connects 4.2" \
	"R8167_5_4_2_no_idle_timer_with_backchannel 4.1" \
	"sysfs_transports_are_readable 4.2" \
	"sysfs_has_source_address 4.2 rdma" "sysfs_has_source_address 4.2 rdma6" \
	"R8167_4_1_1_replies_need_no_credit 4.2" \
	"unmount_during_recalls 4.2" \
	"dead_client_is_not_called_in_a_loop 4.2" \
	"R8167_4_1_3_abandoned_calls_hold_credits 4.2"
