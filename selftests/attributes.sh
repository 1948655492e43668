#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Extended attributes and ACLs of many sizes up to 60 KiB are set and read back, and read with
# buffers that are too small.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

BUFFERS="0 1 12 128 4096 65536"

value() { head -c "$1" /dev/zero | tr '\0' 'v'; }

attribute_sizes() {
	seq 0 9
	seq 500 3 1100
	seq 3300 3 4200
	printf '%s\n' 8192 16384 32768 60000 61440
}

# Skips the test if an external server's file system does not support user attributes.
need_attributes() {
	setfattr -n user.probe -v 1 "$WORK" && return
	! bed_is_local || fail "cannot set an attribute"
	skip "the export does not support user attributes"
}

attribute_values() {
	nfs_mount 4.2 rdma
	work_dir attributes
	need_attributes
	# shellcheck disable=SC2046 # several sizes
	attributes set "$WORK" $(attribute_sizes)
	if bed_is_local; then
		# shellcheck disable=SC2046
		attributes check "$WORK_ON_SERVER" $(attribute_sizes)
	fi
	nfs_remount 4.2 rdma
	# shellcheck disable=SC2046
	attributes check "$WORK" $(attribute_sizes)
}

# set_names FILE FIRST LAST: sets attributes whose names are numbers of 200 digits. setfattr of
# Debian 13 has no -P; that of forky prints a warning without it.
set_names() {
	{
		echo "# file: $1"
		seq -f 'user.%0200.0f=""' "$2" "$3"
	} | (cd "$WORK" && setfattr -h --restore=-) || fail "cannot set the names up to $3"
}

# Lists of 1 to 200 names; the last is some 40 KiB long.
attribute_lists() {
	local each so_far=0

	nfs_mount 4.2 rdma
	work_dir attribute-lists
	need_attributes
	touch "$WORK/file"
	for each in 1 3 17 20 21 22 200; do
		set_names file $((so_far + 1)) "$each"
		so_far=$each
		drop_caches
		getfattr --absolute-names "$WORK/file" | grep '^user' | sort |
			cmp - <(seq -f 'user.%0200.0f' 1 "$each") || fail "wrong list of $each names"
	done
}

too_small_buffers() {
	local size

	nfs_mount 4.2 rdma
	work_dir small-buffers
	need_attributes
	for size in 1 12 1000 5000 61440; do
		touch "$WORK/$size"
		setfattr -n user.one -v "$(value "$size")" "$WORK/$size"
		set_names "$size" 1 $((size / 600))
		drop_caches
		# shellcheck disable=SC2086 # several sizes
		attributes get "$WORK/$size" user.one $BUFFERS
		drop_caches
		# shellcheck disable=SC2086
		attributes list "$WORK/$size" $BUFFERS
	done
}

# acl_of COUNT: prints an ACL with COUNT named users.
acl_of() {
	awk -v n="$1" 'BEGIN {
		print "user::rw-\ngroup::r--\nmask::rwx\nother::---"
		for (i = 1; i <= n; i++) print "user:" 100000 + i ":r-x" }'
}

named_users() { getfacl -n --absolute-names --omit-header "$1" | grep '^user:1'; }

posix_acls() {
	local count

	nfs_mount 3 rdma
	work_dir posix-acls
	# The kernel's NFSACL client does not support many more than 320 entries.
	for count in 1 10 30 60 100 200 300 320; do
		touch "$WORK/$count"
		acl_of "$count" | setfacl --set-file=- "$WORK/$count" ||
			fail "cannot set $count entries"
		drop_caches
		named_users "$WORK/$count" |
			cmp - <(seq -f 'user:%.0f:r-x' 100001 $((100000 + count))) ||
			fail "wrong ACL of $count entries"
	done
}

# The same as NFSv4 ACLs, with 24 bytes per user, up to 60 KiB.
nfs4_acls() {
	local count length get=get

	need_local_bed
	nfs_mount "$1" rdma
	work_dir "nfs4-acls-$1"
	for count in 1 10 30 100 160 170 300 900 2550; do
		[ "$count" -le 160 ] || get="get-long"
		touch "$WORK/$count"
		acl_of "$count" |
			setfacl --set-file=- "$WORK_ON_SERVER/$count"
		drop_caches
		# shellcheck disable=SC2086 # several sizes
		attributes "$get" "$WORK/$count" system.nfs4_acl $BUFFERS
		length=$(getfattr --absolute-names --only-values \
			-n system.nfs4_acl "$WORK/$count" | wc -c)
		[ "$length" -ge $((count * 24)) ] ||
			fail "$length bytes for $count users"
		getfattr --absolute-names --only-values -n system.nfs4_acl "$WORK/$count" |
			users_by_number "$count" || fail "wrong ACL of $count users"
	done
	echo "the longest ACL has $length bytes"
}

nfs4_acl_set() {
	local count

	nfs_mount "$1" rdma
	work_dir "nfs4-acl-set-$1"
	for count in 1 10 30 100 170; do
		touch "$WORK/$count"
		{
			echo "A::OWNER@:rwx"
			seq -f "A::%.0f:rx" 100001 $((100000 + count))
			echo "A:g:GROUP@:rx"
			echo "A::EVERYONE@:r"
		} | nfs4_setfacl -S - "$WORK/$count" ||
			fail "cannot set the ACL of $count users"
		drop_caches
		nfs4_getfacl "$WORK/$count" | grep '^A' | users_by_number "$count" ||
			fail "wrong ACL of $count users"
	done
}

bed_up
[ $# -gt 0 ] || set -- attribute_values attribute_lists too_small_buffers posix_acls \
	"nfs4_acls 4.0" "nfs4_acls 4.2" "nfs4_acl_set 4.2"
ktap_run "$@"
