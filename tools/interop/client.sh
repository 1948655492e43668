#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client's guest: client.sh SERVER-MODULE. A C server asks the client alone, and
# leaves Calls with several tags to it. A C client is always willing.
set -u
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/pair.sh
. /vm/pair.sh

rdma_link_up 192.168.20.2 fd20::2
modprobe -a rpcrdma nfsv4
await served
export RPCRDMA_SERVER=$SERVER4 RPCRDMA_EXPORT=/export HELPERS=/selftests/helpers
cd /selftests || exit
status=0
if [ "$1" = c ]; then
	./invalidation.sh "small 1 1 $COUNT" "large 1 1 0" || status=1
	tell unwilling
	await agreed
	./invalidation.sh "small 0 1 $COUNT" "large 0 1" || status=1
else
	./invalidation.sh "small 1 1 $COUNT" "large 1 1 1" || status=1
	tell unwilling
	await agreed
	./invalidation.sh "small 1 0 $COUNT" "large 1 0" || status=1
fi
exit $status
