#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What client and server agree on, for each pair of settings, and how long the
# messages are that they then send: captured on the link, or as they arrive where
# there is none, and compared with the agreement. No Send is longer; in either
# direction one is as long. Each pair carries a mixed workload as well, whose data is
# compared. Lines that begin with "table:" end with the octets of memory that the
# messages of the connection take, of the client and of the server. However long a
# message is, what SUNRPC is given of it as its first part is within a page: it copies
# from there to a page. Where there is no memory for long messages, shorter ones are
# agreed on; where there is none any more, the connection ends, and the next one has those.
#
# SIZES (KiB) are the settings to try at either end.

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

smaller() { echo $(($1 < $2 ? $1 : $2)); }

# The capture sees each packet once: on the switch, as it arrives from the client
# or is passed on to it.
capture_start() {
	rm -f "$ktap_dir/tcpdump" "$ktap_dir/packets"
	mkfifo "$ktap_dir/packets"
	"$HELPERS/sends_helper" <"$ktap_dir/packets" >"$ktap_dir/sends" &
	nsenter --net="/run/netns/$BED_SWITCH" -- tcpdump -i "$BED_CLIENT_PORT" \
		-s 96 -B 65536 -U -w - udp port 4791 \
		2>"$ktap_dir/tcpdump" >"$ktap_dir/packets" &
	capture=$!
	until [ -e "$ktap_dir/tcpdump" ] && grep -q 'listening on' "$ktap_dir/tcpdump"; do sleep 0.1; done
}

capture_stop() {
	sleep 1
	kill -INT "$capture"
	wait
	cat "$ktap_dir/tcpdump" "$ktap_dir/sends"
	! grep -q '^[1-9][0-9]* packets dropped' "$ktap_dir/tcpdump" ||
		fail "packets are missing"
}

# Where nothing travels that could be captured, what arrives is looked at.
ARRIVALS="svcrdma_wc_recv xprtrdma_wc_receive"

watch_start() {
	local arrivals=$ARRIVALS

	! bed_has_link || { capture_start; arrivals=; }
	# shellcheck disable=SC2086 # names
	trace_on xprtrdma_inline_thresh $arrivals
}

# watch_stop: sets calls and replies, the octets of the longest ones.
watch_stop() {
	trace_off
	if bed_has_link; then
		capture_stop
		calls=$(longest_from 192.0.2.2)
		replies=$(longest_from "$SERVER4")
	else
		calls=$(longest_arrival svcrdma_wc_recv)
		replies=$(longest_arrival xprtrdma_wc_receive)
	fi
}

# longest_arrival EVENT
longest_arrival() {
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	awk -F= -v event=" $1: " 'index($0, event) && $NF > most { most = $NF + 0 }
		END { print most + 0 }' "$TRACING/trace"
}

# longest_from ADDRESS
longest_from() { awk -v a="$1" '$1 == a { print $2 }' "$ktap_dir/sends"; }

# READs and WRITEs of every size around the threshold, so that some message is
# exactly as long: only those that fit travel without a chunk.
around() {
	local first=$(($1 > 1200 ? $1 - 1024 : 4))

	"$HELPERS/direct_helper" "$WORK/file" $((($1 - first) / 4 * 2)) "$first" "$1" 4 ||
		fail "wrong data around $1 octets"
}

# A value of an attribute travels inline if it fits, whatever chunk is offered for
# it, so that Replies of every length come, too. There are none beyond 64 KiB.
values() {
	"$HELPERS/values_helper" "$WORK_ON_SERVER/file" "$WORK/file" $(($1 - 512)) "$1" ||
		fail "wrong values around $1 octets"
}

# A bit of everything.
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

# agreed: what the connection made last says.
agreed() {
	sed -n 's/.*neg send\/recv=\([0-9]*\)\/\([0-9]*\),.*/\1 \2/p' "$TRACING/trace" |
		tail -n 1
}

