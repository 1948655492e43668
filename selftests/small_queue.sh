#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --memory 3G
#
# Devices with short queues: threads of the server wait for its Send Queue, have their turn,
# and go when the connection does.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# Of the provider: the client's device ran out of retries (12). The server's does so too, some
# four seconds later, if nothing else ends a connection; waits must not have to wait for that.
# A client that leaves may have taken its memory back when something is written there (10).
# Of the module: why it does not use a device.
LOG_EXPECTED="rxe_c: qp#[0-9]+ make_send_cqe: non-flush error status = 12
rxe_s: qp#[0-9]+ make_send_cqe: non-flush error status = 10
rpcrdma: $BED_CLIENT_DEV cannot carry NFS: it lacks room for a Call in its queues
"
# Where all takes many times as long, those four seconds are over soon.
[ "$PACE" -eq 1 ] || LOG_EXPECTED+='rxe_s: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'

# rxe makes queues of a power of two less one; one entry is for draining.
QUEUE=15
ENTRIES=$((QUEUE - 1))
# Of an RDMA Write or Read. Pages of a hole are one and the same, and so never neighbours.
ELEMENTS=2
# The longest READ: its Writes and the Send take the whole queue.
LONGEST=$(((ENTRIES - 1) * ELEMENTS * 4096))

PLACES=/proc/sys/sunrpc/svc_rdma/max_exposed_replies
SERVER_PULLS=/proc/sys/sunrpc/svc_rdma/pulled_replies
CLIENT_PULLS=/proc/sys/sunrpc/rdma_pulled_replies

# How often threads are to have waited.
WAITS=${LONG:+5000}
WAITS=${WAITS:-250}

# small DEVICE LIMIT=N...: what connects from now on finds that it can do no more.
small() {
	local device=$1
	shift

	need_local_bed
	grown
	insmod "$HELPERS/limit_device.ko" device="$device" "$@"
}

grown() { [ ! -d /sys/module/limit_device ] || rmmod limit_device; }

counted() { cat "/sys/module/limit_device/parameters/$1"; }

nothing_exceeded() {
	[ "$(counted over_limit)" -eq 0 ] ||
		xfail_on_c "the device was asked for longer queues than it has"
}

test_cleanup() {
	touch "$ktap_dir/stop"
	if bed_has_link; then
		link_clear_delay "$BED_CLIENT_PORT" 2>/dev/null || :
		link_up
	fi
	cd /
	umount_all
	grown
	[ ! -e "$PLACES" ] || {
		echo "$places" >"$PLACES"
		echo "$server_pulls" >"$SERVER_PULLS"
		echo "$client_pulls" >"$CLIENT_PULLS"
	}
	if bed_is_local; then
		server_up || server_start
		threads "$BED_NFSD_THREADS"
	fi
}

threads() { echo "$1" >/proc/fs/nfsd/threads; }

# mounted VERSION: from a server whose Send Queues are short.
mounted() {
	need_link
	small "$BED_SERVER_DEV" max_qp_wr="$QUEUE" max_send_sge="$ELEMENTS"
	nfs_mount "$1" rdma rsize="$LONGEST" wsize=65536 actimeo=1
	nothing_exceeded
	work_dir "small-queue-$1"
	truncate -s 1G "$WORK_ON_SERVER/hole"
	rm -f "$ktap_dir/stop"
}

# read_hole OCTETS COUNT: so many READs, one after the other, of zeroes all of them.
read_hole() {
	"$HELPERS/hole_helper" "$WORK/hole" "$1" "$2"
}

# A Reply that takes the whole queue finds all of it. With an entry less it would wait for
# ever.
queue_is_whole() {
	trace_on svcrdma_post_write_chunk
	read_hole "$LONGEST" 1 || fail "the longest READ has failed"
	trace_off
	grep -q "svcrdma_post_write_chunk: .*sqecount=$((ENTRIES - 1))\$" "$TRACING/trace" ||
		fail "the longest READ does not take the whole queue"
	not_lost
}

not_lost() {
	[ "$(xprt_stat connect_count)" -eq 1 ] || xfail_on_c "the connection was lost"
}

# Short messages both ways: what is written is read past the cache.
short_file() {
	local content="$BASHPID $RANDOM$RANDOM$RANDOM"

	echo "$content" >"$WORK/short.$1"
	[ "$(dd if="$WORK/short.$1" iflag=direct bs=4096 status=none)" = "$content" ]
}

# others COMMAND...: in the background, again and again, until load_stop.
others() {
	while [ ! -e "$ktap_dir/stop" ]; do
		"$@" || exit 1
	done &
	other_jobs+=($!)
}

