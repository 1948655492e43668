#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --memory 4G
#
# DMA mappings, as hardware behind an IOMMU needs them: data is right in both directions, nothing
# stays mapped longer than needed, and a failed mapping fails only the operation that needs it.
# bounce.ko provides the DMA operations and checks their use.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

bed_is_local || ktap_skip_all "needs control of the devices"
# For data of a page or more, siw completes a Send before TCP has read the data (siw_0copy_tx), and
# then TCP sends memory that is unmapped already.
[ "$BED_RDMA" != siw ] || ktap_skip_all "siw reads memory after its Send has completed"
BED_BOUNCE=1

PAGE_SIZE=$(getconf PAGE_SIZE)
SMALL="1 5 1000"
PAGE="$((PAGE_SIZE - 3)) $PAGE_SIZE $((PAGE_SIZE + 3))"
LARGE="65536 262147 1048576"

test_cleanup() {
	touch "$ktap_dir/stop"
	fail_maps 0
	echo 0 >"$BOUNCE/fail_above"
	echo 0 >"$BOUNCE/slots"
	[ ! -d "$FAIL_POST" ] || rmmod fail_post_send
	cd /
	umount_all
	set_inline 4096
	[ -z "${pulled_before:-}" ] || set_pulled_replies
}

check_no_faults() {
	[ "$(bounce_count faults)" -eq 0 ] || fail "$(bounce_count faults) faults"
}

# map_mount VERSION [OPTION...]: mounts, and saves the number of mappings.
map_mount() {
	before=$(bounce_count mapped)
	nfs_mount "$1" rdma "${@:2}"
	work_dir "mapping-$1"
}

# Unmounts. Fails if data is still mapped on an idle mount, or if the mount leaks mappings at either
# end.
map_unmount() {
	cd /
	bounce_wait sg_lists 0 || fail "$(bounce_count sg_lists) scatterlists are mapped on an idle mount"
	nfs_umount
	bounce_wait mapped "$before" ||
		fail "$(($(bounce_count mapped) - before)) mappings are left of the mount"
	check_no_faults
}

# transfer WRITER READER LAYOUT OFFSET SIZE...
transfer() {
	"$HELPERS/io_sizes_helper" "$WORK" "$WORK_ON_SERVER" "$@" || fail "$*"
}

# Data in Read chunks, Write chunks and inline messages, at any offset in a page.
transfers() {
	map_mount "$1"
	# shellcheck disable=SC2086 # several sizes
	{
		transfer direct direct over 0 $SMALL $PAGE $LARGE
		transfer direct direct fresh 5 $SMALL $PAGE $LARGE
		transfer buffered buffered over $((PAGE_SIZE - 3)) $SMALL $PAGE $LARGE
		transfer mmap buffered fresh 0 $PAGE $LARGE
	}
	map_unmount
}

data_transfers() {
	local merged

	merged=$(bounce_count merged)
	transfers "$1"
	[ "$(bounce_count merged)" -gt "$merged" ] || fail "no pages were merged into one mapping"
}

