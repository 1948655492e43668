#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The RDMA core is told to register the memory of every transfer, whatever the device
# (ib_core.force_mr). It does not say so: a connection that has no regions for that is lost
# once, and the next ones have some. How often a connection is lost is not counted: rxe may lose
# one whenever something is registered (Documentation/contributing.rst).

cd "$(dirname "$0")" && . ./lib.sh || exit 1

[ ! -d /sys/module/ib_core ] || ktap_skip_all "the RDMA core is loaded already"
conf=/etc/modprobe.d/force_mr.conf
echo "options ib_core force_mr=1" >$conf

test_cleanup() {
	touch "$ktap_dir/stop"
	cd /
	umount_all
}

loaded() {
	load_start 2
	load_wait_progress
	load_stop
}

# All that is copied is as it was, both ways.
transfers_with_force_mr() {
	nfs_mount "$1" rdma
	work_dir "force-mr-$1"
	loaded
	nfs_remount "$1" rdma
	loaded
	[ "$(rdma resource show mr dev "$BED_SERVER_DEV" | wc -l)" -gt 100 ] ||
		fail "the server has no regions, so that nothing was to be registered"
	rm -r "$WORK"
}

bed_up
rm $conf
[ $# -gt 0 ] || set -- "transfers_with_force_mr 3" "transfers_with_force_mr 4.2"
ktap_run "$@"
