#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's guest: files that the client holds delegations of are changed here,
# and whoever changes them waits until the client has given its delegation back.
set -eu
# shellcheck source=server.sh
. /interop/server.sh

now() { echo $((${EPOCHREALTIME/./} / 1000)); }

# files DIRECTORY COUNT
files() {
	local i

	mkdir "/export/$1"
	for ((i = 0; i < $2; i++)); do
		echo "as it was" >"/export/$1/$i"
	done
}

delegations() { cat /proc/fs/nfsd/clients/*/states | grep -c 'type: deleg' || true; }

# change DIRECTORY COUNT: prints how many milliseconds the slowest recall took.
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
