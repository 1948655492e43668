#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The files under /proc/sys/sunrpc, by the C module's names: there, readable,
# writable within their range and not beyond, and counting.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

CLIENT=/proc/sys/sunrpc
SERVER=/proc/sys/sunrpc/svc_rdma

takes() {
	echo "$2" >"$1" || fail "$1 refuses $2"
	[ "$(cat "$1")" = "$2" ] || fail "$1 says $(cat "$1") after $2"
}

refuses() {
	local before
	before=$(cat "$1")
	! echo "$2" >"$1" 2>/dev/null || fail "$1 takes $2"
	[ "$(cat "$1")" = "$before" ] || fail "$1 says $(cat "$1") after refusing $2"
}

# Tries both ends of the range and what is just outside, and puts the value
# that was there back.
tunable() {
	local file=$1 least=$2 most=$3 default=$4 before

	[ -e "$file" ] || fail "there is no $file"
	before=$(cat "$file")
	[ "$before" = "$default" ] || fail "$file starts with $before, not $default"
	takes "$file" "$least"
	takes "$file" "$most"
	refuses "$file" $((least - 1))
	refuses "$file" $((most + 1))
	takes "$file" "$before"
}

# The C module has the client's files only in kernels with SUNRPC_DEBUG.
client_tunable() {
	[ -e "$CLIENT/$1" ] || [ "$(module_kind)" != c ] ||
		skip "this kernel's C module has no such file"
	tunable "$CLIENT/$1" "${@:2}"
}

# One that the C module does not have.
rust_only_tunable() {
	[ "$(module_kind)" != c ] || skip "the C module has no such file"
	tunable "$@"
}

server_tunable() {
	[ -e "$SERVER/$1" ] || [ "$(module_kind)" != c ] ||
		skip "the C module has no such file"
	tunable "$SERVER/$1" "${@:2}"
}

# The octets of messages rise with a connection, and are all given back.
message_memory_accounting() {
	local client server each

	[ "$(module_kind)" != c ] || skip "the C module does not count them"
	need_local_bed
	each=$(cat "$CLIENT/rdma_slot_table_entries")
	# An earlier mount's may go only now.
	for _ in $(seq 30); do
		client=$(cat "$CLIENT/rdma_message_octets")
		server=$(cat "$SERVER/message_octets")
		sleep 1
		[ "$(cat "$CLIENT/rdma_message_octets")" -ne "$client" ] ||
			[ "$(cat "$SERVER/message_octets")" -ne "$server" ] || break
	done
	nfs_mount 4.2 rdma
	[ "$(cat "$CLIENT/rdma_message_octets")" -gt $((client + each * 4096)) ] ||
		fail "client: $(cat "$CLIENT/rdma_message_octets")"
	[ "$(cat "$SERVER/message_octets")" -gt $((server + each * 4096)) ] ||
		fail "server: $(cat "$SERVER/message_octets")"
	! echo 0 >"$CLIENT/rdma_message_octets" 2>/dev/null || fail "it can be set"
	nfs_umount
	for _ in $(seq 30); do
		sleep 1
		[ "$(cat "$CLIENT/rdma_message_octets")" -ne "$client" ] ||
			[ "$(cat "$SERVER/message_octets")" -ne "$server" ] || return 0
	done
	fail "$(cat "$CLIENT/rdma_message_octets") and" \
		"$(cat "$SERVER/message_octets") are left of a mount that is gone"
}

