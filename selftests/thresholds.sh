#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Negotiated inline thresholds. For each pair of settings, the messages are captured on the link, or
# measured on arrival if the bed has no link: no Send exceeds the threshold, and in either direction
# one reaches it. A mixed workload is verified for each pair. The head of a Call that SUNRPC gets
# fits in a page, however long the message. If there is no memory for long messages, lower
# thresholds are negotiated; if memory runs out later, the connection is closed, and the next one
# has lower thresholds. The same capture shows which end reads and writes the memory of the other.
#
# Lines that begin with "table:" give the settings, the negotiated thresholds, the longest Call and
# Reply, and the memory for messages at the client and at the server, all in bytes.
#
# SIZES are the settings to test at either end, in KiB.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

SIZES=${SIZES:-1 4 64}
CLIENT=/proc/sys/sunrpc
SERVER=/proc/sys/sunrpc/svc_rdma

# set_thresholds CLIENT-SENDS CLIENT-RECEIVES SERVER-RECEIVES SERVER-SENDS
set_thresholds() {
	echo "$1" >$CLIENT/rdma_max_inline_write
	echo "$2" >$CLIENT/rdma_max_inline_read
	echo "$3" >$SERVER/max_req_size
	echo "$4" >$SERVER/max_reply_size
}

min() { echo $(($1 < $2 ? $1 : $2)); }

# Captures on the bridge's port to the client, which sees each packet once.
capture_start() {
	rm -f "$ktap_dir/tcpdump" "$ktap_dir/packets"
	mkfifo "$ktap_dir/packets"
	"$HELPERS/sends_helper" <"$ktap_dir/packets" >"$ktap_dir/sends" &
	measuring=$!
	nsenter --net="/run/netns/$BED_SWITCH" -- tcpdump -i "$BED_CLIENT_PORT" \
		-s 96 -B 65536 -U -w - udp port 4791 \
		2>"$ktap_dir/tcpdump" >"$ktap_dir/packets" &
	capture=$!
	until [ -e "$ktap_dir/tcpdump" ] && grep -q 'listening on' "$ktap_dir/tcpdump"; do sleep 0.1; done
}

# process_sleeps PID: succeeds if the process waits for something, or has ended.
process_sleeps() { [ ! -e "/proc/$1" ] || [ "$(sed 's/.*) \(.\) .*/\1/' "/proc/$1/stat")" = S ]; }

# The kernel gives tcpdump a block of packets after a second at the latest. tcpdump has taken all of
# them, and the reader of its output as well, when both keep sleeping.
capture_stop() {
	local asleep=0

	sleep 2
	while [ "$asleep" -lt 5 ]; do
		process_sleeps "$capture" && process_sleeps "$measuring" &&
			asleep=$((asleep + 1)) || asleep=0
		sleep 0.2
	done
	kill -INT "$capture"
	wait
	cat "$ktap_dir/tcpdump" "$ktap_dir/sends"
	! grep -q '^[1-9][0-9]* packets dropped' "$ktap_dir/tcpdump" ||
		fail "tcpdump dropped packets"
}

# Trace events of arriving messages, used if there is no link to capture on.
ARRIVALS="svcrdma_wc_recv xprtrdma_wc_receive"

watch_start() {
	local arrivals=$ARRIVALS

	! bed_has_link || { capture_start; arrivals=; }
	# shellcheck disable=SC2086 # names
	trace_on xprtrdma_inline_thresh $arrivals
}

# watch_stop: sets calls and replies to the sizes of the longest Call and Reply.
watch_stop() {
	trace_off
	if bed_has_link; then
		capture_stop
		calls=$(sent_by 192.0.2.2 2)
		replies=$(sent_by "$SERVER4" 2)
	else
		calls=$(longest_arrival svcrdma_wc_recv)
		replies=$(longest_arrival xprtrdma_wc_receive)
	fi
}

# longest_arrival EVENT
longest_arrival() {
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	awk -F= -v event=" $1: " 'index($0, event) && $NF > max { max = $NF + 0 }
		END { print max + 0 }' "$TRACING/trace"
}

# sent_by ADDRESS COLUMN: prints this column of the output of sends_helper.
sent_by() { awk -v a="$1" -v column="$2" '$1 == a { print $column }' "$ktap_dir/sends"; }

