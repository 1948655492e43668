#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Many concurrent writers and readers, with buffered, direct and mmap I/O, over one connection and
# over four; fio verifies every block.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

SIZE_MIB=${LONG:+32}
SIZE_MIB=${SIZE_MIB:-2}
# Number of writers, or of WRITEs in flight per writer. With more, the server takes minutes to
# answer in a debug kernel, and SUNRPC logs that.
WRITERS=$((16 / PACE))
[ "$PACE" -eq 1 ] || LOG_EXPECTED='(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

writers() {
	local version=$1 path=$2
	shift 2

	nfs_mount "$version" rdma "$@"
	work_dir "fio-$version-$path"
	case $path in
	buffered)	fio_verified "$WRITERS" --end_fsync=1 --invalidate=1 ;;
	direct)		fio_verified "$WRITERS" --direct=1 --bsrange=4k-256k --bs_unaligned=0 ;;
	deep)		fio_verified 4 --direct=1 --ioengine=libaio --iodepth="$WRITERS" \
				--bsrange=4k-1m --bs_unaligned=0 ;;
	mmap)		fio_verified 4 --ioengine=mmap --bs_unaligned=0 \
				--bsrange=4k-64k ;;
	esac
	# fio verifies mapped pages in the page cache, so compare with the server as well.
	if [ "$path" = mmap ] && bed_is_local; then
		drop_caches
		[ "$(cd "$WORK" && md5sum -- *)" = "$(cd "$WORK_ON_SERVER" && md5sum -- *)" ] ||
			fail "client and server have different data"
	fi
	rm -r "$WORK"
}

# Prints how many connections of the mount have carried I/O. One that connects late carries less.
connections_used() {
	xprt_lines | awk -v sends="$STAT_sends" '$sends > 20' | wc -l
}

four_connections() {
	local _

	nfs_mount 4.2 rdma nconnect=4
	work_dir fio-nconnect
	for _ in {1..10}; do
		fio_verified 16 --direct=1 --bsrange=4k-256k --bs_unaligned=0
		[ "$(connections_used)" -lt 4 ] || break
	done
	[ "$(connections_used)" -eq 4 ] ||
		fail "$(connections_used) connections carried the load"
	rm -r "$WORK"
}

bed_up
[ $# -gt 0 ] || set -- "writers 4.2 buffered" "writers 4.2 direct" "writers 4.2 deep" \
	"writers 4.2 mmap" "writers 3 direct" "four_connections"
ktap_run "$@"
