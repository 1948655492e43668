#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's part of tools/package/test: a machine with the C module, on which the package is
# installed and removed.
set -u
cd /packages || exit
# shellcheck source=ktap.sh
. ./ktap.sh
# shellcheck source=watching.sh
. ./watching.sh
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
release=$(uname -r)
package=rpcrdma-rust-modules-$release
updates=/lib/modules/$release/updates

# Connections release the module shortly after they end, or, if the CM loses a message, when the stall
# detector has ended them.
unload() {
	local _
	for _ in {1..300}; do
		modprobe -r rpcrdma 2>/dev/null && return
		sleep 0.5
	done
	fail "rpcrdma cannot be unloaded"
}

# loaded KIND: fails unless rpcrdma is loaded, and is the one in Rust, or the one in C.
loaded() {
	local kind=c
	[ -d /sys/module/rpcrdma ] || fail "rpcrdma is not loaded"
	! grep -q O /sys/module/rpcrdma/taint || kind=rust
	[ "$kind" = "$1" ] || fail "the loaded module is in $kind"
}

works() {
	nfs_server_up /export && nfs_mount /export /mnt vers=4.2 || fail "mount failed"
	grep -q ' /mnt nfs4 .*proto=rdma,' /proc/mounts || fail "the mount is not over RDMA"
	dd if=/dev/urandom of=/mnt/file bs=1M count=4 status=none || fail "write failed"
	sync
	echo 3 >/proc/sys/vm/drop_caches
	cmp /mnt/file /export/file || fail "the file differs"
	umount /mnt && nfs_server_down
}

packages_are_for_this_machine() {
	/packages/contents "$(dpkg --print-architecture)" "$release" /packages || fail "the packages have faults"
}

# The kernel's files are not from packages here. An empty package stands for those, and, in a guest
# whose root was unpacked without dpkg, for what the package depends on.
stand_in() {
	local provides=linux-modules

	mkdir -p /tmp/stand-in/DEBIAN
	if [ ! -s /var/lib/dpkg/status ]; then
		touch /var/lib/dpkg/status
		provides='kmod, procps'
	fi
	printf '%s\n' "Package: linux-modules-$release" 'Version: 1' 'Architecture: all' "Provides: $provides" \
		'Maintainer: none' 'Description: the kernel of this guest' >/tmp/stand-in/DEBIAN/control
	dpkg-deb -b /tmp/stand-in /tmp/linux-modules.deb && dpkg -i /tmp/linux-modules.deb
}

c_module_before() {
	local said

	said=$(/packages/rpcrdma-check) && fail "rpcrdma-check accepts the C module"
	echo "$said"
	grep -q "^kernel $release, running: the C module: .*/kernel/net/" <<<"$said" ||
		fail "rpcrdma-check does not report the C module"
	modprobe rpcrdma
	loaded c
}

package_installs() {
	local said

	stand_in >/dev/null || fail "the stand-in cannot be installed"
	dpkg -i "rpcrdma-rust"_*.deb "rpcrdma-rust-tools"_*.deb "$package"_*.deb ||
		fail "the package cannot be installed"
	[ "$(modinfo -n rpcrdma)" = "$updates/rpcrdma.ko" ] || fail "modprobe would load $(modinfo -n rpcrdma)"
	loaded c
	said=$(rpcrdma-check "$release") && fail "rpcrdma-check ignores that the C module is still loaded"
	echo "$said"
	grep -q '^loaded now: the C module' <<<"$said" ||
		fail "rpcrdma-check does not report that the C module is still loaded"
}

package_module_loads() {
	unload
	modprobe rpcrdma || fail "modprobe failed"
	loaded rust
	rpcrdma-check || fail "rpcrdma-check finds fault"
	dmesg | grep "rpcrdma: RPC/RDMA transports in Rust, version $(dpkg-query -W -f '${Version}' "$package")" ||
		fail "the kernel log has no version"
}

mount_works() {
	mkdir -p /export
	mount -t tmpfs tmpfs /export
	rdma_up || fail "no RDMA device"
	works
	loaded rust
}

# rxe_timeouts: prints how often rxe has retransmitted after a timeout.
rxe_timeouts() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/completer_retry_err; }

# In a slow guest, timeouts of rxe may end a connection (Documentation/contributing.rst). Then nfsrdma
# rightly finds a fault, and the mount is made again.
commands_of_the_document_show_the_connection() {
	local told before attempt

	nfs_server_up /export || fail "the server does not start"
	trap 'umount /mnt && nfs_server_down' EXIT
	for attempt in 1 2 3; do
		before=$(rxe_timeouts)
		nfs_mount /export /mnt vers=4.2 || fail "mount failed"
		show_the_connection /mnt
		! told=$(nfsrdma explain /mnt) || break
		echo "$told"
		[ "$attempt" -lt 3 ] && [ "$(rxe_timeouts)" != "$before" ] ||
			fail "nfsrdma finds a fault: $(grep -m 1 '!!' <<<"$told")"
		echo "rxe had timeouts: mounting again"
		umount /mnt
	done
	echo "$told"
	nfsrdma status | grep ' /mnt .* 1 of 1 ' || fail "$(nfsrdma status)"
}

