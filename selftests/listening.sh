#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's listener. It accepts new clients and is alone on its port. A listener on a single
# address still works after that address has moved to another device or its device was removed for a
# while: the connection manager reports that its cm_id is unusable, and the module creates another
# one.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# The module reports a missing device, rxe a connection over it that exceeded its retries (12).
LOG_EXPECTED='cannot listen on .*: no RDMA device .*; retrying
rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'

BOND=rpcb0
BOND_DEV=rxe_b
BOND_ADDRESS=198.51.100.1

# A bond of two links in active-backup mode. A failover changes the bond's hardware address, which
# the connection manager reports.
bond_up() {
	modprobe bonding max_bonds=0 || skip "this kernel has no bonding"
	ip link add "$BOND" type bond mode active-backup fail_over_mac active miimon 100
	ip link add rpcb1 type veth peer name rpcp1
	ip link add rpcb2 type veth peer name rpcp2
	ip link set rpcp1 up
	ip link set rpcp2 up
	ip link set rpcb1 master "$BOND"
	ip link set rpcb2 master "$BOND"
	ip address add "$BOND_ADDRESS/24" dev "$BOND"
	ip link set "$BOND" up
	ip link set "$BOND" type bond active_slave rpcb1
	rdma link add "$BOND_DEV" type rxe netdev "$BOND"
}

bond_down() {
	[ -e "/sys/class/net/$BOND" ] || return 0
	rdma link delete "$BOND_DEV"
	ip link delete "$BOND"
	ip link delete rpcb1
	ip link delete rpcb2
}

# A second network namespace. It contains one end of a link, whose other end disappears when the
# namespace is freed.
NETNS=rpcrdma-listen
NETNS_IF=rpce0

netns_add() {
	ip netns add "$NETNS"
	ip link add "$NETNS_IF" type veth peer name rpce1 netns "$NETNS"
}

netns_delete() {
	! ip netns list | grep -q "^$NETNS" || ip netns delete "$NETNS"
}

hardware_address() { cat "/sys/class/net/$BOND/address"; }

# listen_on ADDRESS: restarts nfsd, listening on this address only.
listen_on() {
	server_stop
	"$HELPERS/listener_helper" "$1" "$BED_PORT"
	echo "$BED_NFSD_THREADS" >/proc/fs/nfsd/threads
	grep "^rdma" /proc/fs/nfsd/portlist
}

# mount_bond VERSION DIR: mounts over the bond, in the initial namespace. Each NFS version has its
# own connection. Retries for a minute, since the server may not listen for a moment.
mount_bond() {
	mkdir -p "$2"
	mount -t nfs -o "vers=$1,proto=rdma,port=$BED_PORT,retry=1" \
		"$BOND_ADDRESS:$EXPORT" "$2"
}

test_cleanup() {
	cd /
	unload_fault_modules
	trace_off
	umount_all
	server_stop
	bond_down
	netns_delete
	[ -e "/sys/class/infiniband/$BED_SERVER_DEV" ] || device_add "$BED_SERVER_DEV"
	server_start
} 2>/dev/null

moves_reported() { log_since_mark | grep -c "RDMA CM addr change for ndev $BOND"; }

# Existing connections survive when the address moves, and new ones are accepted.
listener_follows_address() {
	need_local_bed
	local slave before _

	[ "$BED_RDMA" = rxe ] || skip "$BED_RDMA does not support bonds"
	# The C module fails to listen again, and existing clients hang.
	[ "$(module_kind)" != c ] || skip "the C module stops listening when its address moves"
	bond_up
	listen_on "$BOND_ADDRESS"
	mount_bond 4.2 "$MNT"
	work_dir listening
	for slave in rpcb2 rpcb1 rpcb2; do
		before=$(hardware_address)
		ip link set "$BOND" type bond active_slave "$slave"
		[ "$(hardware_address)" != "$before" ] || fail "the hardware address did not change"
		mount_bond 4.1 "$MNT-new"
		echo "moved to $slave" >"$WORK/file"
		grep -q "moved to $slave" "$WORK_ON_SERVER/file"
		umount "$MNT-new"
	done
	# Three reports per move: for the listener and for both ends of the existing connection.
	for _ in {1..60}; do
		[ "$(moves_reported)" -lt 9 ] || break
		sleep 1
	done
	[ "$(moves_reported)" -ge 9 ] || fail "the connection manager did not report each move"
	rm -r "$WORK"
}

