#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The command nfsrdma says in words why a mount fails, hangs or is slow, and what to do. Each case
# breaks one thing.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12) or were not answered (13), SUNRPC reports
# servers that do not respond. The module reports why it does not use a device.
LOG_EXPECTED="rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = (12|13)
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
rpcrdma: $BED_CLIENT_DEV cannot carry NFS: it lacks room for a Call in its queues
"

NFSRDMA=$HELPERS/nfsrdma
[ -x "$NFSRDMA" ] || NFSRDMA=$(command -v nfsrdma) || ktap_skip_all "needs the command nfsrdma"

# Runs the command where the client is: sysfs shows the connections of one network namespace.
nfsrdma() {
	if bed_has_link; then
		# shellcheck disable=SC2016 # expanded in the namespace
		ip netns exec "$BED_NETNS" sh -c \
			'mount -t debugfs debugfs /sys/kernel/debug; exec "$@"' sh "$NFSRDMA" "$@"
	else
		"$NFSRDMA" "$@"
	fi
}

# says SUBJECT TEXT NEXT: waits until the explanation of SUBJECT has a fault with this text, followed
# by this next step.
says() {
	local deadline=$((SECONDS + IO_TIMEOUT)) told

	while [ "$SECONDS" -lt "$deadline" ]; do
		told=$(nfsrdma explain "$1" || :)
		! grep -A 1 "^  !! .*$2" <<<"$told" | grep "next: .*$3" || return 0
		sleep 1
	done
	echo "$told"
	fail "nfsrdma does not say of $1: $2, and what to do: $3"
}

need_reasons() {
	need_local_bed
	[ "$(module_kind)" != c ] || skip "the C module logs no reason"
}

# A mount that is not tried again fails.
fails_to_mount() {
	! nfs_mount 4.2 rdma clientaddr=192.0.2.2,retry=0 2>&1 || fail "mounted"
}

# Of a mount that works, the command tells what was agreed, and no fault.
agreed() {
	local told

	nfs_mount 4.2 rdma
	told=$(nfsrdma explain "$MNT") || connection_lost fail "it finds a fault: $told"
	for words in "NFSv4.2 over rdma" "connection [0-9]* to $SERVER4:$BED_PORT: connected" \
		"Calls may be outstanding" "neither encrypted"; do
		grep -q -- "$words" <<<"$told" || fail "no \"$words\": $told"
	done
	told=$(nfsrdma status)
	grep -q " $MNT .* 1 of 1 " <<<"$told" || fail "$told"
	told=$(nfsrdma status --json)
	grep -q '"state": "connected"' <<<"$told" || fail "$told"
}

# The port of the mount is not the server's.
wrong_port() {
	need_reasons
	BED_PORT=20050 fails_to_mount
	says "$SERVER4:20050" "refused" "mount with the server's port"
}

# The server of a mount has stopped. When it is there again, so is the connection.
no_server() {
	local said

	need_local_bed
	nfs_mount 4.2 rdma
	server_stop
	(stat -f "$MNT") >/dev/null &
	if [ "$(module_kind)" = c ]; then
		says "$MNT" "connection [0-9]* to $SERVER4" "server is up"
	else
		says "$MNT" "refused: no NFS server listens" portlist
	fi
	server_start
	wait $!
	said=$(nfsrdma explain "$MNT") || :
	grep -q "$SERVER4" <<<"$said" || fail "it says nothing of the server: $said"
	! grep -E "!! .*(refused|attempt to connect)" <<<"$said" ||
		fail "it finds the fault after the server has come back"
}

# No host answers at the address.
no_host() {
	need_reasons
	need_link
	link_down
	on_client ip neighbour flush dev "$BED_CLIENT_IF"
	fails_to_mount
	link_up
	says "$SERVER4" "no host answers" ping
}

# There is no route.
no_route() {
	need_reasons
	need_link
	on_client ip route del 192.0.2.0/24 dev "$BED_CLIENT_IF"
	fails_to_mount
	on_client ip route replace 192.0.2.0/24 dev "$BED_CLIENT_IF" src 192.0.2.2
	says "$SERVER4" "no route" "ip route get"
}

# No RDMA device of the client reaches the address.
no_device() {
	need_reasons
	need_link
	device_delete "$BED_CLIENT_DEV"
	fails_to_mount
	device_add "$BED_CLIENT_DEV"
	says "$SERVER4" "no RDMA device of this host" "rdma link"
}

