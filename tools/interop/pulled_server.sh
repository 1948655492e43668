#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The server's guest: what it has takes long Replies.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
# shellcheck source=../vm/guest/pair.sh
. /vm/pair.sh

rdma_link_up $SERVER4 $SERVER6
mkdir -p /export
mount -t tmpfs -o size=64m,mode=1777 tmpfs /export
mkdir /export/many
for each in $(seq 800); do : >"/export/many/a-name-that-takes-some-room-$each"; done
: >/export/file
setfattr -n user.long -v "$(head -c 60000 /dev/zero | tr '\0' v)" /export/file
nfs_server_up /export
switch=/proc/sys/sunrpc/svc_rdma/pulled_replies
[ ! -e $switch ] || echo 1 >$switch
tell served
await stop 900
stat=/proc/sys/sunrpc/svc_rdma/rdma_stat_exposed
[ ! -e $stat ] || echo "exposed $(cat $stat)"
nfs_server_down
