# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Skips a kernel. The other scripts of this directory read this file, and have set release.

# shellcheck disable=SC2034 # for the other scripts
cache=/var/cache/rpcrdma-rust

# refuse CAUSE NEXT: prints the reason, keeps it for rpcrdma-check, and exits with 77, by which DKMS
# skips this kernel: an error would make the installation of the kernel fail.
refuse() {
	# If the disk is full, the installation of the kernel needs the room of an incomplete tree.
	# shellcheck disable=SC2154 # set by the script that reads this file
	[ -e "$cache/$release/made" ] || rm -rf "$cache/$release"/{source,obj}
	printf 'error: %s\n    next: %s\n' "$@" | tee "$cache/$release.refused" || :
	exit 77
}
