# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for nfstest, for the guests of tools/interop/nfstest: its package, unpacked,
# without dependencies, which the guest root has.

make_nfstest() {
	local out=$1 empty package
	empty=$(mktemp -d)
	mmdebstrap --variant=custom --format=directory \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		--customize-hook="cd \"\$1\" &&
			APT_CONFIG=\$MMDEBSTRAP_APT_CONFIG apt-get download \
			$(packages "$env_dir/packages-nfstest" | tr , ' ')" \
		"$USER_SUITE" "$empty"
	mkdir "$out/root"
	for package in "$empty"/*.deb; do
		dpkg-deb --extract "$package" "$out/root"
		basename "$package" .deb >>"$out/versions"
	done
	rm -r "$out/root/usr/share" "$empty"
}
