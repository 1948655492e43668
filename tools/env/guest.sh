# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for the guest root: the user space of the virtual machines.

make_guest() {
	user_space "$1/root" --variant=minbase --include="$(packages "$env_dir/packages-guest")"
}

# user_space ROOT OPTION...: makes a root of the suite without documents, by mmdebstrap with these
# options. The roots of other architectures and of package/server.sh are made by it, too.
user_space() {
	mmdebstrap --aptopt='Acquire::Check-Valid-Until "false"' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/info/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		"${@:2}" "$USER_SUITE" "$1"
}
