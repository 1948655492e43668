#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What nfsd does with its files and its Calls that it seldom does: it reads and writes
# past its page cache, where data begins anywhere in a page, it puts Calls off, and it
# recognises one that comes again.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# A file system on a disk, instead of tmpfs, which is always in memory.
disk_up() {
	modprobe brd rd_nr=1 rd_size=131072 || skip "there is no disk in memory"
	mkfs.ext4 -q /dev/ram0
	mount /dev/ram0 "$BED_EXPORT"
	chmod 1777 "$BED_EXPORT"
	exportfs -f
}

disk_down() {
	[ "$(stat -f -c %T "$BED_EXPORT")" != tmpfs ] || return 0
	exportfs -f
	# nfsd keeps files open for a while.
	umount "$BED_EXPORT" || { server_stop && umount "$BED_EXPORT" && server_start; }
}

# nfsd_caching READ WRITE: 0 through the page cache, 2 past it.
nfsd_caching() {
	echo "$1" >/sys/kernel/debug/nfsd/io_cache_read
	echo "$2" >/sys/kernel/debug/nfsd/io_cache_write
}

# Whichever way a test ended, the next one finds nfsd, mountd and the wire as usual.
test_cleanup() {
	cd /
	umount_all
	bed_is_local || return 0
	pkill -CONT -x rpc.mountd || :
	! bed_has_link || link_clear_delay "$BED_CLIENT_PORT" || :
	nfsd_caching 0 0 || :
	disk_down
} 2>/dev/null

# on_disk VERSION NAME [OPTION...]: a mount of a file system on a disk, which nfsd can be
# told to read and to write past its cache.
on_disk() {
	local version=$1 name=$2
	shift 2

	need_local_bed
	[ -e /sys/kernel/debug/nfsd/io_cache_read ] || skip "nfsd has no such switch"
	disk_up
	nfs_mount "$version" rdma "$@"
	work_dir "$name"
}

nfsd_direct_io() {
	local at

	on_disk "$1" past-the-cache
	nfsd_caching 2 2
	trace_on
	echo 1 >"$TRACING/events/nfsd/nfsd_read_direct/enable"
	for at in 0 1 511 777 4095 4097; do
		"$HELPERS/io_sizes_helper" "$WORK" "$WORK_ON_SERVER" direct direct over \
			"$at" 1 100 3000 4096 5000 65536 300001 || fail "at $at"
	done
	"$HELPERS/io_sizes_helper" "$WORK" "$WORK_ON_SERVER" buffered buffered fresh \
		777 5000 300001 || fail "through the client's cache"
	trace_off
	echo "$(traced nfsd_read_direct) READs past nfsd's cache"
	[ "$(traced nfsd_read_direct)" -ge 42 ] || fail "most went through it"
}

# Many at a time: what nfsd reads into are the pages of a Reply then, and nobody else has
# them before the device has let go. Through the cache it is the file's, and those of the
# Reply are left over; now and then one follows on the other.
nfsd_direct_readers() {
	local each writers=$((PACE > 1 ? 3 : 8))

	on_disk "$1" readers-past-the-cache
	for each in 0 2 0 2; do
		nfsd_caching "$each" 0
		SIZE_MIB=2 fio_verified "$writers" --direct=1 --bsrange=4k-256k --bs_unaligned=0 \
			--ioengine=libaio --iodepth=4 --verify_backlog=16
	done
}

# A READ that was put off is answered by another thread, or in another turn. What was noted
# of the pages of its Reply does not hold any more.
deferred_reads() {
	local each asking=()

	on_disk 3 put-off-and-read actimeo=600,nocto
	head -c 1M /dev/urandom >"$WORK_ON_SERVER/file"
	# From here on the Replies have pages of the file.
	for each in 1 2 3; do
		cmp <(dd if="$WORK/file" bs=64k iflag=direct status=none) "$WORK_ON_SERVER/file"
	done
	trace_on
	echo 1 >"$TRACING/events/sunrpc/svc_defer_recv/enable"
	pkill -STOP -x rpc.mountd
	exportfs -f
	# Each asks for other data, again and again.
	for each in {0..7}; do
		for _ in {1..4}; do
			cmp <(dd if="$WORK/file" bs=128k skip="$each" count=1 iflag=direct status=none) \
				<(dd if="$WORK_ON_SERVER/file" bs=128k skip="$each" count=1 status=none) ||
				exit 1
		done &
		asking+=($!)
	done
	sleep 8
	nfsd_caching 2 0
	pkill -CONT -x rpc.mountd
	for each in "${asking[@]}"; do
		wait "$each" || fail "other data"
	done
	trace_off
	echo "$(traced svc_defer_recv) Calls were put off"
	[ "$(traced svc_defer_recv)" -ge 4 ] || fail "too few were put off"
}

