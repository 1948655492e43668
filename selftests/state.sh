#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The files under /sys/kernel/debug/rpcrdma, which show the state of each connection: their names
# and values, and that they are safe to read while connections and the module come and go.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

STATE=/sys/kernel/debug/rpcrdma

# rxe reports connections that exceeded their retries (12).
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'

# The names in each file, in order. tools/check compares them with Documentation/operating.rst.
CLIENT_NAMES='netid peer source device device_port state state_ms closed_by closed_why connects
	failed_connects last_connect_error inline_send_bytes inline_recv_bytes remote_invalidation
	pulled_replies credits_granted credits_used credits_waiting receives_posted mrs_idle
	mrs_used calls_in_flight oldest_call_ms calls_inline calls_read calls_write
	calls_reply_chunk replies_pulled inline_bytes read_bytes written_bytes pulled_bytes
	retransmissions mr_waits send_queue_waits backchannel_calls'
SERVER_NAMES='netid peer source device device_port state state_ms closed_by closed_why admitted
	inline_send_bytes inline_recv_bytes remote_invalidation pulled_replies credits_granted
	calls_in_flight oldest_call_ms receives_posted send_backlog reads_queued pulled_pages
	exposed_replies exposed_pages
	calls calls_with_read_chunks replies_inline replies_write replies_pulled inline_bytes
	read_bytes written_bytes send_backlog_waits stalls backchannel_calls'

# Credits of a new connection, and the most that it grants.
FIRST_CREDITS=16
MAX_CREDITS=128

# Rounds of mounts and unloads under readers.
ROUNDS=${LONG:+100}
ROUNDS=${ROUNDS:-10}

need_state() {
	need_local_bed
	[ "$(module_kind)" = rust ] || skip "the C module has no such files"
	[ -d "$STATE" ] || skip "this kernel has no debugfs"
}

# client_file, server_file: prints the newest file of that end.
client_file() { newest "$STATE"/client/*; }
server_file() { newest "$STATE"/server/[0-9]*; }
newest() { printf '%s\n' "$@" | sort -t/ -k7n | tail -n 1; }

# value FILE NAME: prints the value.
value() { sed -n "s/^$2: //p" "$1"; }

# expect FILE NAME REGEX: fails unless the whole value matches.
expect() {
	local value

	value=$(value "$1" "$2")
	grep -Eqx -e "$3" <<<"$value" || fail "${1#"$STATE/"}: $2 is \"$value\", not $3"
}

# equals FILE NAME VALUE
equals() {
	[ "$(value "$1" "$2")" = "$3" ] ||
		fail "${1#"$STATE/"}: $2 is \"$(value "$1" "$2")\", not $3"
}

# wait_value FILE NAME REGEX: waits until the whole value matches.
wait_value() {
	local deadline=$((SECONDS + IO_TIMEOUT))

	until value "$1" "$2" | grep -Eqx -e "$3"; do
		[ "$SECONDS" -lt "$deadline" ] || fail "$2 is \"$(value "$1" "$2")\", not $3"
		sleep 0.2
	done
}

# has_names FILE NAMES: fails unless the file has these names and no others, each with a value.
has_names() {
	cat "$1"
	diff <(awk '{ print /^[a-z_]+: .*[^ ]$/ ? substr($1, 1, length($1) - 1) : "bad line: " $0 }' "$1") \
		<(tr -s ' \t' '\n' <<<"$2") || fail "$1 has other names"
}

names_are_documented() {
	need_state
	nfs_mount 4.2 rdma
	has_names "$(client_file)" "$CLIENT_NAMES"
	has_names "$(server_file)" "$SERVER_NAMES"
}

# addresses_and_agreement PROTO
addresses_and_agreement() {
	local client server source any='[0-9]+' pulled=yes

	need_state
	# Over iWARP a client would need an MR for each RDMA Read, and pulls nothing.
	[ "$BED_RDMA" = rxe ] || pulled=no
	nfs_mount 4.2 "$1"
	client=$(client_file) server=$(server_file)
	[ -n "$(with_client_sysfs sh -c "echo /sys/kernel/sunrpc/xprt-switches/*/xprt-${client##*/}-rdma")" ] ||
		fail "${client##*/} is not the number of a transport"
	expect "$client" netid "$1"
	expect "$server" netid "$1"
	source=$(value "$client" source)
	equals "$server" peer "$source"
	equals "$client" peer "$(value "$server" source)"
	case $1 in
	rdma)	equals "$client" peer "$SERVER4:$BED_PORT" ;;
	*)	equals "$client" peer "[$SERVER6]:$BED_PORT" ;;
	esac
	expect "$client" device "$BED_CLIENT_DEV"
	expect "$server" device "$BED_SERVER_DEV"
	for each in "$client" "$server"; do
		expect "$each" device_port 1
		expect "$each" state connected
		expect "$each" closed_by -
		expect "$each" closed_why -
		expect "$each" inline_send_bytes 4096
		expect "$each" inline_recv_bytes 4096
		expect "$each" pulled_replies $pulled
		expect "$each" credits_granted "$FIRST_CREDITS"
		expect "$each" receives_posted "$any"
	done
	expect "$client" remote_invalidation "$(value "$server" remote_invalidation)"
	expect "$client" mrs_idle "$any"
	expect "$client" last_connect_error -
	[ "$BED_RDMA" = siw ] || expect "$client" connects 1
	wait_value "$server" admitted yes
}

