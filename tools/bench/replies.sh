#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's part of tools/bench/replies. Prints "bench OPERATION REGISTRATIONS
# INVALIDATIONS SENDS PULLED INSTRUCTIONS" for each operation: instructions per operation,
# and all others per hundred operations. The argument is the value for
# /proc/sys/sunrpc/rdma_pulled_replies, or "c" for the C module, which lacks that file.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
count=100

rdma_up
mkdir -p /export
mount -t tmpfs -o size=64m tmpfs /export
mkdir /export/few /export/many
touch /export/few/{1..5} /export/file-{0..99}
for each in $(seq 800); do : >"/export/many/a-name-that-takes-some-room-$each"; done
setfattr -n user.small -v small /export/file-1
setfattr -n user.large -v "$(head -c 60000 /dev/zero | tr '\0' v)" /export/file-1
nfs_server_up /export
if [ "$1" != c ]; then
	echo "$1" >/proc/sys/sunrpc/rdma_pulled_replies
	[ "$1" = 0 ] || echo 1 >/proc/sys/sunrpc/svc_rdma/pulled_replies
fi
nfs_mount /export /mnt vers=4.2,noac,lookupcache=none,rsize=65536

# numbers: prints the counts so far, from numbers 6, 7, 11 to 13 and 25 of mountstats and from
# the client's counters.
numbers() {
	local pulled=0 told=0
	if [ -e /proc/sys/sunrpc/rdma_stat_pulled ]; then
		pulled=$(cat /proc/sys/sunrpc/rdma_stat_pulled)
		told=$(cat /proc/sys/sunrpc/rdma_stat_done)
	fi
	nfs_xprt_line /mnt | awk -v pulled="$pulled" -v told="$told" '{
		print $13 + $14 + $15, $27, $8 + $9 + told, pulled
	}'
}

for operation in LOOKUP GETATTR CREATE READDIR-small READDIR-large getxattr-small \
	getxattr-large; do
	/replies $operation 10 /mnt /export >/dev/null
	before=$(numbers)
	cost=$(/replies $operation $count /mnt /export)
	# shellcheck disable=SC2046,SC2086 # numbers
	set -- $before $(numbers)
	echo "bench $operation $(((${5} - $1) * 100 / count)) $(((${6} - $2) * 100 / count))" \
		"$(((${7} - $3) * 100 / count)) $(((${8} - $4) * 100 / count)) $cost"
done
umount /mnt
nfs_server_down
