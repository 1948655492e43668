#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's part of tools/bench/memory. Usage: memory-server.sh CONNECTIONS
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
# shellcheck source=../vm/guest/pair.sh
. /vm/pair.sh
# shellcheck source=memory-used.sh
. /memory-used.sh

rdma_link_up $SERVER4 $SERVER6
for ((i = 1; i <= $1; i++)); do
	ip addr add 10.9.0.$i/32 dev eth0
done
ip addr add $BASE_ADDRESS/32 dev eth0
modprobe brd rd_nr=1 rd_size=65536
mkfs.ext4 -q /dev/ram0
mkdir -p /export
mount /dev/ram0 /export
dd if=/dev/zero of=/export/file bs=1M count=1 status=none
printf '[mountd]\nport=20048\n' >>/etc/nfs.conf
nfs_server_up /export
tell up
until [ -e /share/stop ]; do
	for asked in /share/ask.*; do
		[ -e "$asked" ] || continue
		rm "$asked"
		case ${asked#*.} in
		freeze) fsfreeze -f /export ;;
		thaw) fsfreeze -u /export ;;
		*) kernel_holds >"/share/server.${asked#*.}" ;;
		esac
		tell "done.${asked#*.}"
	done
	sleep 0.5
done
nfs_server_down
umount /export
rmmod brd
rdma_down
