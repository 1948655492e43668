#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client's guest of tools/interop/slow_link: direct I/O over a link that carries one RPC of 1 MiB
# in four seconds. The last of 40 Calls waits for nearly three minutes.
# shellcheck disable=SC2154 # ktap_dir is from selftests/lib
# shellcheck source=client.sh
. /interop/client.sh

RATE=2mbit
CALLS=40
SIZE_MIB=64
# The Calls that are under way at the end take another three minutes.
# shellcheck disable=SC2034 # used by ktap.sh
TEST_TIMEOUT=$((MINUTES * 60 + 900))

# io WHAT OPTION...: fio with checksums in each block.
io() {
	fio --name=slow --directory="$MNT" --size=${SIZE_MIB}M --bs=1M --direct=1 --verify=crc32c \
		--rw="$1" --output="$ktap_dir/fio" "${@:2}" ||
		{ tail -n 30 "$ktap_dir/fio"; fail "fio failed or found wrong data"; }
	grep -E '^ *(READ|WRITE):' "$ktap_dir/fio"
}

reads() {
	local connects

	nfs_mount 4.2 rdma rsize=1048576 wsize=1048576
	io write --do_verify=0
	connects=$(xprt_stat connect_count)
	link_rate $RATE
	on_server link_rate $RATE
	io read --ioengine=libaio --iodepth=$CALLS --time_based --runtime=$((MINUTES * 60))
	link_rate 0
	on_server link_rate 0
	[ "$(xprt_stat connect_count)" -eq "$connects" ] || fail "the connection was lost"
}

client_set_up || exit
# rxe does not slow down with the link: it sends 64 packets before it needs an acknowledgment, and
# all of them again after half a second without one. At 2 Mbit/s only small packets arrive in time.
# WRITEs are not tested: the responses to RDMA Reads need no acknowledgment at all.
small_packets
on_server small_packets
ktap_run reads
