#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Pulled Replies: the server exposes a long Reply and the client fetches it by RDMA Read, without a
# Reply chunk. The data is right, each Reply is acknowledged by RDMA_DONE, nothing stays exposed,
# and nothing is exposed if either end has the feature disabled.

cd "$(dirname "$0")" && . ./lib.sh && . lib/pulled_packets.sh || exit 1

# rxe reports connections that exceeded their retries (12) or read revoked memory (10, 11).
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 1[012]
'

CLIENT=/proc/sys/sunrpc
SERVER=/proc/sys/sunrpc/svc_rdma

# set_pulling CLIENT SERVER: sets both ends' pulled_replies, effective from the next mount on.
set_pulling() {
	echo "$1" >"$CLIENT/rdma_pulled_replies"
	echo "$2" >"$SERVER/pulled_replies"
	echo $(((64 << 20) / $(getconf PAGE_SIZE))) >"$SERVER/max_exposed_pages"
}

client_stat() { cat "$CLIENT/rdma_stat_$1"; }

# Saves the counters.
save_counters() {
	before_connects=$(xprt_stat connect_count)
	before_pulled=$(client_stat pulled)
	before_done=$(client_stat "done")
	before_exposed=$(svc_stat exposed)
	before_expired=$(svc_stat expired)
}

# check_all_pulled MIN: fails unless each Reply exposed since save_counters, at least MIN of them,
# was pulled and acknowledged.
check_all_pulled() {
	local exposed pulled acked

	# The last RDMA_DONE may be counted after the task has got its Reply.
	for _ in {1..120}; do
		exposed=$(($(svc_stat exposed) - before_exposed))
		pulled=$(($(client_stat pulled) - before_pulled))
		acked=$(($(client_stat "done") - before_done))
		[ "$pulled,$acked" != "$exposed,$exposed" ] || break
		sleep 0.5
	done
	[ "$(xprt_stat connect_count)" -eq "$before_connects" ] ||
		connection_lost fail "the connection was lost"
	echo "exposed $exposed, pulled $pulled, acknowledged $acked"
	[ "$exposed" -ge "$1" ] || fail "only $exposed Replies exposed"
	[ "$pulled" -eq "$exposed" ] || fail "$exposed Replies exposed, $pulled pulled"
	[ "$acked" -eq "$exposed" ] || fail "$exposed Replies exposed, $acked RDMA_DONEs"
	[ "$(svc_stat expired)" -eq "$before_expired" ] || fail "some Replies expired"
	[ "$(xprt_stat reply_chunks)" -eq 0 ] || fail "the client provided Reply chunks"
	[ "$(xprt_stat bad_reply)" -eq 0 ] || fail "bad Replies"
}

check_none_pulled() {
	[ "$(svc_stat exposed)" -eq "$before_exposed" ] || fail "a Reply was exposed"
	[ "$(client_stat pulled)" -eq "$before_pulled" ] || fail "a Reply was pulled"
	[ "$(client_stat "done")" -eq "$before_done" ] || fail "an RDMA_DONE was sent"
}

make_directory() {
	mkdir "$WORK_ON_SERVER/many"
	seq -f "$WORK_ON_SERVER/many/a-name-that-takes-some-room-%04.0f" 1 "$1" |
		xargs touch
}

long_readdir_replies() {
	need_local_bed
	set_pulling 2 1
	nfs_mount "$1" rdma
	work_dir directories
	make_directory 1500
	save_counters
	[ "$(find "$WORK/many" -type f | wc -l)" -eq 1500 ] || fail "not 1500 names listed"
	check_all_pulled 1
	drop_caches
	[ "$(find "$WORK/many" -type f | sort | md5sum)" = \
		"$(find "$WORK_ON_SERVER/many" -type f | sed "s|^$WORK_ON_SERVER|$WORK|" |
			sort | md5sum)" ] || fail "client and server list different names"
	check_all_pulled 2
}

