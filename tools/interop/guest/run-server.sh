#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's guest: restarts, takes another module, cuts the wire.
set -eu
# shellcheck source=server.sh
. /interop/server.sh
# shellcheck source=kerberos.sh
. /interop/kerberos.sh

start() { rpc.nfsd 8 && nfs_listen; }

# Whoever uses the module lets go of it a little later.
unload() {
	local left=50

	until rmmod rpcrdma 2>/dev/null; do
		[ "$left" -gt 0 ] || { echo "rpcrdma is in use"; return 1; }
		left=$((left - 1))
		sleep 0.2
	done
}

# restart [MODULE]: as a server does that was rebooted; with another module, if named.
restart() {
	rpc.nfsd 0
	sleep 1
	[ $# -eq 0 ] || { unload && insmod "/modules/$1.ko"; } || return
	start
}

# checksums DIRECTORY: one of all its files and their names.
checksums() { (cd "$1" && find . -type f -exec sha256sum {} + | sort | sha256sum); }

server_set_up 1g
serve
