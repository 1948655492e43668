#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: the probe against the server.
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
for i in $(seq 1000); do : >"/export/file-with-a-rather-long-name-$i"; done
# The probe speaks NFSv4.0, which servers no longer offer by themselves.
printf "[nfsd]\nvers4.0=y\n" >/etc/nfs.conf
# nfsd gives no delegation before the locks of NFSv3 have had time to come back.
modprobe lockd
echo 3 >/proc/sys/fs/nfs/nlm_timeout
echo 3 >/proc/sys/fs/nfs/nlm_grace_period
nfs_server_up /export
sleep 15 # the grace period
/probe/probe $SERVER4 $NFS_PORT export
nfs_server_down
