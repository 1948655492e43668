# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for the tree in which the packages are built and checked: Debian's packaging tools,
# of the suite that the packages are for.

PACKAGE_TOOLS=debhelper,dh-dkms,lintian,man-db

package_tree_path() {
	echo "$CACHE/package-$(recipe "$(user_suite "$(suite)")" "$PACKAGE_TOOLS")"
}

make_package_tree() {
	mmdebstrap --variant=buildd \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--include="$PACKAGE_TOOLS" "$(user_suite "$(suite)")" "$1/root"
}

# in_package_tree DIRECTORY COMMAND...: runs COMMAND in the tree, as root, with DIRECTORY at
# /src and as its working directory.
in_package_tree() {
	local tree src
	tree=$(package_tree_path)/root src=$(realpath "$1")
	shift
	mkdir -p "$tree/src"
	# shellcheck disable=SC2016 # expanded by the shell in the namespace
	unshare --mount --propagation private sh -euc '
		tree=$1 src=$2
		shift 2
		mount -t proc proc "$tree/proc"
		mount --rbind /dev "$tree/dev"
		mount --bind "$src" "$tree/src"
		exec chroot "$tree" /usr/bin/env -i -C /src HOME=/root LANG=C.UTF-8 \
			PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' enter "$tree" "$src" "$@"
}
