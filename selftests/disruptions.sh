#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the middle of I/O the server restarts, a device is taken away and given
# back, the link goes down: I/O waits, goes on, and its data is whole. Who waits
# for what is not there is told so, or may leave.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe tells of each connection that ran out of retries (12), SUNRPC of servers that do
# not answer.
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

# How often over NFSv4.2; over NFSv3 once, if not LONG.
ROUNDS=${LONG:+100}
ROUNDS=${ROUNDS:-2}

# Whoever asks whether these succeed switches "set -e" off in them.
server_restart() { server_stop && sleep 2 && server_start; }

server_device_removal() {
	device_delete "$BED_SERVER_DEV" && sleep 3 && device_add "$BED_SERVER_DEV"
}

client_device_removal() {
	device_delete "$BED_CLIENT_DEV" && sleep 3 && device_add "$BED_CLIENT_DEV"
}

link_outage() { link_down && sleep 10 && link_up; }

# io_survives VERSION PROTO DISTURBANCE
io_survives() {
	local version=$1 proto=$2 rounds=$ROUNDS round before connects

	need_local_bed
	[ "$3" != link_outage ] || need_link
	nfs_mount "$version" "$proto"
	work_dir "disturbed-$version-$3"
	load_start
	[ "$version" != 3 ] || [ -n "$LONG" ] || rounds=1
	for round in $(seq "$rounds"); do
		before=$(xprt_stat connect_count)
		"$3" || fail "round $round: $3"
		load_wait_progress
		connects=$(($(xprt_stat connect_count) - before))
		echo "round $round: connected $connects times"
		[ "$connects" -gt 0 ] || fail "nothing was disturbed"
		ktap_progress "$round" "$rounds"
	done
	load_stop
	rm -r "$WORK"
}

# How often it takes to connect until all goes on, and how often SUNRPC is told meanwhile to
# give a connection up.
connects_for_one() {
	local before told_before

	before=$(xprt_stat connect_count)
	told_before=$(traced xprt_disconnect_force)
	reconnect
	load_wait_progress
	sleep 0.5
	load_wait_progress
	connects=$(($(xprt_stat connect_count) - before))
	told=$(($(traced xprt_disconnect_force) - told_before))
	echo "connected $connects times, told $told times"
}

# Each connection that is lost is followed by one, and not by one that is lost again: but
# for rxe, which loses one of its own when an acknowledgement comes half a second late and
# a registration waited behind that. That does not happen twice. Who tells of an end once more
# may hit the next connection; most often it is not there yet.
one_reconnect_per_disconnect() {
	local round connects told

	nfs_mount "$1" rdma
	work_dir "one-for-each-$1"
	trace_on
	echo 1 >"$TRACING/events/sunrpc/xprt_disconnect_force/enable"
	load_start
	for round in $(seq $((ROUNDS + 1))); do
		connects_for_one
		[ "$connects" -eq 1 ] || connects_for_one
		[ "$connects" -eq 1 ] || fail "round $round: connected $connects times"
		[ "$told" -eq 1 ] || xfail_on_c "round $round: told $told times of one end"
	done
	trace_off
	load_stop
	rm -r "$WORK"
}

# Nor does whoever sends on the new connection at once, and waits for a Reply, take the
# word that there is one for its end.
send_before_connect_report() {
	delay_fn return '^xprt_unlock_connect$' 100
	one_reconnect_per_disconnect "$1"
	echo "delayed $(delay_hits) times"
	[ "$(delay_hits)" -gt 0 ] || fail "no call was delayed"
	unload_fault_modules
}

# Messages for which the client's device had no Receive.
unexpected() { cat "/sys/class/infiniband/$BED_CLIENT_DEV/ports/1/hw_counters/send_rnr_err"; }

# slots CALLS REVERSE_CALLS: as many as a connection has from now on, and Receives on top.
slots() {
	echo "$1" >/proc/sys/sunrpc/rdma_slot_table_entries
	[ ! -e /proc/sys/sunrpc/rdma_max_bc_requests ] ||
		echo "$2" >/proc/sys/sunrpc/rdma_max_bc_requests
}