# Moves what the server counts of its usual work.
some_work() {
	local each

	need_local_bed
	nfs_mount 4.2 rdma
	work_dir some-work
	for each in 1 2 3; do
		head -c 200000 /dev/urandom >"$WORK/$each"
	done
	nfs_remount 4.2 rdma
	cat "$WORK"/* >/dev/null
	rm -r "$WORK"
	nfs_umount
}

# can_be_reset FILE: as is, and its number is there to be read afterwards.
can_be_reset() {
	local file=$1

	echo 0 >"$file"
	[ "$(cat "$file")" -le 1 ] || fail "$file says $(cat "$file") after a reset"
	# Read in small pieces, as some programs do.
	[ "$(dd if="$file" bs=1 status=none)" -ge 0 ] || fail "$file octet by octet"
}

counter() {
	local file=$SERVER/rdma_stat_$1

	[ -e "$file" ] || [ "$(module_kind)" != c ] || skip "the C module has no such file"
	[ "$(cat "$file")" -ge 0 ] || fail "$file is not a number"
	case $1 in
	read | recv | write)
		some_work
		[ "$(cat "$file")" -gt 1 ] || fail "$file says $(cat "$file") after some work" ;;
	esac
	can_be_reset "$file"
}

# Those of Replies that the client pulls; what moves the last of them is in pulled.sh.
pulled_reply_counters() {
	local each

	[ "$(module_kind)" != c ] || skip "the C module has no such files"
	need_local_bed
	bed_has_link || skip "over iWARP the client pulls no Replies"
	nfs_mount 4.2 rdma
	work_dir pulled
	setfattr -n user.long -v "$(head -c 60000 /dev/zero | tr '\0' v)" "$WORK"
	for each in 1 2 3; do
		nfs_remount 4.2 rdma
		getfattr -n user.long "$WORK" >/dev/null
	done
	rm -r "$WORK"
	for each in "$CLIENT"/rdma_stat_{pulled,done} "$SERVER/rdma_stat_exposed"; do
		[ "$(cat "$each")" -gt 1 ] || fail "$each says $(cat "$each") after some work"
	done
	nfs_umount
	for each in "$CLIENT"/rdma_stat_{pulled,done} "$SERVER"/rdma_stat_{exposed,expired}; do
		can_be_reset "$each"
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

# eight_writers: of the same octets, in Calls that are pulled.
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

# Beyond the total a connection pulls one Call at a time, and all that was to be written is.
pulled_page_limit() {
	local each held

	[ "$(module_kind)" != c ] || skip "the C module has no such limit"
	need_local_bed
	nfs_mount 4.2 rdma
	work_dir held-back
	head -c 3M /dev/urandom >"$ktap_dir/data"
	echo 0 >"$SERVER/rdma_stat_held_back"
	echo 1 >"$SERVER/max_pulled_pages"
	eight_writers
	echo 65536 >"$SERVER/max_pulled_pages"
	held=$(svc_stat held_back)
	nfs_remount 4.2 rdma
	for each in {1..8}; do
		cmp "$ktap_dir/data" "$WORK/$each" || fail "file $each is different"
	done
	echo "$held Calls were held back"
	[ "$held" -gt 0 ] || fail "more than one was pulled at a time"
	eight_writers
	[ "$(svc_stat held_back)" -eq "$held" ] || fail "Calls are held back within the total"
	nfs_umount
	for each in "$SERVER"/pulled_pages{,_strangers}; do
		[ "$(cat "$each")" -eq 0 ] || fail "$each says $(cat "$each") with nothing pulled"
	done
}

# RDMA Writes of the server, while directories with one file are listed 30 times.
listing_writes() {
	local before each

	echo "$1" >"$SERVER/short_replies"
	nfs_mount 4.2 rdma actimeo=0
	echo 1 >"$SERVER/short_replies"
	before=$(svc_stat write)
	for each in {1..30}; do
		touch "$WORK_ON_SERVER/$each"
		[ "$(ls "$WORK")" = "$each" ] || fail "not $each alone"
		rm "$WORK_ON_SERVER/$each"
	done
	writes=$(($(svc_stat write) - before))
	nfs_umount
}

# A short Reply leaves the Reply chunk as it was.
short_replies_skip_reply_chunk() {
	local long writes

	[ "$(module_kind)" != c ] || skip "the C module always writes to the Reply chunk"
	need_local_bed
	set_pulled_replies 0 0
	nfs_mount 4.2 rdma
	work_dir short-replies
	nfs_umount
	listing_writes 0
	long=$writes
	listing_writes 1
	set_pulled_replies
	echo "$long RDMA Writes, and $writes with short Replies"
	[ "$long" -ge 30 ] || fail "the Reply chunk was not used"
	[ "$writes" -le $((long - 30)) ] || fail "short Replies were not short"
}

test_cleanup() {
	cd /
	[ ! -e "$SERVER/max_pulled_pages" ] || echo 65536 >"$SERVER/max_pulled_pages"
	umount_all
} 2>/dev/null

bed_up
# What RFC 8797 can tell the peer; the C module stops at 64 KiB.
MOST_INLINE=262144 LEAST_REQ=1024
[ "$(module_kind)" != c ] || MOST_INLINE=65536 LEAST_REQ=4096
[ $# -gt 0 ] || set -- \
	"client_tunable rdma_slot_table_entries 4 16384 128" \
	"client_tunable rdma_max_inline_read 1024 $MOST_INLINE 4096" \
	"client_tunable rdma_max_inline_write 1024 $MOST_INLINE 4096" \
	"client_tunable rdma_max_bc_requests 1 64 16" \
	"client_tunable rdma_inline_write_padding 0 4096 0" \
	"client_tunable rdma_memreg_strategy 0 6 5" \
	"client_tunable rdma_pad_optimize 0 2147483647 0" \
	"rust_only_tunable $CLIENT/rdma_pulled_replies 0 2 1" \
	"rust_only_tunable $SERVER/pulled_replies 0 1 1" \
	"rust_only_tunable $SERVER/max_exposed_replies 1 256 16" \
	"rust_only_tunable $SERVER/max_exposed_pages 1 2147483647 16384" \
	"rust_only_tunable $SERVER/exposed_seconds 1 600 30" \
	"rust_only_tunable $SERVER/max_pulled_pages 1 2147483647 65536" pulled_page_limit \
	"rust_only_tunable $SERVER/stall_seconds 3 3600 90" \
	"server_tunable max_requests 4 16384 128" \
	"server_tunable max_bc_requests 1 64 16" \
	"server_tunable max_req_size $LEAST_REQ $MOST_INLINE 4096" \
	"rust_only_tunable $SERVER/max_reply_size 0 262144 0" \
	"rust_only_tunable $SERVER/remote_invalidation 0 1 1" \
	"rust_only_tunable $SERVER/short_replies 0 1 1" short_replies_skip_reply_chunk \
	"rust_only_tunable $CLIENT/rdma_remote_invalidation 0 1 1" message_memory_accounting \
	"server_tunable max_outbound_read_requests 1 255 16" \
	"counter read" "counter recv" "counter write" "counter sq_starve" \
	"counter rq_starve" "counter rq_poll" "counter rq_prod" \
	"counter sq_poll" "counter sq_prod" "counter stalled" "counter held_back" \
	pulled_reply_counters server_counters_advance
ktap_run "$@"
