#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The part of tools/package/test-guest on the server's disk that compiles: DKMS installations, by
# chroot at the speed of this machine. Prints the results of the functions that it is told to
# run. The packages come from the disk's own cache.
set -u
cd /tests || exit
# shellcheck source=ktap.sh
. ./ktap.sh
# shellcheck source=/dev/null
. ./kernels
limit=300

# metered PACKAGE...: installs these as an administrator does, and fails if that takes more than
# the limit of processor time. Prints what the packages and DKMS say.
metered() {
	local TIMEFORMAT='%U %S' spent status=0

	spent=$({ time apt-get -q -y -o Dpkg::Use-Pty=0 install "$@" >log 2>&1; } 2>&1) || status=$?
	if [ "$status" = 0 ]; then
		sed -n '/rpcrdma/p; /DKMS/p; /dkms:/p; /^Building module/p' log
	else
		tail -n 60 log
	fi
	spent=$(awk '{ printf "%.0f", $1 + $2 }' <<<"$spent")
	echo "$spent s of processor time, of $limit s"
	[ "$status" = 0 ] || fail "apt-get failed with status $status"
	[ "$spent" -le "$limit" ] || fail "that took too long"
	! grep '^W: rpcrdma-rust' log || fail "a hook warns, although the module is built"
}

# chosen RELEASE FIELD: prints a field of the module that modprobe would load.
chosen() {
	modinfo -k "$1" -F "$2" rpcrdma
}

# in_initrd RELEASE: prints the rpcrdma that the initial RAM disk holds.
in_initrd() {
	lsinitramfs "/boot/initrd.img-$1" | grep -o '[^/]*/[^/]*/rpcrdma\.ko' | sort -u
}

dkms_package_is_installed() {
	[ "$(chosen "$FIRST" intree)" = Y ] || fail "there is no C module before"
	metered ./rpcrdma-rust_"$VERSION"_all.deb ./rpcrdma-rust-dkms_"$VERSION"_all.deb \
		"linux-headers-$FIRST" "linux-source-${FIRST_SERIES}"
	dkms status
	[ "$(chosen "$FIRST" version)" = "$VERSION" ] || fail "modprobe would load \"$(chosen "$FIRST" filename)\""
	rpcrdma-check "$FIRST" || fail "rpcrdma-check does not agree"
}

# The server is set up as Documentation/operating.rst says: a listener, an export, and settings.
server_is_configured() {
	local unit=/etc/systemd/system/nfs-server.service.d

	mkdir -p $unit /srv/export /mnt/nfs /mnt/tcp
	printf '%s\n' '[Service]' "ExecStartPost=/bin/sh -c \"echo 'rdma 20049' > /proc/fs/nfsd/portlist\"" \
		>$unit/rdma.conf
	echo '/srv/export *(rw,no_root_squash,no_subtree_check,insecure,fsid=1)' >/etc/exports
	printf '%s\n' 'sunrpc.rdma_max_inline_read = 16384' 'sunrpc.svc_rdma.max_requests = 64' \
		>/etc/sysctl.d/nfs-rdma.conf
	systemctl enable nfs-server || fail "nfs-server cannot be enabled"
	cp package-test.service /etc/systemd/system/
	systemctl enable package-test.service
}

upgrade_builds_the_new_version() {
	metered ./rpcrdma-rust_0.9999_all.deb ./rpcrdma-rust-dkms_0.9999_all.deb
	[ "$(chosen "$FIRST" version)" = 0.9999 ] || fail "modprobe would load version \"$(chosen "$FIRST" version)\""
}

# initramfs-tools loads rpcrdma early, as for a root file system on NFS.
initial_ram_disk_holds_the_module() {
	echo rpcrdma >>/etc/initramfs-tools/modules
	update-initramfs -u -k "$FIRST" || fail "update-initramfs failed"
	[ "$(in_initrd "$FIRST")" = updates/dkms/rpcrdma.ko ] ||
		fail "the initial RAM disk holds: $(in_initrd "$FIRST")"
}

# A new kernel's initial RAM disk is made with the module.
kernel_update_builds_the_module() {
	echo rpcrdma >>/etc/initramfs-tools/modules
	metered "linux-image-$UPDATE" "linux-headers-$UPDATE" "linux-source-${UPDATE_SERIES}"
	[ "$(chosen "$UPDATE" version)" = 0.9999 ] || fail "modprobe would load \"$(chosen "$UPDATE" filename)\""
	[ "$(chosen "$FIRST" version)" = 0.9999 ] || fail "the module of kernel $FIRST has gone"
	rpcrdma-check "$UPDATE" || fail "rpcrdma-check does not agree"
	[ "$(in_initrd "$UPDATE")" = updates/dkms/rpcrdma.ko ] ||
		fail "the initial RAM disk holds: $(in_initrd "$UPDATE")"
}

removal_brings_the_c_module_back() {
	local release

	apt-get -q -y remove rpcrdma-rust >log 2>&1 || fail "the removal failed: $(tail -n 40 log)"
	for release in "$FIRST" "$UPDATE"; do
		[ "$(chosen "$release" intree)" = Y ] || fail "modprobe would load \"$(chosen "$release" filename)\""
	done
	[ "$(in_initrd "$UPDATE")" = sunrpc/xprtrdma/rpcrdma.ko ] ||
		fail "the initial RAM disk holds: $(in_initrd "$UPDATE")"
}

run_in_order "$@"
