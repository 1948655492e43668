#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: a client that pulls Replies, and does not do what it should.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh

rdma_up
mkdir -p /export
mount -t tmpfs -o size=256m,mode=1777 tmpfs /export
truncate -s 4M /export/probe
chmod 666 /export/probe
# It speaks NFSv4.0, which servers no longer offer by themselves.
printf "[nfsd]\nvers4.0=y\n" >/etc/nfs.conf
nfs_server_up /export
echo 1 >/proc/sys/sunrpc/svc_rdma/pulled_replies
echo 4 >/proc/sys/sunrpc/svc_rdma/max_exposed_replies
echo 2 >/proc/sys/sunrpc/svc_rdma/exposed_seconds
sleep 15 # the grace period
/probe/puller "$SERVER4" "$NFS_PORT" export
for each in exposed expired; do
	echo "# $each: $(cat /proc/sys/sunrpc/svc_rdma/rdma_stat_$each)"
done
nfs_server_down
