#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# vm: --cmdline ipv6.disable=1
#
# A kernel without IPv6. nfsd has a listener of RDMA for IPv6 as well, because the RDMA core does not
# refuse it, with either module.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

need_no_ipv6() {
	need_local_bed
	[ ! -e /proc/net/if_inet6 ] || skip "this kernel has IPv6: boot with ipv6.disable=1"
}

io_is_verified() {
	need_no_ipv6
	nfs_mount "$1" rdma nconnect=2
	work_dir verified
	load_start
	reconnect
	load_wait_progress
	load_stop
	rm -r "$WORK"
}

# A mount by IPv6 fails.
mount_by_ipv6_fails() {
	local message

	need_no_ipv6
	! message=$(on_client mount -t nfs -o "vers=4.2,proto=rdma6,port=$BED_PORT,retry=0" \
		"[fd00:2::1]:$EXPORT" "$MNT" 2>&1) || fail "mounted"
	echo "$message"
}

# Listeners come and go.
server_starts_again() {
	local _

	need_no_ipv6
	[ "$BED_RDMA" = rxe ] || skip "the RDMA core warns that $BED_RDMA cannot listen without IPv6"
	for _ in 1 2 3; do
		server_stop
		server_start
	done
	nfs_mount 3 rdma
}

bed_up
[ $# -gt 0 ] || set -- "io_is_verified 3" "io_is_verified 4.2" mount_by_ipv6_fails \
	server_starts_again
ktap_run "$@"
