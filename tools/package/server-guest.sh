#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The part of tools/package/test-guest in the guest: a Debian server that systemd has booted. The
# kernel's command line names the stage.
set -u
exec >/dev/ttyS1 2>&1
stty -F /dev/ttyS1 raw -echo
cd /tests || exit
# shellcheck source=ktap.sh
. ./ktap.sh
# shellcheck source=../vm/guest/rdma.sh
. ./rdma.sh
# shellcheck source=watching.sh
. ./watching.sh
release=$(uname -r)
stage=$(sed -n 's/.*package_test=\([a-z_]*\).*/\1/p' /proc/cmdline)

# loaded KIND [VERSION]: fails unless rpcrdma is loaded, and is the one in Rust, or the one in C.
loaded() {
	local kind=c
	[ -d /sys/module/rpcrdma ] || fail "rpcrdma is not loaded"
	! grep -q O /sys/module/rpcrdma/taint || kind=rust
	[ "$kind" = "$1" ] || fail "the loaded module is in $kind"
	[ -z "${2-}" ] || [ "$(cat /sys/module/rpcrdma/version)" = "$2" ] ||
		fail "the loaded module has version $(cat /sys/module/rpcrdma/version)"
}

# works: writes and reads a file over RDMA.
works() {
	mount -t nfs -o proto=rdma,port=20049 $SERVER4:/srv/export /mnt/nfs || fail "mount failed"
	grep -q ' /mnt/nfs nfs4 .*proto=rdma,' /proc/mounts || fail "the mount is not over RDMA"
	dd if=/dev/urandom of=/mnt/nfs/file bs=1M count=4 status=none || fail "write failed"
	sync
	echo 3 >/proc/sys/vm/drop_caches
	cmp /mnt/nfs/file /srv/export/file || fail "the file differs"
	umount /mnt/nfs
}

