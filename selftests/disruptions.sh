#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# During I/O the server restarts, a device is removed and added again, or the link goes down. I/O
# waits and continues, and the data is right. Errors concern the right RPCs only.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12), SUNRPC reports servers that do not
# respond.
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

# Rounds per case; with NFSv3 only one, unless LONG=1.
ROUNDS=${LONG:+100}
ROUNDS=${ROUNDS:-2}

# The callers test the status of these functions, which disables "set -e" in them.
server_restart() { server_stop && sleep 2 && server_start; }

server_device_removal() {
	device_delete "$BED_SERVER_DEV" && sleep 3 && device_add "$BED_SERVER_DEV"
}

client_device_removal() {
	device_delete "$BED_CLIENT_DEV" && sleep 3 && device_add "$BED_CLIENT_DEV"
}

# Lasts until an end has noticed. rxe gives up after four seconds in which it runs.
link_outage() {
	local before _

	before=$(losses_traced)
	link_down && sleep 10 || return
	for _ in $(seq $((50 * PACE))); do
		[ "$(losses_traced)" -eq "$before" ] || break
		sleep 1
	done
	link_up
}

# io_survives VERSION PROTO DISRUPTION
io_survives() {
	local version=$1 proto=$2 rounds=$ROUNDS round before connects

	need_local_bed
	[ "$3" != link_outage ] || need_link
	nfs_mount "$version" "$proto"
	work_dir "survives-$version-$3"
	load_start
	[ "$version" != 3 ] || [ -n "$LONG" ] || rounds=1
	for round in $(seq "$rounds"); do
		before=$(xprt_stat connect_count)
		"$3" || fail "round $round: $3"
		load_wait_progress
		connects=$(($(xprt_stat connect_count) - before))
		echo "round $round: connected $connects times"
		[ "$connects" -gt 0 ] || fail "the connection was not lost"
		ktap_progress "$round" "$rounds"
	done
	load_stop
	rm -r "$WORK"
}

# first_call_unread: succeeds if the first Call of a new connection stays in the server's socket.
# siw does not always read this Call (Documentation/upstream/drivers.rst); the RPC then times out.
first_call_unread() {
	local before port

	[ "$BED_RDMA" = siw ] || return 1
	printf -v port '%04X' "$BED_PORT"
	before=$(xprt_stat recvs)
	for _ in {1..20}; do
		sleep 0.5
		[ "$(xprt_stat recvs)" -eq "$before" ] || return 1
	done
	awk -v port="$port" '$2 ~ ":" port "$" && $4 == "01" && $5 !~ /:0+$/ { unread = 1 }
		END { exit !unread }' /proc/net/tcp
}

# Disconnects once. Sets connects and disconnects: how often the client connected until I/O
# continues, and how often the module called xprt_force_disconnect() meanwhile.
disconnect_once() {
	local connects_before disconnects_before

	for _ in {1..8}; do
		connects_before=$(xprt_stat connect_count)
		disconnects_before=$(traced xprt_disconnect_force)
		reconnect
		first_call_unread || break
		echo "siw has not read the first Call"
		load_wait_progress
	done
	load_wait_progress
	sleep 0.5
	load_wait_progress
	connects=$(($(xprt_stat connect_count) - connects_before))
	disconnects=$(($(traced xprt_disconnect_force) - disconnects_before))
	echo "$connects connects, $disconnects calls of xprt_force_disconnect()"
}

# A lost connection is replaced by exactly one, which is not lost in turn. The exception: rxe loses
# a connection when an ACK is half a second late while a registration is queued, so one more attempt
# is allowed. The module reports a disconnect to SUNRPC exactly once: a second report could close
# the next connection, although in most cases that does not exist yet.
one_reconnect_per_disconnect() {
	local round connects disconnects

	nfs_mount "$1" rdma
	work_dir "one-reconnect-$1"
	trace_on
	echo 1 >"$TRACING/events/sunrpc/xprt_disconnect_force/enable"
	load_start
	for round in $(seq $((ROUNDS + 1))); do
		disconnect_once
		[ "$connects" -eq 1 ] || disconnect_once
		[ "$connects" -eq 1 ] ||
			connection_lost fail "round $round: connected $connects times"
		[ "$disconnects" -eq 1 ] ||
			xfail_on_c "round $round: one disconnect reported $disconnects times"
	done
	trace_off
	load_stop
	rm -r "$WORK"
}

# A task that sends on a new connection and waits for the Reply, before the connect worker has woken
# the tasks that wait for the connection, does not take that wakeup for a disconnect.
send_before_connect_report() {
	delay_fn return '^xprt_unlock_connect$' 100
	one_reconnect_per_disconnect "$1"
	echo "delayed $(delay_hits) times"
	[ "$(delay_hits)" -gt 0 ] || fail "no call was delayed"
	unload_fault_modules
}

