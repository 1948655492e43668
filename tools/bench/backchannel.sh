#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's part of tools/bench/backchannel. Prints "bench rdma|tcp VERSION READ|WRITE
# INSTRUCTIONS" for each operation of 4 KiB, the mean of several rounds.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
ROUNDS=4

rdma_up
printf '[nfsd]\nvers4.0=y\n' >>/etc/nfs.conf
mkdir -p /export
mount -t tmpfs -o size=64m tmpfs /export
nfs_server_up /export

# measure PROTOCOL VERSION: adds the cost of each operation to its sum.
declare -A sum
measure() {
	local operation cost

	case $1 in
	rdma) nfs_mount /export /mnt "vers=$2" ;;
	tcp) mkdir -p /mnt && mount -t nfs -o "proto=tcp,vers=$2" "$SERVER4:/export" /mnt ;;
	esac
	[ -e /mnt/file ] || dd if=/dev/zero of=/mnt/file bs=1M count=4 conv=fsync status=none
	for operation in read write; do
		cost=$(/direct_io /mnt/file "$operation" 4096 100 300)
		sum[$1 $2 ${operation^^}]=$((${sum[$1 $2 ${operation^^}]:-0} + cost))
	done
	umount /mnt
}

for ((round = 0; round < ROUNDS; round++)); do
	for protocol in rdma tcp; do
		for version in 4.0 4.1; do measure $protocol $version; done
	done
done
for each in "${!sum[@]}"; do
	echo "bench $each $((sum[$each] / ROUNDS))"
done
nfs_server_down