has_files() { [ "$(find "$1" -type f | wc -l)" -eq "$2" ]; }

# mountd takes its time to say who the client is: Calls are put off meanwhile.
deferred_calls() {
	need_local_bed
	local each asking=() connects

	nfs_mount 3 rdma actimeo=0
	work_dir put-off
	# siw may lose the first one with the first message.
	connects=$(xprt_stat connect_count)
	mkdir "$WORK_ON_SERVER/many"
	seq -f "$WORK_ON_SERVER/many/a-name-that-takes-some-room-%04.0f" 1 300 | xargs touch
	head -c 200000 /dev/urandom >"$WORK_ON_SERVER/file"
	trace_on
	echo 1 >"$TRACING/events/sunrpc/svc_defer_recv/enable"
	pkill -STOP -x rpc.mountd
	exportfs -f
	cmp "$WORK/file" "$WORK_ON_SERVER/file" &
	asking+=($!)
	has_files "$WORK/many" 300 &
	asking+=($!)
	for each in 1 2 3; do
		stat "$WORK/many/a-name-that-takes-some-room-000$each" >/dev/null &
		asking+=($!)
	done
	# A thread of nfsd waits for five seconds itself.
	sleep 8
	pkill -CONT -x rpc.mountd
	for each in "${asking[@]}"; do
		wait "$each" || fail "something went wrong after it"
	done
	trace_off
	echo "$(traced svc_defer_recv) Calls were put off"
	[ "$(traced svc_defer_recv)" -gt 0 ] || fail "none was put off"
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || fail "the connection was lost"
	rm -r "$WORK"
}

# How often nfsd has answered a Call from what it remembers.
recognised() { awk '$1 == "rc" { print $2 }' /proc/net/rpc/nfsd; }

# cut_when_made DIRECTORY READY: the client's connections are lost as soon as the server
# has the directory, with no process started in between. READY exists when it is watched.
cut_when_made() {
	# shellcheck disable=SC2016 # expanded there
	with_client_sysfs timeout --foreground -s KILL 20 sh -c '
		directory=$1 ready=$2 address=$3
		set -- /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/dstaddr
		: >"$ready"
		until [ -d "$directory" ]; do :; done
		for each; do echo "$address" >"$each"; done' sh "$1" "$2" "$SERVER4"
}

# A directory is made, and the Reply is lost with the connection, unless it came before
# that. Who asks again, over another, is told what came of it the first time.
retransmitted_mkdir() {
	need_link
	local each maker cutter before late

	nfs_mount 3 rdma
	work_dir asked-again
	before=$(recognised)
	# More than two seconds, and the device gives the connection up.
	late=$((PACE > 1 ? 2000 : 1000))
	for each in {1..40}; do
		link_set_delay "$BED_CLIENT_PORT" "$late"
		cut_when_made "$WORK_ON_SERVER/$each" "$ktap_dir/ready-$each" &
		cutter=$!
		for _ in {1..500}; do
			[ ! -e "$ktap_dir/ready-$each" ] || break
			sleep 0.02
		done
		mkdir "$WORK/$each" &
		maker=$!
		# Killed while it waited for the lock of the transport: see there.
		wait "$cutter" || reconnect
		link_clear_delay "$BED_CLIENT_PORT"
		wait "$maker" || fail "directory $each was to be made twice"
		[ $(($(recognised) - before)) -lt 3 ] || break
	done
	echo "$(($(recognised) - before)) of $each asked again"
	[ $(($(recognised) - before)) -gt 0 ] || fail "no Reply was lost"
	[ "$(find "$WORK" -mindepth 1 -type d | wc -l)" -eq "$each" ] ||
		fail "not $each directories"
	rm -r "$WORK"
}

# rxe tells of each connection that ran out of retries (12).
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'
bed_up
[ $# -gt 0 ] || set -- "nfsd_direct_io 3" "nfsd_direct_io 4.2" "nfsd_direct_readers 4.2" \
	deferred_calls deferred_reads retransmitted_mkdir
ktap_run "$@"
