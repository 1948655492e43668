#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's guest: files that the client holds delegations of are changed here,
# and whoever changes them waits until the client has given its delegation back.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
# shellcheck source=../vm/guest/pair.sh
. /vm/pair.sh

FILES=50
# Milliseconds that a recall may take; without a callback it takes a lease or more.
SOON=3000

now() { echo $((${EPOCHREALTIME/./} / 1000)); }
delegations() { cat /proc/fs/nfsd/clients/*/states | grep -c 'type: deleg' || true; }

# recalled VERSION
recalled() {
	local i begin took slowest=0 held

	held=$(delegations)
	for ((i = 0; i < FILES; i++)); do
		begin=$(now)
		echo "changed on the server" >>"/export/$1/$i"
		took=$(($(now) - begin))
		[ "$took" -le "$slowest" ] || slowest=$took
	done
	echo "# NFSv$1: $held delegations, slowest recall $slowest ms"
	[ "$held" -ge $((FILES / 2)) ] && [ "$slowest" -lt $SOON ]
}

rdma_link_up $SERVER4 $SERVER6
# nfsd gives no delegation before the locks of NFSv3 have had time to come back.
modprobe lockd
echo 3 >/proc/sys/fs/nfs/nlm_timeout
echo 3 >/proc/sys/fs/nfs/nlm_grace_period
mkdir -p /export
mount -t tmpfs -o size=256m,mode=1777 tmpfs /export
for version in 4.1 4.2; do
	mkdir /export/$version
	for ((i = 0; i < FILES; i++)); do
		echo "as it was" >"/export/$version/$i"
	done
done
nfs_server_up /export
sleep 15
tell served

echo "1..2"
number=0
for version in 4.1 4.2; do
	await "holding-$version" 600
	number=$((number + 1))
	verdict=ok
	recalled $version || verdict="not ok"
	tell "recalled-$version"
	await "seen-$version" 600
	[ -e "/share/good-$version" ] || verdict="not ok"
	echo "$verdict $number - NFSv$version: delegations are recalled"
done
await stop 600
nfs_server_down