# All at a time: READs and WRITEs of 64 KiB that know what they find, short ones, and READs
# whose Replies take up to the whole queue.
heavy_start() {
	local pages

	other_jobs=()
	load_start 4
	for pages in 1 3 7 "$((LONGEST / 4096))" "$((LONGEST / 4096))"; do
		others read_hole $((pages * 4096)) 50
	done
	others short_file 1
	others short_file 2
}

heavy_stop() {
	local each

	load_stop
	for each in "${other_jobs[@]}"; do
		wait "$each" || fail "a reader found something else"
	done
}

# Entries are waited for, and none is lost; nor does what the server keeps become more.
threads_wait_for_send_queue() {
	local before octets most

	mounted "$1"
	queue_is_whole
	before=$(svc_stat sq_starve)
	heavy_start
	until [ "$(svc_stat sq_starve)" -ge $((before + WAITS)) ]; do
		load_wait_progress
	done
	heavy_stop
	echo "waited $(($(svc_stat sq_starve) - before)) times for $(xprt_stat sends) Replies"
	queue_is_whole
	# A buffer for each Receive and each Call that is answered, a message for each entry and
	# each thread.
	most=$((3 * QUEUE + BED_NFSD_THREADS))
	octets=$(cat /proc/sys/sunrpc/svc_rdma/message_octets)
	echo "$octets octets"
	[ "$octets" -le $((most * 4096)) ] || fail "$((octets / 4096)) messages are kept"
	rm -r "$WORK"
}

# Who needs all entries has them, however many need only a few: each of those has its Reply
# after a while, and calls again at once.
full_queue_reply_is_not_starved() {
	local each before few=()

	mounted "$1"
	before=$(svc_stat sq_starve)
	link_set_delay "$BED_CLIENT_PORT" 200
	for each in {1..12}; do
		dd if="$WORK/hole" of=/dev/null bs=4096 iflag=direct status=none &
		few+=($!)
	done
	sleep 5
	read_hole "$LONGEST" 5 || fail "the longest READ has failed"
	kill -KILL "${few[@]}"
	wait "${few[@]}" 2>/dev/null || :
	[ "$(svc_stat sq_starve)" -gt "$before" ] || fail "nobody had to wait"
	not_lost
}

# Whether a thread waits now.
somebody_waits() {
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	awk '
		/ svcrdma_sq_full: / { waiting++ }
		/ svcrdma_sq_retry: / { waiting-- }
		END { exit waiting <= 0 }' "$TRACING/trace"
}

# soon COMMAND...: whether it is true within ten seconds. Between two of its waits, say, a
# thread does not wait.
soon() {
	local _

	for _ in $(seq $((100 * PACE))); do
		! "$@" || return 0
		sleep 0.1
	done
	return 1
}

server_has_let_go() { ! rdma resource show qp link "$BED_SERVER_DEV/1" | grep -q "type RC"; }

# A client leaves while all threads wait, the only one there is: nobody else could end the
# connection. It goes as well, and then the module can.
client_leaves_during_wait() {
	local each hole holes=() readers=()

	mounted 3
	! server_has_let_go || fail "the server's queue pair is not to be seen"
	threads 1
	trace_on svcrdma_sq_full svcrdma_sq_retry
	# Who has opened the file for itself asks for nothing but its data.
	for each in {1..8}; do
		exec {hole}<"$WORK/hole"
		holes+=("$hole")
	done
	link_set_delay "$BED_CLIENT_PORT" 2000
	for hole in "${holes[@]}"; do
		dd of=/dev/null bs="$LONGEST" iflag=direct status=none <&"$hole" &
		readers+=($!)
		exec {hole}<&-
	done
	soon somebody_waits || fail "nobody waits"
	kill -KILL "${readers[@]}"
	wait "${readers[@]}" 2>/dev/null || :
	soon somebody_waits || fail "nobody waits any more"
	# With the Calls that are on their way.
	umount_forced
	# Stopping the server would wake it as well.
	soon server_has_let_go || fail "the server keeps the connection"
	server_stop
	link_clear_delay "$BED_CLIENT_PORT"
	module_wait_unused 0
	modprobe rpcrdma
	server_start
}

# So it is when the server's device goes. Nothing that was sent ends before: the link is
# down.
device_removed_during_wait() {
	local each waits=no connects

	mounted 3
	threads 1
	trace_on svcrdma_sq_full svcrdma_sq_retry
	heavy_start
	for each in {1..20}; do
		connects=$(xprt_stat connect_count)
		link_down
		sleep 0.2
		! somebody_waits || { waits=yes; break; }
		link_up
		load_wait_progress
	done
	[ $waits = yes ] || fail "nobody waits"
	# What a round has lost in which nobody waited tells nothing.
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || xfail_on_c "the connection was lost"
	device_delete "$BED_SERVER_DEV"
	link_up
	device_add "$BED_SERVER_DEV"
	load_wait_progress
	heavy_stop
	rm -r "$WORK"
}

