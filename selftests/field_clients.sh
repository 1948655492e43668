#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# vm: --memory 3G
#
# Many clients at once, and one with several connections whose RPCs are encrypted.
#
# LONG=1 reads for ten minutes.

cd "$(dirname "$0")" && . ./lib.sh && . lib/kerberos.sh || exit 1

# rxe reports RDMA Writes to MRs that a client has invalidated since (10) and connections that
# exceeded their retries (12), the RDMA core devices that go away with their namespaces, SUNRPC
# servers that do not respond.
LOG_EXPECTED='rxe_[a-z0-9]+: qp#[0-9]+ make_send_cqe: non-flush error status = (10|12)
infiniband rxe_k[0-9]+: ib_query_port failed \(-19\)
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
nfsd: nfsv4 idmapping failing: has idmapd not been started\?
'

RUNTIME=${LONG:+600}
RUNTIME=${RUNTIME:-20}
CLIENTS=15

# client_add NUMBER: adds a client with a device of its own, and mounts there.
client_add() {
	local name=rpcrdma-k$1 _

	ip netns add "$name"
	ip -netns "$name" link add rpck0 type veth peer name "rpck$1" netns "$BED_SWITCH"
	on_switch link set "rpck$1" master switch up
	ip -netns "$name" address add "192.0.2.$((100 + $1))/24" dev rpck0
	ip -netns "$name" link set lo up
	ip -netns "$name" link set rpck0 up
	ip netns exec "$name" rdma link add "rxe_k$1" type rxe netdev rpck0
	for _ in {1..10}; do
		! ip netns exec "$name" ping -q -c 1 -W 10 "$SERVER4" || break
	done
	mkdir -p "$MNT-$1"
	nsenter --net="/run/netns/$name" mount -t nfs -o \
		"vers=3,proto=rdma,port=$BED_PORT,nolock,mountproto=tcp,fatal_neterrors=none" \
		"$SERVER4:$EXPORT" "$MNT-$1"
} >/dev/null

# Prints how many KiB processes could have.
memory_available() { awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo; }

# Clients with long queues of direct READs. The server's memory does not shrink while they read, and
# comes back when all clients but one go at once, amid their READs; that one reads on.
many_clients_read() {
	local each middle end loaded readers=() first

	need_link
	set_threads 64
	head -c 4M /dev/urandom >"$EXPORT/many"
	for ((each = 0; each < CLIENTS; each++)); do
		client_add "$each" || fail "client $each does not mount"
	done
	for ((each = 0; each < CLIENTS; each++)); do
		fio --thread --name=many --filename="$MNT-$each/many" --readonly --size=4m --rw=randread \
			--bs=16k --direct=1 --ioengine=libaio --iodepth=32 --time_based \
			--runtime=3600 --output="$ktap_dir/fio.$each" &
		readers+=($!)
	done
	for ((each = 0; each < CLIENTS; each++)); do
		wait_for "client $each does not read" client_reads "$each" 64
	done
	sleep "$RUNTIME"
	middle=$(memory_available)
	sleep "$RUNTIME"
	end=$(memory_available) loaded=$(messages_of_server)
	echo "$((middle - end)) KiB in $RUNTIME s; $(reads_of_all) READs so far"
	[ $((middle - end)) -le 65536 ] || fail "$((middle - end)) KiB were lost in $RUNTIME s"
	kill -KILL "${readers[@]:1}"
	for ((each = 1; each < CLIENTS; each++)); do
		ip netns delete "rpcrdma-k$each"
	done
	for ((each = 1; each < CLIENTS; each++)); do
		umount -f -l "$MNT-$each"
	done
	first=$(reads_of 0)
	wait_for "the client that stays does not read on" client_reads 0 $((first + 64))
	kill -INT "${readers[0]}"
	wait "${readers[0]}" || grep -q 'err= 0' "$ktap_dir/fio.0" || fail "READs failed"
	cmp "$EXPORT/many" "$MNT-0/many" || fail "wrong data"
	wait_for "the server keeps the messages of clients that are gone" holds_less $((loaded / 4))
	echo "$(($(memory_available) - end)) KiB are back; messages took $loaded bytes, now $(messages_of_server)"
}

# Prints how many bytes the messages of all connections of the server take. The C module does not say.
messages_of_server() { cat /proc/sys/sunrpc/svc_rdma/message_octets 2>/dev/null || echo 0; }

holds_less() { [ "$(messages_of_server)" -le "$1" ]; }

# reads_of CLIENT: prints how many READs this client has sent.
reads_of() {
	awk -v at="$MNT-$1" '$1 == "device" { here = $5 == at } here && $1 == "READ:" { print $2 }' \
		/proc/self/mountstats
}

reads_of_all() {
	awk '$1 == "READ:" { sum += $2 } END { print sum }' /proc/self/mountstats
}

client_reads() { [ "$(reads_of "$1")" -ge "$2" ]; }

set_threads() { echo "$1" >/proc/fs/nfsd/threads; }

# WRITEs over eight connections, encrypted. RPCs of one context have sequence numbers, of which the
# server accepts those of a window of 128: a Call that comes later is dropped, and sent again only
# after its connection is lost. Nothing else may end a connection.
encrypted_writes() {
	local before late lost

	need_guest
	need_link
	kerberos_up || skip "no Kerberos"
	exportfs -o rw,insecure,no_root_squash,no_subtree_check,fsid=20049,sec=sys:krb5p "*:$EXPORT"
	nfs_mount "$1" rdma sec=krb5p nconnect=8
	work_dir encrypted
	before=$(xprt_stat connect_count)
	trace_on
	echo 1 >"$TRACING/events/rpcgss/rpcgss_svc_seqno_low/enable"
	fio --thread --name=encrypted --directory="$WORK" --numjobs=8 --size=4m --rw=randwrite \
		--bs=64k --direct=1 --ioengine=libaio --iodepth=8 --verify=crc32c --do_verify=1 \
		--verify_fatal=1 --output="$ktap_dir/fio" || fail "fio: $(cat "$ktap_dir/fio")"
	trace_off
	late=$(traced rpcgss_svc_seqno_low)
	lost=$(($(xprt_stat connect_count) - before))
	echo "$(rpcs_sent WRITE) WRITEs, $late Calls came too late, $lost connections were lost"
	[ "$lost" -le "$late" ] || fail "$lost connections were lost"
	rm -r "$WORK"
}

test_cleanup() {
	local each

	cd /
	trace_off
	umount_all
	kerberos_down
	! bed_has_link || for ((each = 0; each < CLIENTS; each++)); do
		ip netns delete "rpcrdma-k$each"
	done
	rm -f "$EXPORT/many"
	server_stop
	server_start
} >/dev/null 2>&1

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2 + 2 * RUNTIME))
[ $# -gt 0 ] || set -- many_clients_read "encrypted_writes 3" "encrypted_writes 4.2"
ktap_run "$@"
