#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Replies that the client pulls: right data without a Reply chunk, RDMA_DONE for
# each, nothing left exposed; and nothing of it where one end does not want it.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe tells of each connection that ran out of retries (12), or read what it may not (10, 11).
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 1[012]
'

CLIENT=/proc/sys/sunrpc
SERVER=/proc/sys/sunrpc/svc_rdma

# pulling CLIENT SERVER: what the ends do from the next mount on.
pulling() {
	echo "$1" >"$CLIENT/rdma_pulled_replies"
	echo "$2" >"$SERVER/pulled_replies"
	echo 16384 >"$SERVER/max_exposed_pages"
}

client_stat() { cat "$CLIENT/rdma_stat_$1"; }

# Counters as they were.
remember() {
	before_pulled=$(client_stat pulled)
	before_told=$(client_stat "done")
	before_exposed=$(svc_stat exposed)
	before_expired=$(svc_stat expired)
}

# What was exposed since then was pulled, and said to be: at least $1 Replies.
all_were_pulled() {
	local exposed pulled told

	exposed=$(($(svc_stat exposed) - before_exposed))
	pulled=$(($(client_stat pulled) - before_pulled))
	told=$(($(client_stat "done") - before_told))
	echo "exposed $exposed, pulled $pulled, told of $told"
	[ "$exposed" -ge "$1" ] || fail "only $exposed Replies were exposed"
	[ "$pulled" -eq "$exposed" ] || fail "exposed $exposed, but pulled $pulled"
	[ "$told" -eq "$exposed" ] || fail "exposed $exposed, but $told RDMA_DONEs"
	[ "$(svc_stat expired)" -eq "$before_expired" ] || fail "some were not pulled in time"
	[ "$(xprt_stat reply_chunks)" -eq 0 ] || fail "Reply chunks were offered"
	[ "$(xprt_stat bad_reply)" -eq 0 ] || fail "bad Replies"
}

none_was_pulled() {
	[ "$(svc_stat exposed)" -eq "$before_exposed" ] || fail "a Reply was exposed"
	[ "$(client_stat pulled)" -eq "$before_pulled" ] || fail "a Reply was pulled"
	[ "$(client_stat "done")" -eq "$before_told" ] || fail "an RDMA_DONE was sent"
}

make_directory() {
	mkdir "$WORK_ON_SERVER/many"
	seq -f "$WORK_ON_SERVER/many/a-name-that-takes-some-room-%04.0f" 1 "$1" |
		xargs touch
}

long_readdir_replies() {
	need_local_bed
	pulling 2 1
	nfs_mount "$1" rdma
	work_dir directories
	make_directory 1500
	remember
	[ "$(find "$WORK/many" -type f | wc -l)" -eq 1500 ] || fail "not 1500 names"
	all_were_pulled 1
	drop_caches
	[ "$(find "$WORK/many" -type f | sort | md5sum)" = \
		"$(find "$WORK_ON_SERVER/many" -type f | sed "s|^$WORK_ON_SERVER|$WORK|" |
			sort | md5sum)" ] || fail "other names"
	all_were_pulled 2
}

long_xattr_replies() {
	need_local_bed
	pulling 2 1
	nfs_mount 4.2 rdma
	work_dir attributes
	# shellcheck disable=SC2046 # several sizes
	attributes set "$WORK" 100 $(seq 3300 90 4200) 8192 16384 32768 65536
	nfs_remount 4.2 rdma
	remember
	# shellcheck disable=SC2046
	attributes check "$WORK" 100 $(seq 3300 90 4200) 8192 16384 32768 65536
	all_were_pulled 4
}

