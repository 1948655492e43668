# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The rpcrdma module under test.

# Prints "c" for the kernel's own module, "rust" for this one. A loaded out-of-tree module has taint
# flag O. If none is loaded, modprobe's choice counts: an in-tree module has the modinfo field
# "intree".
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

users_are_back() { [ "$(module_users)" -le "$1" ]; }

# module_is_released USERS: ends a test that leaves more references to the module than that.
module_is_released() { wait_for "references to the module are left" users_are_back "$1"; }

# module_wait_unused USERS: waits until the module's reference count has dropped to USERS;
# connections release it asynchronously, and if the CM loses a message, only when the stall detector
# has ended them. At zero the module is unloaded, except under kmemleak,
# which needs its symbols to resolve backtraces.
module_wait_unused() {
	local _

	for _ in $(seq $((300 * PACE))); do
		[ "$(module_users)" -gt "$1" ] || break
		sleep 0.5
	done
	if [ "$(module_users)" -gt "$1" ]; then
		echo "error: $(($(module_users) - $1)) references to rpcrdma are left"
		return 1
	fi
	if [ "$1" -gt 0 ] || [ ! -e /sys/module/rpcrdma/refcnt ] ||
		[ -e /sys/kernel/debug/kmemleak ]; then
		return 0
	fi
	rmmod rpcrdma || {
		echo "error: rpcrdma cannot be unloaded"
		return 1
	}
}
