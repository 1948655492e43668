#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Transfers around every size at which the encoding changes: empty, XDR padding, end of a page, end
# of rsize, and the inline threshold. At aligned and unaligned offsets, with buffered, direct and
# mmap I/O; the server's file is checked as well. LONG=1 tests every pair of I/O kinds; to the
# transport, mapped pages are like other pages of the page cache.
#
# The largest READ and WRITE of the client are one RPC each, and have 257 pages if the buffer is not
# page-aligned. nfsd's largest block may be longer.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

PAGE_SIZE=$(getconf PAGE_SIZE)
SMALL="0 1 2 3 4 5 6 7 8 9"
PAGE=$(seq -s ' ' $((PAGE_SIZE - 3)) $((PAGE_SIZE + 3)))
SIXTYFOUR="65533 65534 65535 65536 65537 65538 65539"
MEGABYTE="1048573 1048574 1048575 1048576 1048577 1048578 1048579"
FOUR_MEGABYTES="4194303 4194304 4194305"

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

# Bytes of the largest READ and WRITE of the NFS client (NFS_MAX_FILE_IO_SIZE).
MAX_IO=1048576

# mapped_pages DIRECTION: prints the number of pages in traced registrations of that DMA direction, for
# the RPC that has most of them. Other RPCs have some where Replies are not pulled.
mapped_pages() {
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	sed -n "s/.* xprtrdma_mr_map: \(task:[^ ]*\) .* nents=\([0-9]*\) .*($1)$/\1 \2/p" "$TRACING/trace" |
		awk '{ sum[$1] += $2; if (sum[$1] > most) most = sum[$1] } END { print most + 0 }'
}

# check_pages DIRECTION PAGES: fails unless the largest RPC registers PAGES pages of that direction. The
# C module marshals a Call again if it runs out of MRs, and registers some pages twice.
check_pages() {
	local mapped

	mapped=$(mapped_pages "$1")
	[ "$mapped" -eq "$2" ] || { [ "$(module_kind)" = c ] && [ "$mapped" -gt "$2" ]; } ||
		fail "$mapped pages $1, not $2, are registered"
}

# largest_io START: a direct WRITE and a direct READ of MAX_IO bytes, with a buffer that starts START
# bytes behind a page boundary, are one RPC each and register each page once.
largest_io() {
	local start=$1 reads writes pages

	pages=$(((start + MAX_IO + PAGE_SIZE - 1) / PAGE_SIZE))
	reads=$(rpcs_sent READ)
	writes=$(rpcs_sent WRITE)
	trace_on xprtrdma_mr_map
	"$HELPERS/direct_helper" "$WORK/largest" 2 "$MAX_IO" "$MAX_IO" 0 "$start" ||
		fail "wrong data"
	trace_off
	reads=$(($(rpcs_sent READ) - reads))
	writes=$(($(rpcs_sent WRITE) - writes))
	echo "$start bytes behind a page boundary: $writes WRITEs of" \
		"$(mapped_pages TO_DEVICE) pages, $reads READs of $(mapped_pages FROM_DEVICE) pages"
	[ "$writes,$reads" = 1,1 ] || fail "the largest WRITE and READ are not one RPC each"
	check_pages TO_DEVICE "$pages"
	check_pages FROM_DEVICE "$pages"
	! bed_is_local || cmp "$WORK/largest" "$WORK_ON_SERVER/largest" ||
		fail "client and server have different data"
}

# largest_rpcs VERSION [BLOCK]: with nfsd's block of BLOCK bytes.
largest_rpcs() {
	local version=$1 block=${2:-} block_set start layout

	if [ -n "$block" ]; then
		need_local_bed
		server_stop
		BED_BLOCK=$block server_start
		block_set=$(cat /proc/fs/nfsd/max_block_size)
		[ "$block_set" -eq "$block" ] || skip "nfsd's largest block has $block_set bytes"
	fi
	nfs_mount "$version" rdma
	work_dir "largest-$version"
	echo "rsize is $(transfer_size r), wsize is $(transfer_size w)"
	if [ "$(transfer_size r),$(transfer_size w)" != "$MAX_IO,$MAX_IO" ]; then
		bed_is_local || skip "rsize or wsize of this server is not $MAX_IO"
		fail "rsize and wsize are not $MAX_IO"
	fi
	for start in 0 1 5 $((PAGE_SIZE - 1)); do
		largest_io "$start"
	done
	[ -n "$block" ] || return 0
	# shellcheck disable=SC2086 # several sizes
	for layout in over fresh; do
		transfer direct direct "$layout" 5 $MEGABYTE $FOUR_MEGABYTES
		transfer buffered mmap "$layout" 0 $FOUR_MEGABYTES
	done
}

test_cleanup() {
	cd /
	umount_all
	set_inline 4096
	if bed_is_local && [ "$(cat /proc/fs/nfsd/max_block_size)" -ne "$BED_BLOCK" ]; then
		server_stop
		server_start
	fi
}

bed_up
[ $# -gt 0 ] || set -- \
	"io_path 4.2 buffered buffered" "io_path 4.2 buffered direct" \
	"io_path 4.2 direct buffered" "io_path 4.2 direct direct" \
	"io_path 4.2 mmap mmap" "io_path 3 direct direct" \
	${LONG:+"io_path 4.2 buffered mmap" "io_path 4.2 direct mmap"} \
	${LONG:+"io_path 4.2 mmap buffered" "io_path 4.2 mmap direct"} \
	"largest_rpcs 3" "largest_rpcs 4.2" \
	"largest_rpcs 3 4194304" "largest_rpcs 4.2 4194304" \
	"inline_threshold 4.2 1024" "inline_threshold 4.2 4096" \
	"inline_threshold 4.2 65536" "inline_threshold 3 1024" \
	"inline_threshold 3 4096"
ktap_run "$@"