# long_messages PULLED: long Calls in Position-zero Read chunks, long Replies in Reply chunks or
# pulled.
long_messages() {
	local sizes="500 3900 4100 20000 60000" link

	set_pulled_replies "$1" "$1"
	map_mount 4.2
	# shellcheck disable=SC2086 # several sizes
	{
		attributes set "$WORK" $sizes
		attributes check "$WORK_ON_SERVER" $sizes
		drop_caches
		attributes check "$WORK" $sizes
	}
	link=$(printf '%04000d' 0)
	ln -s "$link" "$WORK/link"
	drop_caches
	[ "$(readlink "$WORK/link")" = "$link" ] || fail "readlink returned another target"
	(cd "$WORK" && seq -f 'a-name-that-is-not-short-%06.0f' 800 | xargs touch)
	drop_caches
	set -- "$WORK"/a-name-*
	[ $# -eq 800 ] || fail "$# of 800 names listed"
	map_unmount
}

# set_inline SIZE: sets the inline threshold in both directions, in bytes.
set_inline() {
	local each

	for each in rdma_max_inline_read rdma_max_inline_write svc_rdma/max_req_size; do
		echo "$1" >"/proc/sys/sunrpc/$each"
	done
}

# Large inline data is sent from its pages.
inline_pages() {
	local chunks

	set_inline 65536
	map_mount "$1"
	chunks=$(xprt_stat read_chunks),$(xprt_stat write_chunks)
	transfer direct direct over 0 8192 20000 50000
	transfer direct direct fresh 5 8192 20000 50000
	transfer buffered buffered over $((PAGE_SIZE - 3)) 8192 20000 50000
	[ "$chunks" = "$(xprt_stat read_chunks),$(xprt_stat write_chunks)" ] ||
		fail "data was sent in chunks"
	map_unmount
}

# Buffers of more than 16 KiB cannot be mapped, as in a guest whose swiotlb is fragmented: the
# connection gets shorter messages.
long_buffers_cannot_be_mapped() {
	local thresholds

	set_inline 65536
	echo 16384 >"$BOUNCE/fail_above"
	trace_on xprtrdma_inline_thresh
	map_mount "$1"
	trace_off
	[ "$(bounce_count injected)" -gt 0 ] || fail "no mapping failed"
	echo 0 >"$BOUNCE/fail_above"
	thresholds=$(sed -n 's/.*xprtrdma_inline_thresh: //p' "$TRACING/trace")
	echo "$thresholds"
	[ -n "$thresholds" ] || fail "no connection was traced"
	# shellcheck disable=SC2086 # several sizes
	transfer direct direct over 0 $SMALL $PAGE 20000 50000
	map_unmount
}

# gaps_of_bus_addresses COMMAND...: bounce buffers do not keep the offset of data in a page, as with
# swiotlb, so that data that starts or ends within a page takes several MRs.
gaps_of_bus_addresses() {
	local gaps

	echo 1 >"$BOUNCE/slots"
	gaps=$(bounce_count gaps)
	"$@"
	gaps=$(($(bounce_count gaps) - gaps))
	echo "$gaps mappings had gaps"
	[ "$gaps" -gt 0 ] || fail "no mapping had gaps"
	echo 0 >"$BOUNCE/slots"
}

# Connections are lost while memory of all kinds is mapped for them.
reconnects() {
	local _

	map_mount "$1"
	load_start 4
	for _ in 1 2 3; do
		reconnect
		load_wait_progress
	done
	load_stop
	map_unmount
}

# fail_maps INTERVAL [SG_ONLY]: fails one mapping in INTERVAL (0: none); with SG_ONLY 1, of data
# only.
fail_maps() {
	echo "${2:-0}" >"$BOUNCE/fail_sg_only"
	echo "$1" >"$BOUNCE/fail_interval"
}

# try_io NAME: reads and writes, and ignores errors.
try_io() {
	local i

	set +e
	for ((i = 0; i < 20 / PACE; i++)); do
		dd if=/dev/urandom of="$WORK/$1" bs=300k count=4 oflag=direct status=none
		dd if="$WORK/$1" of=/dev/null bs=300k iflag=direct status=none
		dd if=/dev/zero of="$WORK/$1.cached" bs=700 count=100 conv=fsync status=none
		ls -l "$WORK" >/dev/null
	done 2>/dev/null
	return 0
}

# One mapping in 997 fails, whatever its purpose; setting up a connection takes fewer. Afterwards
# everything works as before.
rare_map_failures() {
	local failed jobs=() each

	map_mount "$1" soft timeo=100 retrans=2
	failed=$(bounce_count injected)
	fail_maps 997
	for each in 1 2 3; do
		try_io "$each" &
		jobs+=($!)
	done
	wait "${jobs[@]}"
	fail_maps 0
	echo "$(($(bounce_count injected) - failed)) mappings failed"
	[ "$(bounce_count injected)" -gt "$failed" ] || fail "no mapping failed"
	bounce_wait sg_lists 0 || fail "$(bounce_count sg_lists) scatterlists are mapped on an idle mount"
	nfs_remount "$1" rdma
	load_start 2
	load_stop
	map_unmount
}

# The last mapping of a Call or Reply, or an earlier one, fails. Only that RPC fails.
data_map_failures() {
	local connected injected failed i

	map_mount "$1" soft timeo=100 retrans=2
	dd if=/dev/zero of="$WORK/file" bs=1M count=2 oflag=direct status=none
	connected=$(xprt_stat connect_count)
	injected=$(bounce_count injected)
	fail_maps 5 1
	set +e
	for i in $(seq $((40 / PACE))); do
		dd if=/dev/zero of="$WORK/file" bs=1M count=1 oflag=direct status=none
		dd if="$WORK/file" of=/dev/null bs=1M count=1 iflag=direct status=none
	done 2>"$ktap_dir/errors"
	set -e
	fail_maps 0
	injected=$(($(bounce_count injected) - injected))
	failed=$(grep -c 'Input/output error' "$ktap_dir/errors") || :
	echo "$injected mappings failed, and $failed RPCs"
	[ "$injected" -gt 0 ] || fail "no mapping failed"
	[ "$failed" -gt 0 ] || fail "no RPC failed"
	bounce_wait sg_lists 0 || fail "$(bounce_count sg_lists) scatterlists are mapped on an idle mount"
	[ "$(xprt_stat connect_count)" -eq "$connected" ] ||
		connection_lost fail "connected $(xprt_stat connect_count) times"
	map_unmount
}

FAIL_POST=/sys/module/fail_post_send/parameters

# Ways of fail_post_send.ko.
RECV_WAYS="bad_first bad_last bad_unknown"
SEND_WAYS="$RECV_WAYS bad_wrong bad_missing"

# posts_failed COUNT WAY...: succeeds if COUNT posts have failed in each way.
posts_failed() {
	local way

	for way in "${@:2}"; do
		[ "$(cat "$FAIL_POST/$way")" -ge "$1" ] || return 1
	done
}

# wait_posts_failed COUNT WAY...: unloads fail_post_send.ko when COUNT posts have failed in each way.
wait_posts_failed() {
	local deadline=$((SECONDS + IO_TIMEOUT)) way

	until posts_failed "$@"; do
		[ "$SECONDS" -lt "$deadline" ] || break
		sleep 0.5
	done
	for way in "${@:2}"; do
		echo "$way: $(cat "$FAIL_POST/$way") posts failed"
	done
	rmmod fail_post_send
	[ "$SECONDS" -lt "$deadline" ] || fail "too few posts failed in $IO_TIMEOUT s"
}

# post_failures END send|recv INTERVAL: at that end, one post of Sends or Receives in INTERVAL
# fails, in every way that drivers have. Each buffer is unmapped exactly once, whether its WR was
# posted or not.
post_failures() {
	local device=$BED_CLIENT_DEV connected ways=$SEND_WAYS
	# A slow kernel posts fewer WRs in the same time.
	local every=$(($3 / PACE > 3 ? $3 / PACE : 3))

	[ "$1" = client ] || device=$BED_SERVER_DEV
	[ "$2" = send ] || ways=$RECV_WAYS
	# A long timeo, so that no Call is retransmitted because of a delay.
	map_mount 4.2 timeo=6000
	connected=$(xprt_stat connect_count)
	load_start 4
	insmod "$HELPERS/fail_post_send.ko" device="$device" "$2_interval=$every"
	# shellcheck disable=SC2086 # several ways
	wait_posts_failed 2 $ways
	load_wait_progress
	load_stop
	echo "connected $(($(xprt_stat connect_count) - connected)) times"
	map_unmount
}

# way_number NAME: prints the number of a way for the parameter only.
way_number() {
	case $1 in
	bad_wrong) echo 3 ;;
	bad_missing) echo 4 ;;
	esac
}

