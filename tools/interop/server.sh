#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The server's guest: willing at first, and unwilling when the client says so.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
# shellcheck source=../vm/guest/pair.sh
. /vm/pair.sh

rdma_link_up $SERVER4 $SERVER6
mkdir -p /export
mount -t tmpfs -o size=512m,mode=1777 tmpfs /export
nfs_server_up /export
tell served
await unwilling 1500
switch=/proc/sys/sunrpc/svc_rdma/remote_invalidation
[ ! -e $switch ] || echo 0 >$switch
tell agreed
await stop 1500
nfs_server_down