long_xattr_replies() {
	need_local_bed
	set_pulling 2 1
	nfs_mount 4.2 rdma
	work_dir attributes
	# shellcheck disable=SC2046 # several sizes
	attributes set "$WORK" 100 $(seq 3300 90 4200) 8192 16384 32768 65536
	nfs_remount 4.2 rdma
	save_counters
	# shellcheck disable=SC2046
	attributes check "$WORK" 100 $(seq 3300 90 4200) 8192 16384 32768 65536
	check_all_pulled 4
}

long_acl_replies() {
	local count
	need_local_bed
	set_pulling 2 1
	nfs_mount 4.2 rdma
	work_dir acls
	save_counters
	for count in 100 1000 2500; do
		touch "$WORK/$count"
		{
			printf '%s\n' user::rw- group::r-- mask::rwx other::---
			seq -f "user:%.0f:r-x" 100001 $((100000 + count))
		} | setfacl --set-file=- "$WORK_ON_SERVER/$count"
		drop_caches
		getfattr --absolute-names --only-values -n system.nfs4_acl "$WORK/$count" |
			users_by_number "$count" || fail "wrong ACL for $count users"
	done
	check_all_pulled 2
}

# The bvecs of one rdma_rw context have no gaps: behind a translating IOMMU, the RDMA core maps them
# to one DMA address range, so each bvec but the last must end at a page boundary and each but the
# first start at one. The bed has no IOMMU, so the core's arguments are checked with a kprobe.
rdma_rw_bvecs_have_no_gaps() {
	need_local_bed
	local function='rdma_rw_ctx_init_bvec' page

	trace_on
	[ -e "$TRACING/kprobe_events" ] || skip "this kernel has no kprobe events"
	page=$(getconf PAGE_SIZE)
	set_pulling 2 1
	nfs_mount 4.2 rdma
	work_dir bvecs
	make_directory 1500
	attributes set "$WORK" 8192 60000
	nfs_remount 4.2 rdma
	# The number of bvecs, and offset and length of the first three.
	# shellcheck disable=SC2016 # $argN is for the kernel
	echo "p:pulled/transfer $function"' n=$arg5:u32' \
		'len0=+8($arg4):u32 off0=+12($arg4):u32 len1=+24($arg4):u32' \
		'off1=+28($arg4):u32 off2=+44($arg4):u32' \
		>>"$TRACING/kprobe_events" || fail "no kprobe on $function"
	echo 1 >"$TRACING/events/pulled/transfer/enable"
	save_counters
	[ "$(find "$WORK/many" -type f | wc -l)" -eq 1500 ] || fail "not 1500 names listed"
	attributes check "$WORK" 8192 60000
	trace_off
	check_all_pulled 3
	[ "$(traced transfer)" -ge 3 ] || fail "fewer than three transfers"
	awk -v page="$page" '
		function gap(len, off, next_off) { return (off + len) % page || next_off }
		/ transfer: / {
			for (i = 1; i <= NF; i++)
				if (split($i, word, "=") == 2) is[word[1]] = word[2]
			all++
			if (is["n"] < 2) next
			several++
			if (gap(is["len0"], is["off0"], is["off1"]) ||
			    (is["n"] > 2 && gap(is["len1"], is["off1"], is["off2"]))) {
				if (!bad++) print
			}
		}
		END {
			print all + 0, "transfers,", several + 0, "of several bvecs,", bad + 0,
				"with a gap"
			exit (bad || !several)
		}' "$TRACING/trace" || fail "the bvecs of a transfer have gaps"
}

# For Replies that might be long but are short, the client registers no memory.
short_replies_register_nothing() {
	set_pulling 1 1
	nfs_mount 4.2 rdma
	work_dir short
	touch "$WORK/file"
	setfattr -n user.short -v 1 "$WORK/file" || {
		! bed_is_local || fail "cannot set an attribute"
		skip "the export does not support user attributes"
	}
	nfs_remount 4.2 rdma
	save_counters
	ls -l "$WORK" >/dev/null
	getfattr --absolute-names -n user.short "$WORK/file" >/dev/null
	getfattr --absolute-names "$WORK/file" >/dev/null
	check_none_pulled
	[ "$(xprt_stat reply_chunks)" -eq 0 ] || fail "the client provided Reply chunks"
	[ "$(xprt_stat local_inv)" -eq 0 ] || fail "the client invalidated memory"
}