long_acl_replies() {
	local count
	need_local_bed
	pulling 2 1
	nfs_mount 4.2 rdma
	work_dir acls
	remember
	for count in 100 1000 2500; do
		touch "$WORK/$count"
		{
			printf '%s\n' user::rw- group::r-- mask::rwx other::---
			seq -f "user:%.0f:r-x" 100001 $((100000 + count))
		} | setfacl --set-file=- "$WORK_ON_SERVER/$count"
		drop_caches
		getfattr --absolute-names --only-values -n system.nfs4_acl "$WORK/$count" |
			users_by_number "$count" || fail "not the ACL of $count users"
	done
	all_were_pulled 2
}

# What is not neighbouring memory is not one transfer: behind an IOMMU that translates,
# the core maps a transfer to one run of addresses, so that each of its vectors has to
# end a page, and the next to start one. Here the core maps them one by one, and would
# not mind: so look at what it is given.
rdma_rw_bvecs_have_no_gaps() {
	need_local_bed
	local probe='rdma_rw_ctx_init_bvec' page

	trace_on
	[ -e "$TRACING/kprobe_events" ] || skip "this kernel has no kprobe events"
	page=$(getconf PAGE_SIZE)
	pulling 2 1
	nfs_mount 4.2 rdma
	work_dir seams
	make_directory 1500
	attributes set "$WORK" 8192 60000
	nfs_remount 4.2 rdma
	# The number of vectors, and of the first three where they start and end.
	# shellcheck disable=SC2016 # $argN is for the kernel
	echo "p:pulled/transfer $probe"' n=$arg5:u32' \
		'len0=+8($arg4):u32 off0=+12($arg4):u32 len1=+24($arg4):u32' \
		'off1=+28($arg4):u32 off2=+44($arg4):u32' \
		>>"$TRACING/kprobe_events" || fail "no probe of $probe"
	echo 1 >"$TRACING/events/pulled/transfer/enable"
	remember
	[ "$(find "$WORK/many" -type f | wc -l)" -eq 1500 ] || fail "not 1500 names"
	attributes check "$WORK" 8192 60000
	trace_off
	all_were_pulled 3
	[ "$(traced transfer)" -ge 3 ] || fail "the core was not seen to transfer anything"
	awk -v page="$page" '
		function seam(len, off, next_off) { return (off + len) % page || next_off }
		/ transfer: / {
			for (i = 1; i <= NF; i++)
				if (split($i, word, "=") == 2) is[word[1]] = word[2]
			all++
			if (is["n"] < 2) next
			several++
			if (seam(is["len0"], is["off0"], is["off1"]) ||
			    (is["n"] > 2 && seam(is["len1"], is["off1"], is["off2"]))) {
				if (!bad++) print
			}
		}
		END {
			print all + 0, "transfers,", several + 0, "of several vectors,", bad + 0,
				"with a seam"
			exit (bad || !several)
		}' "$TRACING/trace" || fail "a transfer of memory with gaps"
}

# Short Replies that could have been long register nothing at all.
short_replies_register_nothing() {
	pulling 1 1
	nfs_mount 4.2 rdma
	work_dir short
	touch "$WORK/file"
	setfattr -n user.short -v 1 "$WORK/file" || {
		! bed_is_local || fail "cannot set an attribute"
		skip "the export keeps no user attributes"
	}
	nfs_remount 4.2 rdma
	remember
	ls -l "$WORK" >/dev/null
	getfattr --absolute-names -n user.short "$WORK/file" >/dev/null
	getfattr --absolute-names "$WORK/file" >/dev/null
	none_was_pulled
	[ "$(xprt_stat reply_chunks)" -eq 0 ] || fail "Reply chunks were offered"
	[ "$(xprt_stat local_inv)" -eq 0 ] || fail "there was something to invalidate"
}

# Long Replies that come one after the other get Reply chunks after all.
repeated_long_replies_get_reply_chunk() {
	need_local_bed
	local each
	pulling 1 1
	nfs_mount 4.2 rdma
	work_dir habit
	attributes set "$WORK" 60000
	for each in 1 2 3 4 5 6 7 8; do
		drop_caches
		attributes check "$WORK" 60000
	done
	[ "$(xprt_stat reply_chunks)" -gt 0 ] || fail "no Reply chunk was offered"
}