# negotiated_thresholds CLIENT-SENDS CLIENT-RECEIVES SERVER-RECEIVES SERVER-SENDS, in octets.
negotiated_thresholds() {
	local there back calls replies memory capture longest

	there=$(smaller "$1" "$3") back=$(smaller "$2" "$4")
	set_thresholds "$@"
	insmod "$HELPERS/check_rq_head.ko"
	watch_start
	nfs_mount 4.2 rdma
	set_thresholds 4096 4096 4096 0
	work_dir thresholds
	around "$there"
	[ "$back" -eq "$there" ] || around "$back"
	[ "$back" -gt 65536 ] || values "$back"
	mixed
	memory="$(cat $CLIENT/rdma_message_octets) $(cat $SERVER/message_octets)"
	longest=$(cat /sys/module/check_rq_head/parameters/max_len)
	nfs_umount
	watch_stop
	echo "table: $* $(agreed) $calls $replies $memory"
	[ "$(agreed)" = "$there $back" ] || fail "agreed on $(agreed)"
	[ "$longest" -gt 0 ] || fail "no Call was looked at"
	[ "$longest" -le 4096 ] || fail "the head of a Call had $longest octets"
	[ "$calls" -le "$there" ] || fail "a Call of $calls octets"
	[ "$replies" -le "$back" ] || fail "a Reply of $replies octets"
	[ "$calls" -eq "$there" ] || fail "no Call was longer than $calls octets"
	# The client wants a chunk if the longest Reply would not fit, and few are that long.
	[ "$replies" -eq "$back" ] || [ "$back" -gt 65536 ] ||
		fail "no Reply was longer than $replies octets"
	[ "$replies" -gt $((back - 512)) ] || fail "no Reply was longer than $replies octets"
}

# How many allocations have failed.
failures() { cat /sys/module/fail_highorder/parameters/injected; }

# no_highorder_memory TASKS CLIENT-SENDS CLIENT-RECEIVES SERVER-RECEIVES SERVER-SENDS, in octets:
# tasks of this name find no memory in pieces of 32 KiB or more, and that end makes do with
# shorter messages.
no_highorder_memory() {
	local there back

	there=$(smaller 16384 "$2") back=$(smaller 16384 "$3")
	set_thresholds "${@:2}"
	insmod "$HELPERS/fail_highorder.ko" comm="$1" min_size=32768
	trace_on xprtrdma_inline_thresh
	nfs_mount 4.2 rdma
	trace_off
	set_thresholds 4096 4096 4096 0
	[ "$(agreed)" = "$there $back" ] || fail "agreed on $(agreed)"
	work_dir no-highorder
	mixed
	nfs_umount
	[ "$(failures)" -gt 0 ] || fail "no allocation has failed"
}

# A connection of long messages begins with one of them for the server's Replies. When it wants
# another, and there is no memory for that, the client is not left to wait for a Reply, which it
# would do for five minutes: it has to connect again, and the messages are shorter then.
R8166_4_5_4_3_no_memory_for_reply() {
	local _ began took

	set_thresholds 4096 65536 4096 65536
	nfs_mount "$1" rdma timeo=3000
	work_dir without-memory
	trace_on xprtrdma_inline_thresh
	insmod "$HELPERS/fail_highorder.ko" comm=nfsd min_size=32768
	began=$SECONDS
	load_start 8
	for _ in $(seq $((200 * PACE))); do
		[ "$(xprt_stat connect_count)" -eq 1 ] || break
		sleep 0.1
	done
	took=$((SECONDS - began))
	echo "$(failures) allocations failed, connected again after $took s"
	[ "$(failures)" -gt 0 ] || fail "no allocation has failed"
	[ "$(xprt_stat connect_count)" -gt 1 ] && [ "$took" -lt $((60 * PACE)) ] ||
		fail "the client waited for a Reply"
	load_wait_progress
	load_stop
	trace_off
	set_thresholds 4096 4096 4096 0
	[ "$(agreed)" = "4096 16384" ] || fail "agreed on $(agreed)"
	rm -r "$WORK"
}

test_cleanup() {
	[ ! -d /sys/module/check_rq_head ] || rmmod check_rq_head
	[ ! -d /sys/module/fail_highorder ] || rmmod fail_highorder
	cd /
	umount_all
}

need_ours() {
	[ -e "$SERVER/max_reply_size" ] || ktap_skip_all "only for this module's tunables"
}

bed_up
need_ours
cases=()
for client in $SIZES; do
	for server in $SIZES; do
		c=$((client * 1024)) s=$((server * 1024))
		cases+=("negotiated_thresholds $c $c $s $s")
	done
done
# Four different ones.
cases+=("negotiated_thresholds 8192 2048 16384 1024"
	"negotiated_thresholds 1024 65536 4096 12288")
# What the server sends, or receives, and what the client receives.
cases+=("no_highorder_memory nfsd 4096 65536 4096 65536"
	"no_highorder_memory nfsd 65536 4096 65536 4096"
	"no_highorder_memory kworker 4096 65536 4096 65536"
	"R8166_4_5_4_3_no_memory_for_reply 3" "R8166_4_5_4_3_no_memory_for_reply 4.2")
TEST_TIMEOUT=$((TEST_TIMEOUT * 2))
[ $# -gt 0 ] || set -- "${cases[@]}"
ktap_run "$@"
