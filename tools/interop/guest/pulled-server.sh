#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's guest of tools/interop/pulled: a directory and an attribute with long Replies.
set -eu
# shellcheck source=server.sh
. /interop/server.sh

# exposed: prints the number of Replies that were exposed.
exposed() { cat /proc/sys/sunrpc/svc_rdma/rdma_stat_exposed 2>/dev/null || echo 0; }

server_set_up 512m
mkdir /export/many
for each in $(seq 800); do : >"/export/many/a-name-that-takes-some-room-$each"; done
: >/export/file
setfattr -n user.long -v "$(head -c 60000 /dev/zero | tr '\0' v)" /export/file
modprobe rpcrdma
set_switch pulled_replies 1
serve
