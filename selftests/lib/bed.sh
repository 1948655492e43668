# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The test bed: an NFS server, its client, and the RDMA devices between them.
#
# By default the bed is created on one machine: the server in the initial network namespace, the
# client in a second one, a bridge between them in a third, and one Soft RoCE (rxe) device at either
# end, so that packets cross a link, which tests can cut. With BED_RDMA=siw there is one Soft iWARP
# device for both ends, in the initial namespace (siw does not support others), and no link to cut.
# With BED_BOUNCE=1 the devices need DMA mappings (bounce.sh).
#
# To test over hardware, name a server that exports a directory over RDMA. Tests that need control
# of the server or of the link then skip themselves:
#
#   RPCRDMA_SERVER=192.168.7.1 [RPCRDMA_SERVER6=fd07::1] RPCRDMA_EXPORT=/srv
#
# BED_KEEP=1 leaves the bed up for the next test program. Otherwise the bed is destroyed and the
# module unloaded at the end; a reference that is left to the module is an error.

BED_DIR=/run/rpcrdma-selftest
BED_NETNS=rpcrdma-client
BED_SWITCH=rpcrdma-switch
BED_SERVER_IF=rpcs0
BED_SERVER_PORT=rpcs1
BED_CLIENT_IF=rpcc0
BED_CLIENT_PORT=rpcc1
: "${BED_RDMA:=rxe}"
BED_SERVER_DEV=${BED_RDMA}_s
BED_CLIENT_DEV=rxe_c
[ "$BED_RDMA" = rxe ] || BED_CLIENT_DEV=$BED_SERVER_DEV
BED_EXPORT=$BED_DIR/export
BED_PORT=20049
BED_NFSD_THREADS=8
# nfsd's longest READ and WRITE, in bytes. nfsd's default depends on memory: with 2 GiB it is a
# quarter of what the client supports.
: "${BED_BLOCK:=1048576}"
# Seconds.
: "${BED_LEASE:=10}"

SERVER4=${RPCRDMA_SERVER:-192.0.2.1}
SERVER6=${RPCRDMA_SERVER6:-}
# shellcheck disable=SC2034 # used by the other files
EXPORT=${RPCRDMA_EXPORT:-$BED_EXPORT}
# shellcheck disable=SC2034
MNT=${RPCRDMA_MNT:-/mnt/rpcrdma-selftest}

bed_is_local() { [ -z "${RPCRDMA_SERVER:-}" ]; }
# The kernel may run without IPv6 (ipv6.disable=1).
bed_is_local && [ -e /proc/net/if_inet6 ] && SERVER6=fd00:2::1

# Succeeds if the client has its own network namespace and a link to the server.
bed_has_link() { bed_is_local && [ "$BED_RDMA" = rxe ]; }

# For tests that control the server, the link or the devices.
need_local_bed() {
	bed_is_local || skip "needs control of the server and the link"
}

# For tests that expect Remote Invalidation, which this module does not offer on iWARP: there a
# peer's Send with Invalidate may be executed before the REG_MR, which then leaves the MR valid.
need_remote_invalidation() {
	[ "$BED_RDMA" = rxe ] || [ "$(module_kind)" = c ] ||
		skip "this module uses no Remote Invalidation over $BED_RDMA"
}

# For tests that cut the link, delay it or capture packets on it.
need_link() {
	need_local_bed
	bed_has_link || skip "needs a link, and the bed has none with $BED_RDMA"
}

# Runs a command in the client's network namespace and the current mount namespace.
on_client() {
	if bed_has_link; then
		nsenter --net="/run/netns/$BED_NETNS" -- "$@"
	else
		"$@"
	fi
}

on_switch() { ip -netns "$BED_SWITCH" "$@"; }

link_add() {
	if bed_has_link; then
		link_add_switched
	else
		link_add_direct
	fi
}

link_add_direct() {
	ip link add "$BED_SERVER_IF" type veth peer name "$BED_SERVER_PORT"
	ip address add "$SERVER4/24" dev "$BED_SERVER_IF"
	[ -z "$SERVER6" ] || ip address add "$SERVER6/64" dev "$BED_SERVER_IF" nodad
	ip link set "$BED_SERVER_PORT" up
	ip link set "$BED_SERVER_IF" up
}

