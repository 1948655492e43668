# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Which rpcrdma is under test.

# "c" for the module that the kernel was built with, "rust" for ours. An
# in-tree module carries the modinfo field "intree".
module_kind() {
	if [ -n "$(modinfo -F intree rpcrdma 2>/dev/null)" ]; then
		echo c
	else
		echo rust
	fi
}

module_describe() {
	echo "$(module_kind), $(modinfo -n rpcrdma 2>/dev/null), Linux $(uname -r)"
}

module_loaded() { [ -d /sys/module/rpcrdma ]; }
module_users() { cat /sys/module/rpcrdma/refcnt; }
