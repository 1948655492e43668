#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Mounts with every NFS version over IPv4 and IPv6, and copies data inline and in chunks, as the
# counters must show.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

mount_and_copy() {
	local version=$1 proto=$2 sum

	[ "$proto" = rdma ] || [ -n "$SERVER6" ] || skip "no IPv6 server named"
	nfs_mount "$version" "$proto"
	grep -q " $MNT nfs.*proto=${proto}[, ]" /proc/self/mounts ||
		fail "mounted with the wrong transport"
	work_dir "matrix-$version-$proto"

	head -c 300000 /dev/urandom >"$WORK/large"
	head -c 100 "$WORK/large" >"$WORK/small"
	sum=$(cd "$WORK" && sha256sum large small)
	nfs_remount "$version" "$proto"
	[ "$(cd "$WORK" && sha256sum large small)" = "$sum" ] ||
		fail "the client reads wrong data"
	if bed_is_local; then
		[ "$(cd "$WORK_ON_SERVER" && sha256sum large small)" = "$sum" ] ||
			fail "the server has wrong data"
	fi
	[ "$(xprt_stat write_chunks)" -gt 0 ] ||
		fail "300,000 bytes were read without a Write chunk"
	rm -r "$WORK"
}

bed_up
[ $# -gt 0 ] || set -- \
	"mount_and_copy 3 rdma" "mount_and_copy 3 rdma6" \
	"mount_and_copy 4.0 rdma" "mount_and_copy 4.0 rdma6" \
	"mount_and_copy 4.1 rdma" "mount_and_copy 4.1 rdma6" \
	"mount_and_copy 4.2 rdma" "mount_and_copy 4.2 rdma6"
ktap_run "$@"
