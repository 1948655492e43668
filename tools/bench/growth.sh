#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's part of tools/bench/growth. Usage: growth.sh ROW...
# Repeats the operation of each row of growth.rows, in several rounds, between marks for QEMU's
# plugin. Each mount is of an address of its own, and so has connections of its own. The mounts beside
# the one that is used are idle; each row adds to those of the rows before it.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
# shellcheck source=measure-rows.sh
. /measure-rows.sh
ROUNDS=5

rdma_up
NFS_LEASE=90
mkdir -p /export
mount -t tmpfs -o size=128m tmpfs /export
nfs_server_up /export
dd if=/dev/zero of=/export/file bs=1M count=4 status=none

# mount_at DIRECTORY NUMBER CONNECTIONS: mounts from address NUMBER of the server.
mount_at() {
	ip addr add "10.9.0.$2/24" dev "$RDMA_NETDEV"
	nfs_mount /export "$1" "vers=3,nolock,noac,lookupcache=none,mountproto=tcp,nconnect=$3" "10.9.0.$2"
}

# rpcs MOUNTPOINT: prints how many READs the mount has performed.
rpcs() { nfs_rpcs "$1" READ; }

beside=0
# measure NUMBER ROW OPERATION BYTES VERSION WARM MEASURED MOUNTS CONNECTIONS
measure() {
	local at=/mnt/$2 round before times=$(($6 + $7))

	while [ $beside -lt $(($8 - 1)) ]; do
		beside=$((beside + 1))
		mount_at /mnt/beside$beside $((100 + beside)) 1
	done
	mount_at "$at" "$1" "$9"
	for ((round = 0; round < ROUNDS; round++)); do
		before=$(rpcs "$at")
		/operations "$1" "$3" "$4" "$6" "$7" "$at" /export "$SERVER4"
		[ $(($(rpcs "$at") - before)) -eq $times ] || {
			echo "error: $times READs were $(($(rpcs "$at") - before)) RPCs"
			return 1
		}
		echo "bench $1 $2 1"
	done
	umount "$at"
}

measure_rows "$@"
grep -i ' [tw] ' /proc/kallsyms >/share/kallsyms
for ((; beside > 0; beside--)); do
	umount /mnt/beside$beside
done
nfs_server_down
