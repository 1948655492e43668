#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's guest of tools/interop/recalls: changes files for which the client holds
# delegations. Each change waits until the client has returned the delegation.
set -eu
# shellcheck source=server.sh
. /interop/server.sh

now() { echo $((${EPOCHREALTIME/./} / 1000)); }

# files DIRECTORY COUNT: creates files.
files() {
	local i

	mkdir "/export/$1"
	for ((i = 0; i < $2; i++)); do
		echo "as it was" >"/export/$1/$i"
	done
}

delegations() { cat /proc/fs/nfsd/clients/*/states | grep -c 'type: deleg' || true; }

# change DIRECTORY COUNT: changes the files; prints the duration of the slowest recall in ms.
change() {
	local i begin took slowest=0

	for ((i = 0; i < $2; i++)); do
		begin=$(now)
		echo "changed on the server" >>"/export/$1/$i"
		took=$(($(now) - begin))
		[ "$took" -le "$slowest" ] || slowest=$took
	done
	echo "$slowest"
}

server_set_up 512m
serve