# After several long Replies to one procedure, the client provides Reply chunks for it.
repeated_long_replies_get_reply_chunk() {
	need_local_bed
	local each
	set_pulling 1 1
	nfs_mount 4.2 rdma
	work_dir repeated
	attributes set "$WORK" 60000
	for each in 1 2 3 4 5 6 7 8; do
		drop_caches
		attributes check "$WORK" 60000
	done
	[ "$(xprt_stat reply_chunks)" -gt 0 ] || fail "the client provided no Reply chunk"
}

# one_end_disabled CLIENT SERVER: nothing is exposed, and the client provides Reply chunks.
one_end_disabled() {
	need_local_bed
	set_pulling "$1" "$2"
	nfs_mount 4.2 rdma
	work_dir one-end
	make_directory 500
	save_counters
	[ "$(find "$WORK/many" -type f | wc -l)" -eq 500 ] || fail "not 500 names listed"
	check_none_pulled
	[ "$(xprt_stat reply_chunks)" -gt 0 ] || fail "the client provided no Reply chunk"
}

# read_attributes DIR: reads what gives long Replies, five times.
read_attributes() {
	local _

	for _ in 1 2 3 4 5; do
		[ "$(getfattr --absolute-names --only-values -n user.long "$1" | wc -c)" -eq 50000 ] ||
			return 1
		getfattr --absolute-names -d "$1" >/dev/null || return 1
		ls -l "$MNT" >/dev/null
	done
}

# With a limit of one exposed Reply, the server refuses most Calls, and the client sends them again
# with a Reply chunk. The client delays each RDMA_DONE, so that Calls arrive while another Reply is
# exposed.
exposed_reply_limit() {
	need_local_bed
	local each before round readers
	before=$(cat "$SERVER/max_exposed_replies")
	echo 1 >"$SERVER/max_exposed_replies"
	set_pulling 2 1
	nfs_mount 4.2 rdma
	echo "$before" >"$SERVER/max_exposed_replies"
	work_dir exposed-limit
	attributes set "$WORK" 60000
	for each in $(seq 8); do
		cp -r "$WORK_ON_SERVER" "$EXPORT/exposed-limit-$each"
		setfattr -n user.long -v "$(head -c 50000 /dev/zero | tr '\0' v)" \
			"$EXPORT/exposed-limit-$each"
	done
	delay_fn entry "$RUST_READ_DONE" 50
	# Eight readers that start together need not send their Calls together.
	for round in {1..10}; do
		drop_caches
		readers=()
		for each in $(seq 8); do
			read_attributes "$MNT/exposed-limit-$each" &
			readers+=($!)
		done
		for each in "${readers[@]}"; do
			wait "$each" || fail "a Reply was lost"
		done
		[ "$(xprt_stat bad_reply)" -eq 0 ] || break
	done
	unload_fault_modules
	echo "$(xprt_stat bad_reply) Replies were refused in $round rounds"
	[ "$(xprt_stat bad_reply)" -gt 0 ] || fail "no Reply was refused"
	[ "$(xprt_stat connect_count)" -eq 1 ] || connection_lost fail "the connection was lost"
}

