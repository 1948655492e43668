#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The files under /proc/sys/sunrpc have the C module's names, accept values within their range only,
# and count what they should.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

CLIENT=/proc/sys/sunrpc
SERVER=/proc/sys/sunrpc/svc_rdma
PAGE_SIZE=$(getconf PAGE_SIZE)
EXPOSED_PAGES=$(((64 << 20) / PAGE_SIZE))
PULLED_PAGES=$(((256 << 20) / PAGE_SIZE))

accepts() {
	echo "$2" >"$1" || fail "$1 rejects $2"
	[ "$(cat "$1")" = "$2" ] || fail "$1 is $(cat "$1") after writing $2"
}

rejects() {
	local before
	before=$(cat "$1")
	! echo "$2" >"$1" 2>/dev/null || fail "$1 accepts $2"
	[ "$(cat "$1")" = "$before" ] || fail "$1 is $(cat "$1") after rejecting $2"
}

# tunable FILE MIN MAX DEFAULT: checks the default and both ends of the range, and restores the
# value.
tunable() {
	local file=$1 min=$2 max=$3 default=$4 before

	[ -e "$file" ] || fail "no $file"
	before=$(cat "$file")
	[ "$before" = "$default" ] || fail "the default of $file is $before, not $default"
	accepts "$file" "$min"
	accepts "$file" "$max"
	rejects "$file" $((min - 1))
	rejects "$file" $((max + 1))
	accepts "$file" "$before"
}

# The C module has the client's files only in kernels with SUNRPC_DEBUG.
client_tunable() {
	[ -e "$CLIENT/$1" ] || [ "$(module_kind)" != c ] ||
		skip "this kernel's C module has no such file"
	tunable "$CLIENT/$1" "${@:2}"
}

# For files that the C module does not have.
rust_only_tunable() {
	[ "$(module_kind)" != c ] || skip "the C module has no such file"
	tunable "$@"
}

server_tunable() {
	[ -e "$SERVER/$1" ] || [ "$(module_kind)" != c ] ||
		skip "the C module has no such file"
	tunable "$SERVER/$1" "${@:2}"
}

# wait_message_memory CLIENT SERVER: waits until both ends have no more bytes of messages than that.
# If the CM loses the client's last message, the server frees them when its stall detector has ended
# the connection.
wait_message_memory() {
	local _

	for _ in $(seq $((200 * PACE))); do
		[ "$(cat "$CLIENT/rdma_message_octets")" -gt "$1" ] ||
			[ "$(cat "$SERVER/message_octets")" -gt "$2" ] || return 0
		sleep 1
	done
	return 1
}

# The memory of messages that a connection allocates is counted, and is zero again after unmount.
# Either end has at least one message for each credit that a new connection grants.
message_memory_accounting() {
	local client server each=16

	[ "$(module_kind)" != c ] || skip "the C module has no such counter"
	need_local_bed
	# The connections of an earlier mount are destroyed asynchronously.
	wait_message_memory 0 0 || fail "messages of an idle machine take memory"
	client=$(cat "$CLIENT/rdma_message_octets")
	server=$(cat "$SERVER/message_octets")
	nfs_mount 4.2 rdma
	[ "$(cat "$CLIENT/rdma_message_octets")" -gt $((client + each * 4096)) ] ||
		fail "client: $(cat "$CLIENT/rdma_message_octets")"
	[ "$(cat "$SERVER/message_octets")" -gt $((server + each * 4096)) ] ||
		fail "server: $(cat "$SERVER/message_octets")"
	! echo 0 >"$CLIENT/rdma_message_octets" 2>/dev/null || fail "the counter is writable"
	nfs_umount
	wait_message_memory "$client" "$server" || fail "$(cat "$CLIENT/rdma_message_octets") and" \
		"$(cat "$SERVER/message_octets") bytes are left after the unmount"
}

