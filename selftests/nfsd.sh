#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Rare behaviour of nfsd: direct I/O on its files, with data at any offset in a page; deferred
# Calls; and retransmitted Calls, which its duplicate reply cache answers.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# Mounts a file system on a RAM disk over the export: tmpfs does not support direct I/O.
disk_up() {
	ram_disk 131072 || skip "needs a RAM disk"
	mount /dev/ram0 "$BED_EXPORT"
	chmod 1777 "$BED_EXPORT"
	exportfs -f
}

disk_down() {
	[ "$(stat -f -c %T "$BED_EXPORT")" != tmpfs ] || return 0
	exportfs -f
	# nfsd's file cache may keep files open for a while.
	umount "$BED_EXPORT" || { server_stop && umount "$BED_EXPORT" && server_start; }
	rmmod brd
}

# nfsd_caching READ WRITE: 0 for buffered I/O, 2 for direct I/O. With buffered READs, nfsd splices
# pages of the page cache into Replies.
nfsd_caching() {
	echo "$1" >/sys/kernel/debug/nfsd/io_cache_read
	echo "$2" >/sys/kernel/debug/nfsd/io_cache_write
	# Direct READs have turned splicing off.
	[ "$1" -ne 0 ] || echo 0 >/sys/kernel/debug/nfsd/disable-splice-read
}

# trace_reads, read_both_ways: after trace_on, both kinds of READs happen in between.
trace_reads() {
	echo 1 >"$TRACING/events/nfsd/nfsd_read_direct/enable"
	echo 1 >"$TRACING/events/nfsd/nfsd_read_splice/enable"
}

read_both_ways() {
	local direct spliced

	direct=$(traced nfsd_read_direct) spliced=$(traced nfsd_read_splice)
	echo "$direct direct READs of nfsd, $spliced with splice"
	[ "$direct" -gt 0 ] || fail "nfsd did not read directly"
	[ "$spliced" -gt 0 ] || fail "nfsd did not splice"
}

# Restores nfsd, mountd and the link, however the test ended.
test_cleanup() {
	cd /
	umount_all
	bed_is_local || return 0
	mountd_signal CONT || :
	! bed_has_link || link_clear_delay "$BED_CLIENT_PORT" || :
	nfsd_caching 0 0 || :
	disk_down
} 2>/dev/null

# mount_disk VERSION NAME [OPTION...]: mounts the RAM disk, on which nfsd can use direct I/O.
mount_disk() {
	local version=$1 name=$2
	shift 2

	need_local_bed
	# Linux 6.18 has the switch, which refuses direct I/O.
	nfsd_caching 2 2 2>/dev/null && nfsd_caching 0 0 || skip "this kernel's nfsd has no direct I/O"
	disk_up
	nfs_mount "$version" rdma "$@"
	work_dir "$name"
}

# Direct READs and WRITEs of nfsd, at several offsets and sizes.
nfsd_direct_io() {
	local offset

	mount_disk "$1" direct-io
	nfsd_caching 2 2
	trace_on
	echo 1 >"$TRACING/events/nfsd/nfsd_read_direct/enable"
	for offset in 0 1 511 777 4095 4097; do
		"$HELPERS/io_sizes_helper" "$WORK" "$WORK_ON_SERVER" direct direct over \
			"$offset" 1 100 3000 4096 5000 65536 300001 || fail "at offset $offset"
	done
	"$HELPERS/io_sizes_helper" "$WORK" "$WORK_ON_SERVER" buffered buffered fresh \
		777 5000 300001 || fail "with buffered I/O on the client"
	trace_off
	echo "$(traced nfsd_read_direct) direct READs of nfsd"
	[ "$(traced nfsd_read_direct)" -ge 42 ] || fail "too few direct READs of nfsd"
}

# Many readers at a time. With direct I/O, nfsd reads into the pages of the Reply, which must not be
# reused before the RDMA Writes have completed. With buffered I/O, the Reply refers to page cache
# pages, and its own pages stay unused. The test alternates between both.
nfsd_direct_readers() {
	local each writers=$((PACE > 1 ? 3 : 8))

	mount_disk "$1" direct-readers
	trace_on
	trace_reads
	for each in 0 2 0 2; do
		nfsd_caching "$each" 0
		SIZE_MIB=2 fio_verified "$writers" --direct=1 --bsrange=4k-256k --bs_unaligned=0 \
			--ioengine=libaio --iodepth=4 --verify_backlog=16
	done
	trace_off
	read_both_ways
}

trace_deferrals() {
	trace_on
	echo 1 >"$TRACING/events/sunrpc/svc_defer/enable"
	echo 1 >"$TRACING/events/sunrpc/svc_defer_recv/enable"
}

# wait_deferred COUNT: waits until so many Calls are deferred. An nfsd thread waits five seconds
# before it defers a Call.
wait_deferred() {
	local _

	for _ in $(seq $((120 * PACE))); do
		[ "$(traced svc_defer)" -lt "$1" ] || break
		sleep 0.5
	done
	# More of them may follow.
	sleep 3
}

