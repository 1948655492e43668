#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Transfers around every size at which the encoding changes: empty, XDR padding, end of a page, end
# of rsize, and the inline threshold. At aligned and unaligned offsets, with buffered, direct and
# mmap I/O; the server's file is checked as well. LONG=1 tests every pair of I/O kinds; to the
# transport, mapped pages are like other pages of the page cache.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

PAGE_SIZE=$(getconf PAGE_SIZE)
SMALL="0 1 2 3 4 5 6 7 8 9"
PAGE=$(seq -s ' ' $((PAGE_SIZE - 3)) $((PAGE_SIZE + 3)))
SIXTYFOUR="65533 65534 65535 65536 65537 65538 65539"
MEGABYTE="1048573 1048574 1048575 1048576 1048577 1048578 1048579"

server_view() {
	if bed_is_local; then echo "$WORK_ON_SERVER"; else echo -; fi
}

# transfer WRITER READER LAYOUT OFFSET SIZE...
transfer() {
	"$HELPERS/io_sizes_helper" "$WORK" "$(server_view)" "$@" || fail "$*"
}

# io_path VERSION WRITER READER
io_path() {
	local version=$1 writer=$2 reader=$3 layout offset
	local end=$((PAGE_SIZE - 3))
	local -A offsets=([over]="0 $end" [fresh]="5")

	[ -z "$LONG" ] || offsets=([over]="0 5 $end" [fresh]="0 5 $end")
	nfs_mount "$version" rdma
	work_dir "sizes-$version"
	for layout in over fresh; do
		for offset in ${offsets[$layout]}; do
			# shellcheck disable=SC2086 # several sizes
			transfer "$writer" "$reader" "$layout" "$offset" \
				$SMALL $PAGE $SIXTYFOUR
		done
	done
	# shellcheck disable=SC2086
	transfer "$writer" "$reader" fresh 0 $MEGABYTE
	# shellcheck disable=SC2086
	transfer "$writer" "$reader" over 5 $MEGABYTE
}

direct_write() {
	dd if=/dev/zero of="$WORK/edge" bs="$1" count=1 oflag=direct \
		conv=notrunc status=none
}

direct_read() {
	dd if="$WORK/edge" of=/dev/null bs="$1" count=1 iflag=direct status=none
}

# first_with_chunk COUNTER COMMAND: prints the smallest size for which "COMMAND size" increases the
# counter, by bisection.
first_with_chunk() {
	local counter=$1 command=$2 low=0 high=131072 middle moved

	while [ $((high - low)) -gt 1 ]; do
		middle=$(((low + high) / 2))
		moved=$(stat_delta "$counter" "$command" "$middle") || return
		if [ "$moved" -gt 0 ]; then
			high=$middle
		else
			low=$middle
		fi
	done
	echo "$high"
}

is_between() { [ "$1" -lt "$2" ] && [ "$2" -lt "$3" ]; }
around() { seq -s ' ' $(($1 - 4)) $(($1 + 4)); }

# Sets the inline threshold at both ends, which use the smaller one.
set_inline() {
	local base=/proc/sys/sunrpc server=$1

	[ "$server" -ge 4096 ] || server=4096
	echo "$1" >$base/rdma_max_inline_read
	echo "$1" >$base/rdma_max_inline_write
	if bed_is_local; then
		echo "$server" >$base/svc_rdma/max_req_size
	fi
}

# inline_threshold VERSION SIZE: finds the size at which chunks are used, and tests around it.
inline_threshold() {
	local version=$1 inline=$2 writes reads layout

	set_inline "$inline"
	nfs_mount "$version" rdma
	work_dir "edge-$version-$inline"
	truncate -s 131072 "$WORK/edge"
	writes=$(first_with_chunk read_chunks direct_write)
	reads=$(first_with_chunk write_chunks direct_read)
	echo "the smallest WRITE with a Read chunk has $writes bytes"
	echo "the smallest READ with a Write chunk has $reads bytes"
	is_between $((inline / 4)) "$writes" "$inline" || fail "unexpected size of that WRITE"
	is_between $((inline / 4)) "$reads" "$inline" || fail "unexpected size of that READ"
	for layout in over fresh; do
		# shellcheck disable=SC2046 # several sizes
		transfer direct direct "$layout" 0 $(around "$writes") \
			$(around "$reads") $(around "$inline")
	done
	# shellcheck disable=SC2046
	transfer buffered mmap fresh 0 $(around "$writes") $(around "$reads")
}

test_cleanup() {
	cd /
	umount_all
	set_inline 4096
}

bed_up
[ $# -gt 0 ] || set -- \
	"io_path 4.2 buffered buffered" "io_path 4.2 buffered direct" \
	"io_path 4.2 direct buffered" "io_path 4.2 direct direct" \
	"io_path 4.2 mmap mmap" "io_path 3 direct direct" \
	${LONG:+"io_path 4.2 buffered mmap" "io_path 4.2 direct mmap"} \
	${LONG:+"io_path 4.2 mmap buffered" "io_path 4.2 mmap direct"} \
	"inline_threshold 4.2 1024" "inline_threshold 4.2 4096" \
	"inline_threshold 4.2 65536" "inline_threshold 3 1024" \
	"inline_threshold 3 4096"
ktap_run "$@"
