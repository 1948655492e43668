#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The module under the names that the kernel asks for it by, and when it may
# leave.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# How often it is loaded and unloaded, and how often that follows on I/O.
LOADS=${LONG:+100}
LOADS=${LOADS:-20}
USES=${LONG:+100}
USES=${USES:-2}

unload() {
	local tries

	# Connections that have just ended let go of the module a moment later.
	for tries in $(seq $((80 * PACE))); do
		modprobe -r rpcrdma 2>/dev/null && return
		sleep 0.25
	done
	fail "still in use by $(module_users), after $tries attempts"
}

# Nobody on the bed listens or is mounted during such a test.
alone() {
	need_local_bed
	server_stop
	unload
	! module_loaded || fail "rpcrdma is loaded although it was removed"
}

alias_loads_module() {
	alone
	modprobe "$1"
	module_loaded || fail "modprobe $1 did not load rpcrdma"
	unload
}

repeated_load_and_unload() {
	local before after turn try

	alone
	modprobe rpcrdma
	unload
	before=$(slab_octets)
	for turn in $(seq "$LOADS"); do
		modprobe rpcrdma || fail "did not load in turn $turn"
		unload
		ktap_progress "$turn" "$LOADS"
	done
	# KASAN keeps what was freed for a while; kmemleak looks for the rest in the end.
	[ ! -e /sys/kernel/debug/kmemleak ] || return 0
	# The slab allocator keeps some pages of its own, and others use it now and then; a
	# leak per load shows, and stays.
	for try in {1..10}; do
		after=$(slab_octets)
		[ $((after - before)) -ge $((1024 * 1024)) ] || return 0
		sleep 2
	done
	fail "slab grew by $((after - before)) octets over $LOADS loads, $try times looked"
}

slab_octets() {
	drop_caches
	echo $(($(awk '/^SUnreclaim:/ { print $2 }' /proc/meminfo) * 1024))
}

autoloaded_by_listener_and_mount() {
	alone
	server_start
	module_loaded || fail "listening for RDMA did not load rpcrdma"
	nfs_mount 4.2 rdma
	nfs_umount
}

# Connections that end let go of the module one after the other.
users_stay_the_same() {
	local before="" same=0

	while [ "$same" -lt 6 ]; do
		sleep 0.5
		[ "$(module_users)" = "$before" ] && same=$((same + 1)) || same=0
		before=$(module_users)
	done
}

# A server here would keep the module by itself.
unload_refused_while_mounted() {
	need_local_bed
	server_up || server_start
	nfs_mount 4.2 rdma
	work_dir unload-refused
	server_stop
	users_stay_the_same
	[ "$(module_users)" -gt 0 ] || fail "the mount does not keep it"
	! modprobe -r rpcrdma 2>/dev/null || fail "left while mounted"
	server_start
	echo "still here" >"$WORK/file"
	[ "$(cat "$WORK/file")" = "still here" ] || fail "the mount does not work any more"
	rm -r "$WORK"
}

unload_refused_while_listening() {
	need_local_bed
	server_up || server_start
	! modprobe -r rpcrdma 2>/dev/null || fail "left while the server listens"
	nfs_mount 4.1 rdma
}

# As soon as nobody uses it any more: connections and memory of many are on their way
# out then.
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
		alone
		ktap_progress "$turn" "$USES"
	done
	server_start
}

# What the last transport was made of is freed by the module, which stays until then.
unload_waits_for_last_xprt() {
	local users

	need_local_bed
	server_up || server_start
	# No server is asked when this is unmounted.
	nfs_mount 3 rdma
	server_stop
	users_stay_the_same
	delay_fn return '^xprt_free$' $((4000 * PACE))
	umount "$MNT" &
	wait_delay_hits || fail "no transport was freed"
	users=$(module_users)
	[ "$(delay_hits)" -eq 1 ] || fail "$(delay_hits) transports were freed"
	[ "$users" -gt 0 ] || fail "nobody keeps it"
	wait
	unload_fault_modules
	alone
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
	repeated_load_and_unload \
	autoloaded_by_listener_and_mount \
	unload_refused_while_mounted unload_refused_while_listening \
	unload_after_use unload_waits_for_last_xprt
ktap_run "$@"
