#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --memory 4G
#
# Memory is mapped for a device as hardware behind an IOMMU wants it: what goes either way is
# what it should be, nothing is mapped for longer than it is of use, and a mapping that fails
# costs what it was for. bounce.ko has the devices be such, and looks for mistakes.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

bed_is_local || ktap_skip_all "needs devices under its control"
# From a page on siw has TCP send from where the data is, and says before that it is done with it
# (siw_0copy_tx): what is unmapped then is sent as it is by that time.
[ "$BED_RDMA" != siw ] || ktap_skip_all "siw reads memory that it has given back"
BED_BOUNCE=1

SMALL="1 5 1000"
PAGE="4093 4096 4099"
LARGE="65536 262147 1048576"

test_cleanup() {
	touch "$ktap_dir/stop"
	fails_every 0
	[ ! -d "$FAIL_POST" ] || rmmod fail_post_send
	cd /
	umount_all
	set_inline 4096
	[ -z "${pulled_before:-}" ] || set_pulled_replies
}

no_faults() {
	[ "$(bounce_count faults)" -eq 0 ] || fail "$(bounce_count faults) faults"
}

# mounted VERSION [OPTION...]
mounted() {
	before=$(bounce_count mapped)
	nfs_mount "$1" rdma "${@:2}"
	work_dir "mapping-$1"
}

# Data is mapped no longer than for its RPC, and nothing is left of a mount at either end.
unmounted() {
	cd /
	bounce_wait sg_lists 0 || fail "$(bounce_count sg_lists) lists are mapped, and nobody waits"
	nfs_umount
	bounce_wait mapped "$before" ||
		fail "$(($(bounce_count mapped) - before)) mappings are left of the mount"
	no_faults
}

# transfer PATH PATH LAYOUT OFFSET SIZE...
transfer() {
	"$HELPERS/io_sizes_helper" "$WORK" "$WORK_ON_SERVER" "$@" || fail "$*"
}

# Data goes by Read and Write chunks, and inline, from and to any place in a page.
data_transfers() {
	local joined

	mounted "$1"
	joined=$(bounce_count merged)
	# shellcheck disable=SC2086 # several sizes
	{
		transfer direct direct over 0 $SMALL $PAGE $LARGE
		transfer direct direct fresh 5 $SMALL $PAGE $LARGE
		transfer buffered buffered over 4093 $SMALL $PAGE $LARGE
		transfer mmap buffered fresh 0 $PAGE $LARGE
	}
	[ "$(bounce_count merged)" -gt "$joined" ] || fail "no pages were mapped as one"
	unmounted
}

