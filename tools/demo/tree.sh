# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for the tree that the demonstration copies: parts of the kernel's source, at
# least 2,000 files and 100 MiB.

TREE_PARTS='fs drivers/gpu/drm/amd/include/asic_reg/gc'
TREE_FILES=2000
TREE_MEGABYTES=100

tree_path() {
	echo "$CACHE/tree-$(recipe "$(basename "$(toolchain_path)")" "$TREE_PARTS")"
}

make_tree() {
	local out=$1 source
	source=$(toolchain_path)/usr/src/linux
	cd "$source" || return
	# shellcheck disable=SC2086 # a list
	set -- $TREE_PARTS
	find "$@" -type f -print0 | sort -z | xargs -0 sha256sum >"$out/sums"
	tar -cf "$out/tar" "$@"
	find "$@" -type f -printf '%s\n' | awk '{ n += $1 } END { printf "%d\n", n / 1048576 }' >"$out/megabytes"
	if [ "$(wc -l <"$out/sums")" -lt "$TREE_FILES" ] || [ "$(cat "$out/megabytes")" -lt "$TREE_MEGABYTES" ]; then
		fail "the tree of $TREE_PARTS is too small in this kernel" "add directories to TREE_PARTS in tools/demo/tree.sh"
	fi
}
