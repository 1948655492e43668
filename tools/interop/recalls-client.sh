#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client's guest: reads files, is called back, and sees what has changed.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
# shellcheck source=../vm/guest/pair.sh
. /vm/pair.sh

TRACING=/sys/kernel/tracing

# recalled VERSION
recalled() {
	local calls each good=yes

	nfs_mount /export /mnt "vers=$1"
	echo >$TRACING/trace
	cat /mnt/"$1"/* >/dev/null
	tell "holding-$1"
	await "recalled-$1" 600
	calls=$(grep -c ' xprtrdma_cb_call:' $TRACING/trace || true)
	echo "# NFSv$1: $calls reverse Calls"
	[ "$calls" -gt 0 ] || good=''
	for each in /mnt/"$1"/*; do
		grep -q "changed on the server" "$each" || good=''
	done
	umount /mnt
	[ -z "$good" ] || tell "good-$1"
	tell "seen-$1"
}

rdma_link_up 192.168.20.2 fd20::2
modprobe -a rpcrdma nfsv4
mount -t tracefs tracefs $TRACING 2>/dev/null || true
await served
echo 1 >$TRACING/events/rpcrdma/xprtrdma_cb_call/enable
recalled 4.1
recalled 4.2