# Once the device is back, existing clients reconnect and new ones are accepted. Without a device
# the server retries, logs so if that takes long, and can be stopped.
listener_survives_device_removal() {
	need_local_bed
	local away reports

	# The C module does not destroy the listener's cm_id, for which the removal waits.
	[ "$(module_kind)" != c ] || skip "with the C module the device cannot be removed"
	listen_on "$SERVER4"
	nfs_mount 4.2 rdma
	work_dir device-goes
	for away in 0 10; do
		device_delete "$BED_SERVER_DEV"
		sleep "$away"
		device_add "$BED_SERVER_DEV"
		echo "away for $away s" >"$WORK/file"
		grep -q "away for $away s" "$WORK_ON_SERVER/file"
	done
	# On a slow kernel the first removal may take long as well.
	reports=$(log_since_mark | grep -c "no RDMA device .*retrying") || :
	[ "$reports" -gt 0 ] || fail "the log does not say that the server cannot listen"
	[ "$reports" -le 2 ] || fail "the log says so $reports times"
	log_since_mark | grep -q "listening on $SERVER4:$BED_PORT again" ||
		fail "the log does not say that the server listens again"
	rm -r "$WORK"
	umount_all
	device_delete "$BED_SERVER_DEV"
	sleep 1
	server_stop
	device_add "$BED_SERVER_DEV"
	server_start
}

# Whether a connection request waits at the server for a thread.
request_waits() {
	rdma resource show cm_id | grep -q " state CONNECT .* src-addr $SERVER4:$BED_PORT "
}

# A connection request that no thread accepts does not delay the removal of its device. nfsd listens
# before it has threads.
device_removed_without_threads() {
	need_local_bed
	local mounting deleting

	# The C module does not destroy the listener's cm_id, for which the removal waits.
	[ "$(module_kind)" != c ] || skip "with the C module the device cannot be removed"
	modprobe nfsv4
	server_stop
	"$HELPERS/listener_helper" "$SERVER4" "$BED_PORT"
	nfs_mount 4.2 rdma retry=0 2>/dev/null &
	mounting=$!
	wait_for "no connection request has arrived" request_waits
	device_delete "$BED_SERVER_DEV" &
	deleting=$!
	wait_for "the removal of the device does not end" device_is_gone "$BED_SERVER_DEV"
	wait "$deleting"
	! request_waits || fail "the connection request is still there"
	kill_mount || :
	wait "$mounting" 2>/dev/null || :
	device_add "$BED_SERVER_DEV"
	echo "$BED_NFSD_THREADS" >/proc/fs/nfsd/threads
	nfs_mount 4.2 rdma
	ls "$MNT" >/dev/null
	umount_all
	server_stop
	server_start
}

# If the server does not listen, mount fails with the first rejection. The QP of the attempt goes to
# the error state at the same time; the client must not report that as a lost connection, since
# SUNRPC would retry.
connection_refused() {
	need_local_bed
	local message refused _

	server_stop
	trace_on xprtrdma_connect
	for _ in {1..8}; do
		! message=$(nfs_mount "$1" rdma retry=0 2>&1) || fail "mounted without a listener"
		grep -qi "connection refused" <<<"$message" || fail "wrong error: $message"
	done
	trace_off
	refused=$(grep -c "xprtrdma_connect: .* rc=-111 " "$TRACING/trace" || true)
	echo "$refused of $(traced xprtrdma_connect) attempts refused"
	[ "$refused" -ge 8 ] || fail "fewer rejections than mounts"
	[ "$refused" -eq "$(traced xprtrdma_connect)" ] || fail "some attempts failed with another error"
	server_start
	nfs_mount "$1" rdma
	ls "$MNT" >/dev/null
}

# A second listener on the port is rejected, and the first one still works.
second_listener_refused() {
	need_local_bed
	local before message

	nfs_mount 4.2 rdma
	work_dir second-listener
	before=$(cat /proc/fs/nfsd/portlist)
	! message=$({ echo "rdma $BED_PORT" >/proc/fs/nfsd/portlist; } 2>&1) ||
		fail "the second listener was accepted"
	echo "$message"
	# The connection manager's error is the former for the wildcard address, else the latter.
	grep -qE "Cannot assign requested address|Address already in use" <<<"$message" ||
		fail "wrong error"
	[ "$(cat /proc/fs/nfsd/portlist)" = "$before" ] || fail "the list of listeners changed"
	echo "still here" >"$WORK/file"
	grep -q "still here" "$WORK_ON_SERVER/file"
	# Each NFS version has its own connection.
	nfs_mount_at "$MNT-new" 4.1 rdma
	ls "$MNT-new" >/dev/null
	umount "$MNT-new"
	rm -r "$WORK"
}

