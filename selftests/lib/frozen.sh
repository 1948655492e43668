# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# An export whose file system can be frozen: an RPC that changes it stays in nfsd until it is thawed.

FROZEN=$BED_DIR/frozen

# Exports a file system in memory that can be frozen.
frozen_export() {
	modprobe brd rd_nr=1 rd_size=65536 &&
	mkfs.ext4 -q /dev/ram0 &&
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
