#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: the client against a server that lies. Connections may end; data
# stays right, memory comes back, and the kernel log stays clean.

cd /selftests && . ./lib.sh || exit 1
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh

HELPERS=/selftests/helpers
LIAR_PORT=20050
# The device tells of Sends that the client's device has refused.
# shellcheck disable=SC2034 # used by log.sh
LOG_EXPECTED='rxe0: qp#[0-9]+ [a-z_]+: non-flush error status = [0-9]+'
CLIENT=/proc/sys/sunrpc

setup() {
	rdma_up
	mkdir -p /export
	mount -t tmpfs -o size=256m,mode=1777 tmpfs /export
	nfs_server_up /export
	# Replies fit, so that the liar need not write to memory; WRITEs do not.
	echo 262144 >$CLIENT/rdma_max_inline_read
	echo 1024 >$CLIENT/rdma_max_inline_write
}

# shellcheck disable=SC2154 # ktap_dir is from ktap.sh
start_liar() {
	/probe/liar $SERVER4 $LIAR_PORT "$1" >"$ktap_dir/liar" 2>&1 &
	liar=$!
	for _ in $(seq 50); do
		! grep -q listening "$ktap_dir/liar" || return 0
		sleep 0.1
	done
	fail "the liar does not listen: $(cat "$ktap_dir/liar")"
}

mount_liar() {
	mkdir -p "$MNT"
	mount -t nfs -o "vers=3,proto=rdma,port=$LIAR_PORT,nolock,mountproto=tcp,$1" \
		$SERVER4:/export "$MNT"
	WORK=$MNT
}

told() { sed -n 's/.* \([0-9]*\) lies so far/\1/p' "$ktap_dir/liar" | tail -n 1; }

# The memory of connections that are gone is given back.
nothing_left() {
	for _ in $(seq 30); do
		[ "$(cat $CLIENT/rdma_message_octets)" -ne 0 ] || return 0
		sleep 1
	done
	fail "$(cat $CLIENT/rdma_message_octets) octets are left"
}

finish() {
	local each

	for each in 0 1 2 3; do
		[ ! -e "$WORK/$each" ] || cmp "$WORK/$each" "/export/$each" || fail "other data"
	done
	umount "$MNT" || fail "cannot unmount"
	sleep 1
	kill $liar
	wait $liar 2>/dev/null || true
	cat "$ktap_dir/liar"
	rm -f /export/*
	nothing_left
}

# lies LIE WSIZE TRANSFERS MOST-CONNECTIONS: four writers at a time.
lies() {
	local each writers=()

	start_liar "$1"
	mount_liar "wsize=$2,rsize=32768"
	for each in 0 1 2 3; do
		"$HELPERS/direct_helper" "$WORK/$each" "$3" $(($2 / 2 + 4096)) "$2" 4096 &
		writers+=($!)
	done
	for each in "${writers[@]}"; do
		wait "$each" || fail "wrong data"
	done
	echo "$(xprt_stat connect_count) connections," \
		"$(xprt_stat read_chunks) tags," \
		"$(xprt_stat local_inv) local invalidations"
	case $1 in
	none | unasked)
		[ "$(xprt_stat local_inv)" -le 10 ] || fail "tags were not taken for invalid" ;;
	silent)
		[ "$(xprt_stat local_inv)" -ge "$(xprt_stat read_chunks)" ] ||
			fail "tags were taken for invalid" ;;
	esac
	[ "$(xprt_stat connect_count)" -le "$4" ] || fail "connections were lost"
	[ "$4" -eq 1 ] || [ "$(xprt_stat connect_count)" -gt 1 ] || fail "no lie was noticed"
	finish
}

# Each connection is told other private data, of each length twice and more.
private_data() {
	local each turn=0

	start_liar private
	mount_liar "wsize=32768,rsize=32768"
	until [ "$(grep -c '^connection' "$ktap_dir/liar")" -ge 394 ]; do
		turn=$((turn + 1))
		[ "$turn" -lt 5000 ] || fail "the client does not go on"
		"$HELPERS/direct_helper" "$WORK/$((turn % 4))" 10 512 20000 3000 ||
			fail "wrong data"
	done
	finish
}

setup
TEST_TIMEOUT=$((TEST_TIMEOUT * 4))
[ $# -gt 0 ] || set -- "lies none 32768 100 1" "lies silent 32768 100 1" "lies unasked 32768 100 1" \
	"lies last 262144 60 1" "lies never 32768 80 1000" \
	"lies other 32768 80 1000" "lies stale 32768 80 1000" private_data
ktap_run "$@"
