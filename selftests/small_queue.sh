#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --memory 3G
#
# Devices with small queues: nfsd threads wait for room on the Send Queue, each gets its turn, and
# all stop waiting when the connection ends.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12). A client that leaves may have invalidated
# memory that the server writes to (10). The module reports why it does not use a device.
LOG_EXPECTED="rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
rxe_s: qp#[0-9]+ make_send_cqe: non-flush error status = 10
rpcrdma: $BED_CLIENT_DEV cannot carry NFS: it lacks room for a Call in its queues
"

# rxe allocates queues of 2^n - 1 entries; one entry is reserved for draining.
QUEUE=15
ENTRIES=$((QUEUE - 1))
# SGEs per RDMA Read or Write. All pages of a hole are the zero page, so no two are contiguous.
SGES=2
# Size of the longest READ: its RDMA Writes and the Send take all entries.
PAGE_SIZE=$(getconf PAGE_SIZE)
MAX_READ=$(((ENTRIES - 1) * SGES * PAGE_SIZE))

MAX_EXPOSED=/proc/sys/sunrpc/svc_rdma/max_exposed_replies
SERVER_PULLS=/proc/sys/sunrpc/svc_rdma/pulled_replies
CLIENT_PULLS=/proc/sys/sunrpc/rdma_pulled_replies

# Number of waits for the Send Queue to provoke.
WAITS=${LONG:+5000}
WAITS=${WAITS:-250}

# limit_device DEVICE LIMIT=N...: lowers the device's limits for new connections.
limit_device() {
	local device=$1
	shift

	need_local_bed
	unlimit_device
	insmod "$HELPERS/limit_device.ko" device="$device" "$@"
}

unlimit_device() { [ ! -d /sys/module/limit_device ] || rmmod limit_device; }

limit_stat() { cat "/sys/module/limit_device/parameters/$1"; }

check_within_limits() {
	[ "$(limit_stat over_limit)" -eq 0 ] ||
		xfail_on_c "a QP exceeds the limits of the device"
}

test_cleanup() {
	touch "$ktap_dir/stop"
	if bed_has_link; then
		link_clear_delay "$BED_CLIENT_PORT" 2>/dev/null || :
		link_up
	fi
	cd /
	umount_all
	unlimit_device
	[ ! -e "$MAX_EXPOSED" ] || {
		echo "$max_exposed" >"$MAX_EXPOSED"
		echo "$server_pulls" >"$SERVER_PULLS"
		echo "$client_pulls" >"$CLIENT_PULLS"
	}
	if bed_is_local; then
		server_up || server_start
		set_threads "$BED_NFSD_THREADS"
	fi
}

set_threads() { echo "$1" >/proc/fs/nfsd/threads; }

# mount_small_queue VERSION: mounts from a server whose Send Queues are small.
mount_small_queue() {
	need_link
	limit_device "$BED_SERVER_DEV" max_qp_wr="$QUEUE" max_send_sge="$SGES"
	nfs_mount "$1" rdma rsize="$MAX_READ" wsize=65536 actimeo=1
	check_within_limits
	work_dir "small-queue-$1"
	truncate -s 1G "$WORK_ON_SERVER/hole"
	rm -f "$ktap_dir/stop"
}

# read_hole SIZE COUNT: reads SIZE zeroes COUNT times.
read_hole() {
	"$HELPERS/hole_helper" "$WORK/hole" "$1" "$2"
}

# Fails unless a Reply can get all entries of the Send Queue. With one entry leaked it would wait
# for ever.
check_no_entry_leaked() {
	trace_on svcrdma_post_write_chunk
	read_hole "$MAX_READ" 1 || fail "the longest READ failed"
	trace_off
	grep -q "svcrdma_post_write_chunk: .*sqecount=$((ENTRIES - 1))\$" "$TRACING/trace" ||
		fail "the longest READ does not take all entries"
	check_connected_once
}