# A listener that could not be created holds no reference to its network namespace. nfsd in that
# namespace ends with the mount namespace.
refused_listener_releases_netns() {
	need_local_bed
	local _

	server_stop
	netns_add
	# shellcheck disable=SC2016 # expanded there
	ip netns exec "$NETNS" sh -ec '
		mount -t nfsd nfsd /proc/fs/nfsd
		cd /proc/fs/nfsd
		echo "rdma $1" >portlist
		if sh -c "echo rdma $1 >portlist" 2>/dev/null; then exit 1; fi
		grep "^rdma" portlist' sh "$BED_PORT" || fail "the second listener was accepted"
	netns_delete
	for _ in $(seq $((240 * PACE))); do
		[ -e "/sys/class/net/$NETNS_IF" ] || break
		sleep 0.5
	done
	[ ! -e "/sys/class/net/$NETNS_IF" ] || fail "the network namespace was not freed"
	server_start
}

# qps_created dead|any: prints for how many peers the server created a QP; with "dead", only for
# peers that the CM had reported as gone for more than half a second. A delayed thread occupies its
# CPU, on which the report may have to wait.
qps_created() {
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	awk -v which="$1" -v here=" src=$SERVER4:$BED_PORT " '
		!index($0, here) || !match($0, /dst=[^ ]+/) { next }
		{ peer = substr($0, RSTART, RLENGTH) }
		{ match($0, /[0-9]+\.[0-9]+: cm_/); now = substr($0, RSTART) + 0 }
		/ cm_event_handler: .* REJECTED / { gone[peer] = now }
		/ cm_qp_create: / && (which == "any" || peer in gone && now - gone[peer] > 0.5) { n++ }
		END { print n + 0 }' "$TRACING/trace"
}

# The server creates no QP for a peer that left while it waited to be accepted. Accepting is
# delayed, and the mounts are killed meanwhile.
abandoned_connects_get_no_qp() {
	need_link
	local function=$RUST_ACCEPT each mounting

	[ "$(module_kind)" != c ] || function='^svc_rdma_accept$'
	modprobe nfsv4
	server_resolve
	delay_fn entry "$function" $((5000 * PACE))
	trace_on
	echo 1 >"$TRACING/events/rdma_cma/cm_qp_create/enable"
	echo 1 >"$TRACING/events/rdma_cma/cm_event_handler/enable"
	for each in 1 2 3; do
		nfs_mount 4.2 rdma retry=0 2>/dev/null &
		mounting=$!
		wait_delay_hits "$each" || fail "only $(delay_hits) peers reached accept"
		kill_mount
		wait "$mounting" 2>/dev/null || :
		# A busy machine takes longer. The next peer must not find the thread still delayed.
		wait_for "the delay does not end" delays_have_ended "$each"
		sleep $((2 * PACE))
	done
	[ "$(grep -c ' cm_event_handler: .* REJECTED ' "$TRACING/trace")" -gt 0 ] ||
		xfail_on_c "no peer left"
	[ "$(qps_created dead)" -eq 0 ] || xfail_on_c "the server created a QP for a peer that had left"
	unload_fault_modules
	nfs_mount 4.2 rdma
	ls "$MNT" >/dev/null
	trace_off
	[ "$(qps_created any)" -gt 0 ] || fail "the trace shows no QP at all"
}

# The cm_ids of the listener and of both ends of a connection are in the port space of the RDMA IP CM
# service.
R8166_5_2_port_space_is_tcp() {
	local ids

	nfs_mount 4.2 rdma
	ls "$MNT" >/dev/null
	ids=$(rdma resource show cm_id; ! bed_has_link || on_client rdma resource show cm_id)
	ids=$(grep ":$BED_PORT\b" <<<"$ids")
	echo "$ids"
	grep -q ' state LISTEN ' <<<"$ids" || fail "no listener is shown"
	[ "$(grep -c ' state CONNECT ' <<<"$ids")" -ge 2 ] || fail "the ends of the connection are not shown"
	! grep -v ' ps TCP ' <<<"$ids" || fail "another port space"
}

bed_up
[ $# -gt 0 ] || set -- "connection_refused 3" "connection_refused 4.2" second_listener_refused \
	refused_listener_releases_netns listener_follows_address \
	listener_survives_device_removal device_removed_without_threads abandoned_connects_get_no_qp \
	R8166_5_2_port_space_is_tcp
ktap_run "$@"
