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

# bed_down does nothing if bed_up has made no bed.
cleanup() {
	rm -f $conf
	bed_down
}

bed_made=
trap cleanup EXIT
echo "options ib_core force_mr=1" >$conf

test_cleanup() {
	touch "$ktap_dir/stop"
	cd /
	umount_all
	[ ! -d /sys/module/limit_device ] || rmmod limit_device
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

# An MR of the server covers 256 pages. This READ is one RDMA Write from 257, many of which are
# neighbours. The client's device is limited, so that the client exposes 1 MiB as one segment.
read_of_more_pages_than_an_mr() {
	insmod "$HELPERS/limit_device.ko" device="$BED_CLIENT_DEV" max_sge_rd=16
	nfs_mount "$1" rdma
	work_dir "force-mr-pages-$1"
	head -c 2M /dev/urandom >"$WORK/file"
	nfs_remount "$1" rdma
	timeout -s KILL 120 dd if="$WORK/file" of=/tmp/read bs=1M count=1 skip=5 \
		iflag=direct,skip_bytes status=none || fail "no READ"
	[ "$(tail -c +6 "$WORK/file" | head -c 1M | sha256sum)" = \
		"$(sha256sum </tmp/read)" ] || fail "wrong data"
	rm -r "$WORK" /tmp/read
	nfs_umount
	rmmod limit_device
}

bed_up
trap cleanup EXIT
rm $conf
[ $# -gt 0 ] || set -- "transfers_with_force_mr 3" "transfers_with_force_mr 4.2" \
	"read_of_more_pages_than_an_mr 4.2"
ktap_run "$@"
