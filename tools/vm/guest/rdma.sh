# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Functions for guests: a soft RDMA device (rxe, siw) on one end of a veth pair. Client and
# server of the guest both use its addresses, and their traffic passes through verbs and the
# whole device. In a linked run (tools/vm/run --link), rxe is on the network card instead.

RDMA_DEV=rxe0
RDMA_NETDEV=veth0
SERVER4=192.168.20.1
SERVER6=fd20::1

# rdma_up [siw]: creates the device.
# shellcheck disable=SC2120 # tools/probe passes an argument
rdma_up() {
	if [ "${1-rxe}" = rxe ]; then
		modprobe rdma_rxe
	else
		RDMA_DEV=${1}0
		modprobe "$1"
	fi || return 1
	modprobe -a veth rdma_cm rdma_ucm ib_uverbs || return 1
	ip link add veth0 type veth peer name veth1 || return 1
	# Without duplicate address detection, addresses are usable at once.
	echo 0 >/proc/sys/net/ipv6/conf/veth0/accept_dad
	ip link set veth0 up mtu 4200 && ip link set veth1 up mtu 4200 || return 1
	ip addr add $SERVER4/24 dev veth0
	ip addr add $SERVER6/64 dev veth0 nodad
	rdma link add $RDMA_DEV type "${1-rxe}" netdev veth0
}

# rdma_link_up ADDRESS4 ADDRESS6: creates rxe on the network card of a linked run.
rdma_link_up() {
	modprobe -a virtio_net sch_netem rdma_rxe rdma_cm rdma_ucm ib_uverbs || return 1
	RDMA_NETDEV=eth0
	echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
	ip link set eth0 up mtu 4200 || return 1
	ip addr add "$1/24" dev eth0
	ip addr add "$2/64" dev eth0 nodad
	tc qdisc add dev eth0 root netem limit 100000 || return 1
	rdma link add $RDMA_DEV type rxe netdev eth0
}

# wire_loses PERCENT: drops that share of the packets that this guest sends, without telling
# the device. Adding a qdisc while rxe sends makes the send fail and ends rxe's QP 1;
# therefore rdma_link_up adds one, and this function only changes it.
wire_loses() {
	tc qdisc change dev eth0 root netem limit 100000 loss "$1%"
}

# wire_dropped: prints how many packets that has dropped.
wire_dropped() { tc -s qdisc show dev eth0 root | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p'; }

# link_rate RATE: limits what this guest sends; 0 removes the limit. See wire_loses.
link_rate() {
	tc qdisc change dev eth0 root netem limit 100000 rate "$1"
}

# small_packets: makes new connections use the least path MTU that IPv6 allows, 1,024 bytes.
small_packets() {
	ip link set eth0 mtu 1280
}

rdma_down() {
	rdma link delete $RDMA_DEV
	[ $RDMA_NETDEV != veth0 ] || ip link delete veth0
}
