# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# RAM disks, and an export whose file system can be frozen: an RPC that changes it stays in nfsd until
# it is thawed.

FROZEN=$BED_DIR/frozen

# ram_disk KIB: makes the RAM disk /dev/ram0 with an empty file system. A machine that has RAM disks
# keeps them.
ram_disk() {
	in_guest || [ ! -d /sys/module/brd ] || skip "this machine has RAM disks"
	modprobe brd rd_nr=1 rd_size="$1" && mkfs.ext4 -q /dev/ram0
}

# Exports a file system in memory that can be frozen.
frozen_export() {
	ram_disk 65536 &&
	mkdir -p "$FROZEN" &&
	mount /dev/ram0 "$FROZEN" &&
	exportfs -o rw,insecure,no_root_squash,no_subtree_check,fsid=20053 "*:$FROZEN"
}

frozen_unexport() {
	fsfreeze -u "$FROZEN"
	umount_all
	exportfs -u "*:$FROZEN"
	exportfs -f
	umount "$FROZEN"
	rmmod brd
}
