# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for the toolchain tree: compilers, and a stock kernel with headers and source.

make_toolchain() {
	local tree=$1
	# The tree is never booted, so it gets neither initramfs nor documentation.
	INITRD=No mmdebstrap --variant=apt \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--setup-hook="$(add_kernel_suite)" \
		--include="$COMPILER,$(packages "$env_dir/packages-toolchain")" \
		--include="linux-image-$RELEASE,linux-headers-$RELEASE,linux-source-$SERIES" \
		"$USER_SUITE" "$tree"
	(cd "$tree/usr/src" && tar xf "linux-source-$SERIES.tar.xz")
	ln -s "linux-source-$SERIES" "$tree/usr/src/linux"
	mkdir -p "$tree/obj" "$tree/src"
}

# add_kernel_suite: prints a hook of mmdebstrap that adds the kernel's suite to the sources
# of the tree, on the same mirror. apt prefers its packages for the kernel only.
add_kernel_suite() {
	[ "$SUITE" != "$USER_SUITE" ] || { echo true; return; }
	cat <<-END
		cd "\$1/etc/apt"
		sed -n 's/ $USER_SUITE main\$/ $SUITE main/p' sources.list >sources.list.d/kernel.list
		printf '%s\n' 'Package: linux-*' 'Pin: release $SUITE' 'Pin-Priority: 500' >preferences.d/kernel
	END
}
