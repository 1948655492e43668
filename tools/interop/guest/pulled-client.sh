#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client's guest of tools/interop/pulled: requests long Replies, with pulled Replies on and
# off.
# shellcheck source=client.sh
. /interop/client.sh

SWITCH=/proc/sys/sunrpc/rdma_pulled_replies

# counted NAME: prints a counter of the client; 0 if the module does not have it.
counted() { cat "/proc/sys/sunrpc/rdma_stat_$1" 2>/dev/null || echo 0; }

# long_replies SWITCH: prints the counts of connections, Sends, chunks of each kind, and bad
# Replies.
long_replies() {
	[ ! -e $SWITCH ] || echo "$1" >$SWITCH
	nfs_mount 4.2 rdma
	[ "$(find "$MNT/many" -type f | wc -l)" -eq 800 ] || fail "other names"
	[ "$(getfattr --absolute-names --only-values -n user.long "$MNT/file" | wc -c)" -eq 60000 ] ||
		fail "another value"
	ls -l "$MNT" >/dev/null
	for each in connect_count sends read_chunks write_chunks reply_chunks bad_reply; do
		echo "$each $(xprt_stat $each)"
	done
	nfs_umount
}

nothing_is_pulled() {
	local off on

	off=$(long_replies 0)
	on=$(long_replies 1)
	echo "$off"
	[ "$on" = "$off" ] || fail "not the same when the client is willing: $on"
	[ "$(counted pulled)" -eq 0 ] || fail "$(counted pulled) Replies were pulled"
	[ "$(counted "done")" -eq 0 ] || fail "$(counted "done") Replies were acknowledged"
	[ "$(on_server exposed)" -eq 0 ] || fail "$(on_server exposed) Replies were exposed"
}

client_set_up || exit
ktap_run nothing_is_pulled
