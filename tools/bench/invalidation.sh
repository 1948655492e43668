#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's part of tools/bench/invalidation. Prints "bench READ|WRITE INSTRUCTIONS
# LOCAL-INVALIDATIONS" for each operation of 4 KiB. The argument is whether the client lets
# the server invalidate its memory: 1 or 0.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh

rdma_up
mkdir -p /export
mount -t tmpfs -o size=64m tmpfs /export
nfs_server_up /export
[ "$1" = 1 ] || echo 0 >/proc/sys/sunrpc/rdma_remote_invalidation
nfs_mount /export /mnt vers=4.2
dd if=/dev/zero of=/mnt/file bs=1M count=4 conv=fsync status=none

local_invalidations() { nfs_xprt_line /mnt | awk '{ print $27 }'; }

for operation in read write; do
	before=$(local_invalidations)
	cost=$(/direct_io /mnt/file "$operation" 4096 100 400)
	echo "bench ${operation^^} $cost $(($(local_invalidations) - before))"
done
umount /mnt
nfs_server_down
