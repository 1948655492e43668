# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# RDMA in a guest: rxe, or another soft device, on one end of a veth pair. Client and
# server both use its addresses; what they say to each other goes through the whole of
# the device and of verbs. On a linked run (run --link) rxe sits on the network card
# instead.

RDMA_DEV=rxe0
RDMA_NETDEV=veth0
SERVER4=192.168.20.1
SERVER6=fd20::1

# rdma_up [siw]
# shellcheck disable=SC2120 # tools/probe says which
rdma_up() {
	if [ "${1-rxe}" = rxe ]; then
		modprobe rdma_rxe
	else
		RDMA_DEV=${1}0
		modprobe "$1"
	fi || return 1
	modprobe -a veth rdma_cm rdma_ucm ib_uverbs || return 1
	ip link add veth0 type veth peer name veth1 || return 1
	# Addresses are of use at once: no duplicate detection.
	echo 0 >/proc/sys/net/ipv6/conf/veth0/accept_dad
	ip link set veth0 up mtu 4200 && ip link set veth1 up mtu 4200 || return 1
	ip addr add $SERVER4/24 dev veth0
	ip addr add $SERVER6/64 dev veth0 nodad
	rdma link add $RDMA_DEV type "${1-rxe}" netdev veth0
}

# rdma_link_up ADDRESS4 ADDRESS6: the same on the card of a linked run.
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

# wire_loses PERCENT: of the packets that leave this end, without the device noticing. A
# packet that is sent while a qdisc is put in place is an error to rxe, and the end of
# its QP 1; so there is one from the start.
wire_loses() {
	tc qdisc change dev eth0 root netem limit 100000 loss "$1%"
}

rdma_down() {
	rdma link delete $RDMA_DEV
	[ $RDMA_NETDEV != veth0 ] || ip link delete veth0
}