# Prints how many messages found no Receive posted at the client's device.
rnr_errors() { cat "/sys/class/infiniband/$BED_CLIENT_DEV/ports/1/hw_counters/send_rnr_err"; }

# set_slots CALLS [BACKCHANNEL_CALLS]: sets the number of slots of new connections. They determine
# the number of Receives.
set_slots() {
	echo "$1" >/proc/sys/sunrpc/rdma_slot_table_entries
	[ ! -e /proc/sys/sunrpc/rdma_max_bc_requests ] ||
		echo "$2" >/proc/sys/sunrpc/rdma_max_bc_requests
}

# The first Reply on a connection grants credits for many Calls. The client posts a Receive for each
# before it sends the Call, even if posting takes two seconds. The Receives posted at connect are
# fewer than the readers.
calls_have_receives() {
	local before connects round each reader readers

	need_link
	set_slots 32 1
	nfs_mount "$1" rdma
	work_dir "receives-$1"
	for each in {1..25}; do
		head -c 4096 /dev/zero >"$WORK/$each"
	done
	before=$(rnr_errors)
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
		# One post is for the connection, one for the credits that the first Reply grants.
		for _ in $(seq $((600 * PACE))); do
			[ "$(cat "$DELAY_POST_RECV/hits")" -lt $((2 * round)) ] || break
			sleep 0.1
		done
		delay_post_recv 0
		for reader in "${readers[@]}"; do
			wait "$reader" || fail "round $round: a READ has failed"
		done
	done
	echo "$(cat "$DELAY_POST_RECV/hits") posts of Receives were delayed"
	[ "$(rnr_errors)" -eq "$before" ] ||
		fail "$(($(rnr_errors) - before)) messages found no Receive"
	[ "$(cat "$DELAY_POST_RECV/hits")" -ge 6 ] || fail "too few posts were delayed"
	unload_fault_modules
	rm -r "$WORK"
}

DELAY_POST_RECV=/sys/module/delay_post_recv/parameters

delay_post_recv() { echo "$1" >"$DELAY_POST_RECV/delay_ms"; }

read_past_cache() { dd if="$WORK/$1" of=/dev/null bs=4096 iflag=direct status=none; }

FREEZER=$BED_DIR/freezer