# one_end_disabled CLIENT SERVER: then it is as if there were no such thing.
one_end_disabled() {
	need_local_bed
	pulling "$1" "$2"
	nfs_mount 4.2 rdma
	work_dir one-end
	make_directory 500
	remember
	[ "$(find "$WORK/many" -type f | wc -l)" -eq 500 ] || fail "not 500 names"
	none_was_pulled
	[ "$(xprt_stat reply_chunks)" -gt 0 ] || fail "no Reply chunk was offered"
}

# What a directory has that is long, five times.
read_attributes() {
	local _

	for _ in 1 2 3 4 5; do
		[ "$(getfattr --absolute-names --only-values -n user.long "$1" | wc -c)" -eq 50000 ] ||
			return 1
		getfattr --absolute-names -d "$1" >/dev/null || return 1
		ls -l "$MNT" >/dev/null
	done
}

# With one place for all, most are refused, and asked for again with a Reply chunk: where
# the link can be slow, some have to come while another is exposed. It must not be so slow
# that rxe sends again: then it registers again, too, what waits behind, cannot, and gives
# the connection up.
exposed_reply_limit() {
	need_local_bed
	local each before round readers
	before=$(cat "$SERVER/max_exposed_replies")
	echo 1 >"$SERVER/max_exposed_replies"
	pulling 2 1
	nfs_mount 4.2 rdma
	echo "$before" >"$SERVER/max_exposed_replies"
	work_dir few-places
	attributes set "$WORK" 60000
	for each in $(seq 8); do
		cp -r "$WORK_ON_SERVER" "$EXPORT/few-places-$each"
		setfattr -n user.long -v "$(head -c 50000 /dev/zero | tr '\0' v)" \
			"$EXPORT/few-places-$each"
	done
	# All is slow enough by itself in the debugging kernel.
	! bed_has_link || [ "$PACE" -gt 1 ] || link_set_delay "$BED_CLIENT_PORT" 50
	# Eight that start at a time need not ask at a time.
	for round in {1..10}; do
		drop_caches
		readers=()
		for each in $(seq 8); do
			read_attributes "$MNT/few-places-$each" &
			readers+=($!)
		done
		for each in "${readers[@]}"; do
			wait "$each" || fail "a Reply was lost"
		done
		bed_has_link && [ "$(xprt_stat bad_reply)" -eq 0 ] || break
	done
	echo "$(xprt_stat bad_reply) Replies were refused in $round rounds"
	if bed_has_link; then
		[ "$PACE" -gt 1 ] || link_clear_delay "$BED_CLIENT_PORT"
		[ "$(xprt_stat bad_reply)" -gt 0 ] || fail "each had a place"
	fi
	[ "$(xprt_stat connect_count)" -eq 1 ] || fail "the connection was lost"
}

# With no page to expose, each is refused; here before SUNRPC knows that the Call is sent.
refused_before_send_returns() {
	need_local_bed
	local each late

	pulling 2 1
	nfs_mount "$1" rdma
	work_dir refused-at-once
	make_directory 500
	# Without NFSv4.2 there are no attributes to ask for.
	[ "$1" = 3 ] || attributes set "$WORK" 60000
	drop_caches
	remember
	echo 1 >"$SERVER/max_exposed_pages"
	delay_fn return "$RUST_SEND_REQUEST" 30
	for each in 1 2 3; do
		drop_caches
		[ "$(find "$WORK/many" -type f | wc -l)" -eq 500 ] || fail "not 500 names"
		[ "$1" = 3 ] || attributes check "$WORK" 60000
	done
	late=$(delay_hits)
	unload_fault_modules
	echo "$late Calls, $(xprt_stat bad_reply) refused"
	[ "$late" -gt 0 ] || fail "no call was delayed"
	[ "$(xprt_stat bad_reply)" -ge 3 ] || fail "no Reply was refused"
	[ "$(xprt_stat reply_chunks)" -ge 3 ] || fail "no Call was sent again with a Reply chunk"
	[ "$(xprt_stat connect_count)" -eq 1 ] || fail "the connection was lost"
}

