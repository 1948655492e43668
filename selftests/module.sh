#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The module comes when it is asked for by any of its names, goes when nothing
# uses it, and stays while something does.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# Connections that have just ended let go of the module a moment later.
unload() {
	local _

	for _ in $(seq 40); do
		module_loaded || return 0
		modprobe -r rpcrdma 2>/dev/null || sleep 0.25
	done
	fail "$(module_users) users are left"
}

loads_as() {
	unload
	modprobe "$1" || fail "modprobe $1"
	module_loaded || fail "rpcrdma is not loaded"
	unload
}

unreclaimable_slab() { awk '/^SUnreclaim:/ { print $2 }' /proc/meminfo; }

# The slab allocator keeps pages of its own; a leak at each load shows.
loads_and_unloads() {
	local each before

	unload
	drop_caches
	before=$(unreclaimable_slab)
	for each in $(seq 20); do
		modprobe rpcrdma || fail "load $each"
		unload
	done
	drop_caches
	[ "$(unreclaimable_slab)" -lt $((before + 1024)) ] ||
		fail "slabs grew from $before KiB to $(unreclaimable_slab) KiB"
}

# The kernel asks for a transport's module by itself.
loads_for_a_mount() {
	need_local_bed
	server_stop
	unload
	server_start
	module_loaded || fail "a listener did not load it"
	nfs_mount 4.2 rdma
}

unload_refused() {
	! modprobe -r rpcrdma 2>/dev/null || fail "it went away"
	module_loaded || fail "it is gone"
}

stays_for_a_listener() {
	need_local_bed
	server_up || server_start
	unload_refused
	nfs_mount 4.2 rdma
}

stays_for_a_mount() {
	nfs_mount 4.2 rdma
	work_dir module
	unload_refused
	echo data >"$WORK/file"
	drop_caches
	[ "$(cat "$WORK/file")" = data ] || fail "the mount does not work"
	rm -r "$WORK"
}

# A mount keeps it in place when the server has let go of it.
stays_for_a_client() {
	need_local_bed
	nfs_mount 4.2 rdma
	work_dir module
	server_stop
	unload_refused
	server_start
	echo data >"$WORK/file"
	rm -r "$WORK"
}

goes_after_use() {
	need_local_bed
	nfs_mount 4.2 rdma
	nfs_mount_at "$MNT-6" 4.2 rdma6
	umount "$MNT-6"
	nfs_umount
	server_stop
	unload
	server_start
}

# Devices come and go while nothing is mounted, too.
device_comes_and_goes() {
	need_local_bed
	server_stop
	modprobe rpcrdma
	device_delete "$BED_CLIENT_DEV"
	device_add "$BED_CLIENT_DEV"
	unload
	device_delete "$BED_CLIENT_DEV"
	device_add "$BED_CLIENT_DEV"
	server_start
}

same_name() {
	[ "$(modinfo -F name rpcrdma)" = rpcrdma ]
	modinfo -F license rpcrdma | grep -q GPL || fail "no GPL"
	modinfo -F depends rpcrdma | tr , '\n' | sort | paste -sd' ' |
		grep -q 'ib_core rdma_cm sunrpc' || fail "other dependencies"
}

# These need a machine on which nobody else uses the module.
bed_up
if bed_is_local; then
	server_stop
fi
ktap_run \
	"same_name" "loads_as rpcrdma" "loads_as svcrdma" \
	"loads_as xprtrdma" "loads_as rpcrdma6" "loads_and_unloads" \
	"loads_for_a_mount" "stays_for_a_listener" "stays_for_a_mount" \
	"stays_for_a_client" "goes_after_use" "device_comes_and_goes"