# With a limit of one exposed page, every Reply is refused. The refusal arrives before send_request
# has returned to SUNRPC.
refused_before_send_returns() {
	need_local_bed
	local each delayed

	set_pulling 2 1
	nfs_mount "$1" rdma
	work_dir refused-at-once
	make_directory 500
	# Only NFSv4.2 has extended attributes.
	[ "$1" = 3 ] || attributes set "$WORK" 60000
	drop_caches
	save_counters
	echo 1 >"$SERVER/max_exposed_pages"
	delay_fn return "$RUST_SEND_REQUEST" 30
	for each in 1 2 3; do
		drop_caches
		[ "$(find "$WORK/many" -type f | wc -l)" -eq 500 ] || fail "not 500 names listed"
		[ "$1" = 3 ] || attributes check "$WORK" 60000
	done
	delayed=$(delay_hits)
	unload_fault_modules
	echo "$delayed Calls, $(xprt_stat bad_reply) refused"
	[ "$delayed" -gt 0 ] || fail "no Call was delayed"
	[ "$(xprt_stat bad_reply)" -ge 3 ] || fail "fewer than three Replies were refused"
	[ "$(xprt_stat reply_chunks)" -ge 3 ] || fail "refused Calls were sent without Reply chunk"
	[ "$(xprt_stat connect_count)" -eq 1 ] || connection_lost fail "the connection was lost"
}

# packet_order INVALIDATES: captures an RDMA_NOMSG with a Read list, RDMA Reads of its segments, and
# RDMA_DONE, which invalidates the handle if Remote Invalidation was negotiated.
packet_order() {
	need_local_bed
	local capture each

	set_pulling 2 1
	echo "$1" >"$CLIENT/rdma_remote_invalidation"
	nfs_mount 4.2 rdma
	work_dir wire
	make_directory 400
	attributes set "$WORK" 65536
	nfs_remount 4.2 rdma
	tcpdump -i "$BED_SERVER_IF" -B 32768 -s 128 -U --immediate-mode -w "$ktap_dir/wire" \
		udp port 4791 2>"$ktap_dir/tcpdump" &
	capture=$!
	for each in $(seq $((600 * PACE))); do
		! grep -q listening "$ktap_dir/tcpdump" || break
		sleep 0.1
	done
	attributes check "$WORK" 65536
	[ "$(find "$WORK/many" -type f | wc -l)" -eq 400 ] || fail "not 400 names listed"
	# The last RDMA_DONE may still be in flight or in tcpdump's buffers.
	for each in {1..60}; do
		sleep 0.5
		! pulled_packets "$ktap_dir/wire" 2>/dev/null | pulled_in_order "$1" >/dev/null || break
	done
	kill -INT "$capture"
	wait "$capture" || fail "$(cat "$ktap_dir/tcpdump")"
	! grep -q '^[1-9][0-9]* packets dropped' "$ktap_dir/tcpdump" || fail "tcpdump dropped packets"
	pulled_packets "$ktap_dir/wire" >"$ktap_dir/events"
	sort "$ktap_dir/events" | awk '{ n[$1]++ } END { for (each in n) print n[each], each }'
	pulled_in_order "$1" <"$ktap_dir/events" || fail "wrong order of packets"
}

# readers_killed_while_exposed KILLS: after a task was killed, the Reply to it is still
# acknowledged, and no memory of the task is exposed, so the connection survives. LONG multiplies
# KILLS.
readers_killed_while_exposed() {
	need_local_bed
	local kills=$(($1 * ${LONG:-1})) each before readers connects exposed pulled acked

	set_pulling 2 1
	nfs_mount 4.2 rdma
	work_dir killed
	make_directory 1200
	attributes set "$WORK" 60000
	connects=$(xprt_stat connect_count)
	save_counters
	! bed_has_link || link_set_delay "$BED_CLIENT_PORT" 100
	for each in $(seq 1 4 "$kills"); do
		drop_caches
		before=$(svc_stat exposed)
		readers=()
		for _ in 1 2; do
			find "$WORK/many" -type f >/dev/null 2>&1 &
			readers+=($!)
			"$HELPERS/attributes_helper" check "$WORK" 60000 >/dev/null 2>&1 &
			readers+=($!)
		done
		# Wait until a Reply to them is exposed; they may have read it already.
		for _ in {1..100}; do
			[ "$(svc_stat exposed)" -eq "$before" ] || break
			sleep 0.02
		done
		sleep "0.$((RANDOM % 2))$((RANDOM % 10))"
		kill -KILL "${readers[@]}" 2>/dev/null || true
		wait "${readers[@]}" 2>/dev/null || true
	done
	# rxe would retransmit packets that are dropped, too late.
	! bed_has_link || link_end_delay "$BED_CLIENT_PORT"
	drop_caches
	[ "$(find "$WORK/many" -type f | wc -l)" -eq 1200 ] || fail "not 1200 names listed"
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || connection_lost fail "connections were lost"
	# RDMA_DONEs for killed tasks are sent asynchronously.
	for _ in {1..120}; do
		exposed=$(($(svc_stat exposed) - before_exposed))
		acked=$(($(client_stat "done") - before_done))
		[ "$acked" -ne "$exposed" ] || break
		sleep 0.5
	done
	pulled=$(($(client_stat pulled) - before_pulled))
	echo "$exposed exposed, $pulled pulled, $acked acknowledged"
	[ "$acked" -eq "$exposed" ] || fail "an RDMA_DONE is missing"
	! bed_has_link || [ "$exposed" -gt "$pulled" ] ||
		fail "no task was killed between exposure and pull"
}

