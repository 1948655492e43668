#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's part of tools/bench/restart. Usage: restart.sh MOUNTS:SECONDS...
# For each argument prints "restart MOUNTS SECONDS LEAST MEDIAN LONGEST ATTEMPTS": the times in ms
# from the listener's return until the writers go on, and how often a mount tried to connect.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
MOUNTD_PORT=20048
TRACING=/sys/kernel/tracing

rdma_up
mkdir -p /export
mount -t tmpfs -o size=64m tmpfs /export
printf '[mountd]\nport=%s\n' $MOUNTD_PORT >>/etc/nfs.conf
nfs_server_up /export
mountpoint -q $TRACING || mount -t tracefs tracefs $TRACING
echo 1 >$TRACING/events/rdma_cma/cm_send_req/enable

# Each mount has a server address, and so a connection, of its own.
mounted=0
mount_some() {
	while [ $mounted -lt "$1" ]; do
		mounted=$((mounted + 1))
		ip addr add 10.9.0.$mounted/32 dev "$RDMA_NETDEV"
		nfs_mount /export /mnt/$mounted \
			vers=3,nolock,mountvers=3,mountproto=tcp,mountport=$MOUNTD_PORT 10.9.0.$mounted
	done
}

for each; do
	mounts=${each%:*} seconds=${each#*:}
	mount_some "$mounts"
	files=()
	for ((i = 1; i <= mounts; i++)); do
		files+=("/mnt/$i/$i")
	done
	echo >$TRACING/trace
	read -r _ least median longest < <(/restart "$seconds" "${files[@]}")
	attempts=$(grep -c ' cm_send_req: ' $TRACING/trace || :)
	echo "restart $mounts $seconds $least $median $longest" \
		"$(awk "BEGIN { printf \"%.1f\", $attempts / $mounts }")"
done
for ((i = 1; i <= mounted; i++)); do
	umount "/mnt/$i"
done
nfs_server_down
rdma_down
