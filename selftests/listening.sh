#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server hears of new clients, alone on its port. On one address of its own it does
# so also when that address has moved to another device underneath, or its device was
# away: the connection manager says that the listening identifier is of no use any more,
# and another one takes its place.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# Of a device that is away for long, and of a connection over it that ran out of retries (12).
LOG_EXPECTED='no device to listen on .*; still trying
rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'

BOND=rpcb0
BOND_DEV=rxe_b
BOND_ADDRESS=198.51.100.1

# Two links, of which one carries the address: the bond has the hardware address of that
# one, which is how the connection manager notices.
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

# A namespace, with one end of a link, so that the other one tells when it has gone.
ELSEWHERE=rpcrdma-elsewhere
ELSEWHERE_IF=rpce0

elsewhere_up() {
	ip netns add "$ELSEWHERE"
	ip link add "$ELSEWHERE_IF" type veth peer name rpce1 netns "$ELSEWHERE"
}

elsewhere_down() {
	! ip netns list | grep -q "^$ELSEWHERE" || ip netns delete "$ELSEWHERE"
}

hardware_address() { cat "/sys/class/net/$BOND/address"; }

listen_on() {
	server_stop
	"$HELPERS/listener_helper" "$1" "$BED_PORT"
	echo "$BED_NFSD_THREADS" >/proc/fs/nfsd/threads
	grep "^rdma" /proc/fs/nfsd/portlist
}

# mount_there VERSION WHERE: by the machine that serves. Each version has a connection of
# its own. For a moment nobody may be listening: it tries for a minute.
mount_there() {
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
	elsewhere_down
	[ -e "/sys/class/infiniband/$BED_SERVER_DEV" ] || device_add "$BED_SERVER_DEV"
	server_start
} 2>/dev/null

# Who is connected goes on, and who comes is heard.
listener_follows_address() {
	need_local_bed
	local slave before

	[ "$BED_RDMA" = rxe ] || skip "$BED_RDMA knows of no bond"
	# It cannot be listened on again, it says, and who is connected waits for ever.
	[ "$(module_kind)" != c ] || skip "the C module listens no more when its address moves"
	bond_up
	listen_on "$BOND_ADDRESS"
	mount_there 4.2 "$MNT"
	work_dir listening
	for slave in rpcb2 rpcb1 rpcb2; do
		before=$(hardware_address)
		ip link set "$BOND" type bond active_slave "$slave"
		[ "$(hardware_address)" != "$before" ] || fail "the address has not moved"
		mount_there 4.1 "$MNT-new"
		echo "moved to $slave" >"$WORK/file"
		grep -q "moved to $slave" "$WORK_ON_SERVER/file"
		umount "$MNT-new"
	done
	# Who listens, and either end of the connection that stays, each time.
	[ "$(log_since_mark | grep -c "RDMA CM addr change for ndev $BOND")" -ge 9 ] ||
		fail "the connection manager has not noticed"
	rm -r "$WORK"
}

# Who was connected goes on, and who comes is heard, once there is a device again. Without
# one the server goes on trying, says so if that takes long, and can still be stopped.
listener_survives_device_removal() {
	need_local_bed
	local away told

	# Taking the device away waits for the listening identifier, which nobody gives up.
	[ "$(module_kind)" != c ] || skip "the C module keeps the device from going"
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
	# The first one may be long as well, on a slow machine.
	told=$(log_since_mark | grep -c "still trying") || :
	[ "$told" -gt 0 ] || fail "it is not told that nobody can connect"
	[ "$told" -le 2 ] || fail "that is told $told times"
	log_since_mark | grep -q "listening on $SERVER4:$BED_PORT again" ||
		fail "it is not told that the server can be reached again"
	rm -r "$WORK"
	umount_all
	device_delete "$BED_SERVER_DEV"
	sleep 1
	server_stop
	device_add "$BED_SERVER_DEV"
	server_start
}

