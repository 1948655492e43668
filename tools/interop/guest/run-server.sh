#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's guest of tools/interop/run: restarts nfsd, changes the module, cuts the link.
set -eu
# shellcheck source=server.sh
. /interop/server.sh
# shellcheck source=kerberos.sh
. /interop/kerberos.sh

start() { rpc.nfsd 8 && nfs_listen; }

# unload: unloads the module. Connections release it shortly after they end, or, if the CM loses a
# message, when the stall detector has ended them.
unload() {
	local left=750

	until rmmod rpcrdma 2>/dev/null; do
		[ "$left" -gt 0 ] || { echo "rpcrdma is still in use"; return 1; }
		left=$((left - 1))
		sleep 0.2
	done
}

# restart [MODULE]: restarts nfsd, as a reboot does; with MODULE, if given.
restart() {
	rpc.nfsd 0
	sleep 1
	[ $# -eq 0 ] || { unload && insmod "/modules/$1.ko"; } || return
	start
}

# checksums DIRECTORY: prints one checksum over all files and their names.
checksums() { (cd "$1" && find . -type f -exec sha256sum {} + | sort | sha256sum); }

server_set_up 1g
serve