# Performs READs and WRITEs with chunks.
some_io() {
	local each

	need_local_bed
	nfs_mount 4.2 rdma
	work_dir some-io
	for each in 1 2 3; do
		head -c 200000 /dev/urandom >"$WORK/$each"
	done
	nfs_remount 4.2 rdma
	cat "$WORK"/* >/dev/null
	rm -r "$WORK"
	nfs_umount
}

# check_reset FILE: writing 0 resets the counter, which can be read in small parts afterwards. The
# end of an earlier connection may still be counted.
check_reset() {
	local file=$1 _

	for _ in {1..60}; do
		echo 0 >"$file"
		[ "$(cat "$file")" -gt 1 ] || break
		sleep 1
	done
	[ "$(cat "$file")" -le 1 ] || fail "$file is $(cat "$file") after a reset"
	# Some programs read byte by byte.
	[ "$(dd if="$file" bs=1 status=none)" -ge 0 ] || fail "$file cannot be read byte by byte"
}

counter() {
	local file=$SERVER/rdma_stat_$1

	[ -e "$file" ] || [ "$(module_kind)" != c ] || skip "the C module has no such file"
	[ "$(cat "$file")" -ge 0 ] || fail "$file is not a number"
	case $1 in
	read | recv | write)
		some_io
		[ "$(cat "$file")" -gt 1 ] || fail "$file is $(cat "$file") after some I/O" ;;
	esac
	check_reset "$file"
}

# The counters of pulled Replies. pulled.sh tests what advances rdma_stat_expired.
pulled_reply_counters() {
	local each

	[ "$(module_kind)" != c ] || skip "the C module has no such files"
	need_local_bed
	bed_has_link || skip "the client pulls no Replies over iWARP"
	nfs_mount 4.2 rdma
	work_dir pulled
	setfattr -n user.long -v "$(head -c 60000 /dev/zero | tr '\0' v)" "$WORK"
	for each in 1 2 3; do
		nfs_remount 4.2 rdma
		getfattr -n user.long "$WORK" >/dev/null
	done
	rm -r "$WORK"
	for each in "$CLIENT"/rdma_stat_{pulled,done} "$SERVER/rdma_stat_exposed"; do
		[ "$(cat "$each")" -gt 1 ] || fail "$each is $(cat "$each") after three long Replies"
	done
	nfs_umount
	for each in "$CLIENT"/rdma_stat_{pulled,done} "$SERVER"/rdma_stat_{exposed,expired}; do
		check_reset "$each"
	done
}

server_counters_advance() {
	need_local_bed
	local before_recv before_read before_write
	nfs_mount 4.2 rdma
	work_dir counting
	before_recv=$(svc_stat recv) before_read=$(svc_stat read)
	before_write=$(svc_stat write)
	head -c 200000 /dev/urandom >"$WORK/file"
	nfs_remount 4.2 rdma
	cat "$WORK/file" >/dev/null
	[ "$(svc_stat recv)" -gt "$before_recv" ] || fail "no Receive was counted"
	[ "$(svc_stat read)" -gt "$before_read" ] || fail "no RDMA Read was counted"
	[ "$(svc_stat write)" -gt "$before_write" ] || fail "no RDMA Write was counted"
	rm -r "$WORK"
}

# Writes the same data to eight files at a time, in Calls with Read chunks.
eight_writers() {
	local each writers=()

	for each in {1..8}; do
		dd if="$ktap_dir/data" of="$WORK/$each" bs=1M conv=fsync status=none &
		writers+=($!)
	done
	for each in "${writers[@]}"; do
		wait "$each" || fail "a writer failed"
	done
}

# When max_pulled_pages is exhausted, a connection reads the chunks of one Call at a time. All data
# is written.
pulled_page_limit() {
	local each held _

	[ "$(module_kind)" != c ] || skip "the C module has no such limit"
	need_local_bed
	nfs_mount 4.2 rdma
	work_dir page-limit
	head -c 3M /dev/urandom >"$ktap_dir/data"
	echo 0 >"$SERVER/rdma_stat_held_back"
	echo 1 >"$SERVER/max_pulled_pages"
	eight_writers
	echo "$PULLED_PAGES" >"$SERVER/max_pulled_pages"
	held=$(svc_stat held_back)
	nfs_remount 4.2 rdma
	for each in {1..8}; do
		cmp "$ktap_dir/data" "$WORK/$each" || fail "file $each is different"
	done
	echo "$held Calls were held back"
	[ "$held" -gt 0 ] || fail "no Call was held back"
	eight_writers
	[ "$(svc_stat held_back)" -eq "$held" ] || fail "Calls were held back below the limit"
	nfs_umount
	for each in "$SERVER"/pulled_pages{,_strangers}; do
		for _ in {1..120}; do
			[ "$(cat "$each")" -gt 0 ] || break
			sleep 0.5
		done
		[ "$(cat "$each")" -eq 0 ] || fail "$each is $(cat "$each") on an idle server"
	done
}

# count_listing_writes SHORT_REPLIES: sets writes to the number of RDMA Writes for 30 listings of a
# directory with one file.
count_listing_writes() {
	local before each

	echo "$1" >"$SERVER/short_replies"
	nfs_mount 4.2 rdma actimeo=0
	echo 1 >"$SERVER/short_replies"
	before=$(svc_stat write)
	for each in {1..30}; do
		touch "$WORK_ON_SERVER/$each"
		[ "$(ls "$WORK")" = "$each" ] || fail "the directory does not list $each alone"
		rm "$WORK_ON_SERVER/$each"
	done
	writes=$(($(svc_stat write) - before))
	nfs_umount
}

# A short Reply is sent inline and leaves the Reply chunk unused.
short_replies_skip_reply_chunk() {
	local long writes

	[ "$(module_kind)" != c ] || skip "the C module always uses the Reply chunk"
	need_local_bed
	set_pulled_replies 0 0
	nfs_mount 4.2 rdma
	work_dir short-replies
	nfs_umount
	count_listing_writes 0
	long=$writes
	count_listing_writes 1
	set_pulled_replies
	echo "$long RDMA Writes, $writes with short_replies set"
	[ "$long" -ge 30 ] || fail "without short_replies, the Reply chunk was not used"
	[ "$writes" -le $((long - 30)) ] || fail "with short_replies, the Reply chunk was used"
}

test_cleanup() {
	cd /
	[ ! -e "$SERVER/max_pulled_pages" ] ||
		echo "$PULLED_PAGES" >"$SERVER/max_pulled_pages"
	umount_all
} 2>/dev/null

bed_up
# The largest threshold that RFC 8797 can encode; the C module's limit is 64 KiB.
MAX_INLINE=262144 MIN_REQ=1024
[ "$(module_kind)" != c ] || MAX_INLINE=65536 MIN_REQ=4096
[ $# -gt 0 ] || set -- \
	"client_tunable rdma_slot_table_entries 4 16384 128" \
	"client_tunable rdma_max_inline_read 1024 $MAX_INLINE 4096" \
	"client_tunable rdma_max_inline_write 1024 $MAX_INLINE 4096" \
	"client_tunable rdma_max_bc_requests 1 64 16" \
	"client_tunable rdma_inline_write_padding 0 $PAGE_SIZE 0" \
	"client_tunable rdma_memreg_strategy 0 6 5" \
	"client_tunable rdma_pad_optimize 0 2147483647 0" \
	"rust_only_tunable $CLIENT/rdma_pulled_replies 0 2 1" \
	"rust_only_tunable $CLIENT/rdma_stall_seconds 3 3600 90" \
	"rust_only_tunable $SERVER/pulled_replies 0 1 1" \
	"rust_only_tunable $SERVER/max_exposed_replies 1 256 16" \
	"rust_only_tunable $SERVER/max_exposed_pages 1 2147483647 $EXPOSED_PAGES" \
	"rust_only_tunable $SERVER/exposed_seconds 1 600 30" \
	"rust_only_tunable $SERVER/max_pulled_pages 1 2147483647 $PULLED_PAGES" pulled_page_limit \
	"rust_only_tunable $SERVER/stall_seconds 3 3600 90" \
	"server_tunable max_requests 4 16384 128" \
	"server_tunable max_bc_requests 1 64 16" \
	"server_tunable max_req_size $MIN_REQ $MAX_INLINE 4096" \
	"rust_only_tunable $SERVER/max_reply_size 0 262144 0" \
	"rust_only_tunable $SERVER/remote_invalidation 0 1 1" \
	"rust_only_tunable $SERVER/short_replies 0 1 1" short_replies_skip_reply_chunk \
	"rust_only_tunable $CLIENT/rdma_remote_invalidation 0 1 1" message_memory_accounting \
	"server_tunable max_outbound_read_requests 1 255 16" \
	"counter read" "counter recv" "counter write" "counter sq_starve" \
	"counter rq_starve" "counter rq_poll" "counter rq_prod" \
	"counter sq_poll" "counter sq_prod" "counter stalled" "counter flooded" \
	"counter held_back" \
	pulled_reply_counters server_counters_advance
ktap_run "$@"