# The server's device is removed while a Reply is exposed: all its pages are released, and the RPC
# is answered over the next connection. A round in which the Reply was pulled before the removal
# proves nothing.
device_removed_while_exposed() {
	need_link
	local each reader early=0

	set_pulling 2 1
	nfs_mount 4.2 rdma
	work_dir device-goes
	attributes set "$WORK" 60000
	nfs_remount 4.2 rdma
	# A quarter is enough for one Reply. A leaked Reply would not leave enough for the next.
	echo 80 >"$SERVER/max_exposed_pages"
	attributes check "$WORK" 60000
	for each in {1..9}; do
		drop_caches
		save_counters
		link_set_delay "$BED_CLIENT_PORT" 2200
		attributes check "$WORK" 60000 &
		reader=$!
		for _ in $(seq 600); do
			[ "$(svc_stat exposed)" -eq "$before_exposed" ] || break
			sleep 0.1
		done
		device_delete "$BED_SERVER_DEV"
		link_clear_delay "$BED_CLIENT_PORT"
		[ "$(svc_stat exposed)" -gt "$before_exposed" ] || fail "no Reply was exposed"
		[ "$(client_stat pulled)" -eq "$before_pulled" ] || early=$((early + 1))
		device_add "$BED_SERVER_DEV"
		wait "$reader" || fail "round $each: the value was not read"
		[ "$(client_stat pulled)" -gt "$before_pulled" ] || fail "not pulled after the removal"
		[ $((each - early)) -lt 3 ] || break
	done
	echo "pulled before the removal: $early of $each"
	[ "$early" -lt "$each" ] || fail "every Reply was pulled before the removal"
	drop_caches
	nfs_remount 4.2 rdma
	echo 80 >"$SERVER/max_exposed_pages"
	save_counters
	attributes check "$WORK" 60000
	check_all_pulled 1
}

# The exposure timeout is the one that is set when the Reply is sent, even if an earlier Reply had a
# longer one and the timer is still set for it. A late RDMA Read is refused, and the client
# retransmits the Call.
exposure_timeout_shortened() {
	need_local_bed
	local each reader

	bed_has_link || skip "needs a link to delay"
	set_pulling 2 1
	echo 600 >"$SERVER/exposed_seconds"
	nfs_mount 4.2 rdma
	work_dir less-time
	attributes set "$WORK" 60000
	nfs_remount 4.2 rdma
	save_counters
	attributes check "$WORK" 60000
	check_all_pulled 1
	echo 1 >"$SERVER/exposed_seconds"
	drop_caches
	link_set_delay "$BED_CLIENT_PORT" 2200
	attributes check "$WORK" 60000 &
	reader=$!
	# On such a slow link rxe may disconnect first; the client then reconnects.
	for each in $(seq $((900 * PACE))); do
		[ "$(svc_stat expired)" -eq "$before_expired" ] || break
		sleep 0.1
	done
	link_clear_delay "$BED_CLIENT_PORT"
	echo 30 >"$SERVER/exposed_seconds"
	echo "expired after $each tenths of a second: $(($(svc_stat expired) - before_expired))"
	[ "$(svc_stat expired)" -gt "$before_expired" ] || fail "the Reply did not expire"
	wait "$reader" || fail "the value was not read"
}