# Packets of RoCEv2 that matter here, a line each: of the server nomsg XID HANDLE, and
# response SEQUENCE for the last packet of one; of the client read HANDLE SEQUENCE, done XID,
# and done XID HANDLE if the handle is invalidated with it.
wire() {
	tcpdump -nn -t -x -r "$1" 'udp dst port 4791' 2>/dev/null | awk -v server="$SERVER4" '
		function words(from, count) { return substr(packet, 2 * from + 1, 8 * count) }
		function sequence(  i, n) {
			for (i = 75; i < 81; i++)
				n = 16 * n + index("0123456789abcdef", substr(packet, i, 1)) - 1
			return n
		}
		function look() {
			# Behind the headers of IP, UDP, and the base transport header.
			code = substr(packet, 57, 2)
			if (code == "04" && served && words(52, 3) == "000000010000000100000000")
				print "nomsg", words(40, 1), words(64, 1)
			else if (code == "0c" && !served)
				print "read", words(48, 1), sequence()
			else if ((code == "0f" || code == "10") && served)
				print "response", sequence()
			else if (code == "04" && !served && words(52, 1) == "00000003")
				print "done", words(40, 1)
			else if (code == "17" && !served && words(56, 1) == "00000003")
				print "done", words(44, 1), words(40, 1)
		}
		/^IP/ {
			if (packet) look()
			packet = ""
			served = index($2, server ".") == 1
			next
		}
		{ sub(/^[^:]*:/, ""); gsub(/[ \t]/, ""); packet = packet $0 }
		END { if (packet) look() }'
}

# in_order INVALIDATES: each Reply that is exposed is read by its handle, and RDMA_DONE
# follows all of the data. It invalidates that handle, or none does. Responses come in the
# order of the sequence numbers that the requests have.
in_order() {
	awk -v words=$((2 + $1)) '
		function missing(wanted,  i, n) {
			for (i in waits)
				n += waits[i] == wanted
			return n || !(wanted in asked)
		}
		$1 == "nomsg" && !($2 in handle) { handle[$2] = $3; n++ }
		$1 == "read" { asked[$2] = 1; waits[$3] = $2 }
		$1 == "response" {
			for (each in waits)
				if (($2 - each + 16777216) % 16777216 < 8388608)
					delete waits[each]
		}
		$1 == "done" && !($2 in handle) { print "done before its Reply: " $2; bad = 1 }
		$1 == "done" && missing(handle[$2]) { print "done before the data: " $2; bad = 1 }
		$1 == "done" && NF != words { print "done, and invalidates " (NF - 2); bad = 1 }
		$1 == "done" && NF == 3 && $3 != handle[$2] { print "another handle: " $3; bad = 1 }
		$1 == "done" { told[$2] = 1 }
		END {
			for (each in handle) if (!(each in told)) { print "no done: " each; bad = 1 }
			print n + 0, "Replies exposed, read, and told of"
			exit (bad || n < 2)
		}'
}