# io_around SIZE: READs and WRITEs of every size around the threshold, so that one message has
# exactly that size: data that fits is sent inline.
io_around() {
	local first=$(($1 > 1200 ? $1 - 1024 : 4))

	"$HELPERS/direct_helper" "$WORK/file" $((($1 - first) / 4 * 2)) "$first" "$1" 4 ||
		fail "wrong data around $1 bytes"
}

# values_around SIZE: reads attributes of every size below the threshold. A value that fits is sent
# inline, although the client provides a chunk, so that there are Replies of every size. Attributes
# have at most 64 KiB.
values_around() {
	"$HELPERS/values_helper" "$WORK_ON_SERVER/file" "$WORK/file" $(($1 - 512)) "$1" ||
		fail "wrong values around $1 bytes"
}

# A mixed workload.
mixed() {
	local from=/etc/security target

	target=$(printf '%01000d' 1)
	"$HELPERS/io_sizes_helper" "$WORK" "$WORK_ON_SERVER" buffered direct fresh 3 \
		1 1000 4096 20001 65536 300001 || fail "wrong data"
	[ -d "$from" ] || from=/etc/default
	cp -r "$from" "$WORK/tree"
	diff -r "$from" "$WORK_ON_SERVER/tree" || fail "wrong files"
	[ "$(cd "$WORK/tree" && find . | sort)" = "$(cd "$from" && find . | sort)" ] ||
		fail "wrong names"
	ln -s "$target" "$WORK/link"
	[ "$(readlink "$WORK_ON_SERVER/link")" = "$target" ] || fail "wrong link made"
	[ "$(readlink "$WORK/link")" = "$target" ] || fail "wrong link read"
}

# Prints the thresholds of the last connection.
negotiated() {
	sed -n 's/.*neg send\/recv=\([0-9]*\)\/\([0-9]*\),.*/\1 \2/p' "$TRACING/trace" |
		tail -n 1
}

# negotiated_thresholds CLIENT-SENDS CLIENT-RECEIVES SERVER-RECEIVES SERVER-SENDS,
# in bytes.
negotiated_thresholds() {
	local there back calls replies memory capture longest

	there=$(min "$1" "$3") back=$(min "$2" "$4")
	set_thresholds "$@"
	insmod "$HELPERS/check_rq_head.ko"
	watch_start
	nfs_mount 4.2 rdma
	set_thresholds 4096 4096 4096 0
	work_dir thresholds
	io_around "$there"
	[ "$back" -eq "$there" ] || io_around "$back"
	[ "$back" -gt 65536 ] || values_around "$back"
	mixed
	memory="$(cat $CLIENT/rdma_message_octets) $(cat $SERVER/message_octets)"
	longest=$(cat /sys/module/check_rq_head/parameters/max_len)
	nfs_umount
	watch_stop
	echo "table: $* $(negotiated) $calls $replies $memory"
	[ "$(negotiated)" = "$there $back" ] || fail "negotiated $(negotiated)"
	[ "$longest" -gt 0 ] || fail "no Call was measured"
	[ "$longest" -le 4096 ] || fail "the head of a Call had $longest bytes"
	[ "$calls" -le "$there" ] || fail "a Call had $calls bytes"
	[ "$replies" -le "$back" ] || fail "a Reply had $replies bytes"
	[ "$calls" -eq "$there" ] || fail "the longest Call had only $calls bytes"
	# The client provides a chunk if the longest possible Reply does not fit; few Replies are
	# that long.
	[ "$replies" -eq "$back" ] || [ "$back" -gt 65536 ] ||
		fail "the longest Reply had only $replies bytes"
	[ "$replies" -gt $((back - 512)) ] || fail "the longest Reply had only $replies bytes"
}

# The server requests RDMA Reads and sends RDMA Writes. The client does neither, unless it pulls
# Replies.
R8166_3_1_1_server_reads_and_writes() {
	local pulls before

	need_link
	pulls=$CLIENT/rdma_pulled_replies before=$(cat "$CLIENT/rdma_pulled_replies")
	echo 0 >"$pulls"
	nfs_mount "$1" rdma
	echo "$before" >"$pulls"
	work_dir directions
	capture_start
	mixed
	capture_stop
	[ "$(sent_by 192.0.2.2 3)" -gt 100 ] || fail "the client sent few messages"
	[ "$(sent_by 192.0.2.2 4)" -eq 0 ] || fail "the client requested RDMA Reads"
	[ "$(sent_by 192.0.2.2 5)" -eq 0 ] || fail "the client sent RDMA Writes"
	[ "$(sent_by "$SERVER4" 4)" -gt 0 ] || fail "the server requested no RDMA Read"
	[ "$(sent_by "$SERVER4" 5)" -gt 0 ] || fail "the server sent no RDMA Write"
}

