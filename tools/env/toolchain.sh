# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for the toolchain tree: compilers, and the stock kernel with headers and source.

make_toolchain() {
	local tree=$1
	# The tree is never booted, so it gets neither initramfs nor documentation.
	INITRD=No mmdebstrap --variant=apt \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--include="$COMPILER,$(packages "$env_dir/packages-toolchain")" \
		--include="linux-image-$KERNEL_FLAVOUR,linux-headers-$KERNEL_FLAVOUR" \
		--include="linux-source-$KERNEL_SERIES" \
		"$SUITE" "$tree"
	(cd "$tree/usr/src" && tar xf "linux-source-$KERNEL_SERIES.tar.xz")
	mkdir -p "$tree/obj" "$tree/src"
}
