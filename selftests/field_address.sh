#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# By which interface a mount goes.
#
# LONG=1 repeats the rounds.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12), SUNRPC servers that do not respond.
LOG_EXPECTED='rxe_[a-z]+: qp#[0-9]+ make_send_cqe: non-flush error status = 12
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

ROUNDS=${LONG:+20}
ROUNDS=${ROUNDS:-2}

# The server has 203.0.113.1 on another interface than 192.0.2.1.
OTHER4=203.0.113.1

client_ip() { ip -netns "$BED_NETNS" "$@"; }

reach_other() {
	local _

	for _ in {1..10}; do
		! on_client ping -q -c 1 -W 10 $OTHER4 || return 0
	done
	fail "$OTHER4 is not reached"
} >/dev/null

vlan_add() {
	client_ip link add link "$BED_CLIENT_IF" name rpcv0 type vlan id 7
	client_ip address add 203.0.113.2/24 dev rpcv0
	client_ip link set rpcv0 up
}

mount_other() { SERVER4=$OTHER4 nfs_mount_at "$MNT-other" "$@"; }

# read_by MOUNT: reads a mebibyte. Sets received to the bytes that came by the VLAN meanwhile.
read_by() {
	local before counter=/sys/class/net/rpcv0/statistics/rx_bytes

	before=$(with_client_sysfs cat $counter)
	dd if="$1/vlan" of=/dev/null bs=64k iflag=direct status=none
	received=$(($(with_client_sysfs cat $counter) - before))
}

# Two mounts of one server, one by a VLAN, use their own interfaces. When the VLAN is deleted during
# I/O, the other mount works, and I/O by the VLAN continues once there is one again.
vlan_is_deleted_and_added() {
	local received writing round

	need_link
	modprobe 8021q || skip "this kernel has no 8021q"
	ip link add link "$BED_SERVER_IF" name rpcv1 type vlan id 7
	ip address add $OTHER4/24 dev rpcv1
	ip link set rpcv1 up
	vlan_add
	reach_other
	head -c 1M /dev/urandom >"$EXPORT/vlan"
	nfs_mount 3 rdma actimeo=0
	mount_other 3 rdma actimeo=0
	read_by "$MNT"
	echo "$received bytes came by the VLAN for the mount without"
	[ "$received" -lt 100000 ] || fail "a mount uses the VLAN of another one"
	read_by "$MNT-other"
	echo "$received bytes came by the VLAN for its own mount"
	[ "$received" -ge 1048576 ] || fail "the mount does not use its VLAN"
	for round in $(seq "$ROUNDS"); do
		dd if="$EXPORT/vlan" of="$MNT-other/written" bs=64k oflag=direct status=none
		client_ip link delete rpcv0
		dd if="$EXPORT/vlan" of="$MNT-other/written" bs=4k oflag=direct status=none &
		writing=$!
		stat "$MNT/vlan" >/dev/null
		[ "$(module_kind)" = c ] ||
			wait_for "the log does not say why" vlan_is_missed "$OTHER4"
		stat "$MNT/vlan" >/dev/null
		vlan_add
		wait "$writing" || fail "the write failed"
		cmp "$EXPORT/vlan" "$EXPORT/written" || fail "wrong data"
	done
}

vlan_is_missed() { log_since_mark | grep -q "rpcrdma: cannot connect to $1:$BED_PORT: "; }

test_cleanup() {
	cd /
	umount_all
	! bed_has_link || {
		rm -f "$EXPORT/vlan" "$EXPORT/written"
		client_ip link delete rpcv0
		ip link delete rpcv1
	}
} >/dev/null 2>&1

bed_up
[ $# -gt 0 ] || set -- vlan_is_deleted_and_added
ktap_run "$@"