# Prints how many allocations fail_highorder.ko has failed.
failures() { cat /sys/module/fail_highorder/parameters/injected; }

# no_highorder_memory COMM CLIENT-SENDS CLIENT-RECEIVES SERVER-RECEIVES SERVER-SENDS, in bytes:
# allocations of 32 KiB or more by tasks named COMM fail, and that end negotiates lower thresholds.
no_highorder_memory() {
	local there back

	there=$(min 16384 "$2") back=$(min 16384 "$3")
	set_thresholds "${@:2}"
	insmod "$HELPERS/fail_highorder.ko" comm="$1" min_size=32768
	trace_on xprtrdma_inline_thresh
	nfs_mount 4.2 rdma
	trace_off
	set_thresholds 4096 4096 4096 0
	[ "$(negotiated)" = "$there $back" ] || fail "negotiated $(negotiated)"
	work_dir no-highorder
	mixed
	nfs_umount
	[ "$(failures)" -gt 0 ] || fail "no allocation failed"
}

# A connection with high thresholds starts with one buffer for the server's Replies. If the server
# cannot allocate another one, it closes the connection, and the client reconnects with lower
# thresholds. Otherwise the client would wait five minutes for the Reply.
R8166_4_5_4_3_no_memory_for_reply() {
	local _ began took

	set_thresholds 4096 65536 4096 65536
	nfs_mount "$1" rdma timeo=3000
	work_dir without-memory
	trace_on xprtrdma_inline_thresh
	insmod "$HELPERS/fail_highorder.ko" comm=nfsd min_size=32768
	began=$SECONDS
	load_start 8
	for _ in $(seq $((1200 * PACE))); do
		[ "$(xprt_stat connect_count)" -eq 1 ] || break
		sleep 0.1
	done
	took=$((SECONDS - began))
	echo "$(failures) allocations failed, reconnected after $took s"
	[ "$(failures)" -gt 0 ] || fail "no allocation failed"
	[ "$(xprt_stat connect_count)" -gt 1 ] && [ "$took" -lt $((240 * PACE)) ] ||
		fail "the client waited for a Reply"
	load_wait_progress
	load_stop
	trace_off
	set_thresholds 4096 4096 4096 0
	[ "$(negotiated)" = "4096 16384" ] || fail "negotiated $(negotiated)"
	rm -r "$WORK"
}

test_cleanup() {
	[ ! -d /sys/module/check_rq_head ] || rmmod check_rq_head
	[ ! -d /sys/module/fail_highorder ] || rmmod fail_highorder
	cd /
	umount_all
}

need_max_reply_size() {
	[ -e "$SERVER/max_reply_size" ] || ktap_skip_all "the C module has no max_reply_size"
}

bed_up
need_max_reply_size
cases=()
for client in $SIZES; do
	for server in $SIZES; do
		c=$((client * 1024)) s=$((server * 1024))
		cases+=("negotiated_thresholds $c $c $s $s")
	done
done
# Four different values each.
cases+=("negotiated_thresholds 8192 2048 16384 1024"
	"negotiated_thresholds 1024 65536 4096 12288")
# For the server's Sends, the server's Receives, and the client's Receives.
cases+=("no_highorder_memory nfsd 4096 65536 4096 65536"
	"no_highorder_memory nfsd 65536 4096 65536 4096"
	"no_highorder_memory kworker 4096 65536 4096 65536"
	"R8166_3_1_1_server_reads_and_writes 3" "R8166_3_1_1_server_reads_and_writes 4.2"
	"R8166_4_5_4_3_no_memory_for_reply 3" "R8166_4_5_4_3_no_memory_for_reply 4.2")
TEST_TIMEOUT=$((TEST_TIMEOUT * 2))
[ $# -gt 0 ] || set -- "${cases[@]}"
ktap_run "$@"
