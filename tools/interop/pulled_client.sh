#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The client's guest: asks for long Replies, and says what it took.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
# shellcheck source=../vm/guest/pair.sh
. /vm/pair.sh

rdma_link_up 192.168.20.2 fd20::2
modprobe -a rpcrdma nfsv4
await served
for each in 0 1; do
	switch=/proc/sys/sunrpc/rdma_pulled_replies
	[ ! -e $switch ] || echo $each >$switch
	nfs_mount /export /mnt vers=4.2
	[ "$(find /mnt/many -type f | wc -l)" -eq 800 ]
	[ "$(getfattr --absolute-names --only-values -n user.long /mnt/file | wc -c)" -eq 60000 ]
	ls -l /mnt >/dev/null
	# Connections, sends, registrations of each kind, bad Replies.
	echo "switch $each: $(nfs_xprt_line /mnt | awk '{ print $5, $8, $13, $14, $15, $22 }')"
	umount /mnt
done
for each in pulled "done"; do
	stat=/proc/sys/sunrpc/rdma_stat_$each
	[ ! -e $stat ] || echo "$each $(cat $stat)"
done
