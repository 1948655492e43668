# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for the guest root: the user space of the virtual machines.

make_guest() {
	mmdebstrap --variant=minbase \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/info/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--include="$(packages "$env_dir/packages-guest")" \
		"$USER_SUITE" "$1/root"
}
