# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154 # tools/env/cache.sh sets env_dir
#
# Recipe for the disk of a Debian server with its stock kernel, NFS and RDMA, on which
# tools/package/test-guest installs the packages. What the tests install later is in the
# package cache of the disk, because a guest has no network.
# Expects KERNELS: the release of the first kernel and, if the suite offers an update, of that.

SERVER_PACKAGES=dosfstools,grub-efi-amd64-signed,initramfs-tools,mokutil,mtools,nfs-kernel-server,openssl,rdma-core,shim-signed
SERVER_SIZE=16G

server_path() {
	echo "$CACHE/server-$(recipe "$SUITE" "$KERNELS" "$SERVER_PACKAGES" "$(build_depends)" "guest.sh" \
		"$(sed '/^[[:space:]]*#/d' "$env_dir/../package/server.sh")")"
}

# build_depends: prints the packages on which rpcrdma-rust-dkms depends.
build_depends() {
	sed -n '/^Depends:/,/^Recommends:/p' "$env_dir/../package/debian/control.dkms" |
		sed -e 's/^[A-Z][a-z]*://' -e 's/rpcrdma-rust ([^)]*),//' -e 's/\${[^}]*},//g' -e '/linux-headers/d' |
		tr -d ',\n'
}

# kernel_packages RELEASE: prints the packages by which an administrator installs a kernel that
# DKMS can build for.
kernel_packages() {
	echo "linux-image-$1 linux-headers-$1 linux-source-$(grep -o '^[0-9]*\.[0-9]*' <<<"$1")"
}

make_server() {
	local root=$1/root release package later=''

	for release in $KERNELS; do
		later+=" $(kernel_packages "$release")"
	done
	# apt keeps the indexes and the packages that the last hook downloads.
	user_space "$root" --variant=important --skip=cleanup/apt \
		--aptopt='Acquire::Languages "none"' \
		--aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='force-unsafe-io' \
		--setup-hook="$(add_kernel_suite)" \
		--include="$SERVER_PACKAGES,linux-image-${KERNELS%% *}" \
		--customize-hook="chroot \"\$1\" apt-get -y --download-only install dkms $(build_depends)$later" \
		--customize-hook='chroot "$1" sh -c "cd /var/cache && apt-get download ovmf \
			\$(apt-cache depends --important ovmf | sed -n \"s/^  Depends: //p\")"'
	# Since 2026.08 the files are in packages that ovmf depends on.
	for package in "$root"/var/cache/ovmf*.deb; do
		dpkg-deb -x "$package" "$1/ovmf"
		rm "$package"
	done
	rm -rf "${root:?}"/dev/*
	mke2fs -q -t ext4 -m 0 -L server -d "$root" "$1/disk.img" "$SERVER_SIZE"
	rm -rf --one-file-system "$root"
}