# packet_order INVALIDATES: RDMA_NOMSG with a Read list, RDMA Reads of what it names, and
# RDMA_DONE, which invalidates what was read if the client agrees to that.
packet_order() {
	need_local_bed
	local capture each

	pulling 2 1
	echo "$1" >"$CLIENT/rdma_remote_invalidation"
	nfs_mount 4.2 rdma
	work_dir wire
	make_directory 400
	attributes set "$WORK" 65536
	nfs_remount 4.2 rdma
	tcpdump -i "$BED_SERVER_IF" -B 32768 -s 128 -U --immediate-mode -w "$ktap_dir/wire" \
		udp port 4791 2>"$ktap_dir/tcpdump" &
	capture=$!
	for each in $(seq 100); do
		! grep -q listening "$ktap_dir/tcpdump" || break
		sleep 0.1
	done
	attributes check "$WORK" 65536
	[ "$(find "$WORK/many" -type f | wc -l)" -eq 400 ] || fail "not 400 names"
	# The last RDMA_DONE may be on its way, or in tcpdump's hands.
	for each in {1..20}; do
		sleep 0.5
		! wire "$ktap_dir/wire" 2>/dev/null | in_order "$1" >/dev/null || break
	done
	kill -INT "$capture"
	wait "$capture" || fail "$(cat "$ktap_dir/tcpdump")"
	! grep -q '^[1-9][0-9]* packets dropped' "$ktap_dir/tcpdump" || fail "packets are missing"
	wire "$ktap_dir/wire" >"$ktap_dir/events"
	sort "$ktap_dir/events" | awk '{ n[$1]++ } END { for (each in n) print n[each], each }'
	in_order "$1" <"$ktap_dir/events" || fail "not in order"
}

# Who is killed while a Reply is on its way leaves nothing for the server to write to,
# and the server is told all the same. LONG is how many times as many.
readers_killed_while_exposed() {
	need_local_bed
	local kills=$(($1 * ${LONG:-1})) each before readers connects exposed pulled told

	pulling 2 1
	nfs_mount 4.2 rdma
	work_dir cancelled
	make_directory 1200
	attributes set "$WORK" 60000
	connects=$(xprt_stat connect_count)
	remember
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
		# A Reply is on its way to them, or they have it.
		for _ in {1..100}; do
			[ "$(svc_stat exposed)" -eq "$before" ] || break
			sleep 0.02
		done
		sleep "0.$((RANDOM % 2))$((RANDOM % 10))"
		kill -KILL "${readers[@]}" 2>/dev/null || true
		wait "${readers[@]}" 2>/dev/null || true
	done
	# What waits in the slow link would be lost, and rxe would send it again too late.
	sleep 1
	! bed_has_link || link_clear_delay "$BED_CLIENT_PORT"
	drop_caches
	[ "$(find "$WORK/many" -type f | wc -l)" -eq 1200 ] || fail "not 1200 names"
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || fail "connections were lost"
	# Who is killed says nothing itself: the last ones may still be on their way.
	for _ in {1..20}; do
		exposed=$(($(svc_stat exposed) - before_exposed))
		told=$(($(client_stat "done") - before_told))
		[ "$told" -ne "$exposed" ] || break
		sleep 0.5
	done
	pulled=$(($(client_stat pulled) - before_pulled))
	echo "$exposed exposed, $pulled pulled, told of $told"
	[ "$told" -eq "$exposed" ] || fail "an RDMA_DONE is missing"
	! bed_has_link || [ "$exposed" -gt "$pulled" ] ||
		fail "nobody was killed in between"
}

# The server's device goes while a Reply is exposed: it is given back with the
# device, page for page, and its RPC is answered over the next one. A round in which it
# was pulled before that shows nothing.
device_removed_while_exposed() {
	need_link
	local each reader early=0

	pulling 2 1
	nfs_mount 4.2 rdma
	work_dir device-goes
	attributes set "$WORK" 60000
	nfs_remount 4.2 rdma
	# Room for one Reply, and none for a second if the first were forgotten.
	echo 20 >"$SERVER/max_exposed_pages"
	attributes check "$WORK" 60000
	for each in {1..9}; do
		drop_caches
		remember
		link_set_delay "$BED_CLIENT_PORT" 2200
		attributes check "$WORK" 60000 &
		reader=$!
		for _ in $(seq 300); do
			[ "$(svc_stat exposed)" -eq "$before_exposed" ] || break
			sleep 0.1
		done
		device_delete "$BED_SERVER_DEV"
		link_clear_delay "$BED_CLIENT_PORT"
		[ "$(svc_stat exposed)" -gt "$before_exposed" ] || fail "nothing was exposed"
		[ "$(client_stat pulled)" -eq "$before_pulled" ] || early=$((early + 1))
		device_add "$BED_SERVER_DEV"
		wait "$reader" || fail "round $each: the value was not read"
		[ "$(client_stat pulled)" -gt "$before_pulled" ] || fail "and not pulled after"
		[ $((each - early)) -lt 3 ] || break
	done
	echo "pulled before the device went: $early of $each"
	[ "$early" -lt "$each" ] || fail "each was pulled before"
	drop_caches
	nfs_remount 4.2 rdma
	echo 20 >"$SERVER/max_exposed_pages"
	remember
	attributes check "$WORK" 60000
	all_were_pulled 1
}