# Who mounts from where nobody listens is told so by the first answer. The queues of the attempt
# fail at the same moment, which is not to be taken for a loss: SUNRPC would try again.
connection_refused() {
	need_local_bed
	local said refused _

	server_stop
	trace_on xprtrdma_connect
	for _ in {1..8}; do
		! said=$(nfs_mount "$1" rdma retry=0 2>&1) || fail "mounted from nobody"
		grep -qi "connection refused" <<<"$said" || fail "it is not told why: $said"
	done
	trace_off
	refused=$(grep -c "xprtrdma_connect: .* rc=-111 " "$TRACING/trace" || true)
	echo "$refused of $(traced xprtrdma_connect) attempts refused"
	[ "$refused" -ge 8 ] || fail "not even one for each mount"
	[ "$refused" -eq "$(traced xprtrdma_connect)" ] || fail "others end for another reason"
	server_start
	nfs_mount "$1" rdma
	ls "$MNT" >/dev/null
}

# A port is listened on once; who did before still does.
second_listener_refused() {
	need_local_bed
	local before said

	nfs_mount 4.2 rdma
	work_dir second-listener
	before=$(cat /proc/fs/nfsd/portlist)
	! said=$({ echo "rdma $BED_PORT" >/proc/fs/nfsd/portlist; } 2>&1) ||
		fail "it listens twice"
	echo "$said"
	# The connection manager says the one of any address, and the other of a single one.
	grep -qE "Cannot assign requested address|Address already in use" <<<"$said" ||
		fail "it is not told why"
	[ "$(cat /proc/fs/nfsd/portlist)" = "$before" ] || fail "others listen now"
	echo "still here" >"$WORK/file"
	grep -q "still here" "$WORK_ON_SERVER/file"
	# Each version has a connection of its own.
	nfs_mount_at "$MNT-new" 4.1 rdma
	ls "$MNT-new" >/dev/null
	umount "$MNT-new"
	rm -r "$WORK"
}

# A listener that could not be made does not keep its namespace. nfsd of the first one goes
# with what its files are mounted on.
refused_listener_releases_netns() {
	need_local_bed
	local _

	server_stop
	elsewhere_up
	# shellcheck disable=SC2016 # expanded there
	ip netns exec "$ELSEWHERE" sh -ec '
		mount -t nfsd nfsd /proc/fs/nfsd
		cd /proc/fs/nfsd
		echo "rdma $1" >portlist
		if sh -c "echo rdma $1 >portlist" 2>/dev/null; then exit 1; fi
		grep "^rdma" portlist' sh "$BED_PORT" || fail "it does not listen, or twice"
	elsewhere_down
	for _ in $(seq $((60 * PACE))); do
		[ -e "/sys/class/net/$ELSEWHERE_IF" ] || break
		sleep 0.5
	done
	[ ! -e "/sys/class/net/$ELSEWHERE_IF" ] || fail "the namespace is kept"
	server_start
}

# made_queues dead|any: for how many peers the server made queues; only for those of whom it
# knew for half a second that they had gone. A delayed thread has a processor to itself, and
# what would tell the server may have to wait for that.
made_queues() {
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	awk -v which="$1" -v here=" src=$SERVER4:$BED_PORT " '
		!index($0, here) || !match($0, /dst=[^ ]+/) { next }
		{ peer = substr($0, RSTART, RLENGTH) }
		{ match($0, /[0-9]+\.[0-9]+: cm_/); now = substr($0, RSTART) + 0 }
		/ cm_event_handler: .* REJECTED / { gone[peer] = now }
		/ cm_qp_create: / && (which == "any" || peer in gone && now - gone[peer] > 0.5) { n++ }
		END { print n + 0 }' "$TRACING/trace"
}

# Peers that gave up while they waited to be accepted cost no queues. The server is slow
# to accept, and who mounts is killed meanwhile.
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
		wait_delay_hits "$each" || fail "only $(delay_hits) peers were about to be accepted"
		pkill -KILL -x mount.nfs
		wait "$mounting" 2>/dev/null || :
		sleep $((7 * PACE))
	done
	[ "$(grep -c ' cm_event_handler: .* REJECTED ' "$TRACING/trace")" -gt 0 ] ||
		xfail_on_c "nobody has left"
	[ "$(made_queues dead)" -eq 0 ] || xfail_on_c "queues were made for the dead"
	unload_fault_modules
	nfs_mount 4.2 rdma
	ls "$MNT" >/dev/null
	trace_off
	[ "$(made_queues any)" -gt 0 ] || fail "the trace does not tell"
}

bed_up
[ $# -gt 0 ] || set -- "connection_refused 3" "connection_refused 4.2" second_listener_refused \
	refused_listener_releases_netns listener_follows_address \
	listener_survives_device_removal abandoned_connects_get_no_qp
ktap_run "$@"