# moves FILE NAME MIN MAX COMMAND...: fails unless COMMAND increases the counter by MIN to MAX. The
# server counts a Reply when its Send has completed, which may be after the client has the Reply.
moves() {
	local file=$1 name=$2 min=$3 max=$4 before delta deadline=$((SECONDS + IO_TIMEOUT))
	shift 4

	before=$(value "$file" "$name")
	"$@"
	until delta=$(($(value "$file" "$name") - before)) && [ "$delta" -ge "$min" ]; do
		[ "$SECONDS" -lt "$deadline" ] || break
		sleep 0.2
	done
	echo "${file#"$STATE/"}: $name increases by $delta on $*"
	[ "$delta" -ge "$min" ] && [ "$delta" -le "$max" ] || fail "expected $min to $max"
}

transfer_in() { dd if="$WORK/file" of=/dev/null bs="$1" count="$2" iflag=direct status=none; }
transfer_out() {
	dd if=/dev/zero of="$WORK/file" bs="$1" count="$2" oflag=direct conv=notrunc status=none
}

# The counters of each way move by what was transferred, and those of the others do not.
counters_by_way() {
	local client server

	need_state
	nfs_mount 4.2 rdma
	work_dir counters
	head -c 1048576 /dev/zero >"$WORK/file"
	sync
	client=$(client_file) server=$(server_file)
	moves "$client" calls_inline 10 60 transfer_in 100 10
	moves "$client" written_bytes 0 0 transfer_in 100 10
	moves "$client" inline_bytes 2000 100000 transfer_in 100 10
	moves "$server" calls 10 60 transfer_in 100 10
	moves "$server" replies_inline 10 60 transfer_in 100 10
	moves "$server" inline_bytes 2000 100000 transfer_in 100 10
	moves "$client" calls_write 10 10 transfer_in 65536 10
	moves "$client" written_bytes 655360 655360 transfer_in 65536 10
	moves "$client" calls_read 0 0 transfer_in 65536 10
	moves "$server" replies_write 10 10 transfer_in 65536 10
	moves "$server" written_bytes 655360 655360 transfer_in 65536 10
	moves "$client" calls_read 10 10 transfer_out 65536 10
	moves "$client" read_bytes 655360 655360 transfer_out 65536 10
	moves "$client" calls_write 0 0 transfer_out 65536 10
	moves "$server" calls_with_read_chunks 10 10 transfer_out 65536 10
	moves "$server" read_bytes 655360 655360 transfer_out 65536 10
	umount_all
	set_pulled_replies 0 0
	nfs_mount 4.2 rdma
	set_pulled_replies
	client=$(client_file) server=$(server_file)
	moves "$client" calls_reply_chunk 1 100 ls -l "$WORK"
	moves "$client" replies_pulled 0 0 ls -l "$WORK"
	rm -r "$WORK"
}