# A Reply has the time that is set when it is sent, though the one before it had more and the
# alarm is still set for that one. Who reads too late is refused, and asks again.
exposure_timeout_shortened() {
	need_local_bed
	local each reader

	bed_has_link || skip "the link cannot be slow"
	pulling 2 1
	echo 600 >"$SERVER/exposed_seconds"
	nfs_mount 4.2 rdma
	work_dir less-time
	attributes set "$WORK" 60000
	nfs_remount 4.2 rdma
	remember
	attributes check "$WORK" 60000
	all_were_pulled 1
	echo 1 >"$SERVER/exposed_seconds"
	drop_caches
	link_set_delay "$BED_CLIENT_PORT" 2200
	attributes check "$WORK" 60000 &
	reader=$!
	# On such a link rxe may lose the connection first, which is made again.
	for each in $(seq $((400 * PACE))); do
		[ "$(svc_stat expired)" -eq "$before_expired" ] || break
		sleep 0.1
	done
	link_clear_delay "$BED_CLIENT_PORT"
	echo 30 >"$SERVER/exposed_seconds"
	echo "expired after $each tenths of a second: $(($(svc_stat expired) - before_expired))"
	[ "$(svc_stat expired)" -gt "$before_expired" ] || fail "its time was not over"
	wait "$reader" || fail "the value was not read"
}

# Whichever way a test ended, the next one finds the wire and the devices as usual.
test_cleanup() {
	cd /
	echo 1 >"$CLIENT/rdma_remote_invalidation"
	echo 30 >"$SERVER/exposed_seconds"
	umount_all
	unload_fault_modules
	bed_is_local || return 0
	! bed_has_link || link_clear_delay "$BED_CLIENT_PORT" || :
	[ -e "/sys/class/infiniband/$BED_SERVER_DEV" ] || device_add "$BED_SERVER_DEV"
} 2>/dev/null

# Whatever a test leaves behind.
cleanup() {
	unload_fault_modules
	if [ -d "$TRACING/events/pulled" ]; then
		trace_off
		echo '-:pulled/transfer' >>"$TRACING/kprobe_events"
	fi
	pulling "$client_default" "$server_default"
	bed_down
}

bed_up
[ -e "$CLIENT/rdma_pulled_replies" ] || ktap_skip_all "this module pulls no Replies"
client_default=$(cat "$CLIENT/rdma_pulled_replies")
server_default=$(cat "$SERVER/pulled_replies")
trap cleanup EXIT
if [ $# -eq 0 ] && bed_is_local && ! bed_has_link; then
	echo "# over iWARP the client pulls no Replies, whatever is set: only that is tried"
	set -- "one_end_disabled 2 1"
fi
[ $# -gt 0 ] || set -- "long_readdir_replies 4.2" "long_readdir_replies 3" \
	long_xattr_replies long_acl_replies rdma_rw_bvecs_have_no_gaps \
	short_replies_register_nothing repeated_long_replies_get_reply_chunk \
	"one_end_disabled 2 0" "one_end_disabled 0 1" exposed_reply_limit \
	"refused_before_send_returns 4.2" "refused_before_send_returns 3" \
	"packet_order 1" "packet_order 0" \
	device_removed_while_exposed exposure_timeout_shortened \
	"readers_killed_while_exposed 80"
ktap_run "$@"
