# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Which rpcrdma is under test.

# "c" for the module that the kernel was built with, "rust" for ours: the one that is loaded,
# which has tainted the kernel if it was built out of tree, or the one that would be. An
# in-tree module carries the modinfo field "intree".
module_kind() {
	if [ -e /sys/module/rpcrdma/taint ]; then
		grep -q O /sys/module/rpcrdma/taint && echo rust || echo c
	elif [ -n "$(modinfo -F intree rpcrdma 2>/dev/null)" ]; then
		echo c
	else
		echo rust
	fi
}

module_describe() {
	echo "$(module_kind), $(modinfo -n rpcrdma 2>/dev/null), Linux $(uname -r)"
}

module_loaded() { [ -d /sys/module/rpcrdma ]; }
module_users() { cat /sys/module/rpcrdma/refcnt 2>/dev/null || echo 0; }

# module_wait_unused USERS: but for that many. Connections that have just ended do so a
# moment later. Where nobody uses it any more it is unloaded, but not from under kmemleak,
# which could not tell its functions by their names then.
module_wait_unused() {
	local _

	for _ in $(seq $((40 * PACE))); do
		[ "$(module_users)" -gt "$1" ] || break
		sleep 0.5
	done
	if [ "$(module_users)" -gt "$1" ]; then
		echo "error: rpcrdma is kept by $(($(module_users) - $1))"
		return 1
	fi
	if [ "$1" -gt 0 ] || [ ! -e /sys/module/rpcrdma/refcnt ] ||
		[ -e /sys/kernel/debug/kmemleak ]; then
		return 0
	fi
	rmmod rpcrdma || {
		echo "error: rpcrdma does not leave"
		return 1
	}
}
