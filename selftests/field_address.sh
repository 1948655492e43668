#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# By which interface a mount goes, and referrals to addresses without NFS over RDMA.
#
# LONG=1 repeats the rounds.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12), SUNRPC servers that do not respond, and
# addresses of one server.
LOG_EXPECTED='rxe_[a-z]+: qp#[0-9]+ make_send_cqe: non-flush error status = 12
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
SUNRPC: reached max allowed number
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

# referral_to ADDRESS: has the server refer clients to a file system of its own at this address.
referral_to() {
	local referred=$BED_DIR/referred

	mkdir -p "$EXPORT/referral" "$referred"
	mount -t tmpfs tmpfs "$referred"
	touch "$referred/file"
	mount --bind "$EXPORT/referral" "$EXPORT/referral"
	exportfs -o rw,insecure,no_root_squash,no_subtree_check,fsid=20051 "*:$referred"
	exportfs -o rw,insecure,no_subtree_check,fsid=20052 "*:$EXPORT/referral"
	nfs_mount 4.2 tcp
	# rpc.mountd would make no referral of an address that this machine has. As it would write to
	# nfsd: until when, flags as above, anonymous user and group, fsid.
	echo "* $EXPORT/referral 2147483647 9222 65534 65534 20052 fsloc 1 $1 $referred 1" \
		>/proc/net/rpc/nfsd.export/channel
}

# referral_is_followed LIMIT: follows the referral, by TCP, within so many milliseconds.
referral_is_followed() {
	local began=$EPOCHREALTIME took

	timeout $((2 * IO_TIMEOUT)) ls "$MNT/referral" >"$ktap_dir/followed" ||
		fail "the referral is not followed"
	took=$(((${EPOCHREALTIME/./} - ${began/./}) / 1000))
	grep " $MNT/referral " /proc/self/mounts || fail "nothing is mounted"
	echo "followed after $took ms"
	grep -q file "$ktap_dir/followed" || fail "the referral leads elsewhere"
	grep -q " $MNT/referral .*proto=tcp" /proc/self/mounts || fail "it is not by TCP"
	[ "$took" -le "$1" ] || xfail_on_c "the referral was followed after $took ms"
}

# NFS tries RDMA first. Nothing listens there for RDMA.
referral_is_refused() {
	need_link
	server_stop
	rpc.nfsd --grace-time 10 --lease-time "$BED_LEASE" "$BED_NFSD_THREADS"
	referral_to "$SERVER4"
	referral_is_followed $((20000 * PACE))
}

# NFS tries RDMA first, twice. The address has no RDMA device, and the CM of the client waits 75 s for
# an answer each time.
referral_without_device() {
	need_link
	ip link add rpcd0 type dummy
	ip address add $OTHER4/32 dev rpcd0
	ip link set rpcd0 up
	client_ip route add $OTHER4 via "$SERVER4"
	reach_other
	referral_to $OTHER4
	referral_is_followed $((300000 * PACE))
}

referral_end() {
	exportfs -u "*:$EXPORT/referral"
	exportfs -u "*:$BED_DIR/referred"
	exportfs -f
	umount "$EXPORT/referral"
	umount "$BED_DIR/referred"
	rm -rf "$EXPORT/referral"
	client_ip route delete $OTHER4
	ip link delete rpcd0
	server_stop
	server_start
}

test_cleanup() {
	cd /
	umount_all
	[ ! -d "$EXPORT/referral" ] || referral_end
	! bed_has_link || {
		rm -f "$EXPORT/vlan" "$EXPORT/written"
		client_ip link delete rpcv0
		ip link delete rpcv1
	}
} >/dev/null 2>&1

bed_up
[ $# -gt 0 ] || set -- vlan_is_deleted_and_added referral_is_refused \
	referral_without_device
ktap_run "$@"
