#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Module loading by alias and on demand, and unloading.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# Number of loads and unloads, and number of unloads after I/O.
LOADS=${LONG:+100}
LOADS=${LOADS:-20}
USES=${LONG:+100}
USES=${USES:-2}

unload() {
	local tries

	# As in module_wait_unused.
	for tries in $(seq $((600 * PACE))); do
		modprobe -r rpcrdma 2>/dev/null && return
		sleep 0.25
	done
	fail "$(module_users) references are left after $tries attempts to unload"
}

# Stops the server and unloads the module.
unload_alone() {
	need_local_bed
	server_stop
	unload
	! module_loaded || fail "rpcrdma is loaded again"
}

alias_loads_module() {
	unload_alone
	modprobe "$1"
	module_loaded || fail "modprobe $1 did not load rpcrdma"
	unload
}

# modinfo, sysfs and the kernel log agree on the version.
version_is_reported() {
	local version

	[ "$(module_kind)" = rust ] || skip "the C module has no version"
	unload_alone
	version=$(modinfo -F version rpcrdma)
	[ -n "$version" ] || fail "modinfo reports no version"
	modprobe rpcrdma
	[ "$(cat /sys/module/rpcrdma/version)" = "$version" ] || fail "sysfs has another version"
	log_since_mark | grep -q "rpcrdma: RPC/RDMA transports in Rust, version $version\$" ||
		fail "the kernel log does not report version $version"
	unload
}

repeated_load_and_unload() {
	local before after turn try

	unload_alone
	modprobe rpcrdma
	unload
	before=$(slab_bytes)
	for turn in $(seq "$LOADS"); do
		modprobe rpcrdma || fail "load $turn failed"
		unload
		ktap_progress "$turn" "$LOADS"
	done
	# KASAN quarantines freed memory; with kmemleak, the guest checks for leaks at the end.
	[ ! -e /sys/kernel/debug/kmemleak ] || return 0
	# The slab allocator keeps some pages, and others use it occasionally. A leak per load adds
	# up and stays.
	for try in {1..10}; do
		after=$(slab_bytes)
		[ $((after - before)) -ge $((1024 * 1024)) ] || return 0
		sleep 2
	done
	fail "slab memory grew by $((after - before)) bytes over $LOADS loads ($try checks)"
}

slab_bytes() {
	drop_caches
	echo $(($(awk '/^SUnreclaim:/ { print $2 }' /proc/meminfo) * 1024))
}

autoloaded_by_listener_and_mount() {
	unload_alone
	server_start
	module_loaded || fail "listening for RDMA did not load rpcrdma"
	nfs_mount 4.2 rdma
	nfs_umount
}

# Waits until the module's reference count is stable: connections release it one by one.
wait_users_stable() {
	local before="" same=0

	while [ "$same" -lt 6 ]; do
		sleep 0.5
		[ "$(module_users)" = "$before" ] && same=$((same + 1)) || same=0
		before=$(module_users)
	done
}

# The server is stopped, since its listener holds a reference of its own.
unload_refused_while_mounted() {
	need_local_bed
	server_up || server_start
	nfs_mount 4.2 rdma
	work_dir unload-refused
	server_stop
	wait_users_stable
	[ "$(module_users)" -gt 0 ] || fail "the mount holds no reference"
	! modprobe -r rpcrdma 2>/dev/null || fail "unloaded while mounted"
	server_start
	echo "still here" >"$WORK/file"
	[ "$(cat "$WORK/file")" = "still here" ] || fail "the mount does not work any more"
	rm -r "$WORK"
}

unload_refused_while_listening() {
	need_local_bed
	server_up || server_start
	! modprobe -r rpcrdma 2>/dev/null || fail "unloaded while the server listens"
	nfs_mount 4.1 rdma
}

# Unloads as soon as the reference count allows it, while connections and their memory are being
# freed.
unload_after_use() {
	local turn

	need_local_bed
	for turn in $(seq "$USES"); do
		server_up || server_start
		nfs_mount 4.2 rdma nconnect=4
		work_dir used
		load_start
		load_stop
		rm -r "$WORK"
		nfs_umount
		unload_alone
		ktap_progress "$turn" "$USES"
	done
	server_start
}

# The module frees the memory of the last transport itself, and cannot be unloaded before.
unload_waits_for_last_xprt() {
	local users

	need_local_bed
	server_up || server_start
	# With NFSv3, unmounting sends no Call.
	nfs_mount 3 rdma
	server_stop
	wait_users_stable
	delay_fn return '^xprt_free$' $((4000 * PACE))
	umount "$MNT" &
	wait_delay_hits || fail "no transport was freed"
	users=$(module_users)
	[ "$(delay_hits)" -eq 1 ] || fail "$(delay_hits) transports were freed"
	[ "$users" -gt 0 ] || fail "the transport holds no reference"
	wait
	unload_fault_modules
	unload_alone
	server_start
}

test_cleanup() {
	cd /
	unload_fault_modules
	umount_all
	server_up || server_start
} 2>/dev/null

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * (1 + USES / 10)))
[ $# -gt 0 ] || set -- \
	"alias_loads_module svcrdma" "alias_loads_module xprtrdma" \
	"alias_loads_module rpcrdma6" \
	version_is_reported repeated_load_and_unload \
	autoloaded_by_listener_and_mount \
	unload_refused_while_mounted unload_refused_while_listening \
	unload_after_use unload_waits_for_last_xprt
ktap_run "$@"