check_connected_once() {
	[ "$(xprt_stat connect_count)" -eq 1 ] || connection_lost xfail_on_c "the connection was lost"
}

# short_file NAME: writes a short file and reads it back with O_DIRECT, in short messages.
short_file() {
	local content="$BASHPID $RANDOM$RANDOM$RANDOM"

	echo "$content" >"$WORK/short.$1"
	[ "$(dd if="$WORK/short.$1" iflag=direct bs=4096 status=none)" = "$content" ]
}

# repeat COMMAND...: runs COMMAND in a loop in the background, until load_stop.
repeat() {
	while [ ! -e "$ktap_dir/stop" ]; do
		"$@" || exit 1
	done &
	repeat_jobs+=($!)
}

# Starts verified READs and WRITEs of 64 KiB, short READs and WRITEs, and READs whose Replies take
# up to all entries of the Send Queue.
heavy_start() {
	local pages

	repeat_jobs=()
	load_start 4
	for pages in 1 3 7 "$((MAX_READ / PAGE_SIZE))" "$((MAX_READ / PAGE_SIZE))"; do
		repeat read_hole $((pages * PAGE_SIZE)) 50
	done
	repeat short_file 1
	repeat short_file 2
}

heavy_stop() {
	local each

	load_stop
	for each in "${repeat_jobs[@]}"; do
		wait "$each" || fail "a reader found wrong data"
	done
}

# Replies and RDMA Reads wait for entries of the Send Queue, no entry leaks, and the memory of the
# server's messages stays bounded.
replies_wait_for_send_queue() {
	local before bytes max

	mount_small_queue "$1"
	check_no_entry_leaked
	before=$(svc_stat sq_starve)
	heavy_start
	until [ "$(svc_stat sq_starve)" -ge $((before + WAITS)) ]; do
		load_wait_progress
	done
	heavy_stop
	echo "waited $(($(svc_stat sq_starve) - before)) times for $(xprt_stat sends) Replies"
	check_no_entry_leaked
	# One buffer per Receive and per Call in progress, one message per entry and per thread.
	max=$((3 * QUEUE + BED_NFSD_THREADS))
	bytes=$(cat /proc/sys/sunrpc/svc_rdma/message_octets)
	echo "$bytes bytes of messages"
	[ "$bytes" -le $((max * 4096)) ] || fail "$((bytes / 4096)) messages are allocated"
	rm -r "$WORK"
}

# A Reply that needs all entries gets them, although many Replies need only a few, and each of their
# readers sends another Call at once.
full_queue_reply_is_not_starved() {
	local each before few=()

	mount_small_queue "$1"
	before=$(svc_stat sq_starve)
	link_set_delay "$BED_CLIENT_PORT" 200
	for each in {1..12}; do
		dd if="$WORK/hole" of=/dev/null bs=4096 iflag=direct status=none &
		few+=($!)
	done
	sleep 5
	# The other readers may need longer to start.
	for each in {1..20}; do
		read_hole "$MAX_READ" 5 || fail "the longest READ failed"
		[ "$(svc_stat sq_starve)" -eq "$before" ] || break
	done
	kill -KILL "${few[@]}"
	wait "${few[@]}" 2>/dev/null || :
	[ "$(svc_stat sq_starve)" -gt "$before" ] || fail "no Reply had to wait"
	check_connected_once
}

# Succeeds if a Reply or RDMA Read waits for the Send Queue now.
reply_waits() {
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	awk '
		/ svcrdma_sq_full: / { waiting++ }
		/ svcrdma_sq_retry: / { waiting-- }
		END { exit waiting <= 0 }' "$TRACING/trace"
}

# wait_until COMMAND...: waits until COMMAND succeeds, for a minute. A thread, for example, does not
# wait for the Send Queue all the time.
wait_until() {
	local _

	for _ in $(seq $((600 * PACE))); do
		! "$@" || return 0
		sleep 0.1
	done
	return 1
}