# With the first Reply of a connection the server lets out many Calls. Each has its Receive
# before it is sent, even if that takes two seconds and nobody else waits. Those that are
# posted at first are fewer than the readers.
calls_have_receives() {
	local before connects round each readers

	need_link
	slots 32 1
	nfs_mount "$1" rdma
	work_dir "receives-$1"
	for each in {1..25}; do
		head -c 4096 /dev/zero >"$WORK/$each"
	done
	before=$(unexpected)
	insmod "$HELPERS/delay_post_recv.ko" device="$BED_CLIENT_DEV"
	for round in 1 2 3; do
		delay_post_recv $((2000 * PACE))
		connects=$(xprt_stat connect_count)
		reconnect
		readers=()
		read_past_cache 25 &
		readers+=($!)
		wait_connect "$connects"
		sleep 0.2
		for each in {1..24}; do
			read_past_cache "$each" &
			readers+=($!)
		done
		delay_post_recv 0
		wait "${readers[@]}" || fail "round $round: a READ has failed"
	done
	echo "late $(cat "$DELAY_POST_RECV/hits") times"
	[ "$(unexpected)" -eq "$before" ] ||
		fail "$(($(unexpected) - before)) times there was no Receive"
	[ "$(cat "$DELAY_POST_RECV/hits")" -ge 6 ] || fail "only $(cat "$DELAY_POST_RECV/hits") were late"
	unload_fault_modules
	rm -r "$WORK"
}

DELAY_POST_RECV=/sys/module/delay_post_recv/parameters

delay_post_recv() { echo "$1" >"$DELAY_POST_RECV/delay_ms"; }

read_past_cache() { dd if="$WORK/$1" of=/dev/null bs=4096 iflag=direct status=none; }

FREEZER=$BED_DIR/freezer

# freeze PID, thaw: as a container is frozen, or everybody before a suspend. A group of the
# second version does not freeze who waits for a Reply.
freeze() {
	local _

	mkdir -p "$FREEZER"
	mount -t cgroup -o freezer none "$FREEZER" || skip "this kernel has no freezer"
	mkdir -p "$FREEZER/frozen"
	echo "$1" >"$FREEZER/frozen/cgroup.procs"
	echo FROZEN >"$FREEZER/frozen/freezer.state"
	for _ in {1..50}; do
		[ "$(cat "$FREEZER/frozen/freezer.state")" != FROZEN ] || return 0
		sleep 0.1
	done
	fail "who waits for a Reply cannot be frozen"
}

thaw() {
	[ -d "$FREEZER/frozen" ] || return 0
	echo THAWED >"$FREEZER/frozen/freezer.state"
	for _ in {1..50}; do
		rmdir "$FREEZER/frozen" 2>/dev/null && break
		sleep 0.1
	done
	umount "$FREEZER"
}