# A deferred READ is answered by another thread, or later by the same one, with other pages for its
# Reply. Nothing that was recorded about the earlier pages may be used.
deferred_reads() {
	local each asking=()

	mount_disk 3 deferred-reads actimeo=600,nocto
	head -c 1M /dev/urandom >"$WORK_ON_SERVER/file"
	trace_deferrals
	trace_reads
	# Replies refer to pages of the page cache, until nfsd reads directly.
	for each in 1 2 3; do
		cmp <(dd if="$WORK/file" bs=64k iflag=direct status=none) "$WORK_ON_SERVER/file"
	done
	mountd_signal STOP
	exportfs -f
	# Each reader reads another part of the file, four times.
	for each in {0..7}; do
		for _ in {1..4}; do
			cmp <(dd if="$WORK/file" bs=128k skip="$each" count=1 iflag=direct status=none) \
				<(dd if="$WORK_ON_SERVER/file" bs=128k skip="$each" count=1 status=none) ||
				exit 1
		done &
		asking+=($!)
	done
	wait_deferred 4
	nfsd_caching 2 0
	mountd_signal CONT
	for each in "${asking[@]}"; do
		wait "$each" || fail "a reader found wrong data"
	done
	trace_off
	read_both_ways
	echo "$(traced svc_defer_recv) Calls were deferred"
	[ "$(traced svc_defer_recv)" -ge 4 ] || fail "too few Calls were deferred"
}

# has_files DIR COUNT
has_files() { [ "$(find "$1" -type f | wc -l)" -eq "$2" ]; }

# While mountd does not answer nfsd's upcall, nfsd defers Calls.
deferred_calls() {
	need_local_bed
	local each asking=() connects

	nfs_mount 3 rdma actimeo=0
	work_dir deferred-calls
	# siw may have lost a connection with its first message.
	connects=$(xprt_stat connect_count)
	mkdir "$WORK_ON_SERVER/many"
	seq -f "$WORK_ON_SERVER/many/a-name-that-takes-some-room-%04.0f" 1 300 | xargs touch
	head -c 200000 /dev/urandom >"$WORK_ON_SERVER/file"
	trace_deferrals
	mountd_signal STOP
	exportfs -f
	cmp "$WORK/file" "$WORK_ON_SERVER/file" &
	asking+=($!)
	has_files "$WORK/many" 300 &
	asking+=($!)
	for each in 1 2 3; do
		stat "$WORK/many/a-name-that-takes-some-room-000$each" >/dev/null &
		asking+=($!)
	done
	wait_deferred 1
	mountd_signal CONT
	for each in "${asking[@]}"; do
		wait "$each" || fail "a deferred Call failed"
	done
	trace_off
	echo "$(traced svc_defer_recv) Calls were deferred"
	[ "$(traced svc_defer_recv)" -gt 0 ] || fail "no Call was deferred"
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || connection_lost fail "the connection was lost"
	rm -r "$WORK"
}

# Prints the number of hits of nfsd's duplicate reply cache.
drc_hits() { awk '$1 == "rc" { print $2 }' /proc/net/rpc/nfsd; }

# disconnect_when_made DIR READY: disconnects the client as soon as the server has created DIR,
# without starting a process in between. Creates the file READY when it watches for DIR.
disconnect_when_made() {
	# shellcheck disable=SC2016 # expanded there
	with_client_sysfs timeout --foreground -s KILL 20 sh -c '
		directory=$1 ready=$2 address=$3
		set -- /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/dstaddr
		: >"$ready"
		until [ -d "$directory" ]; do :; done
		for each; do echo "$address" >"$each"; done' sh "$1" "$2" "$SERVER4"
}

# The Reply to a MKDIR is lost with the connection. The client retransmits the Call over the next
# connection, and nfsd answers it from the duplicate reply cache. Sometimes the Reply arrives before
# the disconnect.
retransmitted_mkdir() {
	need_link
	local each maker watcher before late

	nfs_mount 3 rdma
	work_dir retransmitted
	before=$(drc_hits)
	# With more than two seconds, rxe would disconnect.
	late=$((PACE > 1 ? 2000 : 1000))
	for each in {1..40}; do
		link_set_delay "$BED_CLIENT_PORT" "$late"
		disconnect_when_made "$WORK_ON_SERVER/$each" "$ktap_dir/ready-$each" &
		watcher=$!
		for _ in {1..500}; do
			[ ! -e "$ktap_dir/ready-$each" ] || break
			sleep 0.02
		done
		mkdir "$WORK/$each" &
		maker=$!
		# A write to dstaddr may hang and is killed, as in reconnect().
		wait "$watcher" || reconnect
		link_clear_delay "$BED_CLIENT_PORT"
		wait "$maker" || fail "mkdir of directory $each failed"
		[ $(($(drc_hits) - before)) -lt 3 ] || break
	done
	echo "$(($(drc_hits) - before)) of $each Calls were answered from the duplicate reply cache"
	[ $(($(drc_hits) - before)) -gt 0 ] || fail "no Reply was lost"
	[ "$(find "$WORK" -mindepth 1 -type d | wc -l)" -eq "$each" ] ||
		fail "not $each directories"
	rm -r "$WORK"
}

# rxe reports connections that exceeded their retries (12).
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'
bed_up
[ $# -gt 0 ] || set -- "nfsd_direct_io 3" "nfsd_direct_io 4.2" "nfsd_direct_readers 4.2" \
	deferred_calls deferred_reads retransmitted_mkdir
ktap_run "$@"
