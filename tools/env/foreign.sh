# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipes for another architecture than the build environment's: its kernel beside cross
# compilers of this architecture, and a guest root none of whose programs can run here.

# The toolchain's programs are amd64. Its recipe names the kernel's packages without an
# architecture, so apt takes those of the only one that has them.
make_toolchain_foreign() {
	foreign_options=(--architectures="amd64,$(architecture)"
		--include="$(packages "$env_dir/packages-$(architecture)")")
	make_toolchain "$1"
}

# The packages are unpacked, and their maintainer scripts do not run. What these scripts make,
# such as users and links of alternatives, does not depend on the architecture: it comes from
# the root of amd64 guests.
make_guest_foreign() {
	local out=$1 native unpacked
	native=$(native_guest_path)/root unpacked=$(mktemp -d)
	mmdebstrap --variant=extract --architectures="$(architecture)" \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/info/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--include='?or(?essential,?priority(required))' \
		--include="$(packages "$env_dir/packages-guest")" \
		"$USER_SUITE" "$unpacked/root"
	cp -a "$native" "$out/root"
	rm -r "$out/root"/usr/lib/x86_64-linux-gnu "$out/root"/usr/lib64 "$out/root/etc/ld.so.cache"
	cp -a "$unpacked/root/." "$out/root/"
	rm -rf --one-file-system "$unpacked"
}
