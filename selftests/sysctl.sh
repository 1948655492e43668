#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tunables and counters under /proc/sys/sunrpc: which there are, what they
# accept, and that the counters count.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

TREE=/proc/sys/sunrpc

# name, lowest, highest, default
TUNABLES="
rdma_slot_table_entries			4	16384	128
rdma_max_inline_read			1024	MOST	4096
rdma_max_inline_write			1024	MOST	4096
rdma_inline_write_padding		0	4096	0
rdma_memreg_strategy			0	6	5
svc_rdma/max_requests			4	16384	128
svc_rdma/max_req_size			4096	65536	4096
svc_rdma/max_outbound_read_requests	1	255	16
svc_rdma/rdma_stat_rq_starve		0	0	0
svc_rdma/rdma_stat_rq_poll		0	0	0
svc_rdma/rdma_stat_rq_prod		0	0	0
svc_rdma/rdma_stat_sq_poll		0	0	0
svc_rdma/rdma_stat_sq_prod		0	0	0"

COUNTERS="read recv write sq_starve"

# What RFC 8797 can tell the peer; the C module stops at 64 KiB.
most_inline() {
	if [ "$(module_kind)" = c ]; then echo 65536; else echo 262144; fi
}

each_tunable() {
	printf '%s\n' "$TUNABLES" | sed -e 1d -e "s/MOST/$(most_inline)/"
}

# What the client reads is not under svc_rdma, and SUNRPC_DEBUG decides.
need_client_files() {
	[ -e $TREE/rdma_slot_table_entries ] ||
		xfail_on_c "no client tunables without SUNRPC_DEBUG"
}

accepts() { echo "$2" >"$TREE/$1" 2>/dev/null; }

read_back() {
	accepts "$1" "$2" || fail "$1 refuses $2"
	[ "$(cat "$TREE/$1")" = "$2" ] || fail "$1 does not keep $2"
}

refused() {
	local before

	before=$(cat "$TREE/$1")
	! accepts "$1" "$2" || fail "$1 accepts $2"
	[ "$(cat "$TREE/$1")" = "$before" ] || fail "$1 changed to a bad value"
}

all_present() {
	local name rest

	need_client_files
	each_tunable | while read -r name rest; do
		[ "$(stat -c %a "$TREE/$name")" = 644 ] ||
			fail "$name: mode $(stat -c %a "$TREE/$name")"
		: "$rest"
	done
	for name in $COUNTERS; do
		[ "$(stat -c %a "$TREE/svc_rdma/rdma_stat_$name")" = 644 ] ||
			fail "rdma_stat_$name"
	done
}

defaults() {
	local name low high default

	each_tunable | while read -r name low high default; do
		[ "$(cat "$TREE/$name")" = "$default" ] ||
			fail "$name is $(cat "$TREE/$name"), not $default" \
				"($low to $high)"
	done
	[ "$(cat $TREE/rdma_pad_optimize)" = 0 ] || fail rdma_pad_optimize
}

ranges() {
	local name low high default

	each_tunable | while read -r name low high default; do
		read_back "$name" "$low"
		read_back "$name" "$high"
		read_back "$name" "$default"
		refused "$name" $((low - 1))
		refused "$name" $((high + 1))
		refused "$name" 4294967296
		refused "$name" -1
		refused "$name" nonsense
		refused "$name" ""
	done
}

# An integer of any value, negative ones included.
pad_optimize() {
	local each

	for each in 1 -1 2147483647 0; do
		read_back rdma_pad_optimize "$each"
	done
	refused rdma_pad_optimize 2147483648
}

partial_reads() {
	need_local_bed
	nfs_mount 4.2 rdma
	stat "$MNT" >/dev/null
	nfs_umount
	[ "$(dd if=$TREE/svc_rdma/rdma_stat_recv bs=1 status=none)" -ge 10 ] ||
		fail "a counter read octet by octet"
}

# The tunables take effect on the next connection.
inline_size_in_effect() {
	local before after

	nfs_mount 4.2 rdma
	work_dir sysctl
	head -c 3000 /dev/zero >"$WORK/file"
	before=$(stat_delta read_chunks dd if=/dev/zero of="$WORK/file" \
		bs=3000 count=1 oflag=direct status=none)
	nfs_umount
	accepts rdma_max_inline_write 1024
	nfs_mount 4.2 rdma
	accepts rdma_max_inline_write 4096
	after=$(stat_delta read_chunks dd if=/dev/zero of="$WORK/file" \
		bs=3000 count=1 oflag=direct status=none)
	echo "$before Read chunks at 4096, $after at 1024"
	[ "$before" -eq 0 ] || fail "3,000 octets did not go inline at 4096"
	[ "$after" -gt 0 ] || fail "3,000 octets went inline at 1024"
}

# svc_delta NAME COMMAND...
svc_delta() {
	local name=$1 before
	shift
	before=$(svc_stat "$name")
	"$@"
	echo $(($(svc_stat "$name") - before))
}

# Every Call is a Receive; what a Read chunk brings is one RDMA Read or more,
# and what a Write chunk takes is one RDMA Write or more.
counters_count() {
	local count

	need_local_bed
	nfs_mount 4.2 rdma
	work_dir counters
	head -c 262144 /dev/zero >"$WORK/file"
	sync
	count=$(svc_delta read dd if=/dev/zero of="$WORK/file" bs=64k count=4 \
		oflag=direct status=none)
	[ "$count" -ge 4 ] || fail "$count Reads for four chunks"
	count=$(svc_delta write dd if="$WORK/file" of=/dev/null bs=64k count=4 \
		iflag=direct status=none)
	[ "$count" -ge 4 ] || fail "$count Writes for four chunks"
	count=$(svc_delta recv dd if="$WORK/file" of=/dev/null bs=64k count=4 \
		iflag=direct status=none)
	[ "$count" -ge 4 ] || fail "$count Receives for four Calls"
}

counters_reset() {
	local each

	need_local_bed
	for each in $COUNTERS; do
		echo 7 >$TREE/svc_rdma/rdma_stat_"$each"
		[ "$(svc_stat "$each")" -eq 0 ] || fail "rdma_stat_$each"
	done
}

# A client that may have four Calls outstanding still does all of its work.
few_slots() {
	local each writers=()

	need_client_files
	accepts rdma_slot_table_entries 4
	nfs_mount 4.2 rdma
	accepts rdma_slot_table_entries 128
	work_dir few-slots
	for each in $(seq 16); do
		dd if=/dev/urandom of="$WORK/$each" bs=100k count=3 conv=fsync \
			status=none &
		writers+=($!)
	done
	for each in "${writers[@]}"; do
		wait "$each" || fail "a writer failed"
	done
	[ "$(cat "$WORK"/* | wc -c)" = $((16 * 307200)) ] ||
		fail "octets are missing"
	rm -r "$WORK"
}

bed_up
ktap_run all_present defaults ranges pad_optimize partial_reads \
	inline_size_in_effect counters_count counters_reset few_slots