# The device of a mount goes away, and comes back.
device_removed() {
	need_local_bed
	need_link
	nfs_mount 4.2 rdma
	device_delete "$BED_CLIENT_DEV"
	(stat -f "$MNT") >/dev/null &
	if [ "$(module_kind)" = c ]; then
		says "$MNT" "connection [0-9]* to $SERVER4" "server is up"
	else
		says "$MNT" "cannot connect to $SERVER4:$BED_PORT: .*RDMA device" "rdma link"
	fi
	device_add "$BED_CLIENT_DEV"
	wait $!
}

# The client's device cannot carry NFS.
device_lacks() {
	need_reasons
	need_link
	insmod "$HELPERS/limit_device.ko" device="$BED_CLIENT_DEV" max_qp_wr=7
	fails_to_mount
	rmmod limit_device
	says "$SERVER4" "$BED_CLIENT_DEV cannot carry NFS: it lacks room" "another device"
}

# Packets are short. No fault, but a limit.
short_packets() {
	local told

	need_link
	nfs_mount 4.2 rdma
	on_client ip link set "$BED_CLIENT_IF" mtu 4200
	told=$(nfsrdma explain "$MNT" || :)
	! grep "packets of RoCE" <<<"$told" || fail "4200 bytes suffice"
	on_client ip link set "$BED_CLIENT_IF" mtu 1500
	told=$(nfsrdma explain "$MNT" || :)
	grep -q "\*\* $BED_CLIENT_DEV: .* MTU of 1500 bytes, so packets of RoCE carry 1024" <<<"$told" ||
		fail "$told"
}

# Both ends have an MTU of 9000, and the link between them one of 1500: long packets are lost, and a
# READ ends when both have the MTU of the link. NFSv4 makes no error of it meanwhile, not even with
# "soft", because the client connects again each time (rpc_check_timeout()).
long_packets() {
	local reading

	need_reasons
	need_link
	head -c 1M /dev/zero >"$EXPORT/long"
	set_mtu 9000
	nfs_mount "$1" rdma
	dd if="$MNT/long" of="$ktap_dir/long" bs=1M iflag=direct &
	reading=$!
	says "$MNT" "$BED_CLIENT_IF has an MTU of 9000; if a switch between takes less" \
		"ping -M do -s 8972"
	kill -0 "$reading" || fail "the READ ended although long packets are lost"
	set_mtu 1500
	wait "$reading" || fail "the READ failed"
	cmp "$ktap_dir/long" "$EXPORT/long" || fail "the READ has other data"
}

# A client sends far more Calls than the server has granted, because it was told of more credits.
# nfsd executes none meanwhile: the file system of the export is frozen.
peer_floods() {
	local writing

	need_reasons
	need_link
	frozen_export || skip "no file system that can be frozen"
	set_requests 4
	EXPORT=$FROZEN nfs_mount 3 rdma actimeo=0
	head -c 64k /dev/zero >"$FROZEN/file"
	insmod "$HELPERS/spoil_wr.ko" device="$BED_SERVER_DEV" credits=500
	stat "$MNT/file" >/dev/null
	fsfreeze -f "$FROZEN"
	fio --name=flood --filename="$MNT/file" --size=64k --rw=randwrite --bs=512 --direct=1 \
		--ioengine=libaio --iodepth=120 --output="$ktap_dir/fio" &
	writing=$!
	says 192.0.2.2 "credits exceeded" "more Calls than it may"
	unload_fault_modules
	fsfreeze -u "$FROZEN"
	wait "$writing" || fail "WRITEs failed: $(cat "$ktap_dir/fio")"
}

# set_requests COUNT: sets how many Calls each connection may have outstanding, from the next one on.
set_requests() {
	sysctl -q "sunrpc.svc_rdma.max_requests=$1"
}

# The client's device finds no memory for its queues. When it does, the client connects.
memory_fails() {
	local mounting

	need_reasons
	need_link
	insmod "$HELPERS/limit_device.ko" device="$BED_CLIENT_DEV" max_sq_bytes=1
	nfs_mount 4.2 rdma clientaddr=192.0.2.2 &
	mounting=$!
	says "$SERVER4" "out of memory" "free memory"
	rmmod limit_device
	wait "$mounting" || fail "it does not mount with memory"
}

test_cleanup() {
	cd /
	[ ! -d /sys/module/limit_device ] || rmmod limit_device
	unload_fault_modules
	! mountpoint -q "$FROZEN" || frozen_unexport
	set_requests "$REQUESTS"
	link_repair
	server_up || server_start
	umount_all
	rm -f "$EXPORT/long"
} 2>/dev/null

bed_up
REQUESTS=$(sysctl -n sunrpc.svc_rdma.max_requests)
[ $# -gt 0 ] || set -- agreed wrong_port no_server no_host no_route no_device device_removed \
	device_lacks short_packets "long_packets 3" "long_packets 4.2" peer_floods memory_fails
ktap_run "$@"
