#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What administrators do to a mount: connections added and removed by hand, link-local addresses.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12), SUNRPC reports servers that do not
# respond.
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

# Prints the sysfs directories of the client's connections.
connections() {
	with_client_sysfs sh -c \
		'ls -d /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma 2>/dev/null' || :
}

# sysfs_write FILE WORD: writes to a file of a connection, if it still exists. A write may wait for
# the transport lock without being woken, as in reconnect().
sysfs_write() {
	local _

	for _ in {1..30}; do
		! with_client_sysfs timeout --foreground -s KILL 3 \
			sh -c "[ ! -e $1 ] || echo $2 >$1" || return 0
	done
	fail "cannot write $2 to $1"
}

# Adds eight connections to those of the mount. Sets added to their directories. SUNRPC sends over
# all connections of a mount if it had more than one to begin with.
connections_add() {
	local first switch

	first=$(connections)
	switch=$(dirname "$(head -n 1 <<<"$first")")
	for _ in {1..8}; do
		sysfs_write "$switch/add_xprt" 1
	done
	mapfile -t added < <(connections | grep -vxF "$first")
	[ ${#added[@]} -eq 8 ] || fail "${#added[@]} connections were added"
}

# Takes each added connection off line, and some on line again, and removes it in one of two ways.
connections_remove() {
	local i

	for i in "${!added[@]}"; do
		if [ $((i % 2)) -eq 0 ]; then
			sysfs_write "${added[i]}/xprt_state" offline
			[ $((i % 4)) -eq 0 ] || {
				sysfs_write "${added[i]}/xprt_state" online
				sysfs_write "${added[i]}/xprt_state" offline
			}
			sysfs_write "${added[i]}/xprt_state" remove
		else
			sysfs_write "${added[i]}/del_xprt" 1
		fi
	done
}

# Prints how many connections of the mount have carried RPCs.
connections_used() { xprt_lines | awk -v c="$STAT_recvs" '$c > 0' | wc -l; }

all_are_used() { [ "$(connections_used)" -ge 10 ]; }
users_are_back() { [ "$(module_users)" -le "$1" ]; }

# SUNRPC keeps a connection that is removed without being connected, until the unmount.
# connections_change_while AWAY BACK: AWAY ends all connections, and BACK lets them connect.
connections_change_while() {
	local users

	need_link
	users=$(module_users)
	nfs_mount 3 rdma nconnect=2
	work_dir "$1"
	load_start
	connections_add
	wait_for "some connections carry no RPCs" all_are_used
	"$1"
	connections_remove
	sleep 5
	"$2"
	load_wait_progress
	load_stop
	rm -r "$WORK"
	umount_all
	wait_for "references to the module are left" users_are_back "$users"
}

client_device_delete() { device_delete "$BED_CLIENT_DEV"; }
client_device_add() { device_add "$BED_CLIENT_DEV"; }

# A link-local address has a scope: the client's interface.
link_local_address() {
	local address each connects

	need_link
	address=$(ip -6 -o address show dev "$BED_SERVER_IF" scope link |
		sed -n 's|.* inet6 \([^ /]*\)/.*|\1|p')
	[ -n "$address" ] || skip "the server's interface has no link-local address"
	SERVER6=$address%$BED_CLIENT_IF
	nfs_mount 4.2 rdma6 nconnect=4
	work_dir link-local
	load_start
	[ "$(xprt_lines | wc -l)" -eq 4 ] || fail "not four connections"
	connects=$(xprt_stat connect_count)
	for each in $(connections); do
		sysfs_write "$each/dstaddr" "$SERVER6"
	done
	load_wait_progress
	wait_connect "$connects"
	load_stop
	rm -r "$WORK"
}

test_cleanup() {
	cd /
	trace_off
	! bed_has_link || {
		link_up
		[ -e "/sys/class/infiniband/$BED_CLIENT_DEV" ] || device_add "$BED_CLIENT_DEV"
	}
	server_up || server_start
	umount_all
} 2>/dev/null

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2))
[ $# -gt 0 ] || set -- "connections_change_while server_stop server_start" \
	"connections_change_while client_device_delete client_device_add" \
	link_local_address
ktap_run "$@"