server_qp_gone() { ! rdma resource show qp link "$BED_SERVER_DEV/1" | grep -q "type RC"; }

# Prints how often the server's device has exceeded its retries.
server_gave_up() {
	log_since_mark | grep -c 'rxe_s: qp#[0-9]* make_send_cqe: non-flush error status = 12$' || true
}

# The client leaves while a Reply waits for the Send Queue. There is one nfsd thread, and it closes
# the connection. The connection is destroyed, and the module can be unloaded. If nothing else ends
# the connection, the server's device exceeds its retries after some four seconds; the waiting thread
# must not depend on that. On a busy machine those seconds may pass, but not each time.
client_leaves_during_wait() {
	local before _

	for _ in {1..5}; do
		before=$(server_gave_up)
		client_leaves
		[ "$(server_gave_up)" -gt "$before" ] || return 0
	done
	fail "the thread waits until the server's device exceeds its retries"
}

client_leaves() {
	local each hole holes=() readers=()

	mount_small_queue 3
	! server_qp_gone || fail "rdma does not show the server's QP"
	set_threads 1
	trace_on svcrdma_sq_full svcrdma_sq_retry
	# The files are open already, so that dd sends READs only.
	for each in {1..8}; do
		exec {hole}<"$WORK/hole"
		holes+=("$hole")
	done
	link_set_delay "$BED_CLIENT_PORT" 2000
	for hole in "${holes[@]}"; do
		dd of=/dev/null bs="$MAX_READ" iflag=direct status=none <&"$hole" &
		readers+=($!)
		exec {hole}<&-
	done
	wait_until reply_waits || fail "no Reply waits"
	kill -KILL "${readers[@]}"
	wait "${readers[@]}" 2>/dev/null || :
	wait_until reply_waits || fail "the Reply does not wait any more"
	# Calls are still in flight.
	umount_forced
	# Check before the server is stopped, which would wake the thread as well.
	wait_until server_qp_gone || fail "the server still has the connection"
	server_stop
	link_clear_delay "$BED_CLIENT_PORT"
	module_wait_unused 0
	modprobe rpcrdma
	server_start
}

# The server's device is removed while a Reply or RDMA Read waits. The link is down, so that no Send
# completes before the removal.
device_removed_during_wait() {
	local each waits=no connects

	mount_small_queue 3
	set_threads 1
	trace_on svcrdma_sq_full svcrdma_sq_retry
	heavy_start
	for each in {1..20}; do
		connects=$(xprt_stat connect_count)
		link_down
		sleep 0.2
		! reply_waits || { waits=yes; break; }
		link_up
		load_wait_progress
	done
	[ $waits = yes ] || fail "nothing waits"
	# Earlier rounds, in which nothing waited, do not count.
	[ "$(xprt_stat connect_count)" -eq "$connects" ] ||
		connection_lost xfail_on_c "the connection was lost"
	device_delete "$BED_SERVER_DEV"
	link_up
	device_add "$BED_SERVER_DEV"
	load_wait_progress
	heavy_stop
	rm -r "$WORK"
}

# The client has no more Calls outstanding than its queues have room for.
client_limits_calls_to_queue() {
	limit_device "$BED_CLIENT_DEV" max_qp_wr=127
	nfs_mount "$1" rdma
	work_dir "client-limits-$1"
	truncate -s 1G "$WORK_ON_SERVER/hole"
	check_within_limits
	repeat_jobs=()
	load_start 4
	repeat read_hole $((1024 * 1024)) 5
	repeat short_file 1
	load_wait_progress
	heavy_stop
	check_connected_once
	rm -r "$WORK"
}

