#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Many writers and readers at once, every block verified: over one connection
# and over four, through the page cache and past it. What was written is read
# once more after a new mount, which remembers nothing.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

SIZE_MIB=${LONG:+32}
SIZE_MIB=${SIZE_MIB:-3}

run_fio() {
	fio --name=verified --directory="$WORK" --size="${SIZE_MIB}M" \
		--rw=randwrite --randrepeat=1 --verify=crc32c \
		--verify_fatal=1 --group_reporting --output="/tmp/fio.$$" "$@" ||
		{ tail -30 "/tmp/fio.$$"; fail "fio found a difference"; }
	grep -E '^ *(READ|WRITE):' "/tmp/fio.$$"
	rm "/tmp/fio.$$"
}

fio_options() {
	case $1 in
	buffered)
		echo --numjobs=16 --bsrange=512-256k --bs_unaligned --end_fsync=1 ;;
	direct)
		echo --numjobs=16 --bsrange=4k-256k --direct=1 ;;
	deep)
		echo --numjobs=4 --bsrange=4k-1m --direct=1 --ioengine=libaio \
			--iodepth=16 ;;
	mmap)
		echo --numjobs=4 --bsrange=4k-64k --ioengine=mmap ;;
	esac
}

# The connections of the mount that have carried something.
connections_used() {
	xprt_lines | awk -v sends="$STAT_sends" '$sends > 100' | wc -l
}

# writers VERSION PATH CONNECTIONS
writers() {
	local version=$1 path=$2 connections=$3 options

	options=$(fio_options "$path")
	nfs_mount "$version" rdma "nconnect=$connections"
	work_dir "fio-$version-$path"
	# shellcheck disable=SC2086 # several options
	run_fio $options
	[ "$(connections_used)" -eq "$connections" ] ||
		fail "$(connections_used) connections carried the load"
	nfs_mount_again "$version" rdma "nconnect=$connections"
	# shellcheck disable=SC2086
	run_fio $options --verify_only=1
	rm -r "$WORK"
}

bed_up
ktap_run "writers 4.2 buffered 1" "writers 4.2 direct 1" \
	"writers 4.2 deep 1" "writers 4.2 mmap 1" "writers 3 direct 1" \
	"writers 4.2 direct 4" "writers 3 buffered 4"
