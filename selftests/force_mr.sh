#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ib_core.force_mr=1: the RDMA core uses MRs for every RDMA Read and Write, with any device. The
# core does not tell its users, so the first connection, which has no MRs for that, is lost; later
# ones have them. Lost connections are not counted, since rxe may lose a connection whenever memory
# is registered (Documentation/contributing.rst).

cd "$(dirname "$0")" && . ./lib.sh || exit 1

[ ! -d /sys/module/ib_core ] || ktap_skip_all "the RDMA core is loaded already"
conf=/etc/modprobe.d/force_mr.conf
echo "options ib_core force_mr=1" >$conf

test_cleanup() {
	touch "$ktap_dir/stop"
	cd /
	umount_all
}

verified_load() {
	load_start 2
	load_wait_progress
	load_stop
}

# Data is right in both directions.
transfers_with_force_mr() {
	nfs_mount "$1" rdma
	work_dir "force-mr-$1"
	verified_load
	nfs_remount "$1" rdma
	verified_load
	[ "$(rdma resource show mr dev "$BED_SERVER_DEV" | wc -l)" -gt 100 ] ||
		fail "the server has no MRs: force_mr has no effect"
	rm -r "$WORK"
}

bed_up
rm $conf
[ $# -gt 0 ] || set -- "transfers_with_force_mr 3" "transfers_with_force_mr 4.2"
ktap_run "$@"