# Long Calls and long Replies: as Position-zero Read chunks, in Reply chunks, or pulled.
long_messages() {
	local sizes="500 3900 4100 20000 60000" link

	set_pulled_replies "$1" "$1"
	mounted 4.2
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
	[ "$(readlink "$WORK/link")" = "$link" ] || fail "the link has changed"
	(cd "$WORK" && seq -f 'a-name-that-is-not-short-%06.0f' 800 | xargs touch)
	drop_caches
	set -- "$WORK"/a-name-*
	[ $# -eq 800 ] || fail "$# names of 800"
	unmounted
}

# set_inline OCTETS: the longest message, either way.
set_inline() {
	local each

	for each in rdma_max_inline_read rdma_max_inline_write svc_rdma/max_req_size; do
		echo "$1" >"/proc/sys/sunrpc/$each"
	done
}

# What goes inline goes from its pages, if it is long.
inline_pages() {
	local chunks

	set_inline 65536
	mounted "$1"
	chunks=$(xprt_stat read_chunks),$(xprt_stat write_chunks)
	transfer direct direct over 0 8192 20000 50000
	transfer direct direct fresh 5 8192 20000 50000
	transfer buffered buffered over 4093 8192 20000 50000
	[ "$chunks" = "$(xprt_stat read_chunks),$(xprt_stat write_chunks)" ] ||
		fail "it went in chunks"
	unmounted
}

# Connections end with mappings of all kinds on them.
reconnects() {
	local _

	mounted "$1"
	load_start 4
	for _ in 1 2 3; do
		reconnect
		load_wait_progress
	done
	load_stop
	unmounted
}

# fails_every NUMBER [LISTS]: one mapping in so many, or none; with 1 behind it, of data only.
fails_every() {
	echo "${2:-0}" >"$BOUNCE/fail_sg_only"
	echo "$1" >"$BOUNCE/fail_interval"
}

# Reads and writes, whatever comes of it.
try() {
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

# One in many mappings fails, whatever it is for; a connection takes fewer. Then all is as if
# none had.
rare_map_failures() {
	local failed jobs=() each

	mounted "$1" soft timeo=100 retrans=2
	failed=$(bounce_count injected)
	fails_every 997
	for each in 1 2 3; do
		try "$each" &
		jobs+=($!)
	done
	wait "${jobs[@]}"
	fails_every 0
	echo "$(($(bounce_count injected) - failed)) mappings have failed"
	[ "$(bounce_count injected)" -gt "$failed" ] || fail "no mapping has failed"
	bounce_wait sg_lists 0 || fail "$(bounce_count sg_lists) lists are mapped, and nobody waits"
	nfs_remount "$1" rdma
	load_start 2
	load_stop
	unmounted
}

# Of what a Call or Reply maps, the last fails, or one in front of it. It costs the RPC alone.
data_map_failures() {
	local connected i

	mounted "$1" soft timeo=100 retrans=2
	dd if=/dev/zero of="$WORK/file" bs=1M count=2 oflag=direct status=none
	connected=$(xprt_stat connect_count)
	fails_every 5 1
	set +e
	for i in $(seq $((40 / PACE))); do
		dd if=/dev/zero of="$WORK/file" bs=1M count=1 oflag=direct status=none
		dd if="$WORK/file" of=/dev/null bs=1M count=1 iflag=direct status=none
	done 2>"$ktap_dir/errors"
	set -e
	fails_every 0
	echo "$(grep -c 'Input/output error' "$ktap_dir/errors") errors"
	bounce_wait sg_lists 0 || fail "$(bounce_count sg_lists) lists are mapped, and nobody waits"
	[ "$(xprt_stat connect_count)" -eq "$connected" ] ||
		fail "connected $(xprt_stat connect_count) times"
	unmounted
}

FAIL_POST=/sys/module/fail_post_send/parameters

# So many lists have been refused in each way.
has_refused() {
	local way

	for way in bad_first bad_last bad_unknown; do
		[ "$(cat "$FAIL_POST/$way")" -ge "$1" ] || return 1
	done
}

# post_failures END send|recv INTERVAL: the device of that end refuses some of the Sends or Receives
# that are posted, or the last of them, or takes all and says that it failed. What it has taken, and
# what it has not, is unmapped once.
post_failures() {
	local device=$BED_CLIENT_DEV deadline=$((SECONDS + IO_TIMEOUT)) connected
	# A slow machine posts fewer in the same time.
	local every=$(($3 / PACE > 3 ? $3 / PACE : 3))

	[ "$1" = client ] || device=$BED_SERVER_DEV
	# Nobody asks again because it takes long.
	mounted 4.2 timeo=6000
	connected=$(xprt_stat connect_count)
	load_start 4
	insmod "$HELPERS/fail_post_send.ko" device="$device" "$2_interval=$every"
	until has_refused 2; do
		[ "$SECONDS" -lt "$deadline" ] || break
		sleep 0.5
	done
	echo "$(cat "$FAIL_POST/bad_first") refused, and $(cat "$FAIL_POST/bad_last") of which the last was"
	echo "$(cat "$FAIL_POST/bad_unknown") taken, and refused in words"
	rmmod fail_post_send
	[ "$SECONDS" -lt "$deadline" ] || fail "too few have been refused in $IO_TIMEOUT s"
	load_wait_progress
	load_stop
	echo "connected $(($(xprt_stat connect_count) - connected)) times"
	unmounted
}

# The device refuses the first Receives as well: nothing is connected until it takes them.
no_connect_without_receives() {
	local connected deadline=$((SECONDS + IO_TIMEOUT))

	mounted 4.2 timeo=6000
	load_start 2
	insmod "$HELPERS/fail_post_send.ko" device="$BED_CLIENT_DEV" recv_interval=1
	connected=$(xprt_stat connect_count)
	until has_refused 1; do
		[ "$SECONDS" -lt "$deadline" ] || break
		sleep 0.5
	done
	has_refused 1 || fail "it has not been tried three times"
	[ "$(xprt_stat connect_count)" -eq "$connected" ] ||
		fail "connected $(($(xprt_stat connect_count) - connected)) times without a Receive"
	rmmod fail_post_send
	load_wait_progress
	load_stop
	unmounted
}

bed_up
[ $# -gt 0 ] || set -- "data_transfers 3" "data_transfers 4.2" \
	"long_messages 0" "long_messages 1" \
	"inline_pages 3" "inline_pages 4.2" \
	"reconnects 3" "reconnects 4.2" \
	"data_map_failures 3" "data_map_failures 4.2" \
	"rare_map_failures 3" "rare_map_failures 4.2" \
	"post_failures client send 297" "post_failures server send 297" \
	"post_failures client recv 29" "post_failures server recv 97" \
	no_connect_without_receives
ktap_run "$@"
