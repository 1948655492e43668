#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: the client against a server that calls it, rightly and wrongly.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh

PORT=20051

rdma_up
modprobe -a rpcrdma nfsv4
/probe/caller $SERVER4 $PORT &
caller=$!
sleep 1
mkdir -p /mnt
# There is nothing to mount in the end, and nobody to ask if the caller gives up.
timeout --kill-after=5 300 \
	mount -t nfs -o "vers=4.1,proto=rdma,port=$PORT,retry=0" $SERVER4:/ /mnt 2>/dev/null &
mount=$!
status=0
wait $caller || status=$?
kill $mount 2>/dev/null || true
exit $status