# nfs-server loads the module, although there is no device yet; TCP works without one.
nfs_server_starts_before_the_device_exists() {
	# It may still be starting.
	timeout 200 systemctl start nfs-server ||
		fail "nfs-server does not start: $(journalctl --no-pager -n 20 -u nfs-server)"
	[ -z "$(systemctl --no-pager --failed --legend=no)" ] || {
		systemctl --no-pager --failed --legend=no
		journalctl --no-pager -o short-monotonic -n 30 -u rpc-statd -u fsidd -u nfs-server
	}
	[ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || fail "there is a device"
	loaded rust "$VERSION_NOW"
	cat /proc/fs/nfsd/portlist
	grep -q '^rdma 20049' /proc/fs/nfsd/portlist || fail "there is no listener for RDMA"
	mount -t nfs -o proto=tcp localhost:/srv/export /mnt/tcp || fail "mount over TCP failed"
	umount /mnt/tcp
}

device_that_comes_late_serves() {
	rdma_up || fail "no RDMA device"
	works
	loaded rust
}

commands_of_the_document_show_the_connection() {
	mount -t nfs -o proto=rdma $SERVER4:/srv/export /mnt/nfs || fail "mount failed"
	trap 'umount /mnt/nfs' EXIT
	show_the_connection /mnt/nfs
}

check_says_that_all_is_well() {
	rpcrdma-check || fail "rpcrdma-check finds fault"
	dmesg | grep "rpcrdma: RPC/RDMA transports in Rust, version $VERSION_NOW" ||
		fail "the kernel log has no version"
}

sysctl_d_applies_at_boot() {
	[ "$(cat /proc/sys/sunrpc/rdma_max_inline_read)" = 16384 ] || fail "the client's setting was not applied"
	[ "$(cat /proc/sys/sunrpc/svc_rdma/max_requests)" = 64 ] || fail "the server's setting was not applied"
}

# exchange: the commands of Documentation/operating.rst, with systemd.
exchange() {
	systemctl stop nfs-server || fail "nfs-server does not stop"
	timeout 60 sh -c 'until modprobe -r rpcrdma; do sleep 1; done' || fail "the module cannot be unloaded"
	modprobe rpcrdma || fail "modprobe failed"
	systemctl start nfs-server || fail "nfs-server does not start"
}

module_is_loaded_from_the_initial_ram_disk() {
	local at
	loaded rust "$VERSION_NOW"
	at=$(dmesg | sed -n 's/^\[ *\([0-9.]*\)\].*rpcrdma: RPC\/RDMA transports.*/\1/p' | head -n 1)
	dmesg | sed -n 's/^\[ *\([0-9.]*\)\].*EXT4-fs (vda): mounted.*/\1/p' | head -n 1 |
		awk -v at="$at" '{ print "loaded at " at " s, root mounted at " $1 " s"; exit !(at < $1) }' ||
		fail "the module was loaded later"
}

exchange_keeps_serving() {
	exchange
	loaded rust "$VERSION_NOW"
	works
}

c_module_serves_after_the_removal() {
	timeout 200 systemctl start nfs-server || fail "nfs-server does not start"
	loaded c
	rdma_up || fail "no RDMA device"
	works
	loaded c
}

kernel_is_locked_down() {
	mokutil --sb-state
	[ "$(mokutil --sb-state)" = 'SecureBoot enabled' ] || fail "Secure Boot is off"
	cat /sys/kernel/security/lockdown
	grep -q '\[integrity\]' /sys/kernel/security/lockdown || fail "the kernel is not locked down"
}

key_that_is_not_enrolled_is_refused() {
	local said

	said=$(modprobe rpcrdma 2>&1) && fail "the kernel loads the module"
	echo "$said"
	grep -q 'Key was rejected by service' <<<"$said" || fail "modprobe gives another reason"
	said=$(rpcrdma-check "$release") && fail "rpcrdma-check does not notice"
	echo "$said"
	grep -q 'next: mokutil --import' <<<"$said" || fail "rpcrdma-check does not say what to do"
}

# MokManager asks for the password at the next boot.
key_is_imported() {
	printf 'password\npassword\n' | mokutil --import /var/lib/dkms/mok.pub || fail "mokutil failed"
	mokutil --list-new | grep -q 'CN=DKMS module signing key' || fail "no key waits for enrolment"
}

enrolled_key_loads_the_module() {
	mokutil --test-key /var/lib/dkms/mok.pub
	modprobe rpcrdma || fail "modprobe failed"
	loaded rust
	[ "$(cat /sys/module/rpcrdma/taint)" = O ] || fail "the taint is $(cat /sys/module/rpcrdma/taint)"
	rpcrdma-check || fail "rpcrdma-check finds fault"
	rdma_up || fail "no RDMA device"
	systemctl restart nfs-server || fail "nfs-server does not start"
	works
}

unsigned_module_is_refused() {
	local file said

	file=$(modinfo -n rpcrdma)
	systemctl stop nfs-server
	timeout 60 sh -c 'until modprobe -r rpcrdma; do sleep 1; done' || fail "the module cannot be unloaded"
	xz -dc "$file" >/tmp/rpcrdma.ko
	strip --strip-debug /tmp/rpcrdma.ko
	[ -z "$(modinfo -F signer /tmp/rpcrdma.ko)" ] || fail "strip has left the signature"
	said=$(insmod /tmp/rpcrdma.ko 2>&1) && fail "the kernel loads it"
	echo "$said"
	grep -qE 'Key was rejected|Operation not permitted' <<<"$said" || fail "insmod gives another reason"
}

# nfs-server does not belong to what multi-user.target waits for.
timeout 300 systemctl is-system-running --wait

export VERSION_NOW
VERSION_NOW=$(modinfo -F version rpcrdma)
case $stage in
installed)
	run_in_order nfs_server_starts_before_the_device_exists device_that_comes_late_serves \
		commands_of_the_document_show_the_connection check_says_that_all_is_well \
		sysctl_d_applies_at_boot exchange_keeps_serving ;;
updated)
	run_in_order module_is_loaded_from_the_initial_ram_disk sysctl_d_applies_at_boot \
		device_that_comes_late_serves check_says_that_all_is_well ;;
not_enrolled)
	run_in_order kernel_is_locked_down key_that_is_not_enrolled_is_refused key_is_imported ;;
enrolled)
	run_in_order kernel_is_locked_down enrolled_key_loads_the_module unsigned_module_is_refused ;;
removed)
	run_in_order c_module_serves_after_the_removal ;;
esac
echo '# end of the stage'
stty -F /dev/ttyS1 sane
systemctl --force poweroff