link_add_switched() {
	local client="ip -netns $BED_NETNS"

	ip netns add "$BED_NETNS"
	ip netns add "$BED_SWITCH"
	ip link add "$BED_SERVER_IF" type veth \
		peer name "$BED_SERVER_PORT" netns "$BED_SWITCH"
	$client link add "$BED_CLIENT_IF" type veth \
		peer name "$BED_CLIENT_PORT" netns "$BED_SWITCH"

	on_switch link add switch type bridge forward_delay 0
	on_switch link set switch up

	ip address add "$SERVER4/24" dev "$BED_SERVER_IF"
	[ -z "$SERVER6" ] || ip address add "$SERVER6/64" dev "$BED_SERVER_IF" nodad
	$client address add 192.0.2.2/24 dev "$BED_CLIENT_IF"
	[ -z "$SERVER6" ] || $client address add fd00:2::2/64 dev "$BED_CLIENT_IF" nodad
	$client link set lo up
	$client link set "$BED_CLIENT_IF" up
	ip link set "$BED_SERVER_IF" up
	link_up
	server_resolve
}

# Waits until the client has resolved the server's hardware address. A ping fails after three
# seconds without an ARP reply, which happens while the bridge learns its ports. The neighbour entry
# stays valid for longer than any test keeps the link down.
server_resolve() {
	local _ neighbours=/proc/sys/net/ipv4/neigh/$BED_CLIENT_IF

	on_client tee "$neighbours/base_reachable_time_ms" >/dev/null <<<3600000
	for _ in {1..10}; do
		! on_client ping -q -c 1 -W 10 "$SERVER4" || return 0
	done
	return 1
}

# Stops the bridge from forwarding. Both ends keep carrier, addresses and routes: without a route
# for a CM message, rxe's QP 1 enters the error state for good, with either module.
link_down() {
	on_switch link set "$BED_SERVER_PORT" nomaster &&
		on_switch link set "$BED_CLIENT_PORT" nomaster
}

link_up() {
	local port

	for port in "$BED_SERVER_PORT" "$BED_CLIENT_PORT"; do
		on_switch link set "$port" master switch up || return
	done
}

# link_set_delay PORT MILLISECONDS: delays packets that leave the bridge by that port.
link_set_delay() { tc -netns "$BED_SWITCH" qdisc add dev "$1" root netem delay "$2ms"; }

# link_set_rate PORT RATE: sends packets that leave the bridge by that port at this rate.
link_set_rate() { tc -netns "$BED_SWITCH" qdisc add dev "$1" root netem limit 10000 rate "$2"; }

# Drops the packets that are delayed at the moment.
link_clear_delay() { tc -netns "$BED_SWITCH" qdisc del dev "$1" root; }

# link_end_delay PORT: the same, once no packet was delayed for a second. A shorter delay would
# reorder packets.
link_end_delay() {
	local _ idle=0

	for _ in $(seq $((600 * PACE))); do
		[ "$idle" -lt 10 ] || break
		tc -netns "$BED_SWITCH" -s qdisc show dev "$1" root | grep -q ' backlog 0b 0p ' &&
			idle=$((idle + 1)) || idle=0
		sleep 0.1
	done
	link_clear_delay "$1"
}

device_add() {
	case $1 in
	"$BED_SERVER_DEV")
		rdma link add "$1" type "$BED_RDMA" netdev "$BED_SERVER_IF" ;;
	"$BED_CLIENT_DEV")
		on_client rdma link add "$1" type rxe netdev "$BED_CLIENT_IF" ;;
	esac
}

device_delete() { rdma link delete "$1"; }

device_is_gone() { [ ! -e "/sys/class/infiniband/$1" ]; }

# set_mtu BYTES: sets the MTU of both ends. The switch between them keeps its own of 1500.
set_mtu() {
	on_client ip link set "$BED_CLIENT_IF" mtu "$1"
	ip link set "$BED_SERVER_IF" mtu "$1"
}

# Undoes what tests do to the link, to the client's route and to its device.
link_repair() {
	bed_has_link || return 0
	link_up
	set_mtu 1500
	on_client ip route replace 192.0.2.0/24 dev "$BED_CLIENT_IF" src 192.0.2.2
	[ -e "/sys/class/infiniband/$BED_CLIENT_DEV" ] || device_add "$BED_CLIENT_DEV"
	on_client ip neighbour delete "$SERVER4" dev "$BED_CLIENT_IF"
	server_resolve
}

server_start() {
	echo "$BED_BLOCK" >/proc/fs/nfsd/max_block_size &&
	rpc.nfsd --rdma="$BED_PORT" --nfs-version 4.0 \
		--grace-time 10 --lease-time "$BED_LEASE" "$BED_NFSD_THREADS"
}

server_stop() { rpc.nfsd 0; }