# The rule of the package, and that of nfs-utils, apply /etc/sysctl.d to the module when it is
# loaded.
udev_applies_settings() {
	local _

	unload
	printf '%s\n' 'sunrpc.rdma_max_inline_read = 16384' 'sunrpc.svc_rdma.max_requests = 64' \
		>/etc/sysctl.d/nfs-rdma.conf
	mountpoint -q /run/udev || mkdir -p /run/udev
	/usr/lib/systemd/systemd-udevd --daemon || fail "udevd does not start"
	modprobe rpcrdma
	udevadm settle
	for _ in {1..60}; do
		[ "$(cat /proc/sys/sunrpc/rdma_max_inline_read)" != 16384 ] ||
			[ "$(cat /proc/sys/sunrpc/svc_rdma/max_requests)" != 64 ] || break
		sleep 1
	done
	udevadm control --exit
	rm /etc/sysctl.d/nfs-rdma.conf
	[ "$(cat /proc/sys/sunrpc/rdma_max_inline_read)" = 16384 ] || fail "the client's setting was not applied"
	[ "$(cat /proc/sys/sunrpc/svc_rdma/max_requests)" = 64 ] || fail "the server's setting was not applied"
}

# A kernel arrives that has the C module only.
hook_warns_of_other_kernel() {
	local modules=/lib/modules/9.9-other said

	mkdir -p $modules/kernel
	cp "/lib/modules/$release/kernel/net/sunrpc/xprtrdma/rpcrdma.ko" $modules/kernel/
	cp "/lib/modules/$release"/modules.{builtin,order}* $modules/
	depmod 9.9-other
	said=$(run-parts --arg=9.9-other /etc/kernel/postinst.d 2>&1) || fail "the hook fails: $said"
	echo "$said"
	grep -q '^W: rpcrdma-rust' <<<"$said" || fail "the hook does not warn"
	grep -q 'next: install rpcrdma-rust-modules-9.9-other' <<<"$said" || fail "the hook does not say what to do"
	said=$(run-parts --arg="$release" /etc/kernel/postinst.d 2>&1) || fail "the hook fails: $said"
	[ -z "$said" ] || fail "the hook warns of a kernel that has the module: $said"
	rm -r $modules
}

c_module_back_after_removal() {
	dpkg --remove "$package" || fail "the removal failed"
	[ ! -e "$updates" ] || fail "$updates is left"
	[ "$(modinfo -F intree rpcrdma)" = Y ] || fail "modprobe would load $(modinfo -n rpcrdma)"
	loaded rust
	unload
	modprobe rpcrdma || fail "modprobe failed"
	loaded c
	works
}

nothing_left_after_purge() {
	dpkg --purge "$package" rpcrdma-rust-tools rpcrdma-rust || fail "the purge failed"
	find / -xdev '(' -name '*rpcrdma*' -o -name 'nfsrdma*' ')' -not -path '/packages/*' -not -path '/staging/*' \
		-not -path '/proc/*' -not -path '/sys/*' -not -path '/vm/*' \
		-not -path '/var/lib/dpkg/*' -not -path '*/kernel/net/*' | tee /tmp/left
	[ ! -s /tmp/left ] || fail "files are left"
}

# "make install" with INSTALL_MOD_PATH put the module into /staging. The kernel's modules come there
# by its own modules_install.
staged_module_loads() {
	local staged=/staging/lib/modules/$release

	[ -f "$staged/updates/rpcrdma.ko" ] || fail "the module is not in $staged"
	ln -s "/lib/modules/$release/kernel" "$staged/kernel"
	cp "/lib/modules/$release"/modules.{builtin,order}* "$staged/"
	depmod -b /staging "$release"
	loaded c
	unload
	modprobe -d /staging rpcrdma || fail "modprobe failed"
	loaded rust
	works
	unload
}

# With Secure Boot the kernel loads signed modules only. This cannot be undone, so it is last.
unsigned_module_is_refused() {
	local said

	dpkg -i "rpcrdma-rust"_*.deb "$package"_*.deb >/dev/null || fail "the package cannot be installed"
	unload
	echo Y >/sys/module/module/parameters/sig_enforce
	said=$(modprobe rpcrdma 2>&1) && fail "the kernel loads it"
	echo "$said"
	grep -q 'Key was rejected by service' <<<"$said" || fail "modprobe gives another reason"
	said=$(rpcrdma-check "$release") && fail "rpcrdma-check does not notice"
	echo "$said"
	grep -q 'this kernel loads signed modules only' <<<"$said" || fail "rpcrdma-check gives no reason"
}

mount -t tmpfs tmpfs /tmp
depmod
run_in_order c_module_before packages_are_for_this_machine package_installs package_module_loads mount_works \
	commands_of_the_document_show_the_connection udev_applies_settings \
	hook_warns_of_other_kernel c_module_back_after_removal nothing_left_after_purge \
	staged_module_loads unsigned_module_is_refused
