#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Long Calls and long Replies without DDP-eligible data: symbolic links of up to 4095 bytes, and
# directories with thousands of entries.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

ENTRIES=${LONG:+5000}
ENTRIES=${ENTRIES:-2500}

names() { "$HELPERS/names_helper" "$@" || fail "$*"; }

# long_symlinks VERSION FIRST LAST: symbolic links of each length from FIRST to LAST bytes.
long_symlinks() {
	nfs_mount "$1" rdma
	work_dir "links-$1-$2"
	names make links "$WORK" "$2" "$3"
	if bed_is_local; then
		names check links "$WORK_ON_SERVER" "$2" "$3"
	fi
	nfs_remount "$1" rdma
	names check links "$WORK" "$2" "$3"
	names remove links "$WORK" "$2" "$3"
}

# Only READDIR is tested, so the files are created on the server, which is faster.
large_directory() {
	local where

	nfs_mount "$1" rdma
	work_dir "directory-$1"
	where=$WORK
	if bed_is_local; then
		where=$WORK_ON_SERVER
	fi
	names make files "$where" 1 "$ENTRIES"
	# First without the files' attributes, then with them, which find -size reads.
	names check files "$WORK" 1 "$ENTRIES"
	nfs_remount "$1" rdma
	[ "$(find "$WORK" -type f -size 0 | wc -l)" -eq "$ENTRIES" ] ||
		fail "wrong number of files with attributes"
	names remove files "$where" 1 "$ENTRIES"
	rmdir "$WORK" || fail "the directory is not empty"
}

bed_up
[ $# -gt 0 ] || set -- \
	"long_symlinks 3 1 9" "long_symlinks 3 600 1100" "long_symlinks 3 3500 4095" \
	"long_symlinks 4.2 1 9" "long_symlinks 4.2 500 1100" "long_symlinks 4.2 3400 4095" \
	"large_directory 3" "large_directory 4.0" "large_directory 4.2"
ktap_run "$@"