# The client reads the device's limits for each connection: they may be lowered during a mount.
limits_lowered_under_mount() {
	local connects

	need_local_bed
	nfs_mount "$1" rdma
	work_dir "limits-lowered-$1"
	truncate -s 1G "$WORK_ON_SERVER/hole"
	repeat_jobs=()
	load_start 4
	repeat read_hole $((1024 * 1024)) 5
	limit_device "$BED_CLIENT_DEV" max_qp_wr=127
	connects=$(xprt_stat connect_count)
	reconnect
	wait_connect "$connects"
	check_within_limits
	load_wait_progress
	heavy_stop
	rm -r "$WORK"
}

# A device whose queues have no room for a single Call is not used: mount fails, and the log says
# why.
unusable_device_is_refused() {
	local status=0

	limit_device "$1" max_qp_wr="$2"
	nfs_mount 3 rdma retry=0 || status=$?
	echo "mount exited with $status"
	[ "$status" -ne 0 ] || xfail_on_c "mount succeeded"
	[ "$1" != "$BED_CLIENT_DEV" ] ||
		log_since_mark | grep -q "rpcrdma: $1 cannot carry NFS" || fail "the log does not say why"
	unlimit_device
	nfs_mount 3 rdma
}

# The device may reject a queue that is within its reported limits, for lack of memory. The module
# then retries with a smaller queue and fewer Calls.
smaller_queue_after_enomem() {
	limit_device "$1" max_sq_bytes=131072
	nfs_mount 3 rdma retry=0 || xfail_on_c "mount failed"
	[ "$(limit_stat sq_rejected)" -gt 0 ] || fail "the device rejected no queue"
	work_dir "smaller-$1"
	load_start 4
	load_wait_progress
	load_stop
	check_connected_once
	rm -r "$WORK"
}

# Exposed Replies need additional entries of the Send Queue. If there are too few entries, none is
# exposed.
exposed_replies_yield_queue_room() {
	[ -e "$MAX_EXPOSED" ] || skip "this module does not support pulled Replies"
	echo 256 >"$MAX_EXPOSED"
	echo 1 >"$SERVER_PULLS"
	echo 1 >"$CLIENT_PULLS"
	smaller_queue_after_enomem "$BED_SERVER_DEV"
}

# The RDMA core would allocate MRs for RDMA Reads on this device; the server asks for none, since
# its Reads do not need them.
no_mrs_for_plain_reads() {
	need_local_bed
	bed_has_link || skip "$BED_RDMA needs MRs for RDMA Reads"
	[[ $(uname -r) != 6.* ]] || skip "the RDMA core of Linux 6 needs MRs for RDMA Reads of more SGEs"
	limit_device "$BED_SERVER_DEV" max_sgl_rd=32
	nfs_mount 3 rdma
	work_dir no-mrs
	load_start 2
	load_wait_progress
	load_stop
	check_connected_once
	[ "$(limit_stat rw_mrs)" -eq 0 ] || xfail_on_c "$(limit_stat rw_mrs) MRs were allocated"
	rm -r "$WORK"
}

bed_up
[ ! -e "$MAX_EXPOSED" ] || {
	max_exposed=$(cat "$MAX_EXPOSED")
	server_pulls=$(cat "$SERVER_PULLS")
	client_pulls=$(cat "$CLIENT_PULLS")
}
[ $# -gt 0 ] || set -- "replies_wait_for_send_queue 3" "replies_wait_for_send_queue 4.2" \
	"full_queue_reply_is_not_starved 3" client_leaves_during_wait device_removed_during_wait \
	"client_limits_calls_to_queue 3" "client_limits_calls_to_queue 4.2" \
	"limits_lowered_under_mount 4.2" \
	"unusable_device_is_refused $BED_SERVER_DEV 4" \
	"unusable_device_is_refused $BED_CLIENT_DEV 16" \
	"smaller_queue_after_enomem $BED_SERVER_DEV" \
	"smaller_queue_after_enomem $BED_CLIENT_DEV" \
	exposed_replies_yield_queue_room no_mrs_for_plain_reads
ktap_run "$@"