# freeze PID..., thaw: freeze tasks as for a container or a suspend. Uses cgroup v1: cgroup v2 freezes
# neither a task that waits for a Reply nor kernel threads.
freeze() {
	local pid _

	mkdir -p "$FREEZER"
	mount -t cgroup -o freezer none "$FREEZER" || skip "this kernel has no freezer"
	mkdir -p "$FREEZER/frozen"
	for pid; do
		echo "$pid" >"$FREEZER/frozen/cgroup.procs"
	done
	echo FROZEN >"$FREEZER/frozen/freezer.state"
	for _ in $(seq $((600 * PACE))); do
		[ "$(cat "$FREEZER/frozen/freezer.state")" != FROZEN ] || return 0
		sleep 0.1
	done
	fail "cannot freeze $*"
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

# Succeeds if a task waits for its Reply.
reply_is_awaited() {
	grep -q ' q:xprt_pending' /sys/kernel/debug/sunrpc/rpc_clnt/*/tasks
}

# Succeeds if the Reply of a task has arrived and the task has not run since.
reply_is_pending() {
	grep -q ' a:call_status .* q:none' /sys/kernel/debug/sunrpc/rpc_clnt/*/tasks
}

# A Reply whose task is frozen does not delay the removal of the device.
device_removed_with_frozen_task() {
	local asking deleting late=no began _

	need_link
	nfs_mount 4.2 rdma
	work_dir frozen
	mountd_signal STOP
	exportfs -f
	stat "$WORK/absent" 2>"$ktap_dir/asked" &
	asking=$!
	for _ in $(seq $((600 * PACE))); do
		! reply_is_awaited || break
		sleep 0.1
	done
	reply_is_awaited || fail "no task waits for a Reply"
	freeze "$asking"
	mountd_signal CONT
	for _ in $(seq $((600 * PACE))); do
		! reply_is_pending || break
		sleep 0.1
	done
	reply_is_pending || fail "no Reply arrived"
	began=$SECONDS
	device_delete "$BED_CLIENT_DEV" &
	deleting=$!
	for _ in $(seq $((600 * PACE))); do
		kill -0 "$deleting" 2>/dev/null || break
		sleep 0.1
	done
	! kill -0 "$deleting" 2>/dev/null || late=yes
	echo "waited for $((SECONDS - began)) s for the removal"
	thaw
	wait "$deleting" || fail "the device cannot be deleted"
	device_add "$BED_CLIENT_DEV"
	! wait "$asking" || fail "stat found a file that does not exist"
	grep -q 'No such file' "$ktap_dir/asked" || fail "$(cat "$ktap_dir/asked")"
	echo "as before" >"$WORK/file"
	[ "$(cat "$WORK_ON_SERVER/file")" = "as before" ] || fail "wrong data"
	[ "$late" = no ] || xfail_on_c "the removal of the device waited for the frozen task"
}

# The removal of a device ends the connections of idle clients without a thread of nfsd: a suspend
# freezes nfsd before drivers remove their devices.
device_removed_with_frozen_nfsd() {
	need_local_bed
	local deleting threads

	# NFSv3 clients send nothing while they are idle.
	nfs_mount 3 rdma
	ls "$MNT" >/dev/null
	readarray -t threads < <(pgrep -x nfsd)
	[ "${#threads[@]}" -gt 0 ] || fail "no thread of nfsd is found"
	freeze "${threads[@]}"
	device_delete "$BED_SERVER_DEV" &
	deleting=$!
	wait_for "the removal of the device waits for nfsd" device_is_gone "$BED_SERVER_DEV"
	thaw
	wait "$deleting" || fail "the device cannot be deleted"
	device_add "$BED_SERVER_DEV"
	work_dir thawed
	echo "as before" >"$WORK/file"
	[ "$(cat "$WORK_ON_SERVER/file")" = "as before" ] || fail "wrong data"
	rm -r "$WORK"
}

# rewrite NAME SIZE COUNT: writes COUNT times SIZE bytes, each in one Call.
rewrite() {
	dd if=/dev/zero of="$WORK/$1" bs="$2" count="$3" oflag=direct conv=notrunc status=none
}

# A mapping error fails the RPC whose memory could not be mapped, not the RPC of the task that holds
# the transport lock and transmits the Calls of all tasks.
map_error_fails_one_rpc() {
	local each other others=() count status

	nfs_mount 3 rdma
	work_dir map-error
	insmod "$HELPERS/fail_dma_map.ko" size=53248
	for each in {1..6}; do
		rewrite "other.$each" 65536 400 &
		others+=($!)
	done
	for each in {1..10}; do
		status=0
		timeout $((60 * PACE)) dd if=/dev/zero of="$WORK/one" bs=53248 count=1 oflag=direct \
			conv=notrunc status=none 2>"$ktap_dir/error" || status=$?
		# timeout exits with 124.
		[ "$status" -eq 1 ] || fail "dd exited with $status, not with an error"
		grep -q 'Input/output error' "$ktap_dir/error" || fail "$(cat "$ktap_dir/error")"
	done
	for other in "${others[@]}"; do
		wait "$other" || xfail_on_c "another RPC failed with the error"
	done
	count=$(cat /sys/module/fail_dma_map/parameters/injected)
	echo "$count mappings failed"
	[ "$count" -eq 10 ] || fail "failed Calls were retried"
	unload_fault_modules
	stat "$WORK"/* >/dev/null || fail "the mount does not work any more"
	rm -r "$WORK"
}

# With a soft mount, system calls fail while the server is gone, and work once it is back.
soft_mount_times_out() {
	local each asking=()

	need_local_bed
	nfs_mount 3 rdma soft,timeo=20,retrans=1,actimeo=0
	# Made on the server: a system call on this mount may fail when the machine stalls.
	mkdir "$EXPORT/soft"
	touch "$EXPORT/soft"/{1..8}
	server_stop
	for each in {1..8}; do
		timeout 120 stat "$MNT/soft/$each" >/dev/null 2>&1 &
		asking+=($!)
	done
	for each in "${asking[@]}"; do
		wait "$each" && fail "stat succeeded without a server"
		# timeout exits with 124.
		[ $? -eq 1 ] || fail "stat did not fail"
	done
	server_start
	for each in {1..60}; do
		! stat "$MNT/soft"/{1..8} >/dev/null 2>&1 || break
		sleep 1
	done
	[ "$each" -lt 60 ] || fail "the mount does not work any more"
	rm -r "$EXPORT/soft"
}

test_cleanup() {
	cd /
	unload_fault_modules
	set_slots $SLOTS_BEFORE
	thaw
	! bed_is_local || mountd_signal CONT || :
	trace_off
	! bed_has_link || link_up
	server_up || server_start
	umount_all
} 2>/dev/null

bed_up
# test_cleanup restores these.
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
	map_error_fails_one_rpc soft_mount_times_out device_removed_with_frozen_task \
	device_removed_with_frozen_nfsd
ktap_run "$@"