# Succeeds if this machine has an NFS server. /proc/fs/nfsd need not be mounted: rpc.nfsd may have
# used netlink.
server_runs() {
	mountpoint -q /proc/fs/nfsd ||
		{ [ -d /sys/module/nfsd ] && mount -t nfsd nfsd /proc/fs/nfsd; }
	[ "$(cat /proc/fs/nfsd/threads 2>/dev/null || echo 0)" -ne 0 ]
}

server_up() {
	grep -q "^rdma" /proc/fs/nfsd/portlist 2>/dev/null
}

# Starts nfsdcld and waits until it watches for nfsd's pipe: it daemonizes before, and nfsd waits
# for it for one second only.
tracker_up() {
	local _

	pidof nfsdcld >/dev/null || nfsdcld || return
	for _ in $(seq $((300 * PACE))); do
		! find "/proc/$(pidof -s nfsdcld)/fd" -lname '*inotify*' 2>/dev/null | grep -q . || return 0
		sleep 0.1
	done
}

# Mounts the file systems that the daemons of nfs-utils need, and starts those not running yet.
server_daemons() {
	mkdir -p /run/rpc_pipefs
	mountpoint -q /run/rpc_pipefs ||
		mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	pidof rpcbind >/dev/null || rpcbind
	tracker_up
	pidof rpc.mountd >/dev/null || rpc.mountd
}

# mountd_signal SIGNAL: signals the rpc.mountd of this network namespace, and none of a container.
mountd_signal() { pkill "-$1" --ns $$ --nslist net -x rpc.mountd; }

# tmpfs stores extended attributes of up to 64 KiB and ACLs of any length.
export_add() {
	mkdir -p "$BED_EXPORT"
	mount -t tmpfs -o size=75%,mode=1777 tmpfs "$BED_EXPORT"
	exportfs -o rw,insecure,no_root_squash,no_subtree_check,fsid=20049 \
		"*:$BED_EXPORT"
}

bed_make() {
	local each

	case $BED_RDMA in
	rxe) modprobe rdma_rxe ;;
	*) modprobe "$BED_RDMA" ;;
	esac || return
	for each in veth bridge nfs nfsd rpcrdma; do
		modprobe "$each" || return
	done
	mkdir -p "$BED_DIR"
	bounce_begin &&
	link_add &&
	device_add "$BED_SERVER_DEV" &&
	{ ! bed_has_link || device_add "$BED_CLIENT_DEV"; } &&
	server_daemons &&
	export_add &&
	touch "$BED_DIR/server" &&
	server_start &&
	touch "$BED_DIR/made"
}

# Waits until the client has no nfs_client left. NFS probes the session slots of killed RPCs even
# after unmount, and without a server it retries for ever.
client_wait_idle() {
	local round

	for round in $(seq $((120 * PACE))); do
		[ "$(on_client cat /proc/net/nfsfs/servers 2>/dev/null | wc -l)" -gt 1 ] || return 0
		sleep 1
	done
	echo "# the client is still active after $round s"
}

# Leaves the daemons running for the next bed, and a server that the bed has not started.
bed_destroy() {
	umount_all
	client_wait_idle
	[ ! -e "$BED_DIR/server" ] || server_stop
	exportfs -u "*:$BED_EXPORT" 2>/dev/null
	umount "$BED_EXPORT" 2>/dev/null
	device_delete "$BED_CLIENT_DEV" 2>/dev/null
	device_delete "$BED_SERVER_DEV" 2>/dev/null
	ip link delete "$BED_SERVER_IF" 2>/dev/null
	ip netns delete "$BED_NETNS" 2>/dev/null
	ip netns delete "$BED_SWITCH" 2>/dev/null
	rm -rf "$BED_DIR"
}

# Destroys the bed, if this program created it, and checks for leaks.
bed_down() {
	[ -n "$bed_made" ] || return 0
	bed_destroy
	bounce_end || exit "$KSFT_FAIL"
	module_wait_unused "$bed_found" || exit "$KSFT_FAIL"
}

# Creates the bed if necessary. Each test program calls this once, before its first test.
bed_up() {
	local output

	bed_made=
	[ "$(id -u)" -eq 0 ] || ktap_skip_all "needs root"
	[ -e "$BED_DIR/made" ] && return
	bed_is_local || return 0
	! server_runs || ktap_bail_out "no test bed: an NFS server is running already"
	# Other users of this machine may hold references to the module.
	bed_found=$(module_users)
	if ! output=$(bed_make 2>&1); then
		bed_destroy >/dev/null 2>&1
		ktap_bail_out "no test bed: $output"
	fi
	[ -z "${BED_KEEP:-}" ] || return 0
	bed_made=yes
	trap bed_down EXIT
}