# The Reply has come, and its task is to run when it can.
has_its_reply() {
	grep -q ' a:call_status .* q:none' /sys/kernel/debug/sunrpc/rpc_clnt/*/tasks
}

# A Reply that nobody has looked at yet, because who asked is frozen, does not hold the device.
device_removed_with_frozen_task() {
	local asking deleting late=no _

	need_link
	nfs_mount 4.2 rdma
	work_dir frozen
	pkill -STOP -x rpc.mountd
	exportfs -f
	stat "$WORK/absent" 2>"$ktap_dir/asked" &
	asking=$!
	sleep 1
	freeze "$asking"
	pkill -CONT -x rpc.mountd
	for _ in $(seq $((200 * PACE))); do
		! has_its_reply || break
		sleep 0.1
	done
	has_its_reply || fail "there was no Reply"
	device_delete "$BED_CLIENT_DEV" &
	deleting=$!
	for _ in $(seq $((100 * PACE))); do
		kill -0 "$deleting" 2>/dev/null || break
		sleep 0.1
	done
	! kill -0 "$deleting" 2>/dev/null || late=yes
	thaw
	wait "$deleting" || fail "the device cannot be deleted"
	device_add "$BED_CLIENT_DEV"
	! wait "$asking" || fail "a file that is not there"
	grep -q 'No such file' "$ktap_dir/asked" || fail "$(cat "$ktap_dir/asked")"
	echo "as before" >"$WORK/file"
	[ "$(cat "$WORK_ON_SERVER/file")" = "as before" ] || fail "wrong data"
	[ "$late" = no ] || xfail_on_c "the device waited for who was frozen"
}

# rewrite NAME OCTETS COUNT: so many Calls with as many octets each.
rewrite() {
	dd if=/dev/zero of="$WORK/$1" bs="$2" count="$3" oflag=direct conv=notrunc status=none
}

# A Call whose memory cannot be mapped ends its own RPC, and not that of the task which has
# the send lock and sends what all have queued.
map_error_fails_one_rpc() {
	local each other others=() count status

	nfs_mount 3 rdma
	work_dir each-its-own
	insmod "$HELPERS/fail_dma_map.ko" size=53248
	for each in {1..6}; do
		rewrite "other.$each" 65536 400 &
		others+=($!)
	done
	for each in {1..10}; do
		status=0
		timeout $((60 * PACE)) dd if=/dev/zero of="$WORK/one" bs=53248 count=1 oflag=direct \
			conv=notrunc status=none 2>"$ktap_dir/error" || status=$?
		# 124 is that of timeout.
		[ "$status" -eq 1 ] || fail "sent nevertheless, or not told: $status"
		grep -q 'Input/output error' "$ktap_dir/error" || fail "$(cat "$ktap_dir/error")"
	done
	for other in "${others[@]}"; do
		wait "$other" || xfail_on_c "another RPC ended with the error"
	done
	count=$(cat /sys/module/fail_dma_map/parameters/injected)
	echo "$count could not be mapped"
	[ "$count" -eq 10 ] || fail "they were tried again"
	unload_fault_modules
	stat "$WORK"/* >/dev/null || fail "nobody is served any more"
	rm -r "$WORK"
}

# Who mounted softly is told when the server is gone, and served when it is back.
soft_mount_times_out() {
	local each asking=()

	need_local_bed
	nfs_mount 3 rdma soft,timeo=20,retrans=1,actimeo=0
	# What is done over this mount may fail on a machine that stands still for a moment.
	mkdir "$EXPORT/softly"
	touch "$EXPORT/softly"/{1..8}
	server_stop
	for each in {1..8}; do
		timeout 120 stat "$MNT/softly/$each" >/dev/null 2>&1 &
		asking+=($!)
	done
	for each in "${asking[@]}"; do
		wait "$each" && fail "it was served by nobody"
		# 124 is that of timeout.
		[ $? -eq 1 ] || fail "it was not told"
	done
	server_start
	for each in {1..60}; do
		! stat "$MNT/softly"/{1..8} >/dev/null 2>&1 || break
		sleep 1
	done
	[ "$each" -lt 60 ] || fail "nobody is served any more"
	rm -r "$EXPORT/softly"
}

test_cleanup() {
	cd /
	unload_fault_modules
	slots $SLOTS_BEFORE
	thaw
	! bed_is_local || pkill -CONT -x rpc.mountd || :
	trace_off
	! bed_has_link || link_up
	server_up || server_start
	umount_all
} 2>/dev/null

bed_up
# What cleanup sets again.
SLOTS_BEFORE="$(cat /proc/sys/sunrpc/rdma_slot_table_entries)"
if [ -e /proc/sys/sunrpc/rdma_max_bc_requests ]; then
	SLOTS_BEFORE+=" $(cat /proc/sys/sunrpc/rdma_max_bc_requests)"
fi
TEST_TIMEOUT=$((TEST_TIMEOUT * (2 + ROUNDS / 5)))
[ $# -gt 0 ] || set -- \
	"io_survives 4.2 rdma server_restart" "io_survives 3 rdma server_restart" \
	"io_survives 4.2 rdma server_device_removal" \
	"io_survives 4.2 rdma client_device_removal" \
	"io_survives 3 rdma6 client_device_removal" \
	"io_survives 4.2 rdma link_outage" "io_survives 3 rdma link_outage" \
	"one_reconnect_per_disconnect 4.2" "send_before_connect_report 3" \
	"calls_have_receives 3" \
	map_error_fails_one_rpc soft_mount_times_out device_removed_with_frozen_task
ktap_run "$@"