# The Read responses arrive more slowly than the client tolerates: it closes the connection, and the
# task that waits for the Reply can be killed.
killed_reader_of_stalled_reads() {
	need_local_bed
	local reader why

	bed_has_link || skip "needs a link to slow down"
	set_pulling 2 1
	echo 3 >"$CLIENT/rdma_stall_seconds"
	nfs_mount 4.2 rdma
	work_dir stalled
	attributes set "$WORK" 60000
	nfs_remount 4.2 rdma
	attributes check "$WORK" 60000
	drop_caches
	save_counters
	link_set_rate "$BED_CLIENT_PORT" 16kbit
	"$HELPERS/attributes_helper" check "$WORK" 60000 &
	reader=$!
	for _ in $(seq $((300 * PACE))); do
		[ "$(svc_stat exposed)" -eq "$before_exposed" ] || break
		sleep 0.1
	done
	[ "$(svc_stat exposed)" -gt "$before_exposed" ] || fail "no Reply was exposed"
	# All of the Reply takes half a minute.
	kill -KILL "$reader"
	! wait "$reader" || fail "the reader was not killed"
	why=$(sed -n 's/^closed_why: //p' /sys/kernel/debug/rpcrdma/client/*)
	link_clear_delay "$BED_CLIENT_PORT"
	echo "the connection has ended: $why"
	[ "$why" = 'stalled Send Queue' ] || fail "the client waited for the Reads"
	attributes check "$WORK" 60000
}

# Restores the sysctls, the link and the device, however the test ended.
test_cleanup() {
	cd /
	echo 90 >"$CLIENT/rdma_stall_seconds"
	echo 1 >"$CLIENT/rdma_remote_invalidation"
	echo 30 >"$SERVER/exposed_seconds"
	umount_all
	unload_fault_modules
	bed_is_local || return 0
	! bed_has_link || link_clear_delay "$BED_CLIENT_PORT" || :
	[ -e "/sys/class/infiniband/$BED_SERVER_DEV" ] || device_add "$BED_SERVER_DEV"
} 2>/dev/null

# Restores everything else when the program exits.
cleanup() {
	unload_fault_modules
	if [ -d "$TRACING/events/pulled" ]; then
		trace_off
		echo '-:pulled/transfer' >>"$TRACING/kprobe_events"
	fi
	set_pulling "$client_default" "$server_default"
	bed_down
}

bed_up
[ -e "$CLIENT/rdma_pulled_replies" ] || ktap_skip_all "this module does not support pulled Replies"
client_default=$(cat "$CLIENT/rdma_pulled_replies")
server_default=$(cat "$SERVER/pulled_replies")
trap cleanup EXIT
if [ $# -eq 0 ] && bed_is_local && ! bed_has_link; then
	echo "# the client pulls no Replies over iWARP: only that is tested"
	set -- "one_end_disabled 2 1"
fi
[ $# -gt 0 ] || set -- "long_readdir_replies 4.2" "long_readdir_replies 3" \
	long_xattr_replies long_acl_replies rdma_rw_bvecs_have_no_gaps \
	short_replies_register_nothing repeated_long_replies_get_reply_chunk \
	"one_end_disabled 2 0" "one_end_disabled 0 1" exposed_reply_limit \
	"refused_before_send_returns 4.2" "refused_before_send_returns 3" \
	"packet_order 1" "packet_order 0" \
	device_removed_while_exposed exposure_timeout_shortened \
	killed_reader_of_stalled_reads \
	"readers_killed_while_exposed 80"
ktap_run "$@"