# A client makes no more Calls at a time than its queues have room for.
client_limits_calls_to_queue() {
	small "$BED_CLIENT_DEV" max_qp_wr=127
	nfs_mount "$1" rdma
	work_dir "short-client-$1"
	truncate -s 1G "$WORK_ON_SERVER/hole"
	nothing_exceeded
	other_jobs=()
	load_start 4
	others read_hole $((1024 * 1024)) 5
	others short_file 1
	load_wait_progress
	heavy_stop
	not_lost
	rm -r "$WORK"
}

# What a device can do is asked for each connection: under a mount it may become less.
limits_lowered_under_mount() {
	local connects

	need_local_bed
	nfs_mount "$1" rdma
	work_dir "shrinks-$1"
	truncate -s 1G "$WORK_ON_SERVER/hole"
	other_jobs=()
	load_start 4
	others read_hole $((1024 * 1024)) 5
	small "$BED_CLIENT_DEV" max_qp_wr=127
	connects=$(xprt_stat connect_count)
	reconnect
	wait_connect "$connects"
	nothing_exceeded
	load_wait_progress
	heavy_stop
	rm -r "$WORK"
}

# A device that has no room for a single Call is not used, and whoever mounts is told.
unusable_device_is_refused() {
	local status=0

	small "$1" max_qp_wr="$2"
	nfs_mount 3 rdma retry=0 || status=$?
	echo "mount ended with $status"
	[ "$status" -ne 0 ] || xfail_on_c "it is mounted"
	[ "$1" != "$BED_CLIENT_DEV" ] ||
		log_since_mark | grep -q "rpcrdma: $1 cannot carry NFS" || fail "nobody is told why"
	grown
	nfs_mount 3 rdma
}

# Whether a queue is too large though no limit says so, only the device knows. There are fewer
# Calls at a time then.
smaller_queue_after_enomem() {
	small "$1" max_sq_bytes=262144
	nfs_mount 3 rdma retry=0 || xfail_on_c "it is not mounted"
	[ "$(counted sq_rejected)" -gt 0 ] || fail "the device had memory for what it was asked for"
	work_dir "shallow-$1"
	load_start 4
	load_wait_progress
	load_stop
	not_lost
	rm -r "$WORK"
}

# Replies that are exposed take entries beside all others. Where there are too few for both, none
# is exposed.
exposed_replies_yield_queue_room() {
	[ -e "$PLACES" ] || skip "this module exposes no Replies"
	echo 256 >"$PLACES"
	echo 1 >"$SERVER_PULLS"
	echo 1 >"$CLIENT_PULLS"
	smaller_queue_after_enomem "$BED_SERVER_DEV"
}

# Where the core would have regions for RDMA Reads, none is made for those that do without.
no_mrs_for_plain_reads() {
	need_local_bed
	bed_has_link || skip "$BED_RDMA reads into regions only"
	small "$BED_SERVER_DEV" max_sgl_rd=32
	nfs_mount 3 rdma
	work_dir no-regions
	load_start 2
	load_wait_progress
	load_stop
	not_lost
	[ "$(counted rw_mrs)" -eq 0 ] || xfail_on_c "$(counted rw_mrs) regions were made"
	rm -r "$WORK"
}

bed_up
[ ! -e "$PLACES" ] || {
	places=$(cat "$PLACES")
	server_pulls=$(cat "$SERVER_PULLS")
	client_pulls=$(cat "$CLIENT_PULLS")
}
[ $# -gt 0 ] || set -- "threads_wait_for_send_queue 3" "threads_wait_for_send_queue 4.2" \
	"full_queue_reply_is_not_starved 3" client_leaves_during_wait device_removed_during_wait \
	"client_limits_calls_to_queue 3" "client_limits_calls_to_queue 4.2" \
	"limits_lowered_under_mount 4.2" \
	"unusable_device_is_refused $BED_SERVER_DEV 4" \
	"unusable_device_is_refused $BED_CLIENT_DEV 16" \
	"smaller_queue_after_enomem $BED_SERVER_DEV" \
	"smaller_queue_after_enomem $BED_CLIENT_DEV" \
	exposed_replies_yield_queue_room no_mrs_for_plain_reads
ktap_run "$@"
