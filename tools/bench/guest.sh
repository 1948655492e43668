#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's part of tools/bench/run. Prints "bench READ|WRITE BYTES INSTRUCTIONS" for each
# operation. Fails if an operation is not one RPC.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh

rdma_up
mkdir -p /export
mount -t tmpfs -o size=64m tmpfs /export
nfs_server_up /export
nfs_mount /export /mnt "${VERS:-vers=4.2}"
dd if=/dev/zero of=/mnt/file bs=1M count=4 conv=fsync status=none

for bytes in 4096 1048576; do
	warm=100 measured=300
	[ "$bytes" = 4096 ] || warm=10 measured=40
	for operation in read write; do
		before=$(nfs_rpcs /mnt "${operation^^}")
		cost=$(/direct_io /mnt/file "$operation" "$bytes" "$warm" "$measured")
		rpcs=$(($(nfs_rpcs /mnt "${operation^^}") - before))
		[ "$rpcs" -eq $((warm + measured)) ] || {
			echo "error: $((warm + measured)) ${operation^^}s of $bytes bytes were $rpcs RPCs"
			exit 1
		}
		echo "bench ${operation^^} $bytes $cost"
	done
done
umount /mnt
nfs_server_down