# removal_after_post_failures END WAY INTERVAL: the device of END has failed posts of Sends in that
# way. Its removal ends, no mapping is left, and no RPC waits for ever. The Replies to listings are
# pulled, so that the client posts RDMA Reads and RDMA_DONEs as well.
removal_after_post_failures() {
	local device=$BED_CLIENT_DEV before lister

	[ "$1" = client ] || device=$BED_SERVER_DEV
	set_pulled_replies 1 1
	before=$(bounce_count mapped)
	nfs_mount 4.2 rdma timeo=6000
	work_dir "mapping-$1"
	(cd "$WORK" && seq -f 'a-name-that-is-not-short-%06.0f' 400 | xargs touch)
	load_start 2
	while [ ! -e "$ktap_dir/stop" ]; do
		drop_caches
		ls "$WORK" >/dev/null
	done &
	lister=$!
	insmod "$HELPERS/fail_post_send.ko" device="$device" send_interval="$3" \
		only="$(way_number "$2")"
	wait_posts_failed 5 "$2"
	load_wait_progress
	timeout $((60 * PACE)) rdma link delete "$device" || fail "the device is still in use"
	device_add "$device"
	load_wait_progress
	load_stop
	wait "$lister"
	cd /
	nfs_umount
	bounce_wait mapped "$before" ||
		fail "$(($(bounce_count mapped) - before)) mappings are left of the mount"
	check_no_faults
}

# While every post of Receives fails, no connection is established.
no_connect_without_receives() {
	local connected deadline=$((SECONDS + IO_TIMEOUT))

	map_mount 4.2 timeo=6000
	load_start 2
	insmod "$HELPERS/fail_post_send.ko" device="$BED_CLIENT_DEV" recv_interval=1
	connected=$(xprt_stat connect_count)
	# shellcheck disable=SC2086 # several ways
	until posts_failed 1 $RECV_WAYS; do
		[ "$SECONDS" -lt "$deadline" ] || fail "the client made fewer than three attempts to connect"
		sleep 0.5
	done
	[ "$(xprt_stat connect_count)" -eq "$connected" ] ||
		fail "connected $(($(xprt_stat connect_count) - connected)) times without Receives"
	rmmod fail_post_send
	load_wait_progress
	load_stop
	map_unmount
}

bed_up
[ $# -gt 0 ] || set -- "data_transfers 3" "data_transfers 4.2" \
	"long_messages 0" "long_messages 1" \
	"inline_pages 3" "inline_pages 4.2" \
	"long_buffers_cannot_be_mapped 3" "long_buffers_cannot_be_mapped 4.2" \
	"gaps_of_bus_addresses transfers 4.2" "gaps_of_bus_addresses long_messages 0" \
	"gaps_of_bus_addresses long_messages 1" \
	"reconnects 3" "reconnects 4.2" \
	"data_map_failures 3" "data_map_failures 4.2" \
	"rare_map_failures 3" "rare_map_failures 4.2" \
	"post_failures client send 297" "post_failures server send 297" \
	"post_failures client recv 29" "post_failures server recv 97" \
	"removal_after_post_failures client bad_missing 97" \
	"removal_after_post_failures server bad_missing 97" \
	"removal_after_post_failures server bad_wrong 97" \
	no_connect_without_receives
ktap_run "$@"
