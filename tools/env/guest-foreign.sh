# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for the guest root of another architecture than amd64, whose programs cannot run here.

# The packages are unpacked, and their maintainer scripts do not run. What these scripts make,
# such as users and links of alternatives, does not depend on the architecture: it comes from
# the root of amd64 guests.
make_guest_foreign() {
	local out=$1 native unpacked
	native=$(native_guest_path)/root unpacked=$(mktemp -d)
	user_space "$unpacked/root" --variant=extract --architectures="$(architecture)" \
		--include='?or(?essential,?priority(required))' \
		--include="$(packages "$env_dir/packages-guest")"
	cp -a "$native" "$out/root"
	rm -r "$out/root"/usr/lib/x86_64-linux-gnu "$out/root"/usr/lib64 "$out/root/etc/ld.so.cache"
	# Base packages' scripts replace some of their directories by links.
	tar -C "$unpacked/root" -cf - . | tar -C "$out/root" -xf - --keep-directory-symlink
	rm -rf --one-file-system "$unpacked"
}