# A reader whose buffer is short gets one text, as if it had read all of it at once.
short_reads() {
	local file

	need_state
	nfs_mount 4.2 rdma
	for file in "$(client_file)" "$(server_file)"; do
		dd if="$file" bs=7 status=none | sed 's/:.*//' | cmp - <(sed 's/:.*//' "$file") ||
			fail "$file reads otherwise in parts"
	done
}

# end_is_listed NUMBER: the server lists the end of this connection.
end_is_listed() { grep -q "^$1"$'\t' "$STATE/server/ended"; }

# wait_ended FILE REASON: waits until the server lists the end of this connection, and fails unless
# the device ended it for this reason.
wait_ended() {
	local number=${1##*/}

	wait_for "the server does not list the end" end_is_listed "$number"
	cat "$STATE/server/ended"
	grep -Eq "^$number"$'\t[0-9.]+:[0-9]+\t[0-9]+\tdevice\t'"$2\$" "$STATE/server/ended" ||
		fail "the server's line is wrong"
}

# write_sector CHARACTER: writes 512 bytes of it to the start of the file, in one RPC.
write_sector() {
	head -c 512 /dev/zero | tr '\0' "$1" |
		dd of="$MNT/file" bs=512 iflag=fullblock oflag=direct conv=notrunc status=none
}

# Each end says why the connection has ended. Both have a message to send while the link is cut,
# for as long as their devices try: the server the Reply to a WRITE that its file system has held
# up, the client another Call. With MILLISECONDS, the server's handler of the failed Send is late, so
# that its flushed Receives end the connection first.
# cut_link [MILLISECONDS]
cut_link() {
	local client server writing looking reason='completion: transport retry counter exceeded'

	need_state
	need_link
	frozen_export || skip "no file system that can be frozen"
	EXPORT=$FROZEN nfs_mount 4.2 rdma actimeo=0
	write_sector a
	client=$(client_file) server=$(server_file)
	fsfreeze -f "$FROZEN"
	write_sector b &
	writing=$!
	wait_value "$server" calls_in_flight 1
	link_down
	[ $# -eq 0 ] || delay_fn entry "$RUST_REPLY_DONE" "$1"
	fsfreeze -u "$FROZEN"
	stat "$MNT/file" >/dev/null &
	looking=$!
	wait_value "$client" closed_why "$reason"
	expect "$client" closed_by device
	cat "$client"
	wait_ended "$server" "$reason"
	[ $# -eq 0 ] || [ "$(delay_hits)" -ge 1 ] || fail "no handler was late"
	unload_fault_modules
	link_up
	wait "$writing" || fail "the WRITE failed"
	wait "$looking" || fail "stat failed"
	expect "$client" state connected
	[ "$(value "$client" connects)" -ge 2 ] || fail "the client has not connected again"
	head -c 512 /dev/zero | tr '\0' b | cmp - "$FROZEN/file" || fail "the file has other data"
}

# A server grants more credits, and posts as many more Receives, when its file system holds up half of
# the Calls that it has granted. With MILLISECONDS, the network delays the Calls instead.
# credits_follow_use [MILLISECONDS]
credits_follow_use() {
	local client server running receives io=randwrite deadline=$((SECONDS + IO_TIMEOUT))

	need_state
	[ $# -eq 0 ] || { need_link; io=randread; }
	frozen_export || skip "no file system that can be frozen"
	EXPORT=$FROZEN nfs_mount 3 rdma actimeo=0
	write_sector a
	client=$(client_file) server=$(server_file)
	expect "$server" credits_granted "$FIRST_CREDITS"
	[ $# -eq 0 ] || link_set_delay "$BED_CLIENT_PORT" "$1"
	receives=$(value "$server" receives_posted)
	fio --name=many --filename="$MNT/file" --size=64k --rw="$io" --bs=512 --direct=1 \
		--ioengine=libaio --iodepth="$MAX_CREDITS" --time_based --runtime=600 \
		--output="$ktap_dir/fio" &
	running=$!
	until [ "$(value "$server" credits_granted)" = "$MAX_CREDITS" ]; do
		[ "$SECONDS" -lt "$deadline" ] || { cat "$server"; fail "the server grants no more"; }
		[ $# -gt 0 ] || fsfreeze -f "$FROZEN"
		sleep 0.5
		[ $# -gt 0 ] || fsfreeze -u "$FROZEN"
	done
	[ $# -eq 0 ] || link_clear_delay "$BED_CLIENT_PORT"
	kill -INT "$running"
	wait "$running" || :
	stat "$MNT/file" >/dev/null
	expect "$client" credits_granted "$MAX_CREDITS"
	[ "$(value "$server" receives_posted)" -ge $((receives + MAX_CREDITS - FIRST_CREDITS - 7)) ] ||
		{ cat "$server"; fail "there are credits without a Receive"; }
	expect "$server" state connected
}

# The server stops: the client tells that its peer has disconnected, and then that nothing listens.
server_stops() {
	local client

	need_state
	need_link
	nfs_mount 3 rdma actimeo=0
	work_dir server-stops
	client=$(client_file)
	server_stop
	wait_value "$client" closed_by peer
	expect "$client" closed_why 'peer disconnected'
	ls "$WORK" >/dev/null &
	wait_value "$client" last_connect_error \
		'refused: no NFS server listens for RDMA on this port'
	[ "$(value "$client" failed_connects)" -ge 1 ] || fail "no failed attempt"
	cat "$client"
	server_start
	wait $! || fail "ls failed"
	rm -r "$WORK"
}

# server_hardware ADDRESS: the client's neighbour entry of the server has this hardware address.
server_hardware() {
	on_client ip neighbour replace "$SERVER4" lladdr "$1" nud permanent dev "$BED_CLIENT_IF"
}

# The server's address moves to a machine that does not answer, and back.
peer_moves() {
	local client

	need_state
	need_link
	nfs_mount 3 rdma
	work_dir moves
	client=$(client_file)
	load_start
	server_hardware 02:00:00:00:02:99
	wait_value "$client" closed_why 'hardware address of the peer changed'
	expect "$client" closed_by peer
	server_hardware "$(cat "/sys/class/net/$BED_SERVER_IF/address")"
	load_wait_progress
	load_stop
	rm -r "$WORK"
}

# read_state: reads all files until there is $ktap_dir/stop.
read_state() {
	until [ -e "$ktap_dir/stop" ]; do
		cat "$STATE"/client/* "$STATE"/server/* >/dev/null 2>&1 || :
	done
}

# Files are read while mounts come and go and the module is unloaded, each time with a file open.
read_while_unloaded() {
	local round readers=() _

	need_state
	[ ! -e /sys/kernel/debug/kmemleak ] || skip "kmemleak needs the symbols of the module"
	rm -f "$ktap_dir/stop"
	for _ in 1 2; do
		read_state &
		readers+=($!)
	done
	for round in $(seq "$ROUNDS"); do
		nfs_mount 4.2 rdma nconnect=2
		ls "$MNT" >/dev/null
		exec 7<"$(client_file)" 8<"$(server_file)" 9<"$STATE/server/ended"
		head -c 10 <&7 >/dev/null
		umount_all
		server_stop
		module_wait_unused 0 || fail "round $round: the module is not unloaded"
		! module_loaded || fail "round $round: the module is loaded"
		! cat <&7 || fail "round $round: a removed file can be read"
		exec 7<&- 8<&- 9<&-
		modprobe rpcrdma
		server_start
		ktap_progress "$round" "$ROUNDS"
	done
	touch "$ktap_dir/stop"
	wait "${readers[@]}"
}

test_cleanup() {
	touch "$ktap_dir/stop"
	exec 7<&- 8<&- 9<&-
	cd /
	unload_fault_modules
	link_repair
	module_loaded || modprobe rpcrdma
	server_up || server_start
	! mountpoint -q "$FROZEN" || frozen_unexport
	umount_all
} 2>/dev/null

bed_up
[ $# -gt 0 ] || set -- names_are_documented "addresses_and_agreement rdma" \
	"addresses_and_agreement rdma6" counters_by_way short_reads credits_follow_use \
	"credits_follow_use 50" cut_link "cut_link 2000" server_stops peer_moves \
	read_while_unloaded
ktap_run "$@"
