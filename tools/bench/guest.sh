#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's part of tools/bench/run and profile. Usage: guest.sh ROW...
# In each of several rounds, repeats the operation of each row of tools/bench/rows that is named,
# between marks for QEMU's plugin, and prints "bench NUMBER ROW RPCS", the RPCs of one operation. A
# round has files and connections of its own: how many of the server's pages are adjacent in memory
# changes the cost. Afterwards copies the addresses of the kernel's functions to /share/kallsyms.
# The server grants a client all credits before the rows, for more Receives are made once a connection.
# Fails if a direct READ or WRITE is not one RPC.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
# shellcheck source=measure-rows.sh
. /measure-rows.sh
ROUNDS=5
WARM_CALLS=600

rdma_up
# With a delegation the client would answer GETATTR by itself.
echo 0 >/proc/sys/fs/leases-enable
NFS_LEASE=90
# nfsd grants no delegations before lockd's grace period has ended, which is the longer one.
modprobe lockd
echo 3 >/proc/sys/fs/nfs/nlm_timeout
echo 3 >/proc/sys/fs/nfs/nlm_grace_period
mkdir -p /export
mount -t tmpfs -o size=128m tmpfs /export
mkdir /export/dir
for ((i = 0; i < 300; i++)); do : >"/export/dir/an-entry-of-the-directory-$i"; done
nfs_server_up /export
nfs_grace_over

# rpcs MOUNTPOINT: prints how many Calls the mount's transport has sent.
rpcs() { nfs_xprt_line "$1" | awk '{ print $8 }'; }

# warm_mount MOUNTPOINT VERSION
warm_mount() {
	local i

	nfs_mount /export "$1" "vers=$2,nolock,noac,lookupcache=none"
	for ((i = 0; i < WARM_CALLS; i++)); do
		[ -e "$1/file" ]
	done
}

measure() { # NUMBER ROW OPERATION BYTES VERSION WARM MEASURED
	local at=/mnt/$5 times=$(($6 + $7)) before same name=${3%%-*}

	if [ "$3" = MOUNT-UMOUNT ]; then
		mkdir -p "$at"
		/operations "$1" "$3" "$4" "$6" "$7" "$at" /export "$SERVER4"
		echo "bench $1 $2 -"
		return
	fi
	# The client asks the server each time.
	mountpoint -q "$at" || warm_mount "$at" "$5"
	before=$(rpcs "$at") same=$(nfs_rpcs "$at" "$name")
	[ "$3" != RECALL ] || echo 1 >/proc/sys/fs/leases-enable
	/operations "$1" "$3" "$4" "$6" "$7" "$at" /export "$SERVER4"
	echo 0 >/proc/sys/fs/leases-enable
	echo "bench $1 $2 $((($(rpcs "$at") - before) / times))"
	case $3 in
	READ | WRITE | *-at-once)
		same=$(($(nfs_rpcs "$at" "$name") - same))
		[ $same -eq $times ] || {
			echo "error: $times ${3}s of $4 bytes were $same RPCs"
			return 1
		} ;;
	esac
}

for ((round = 0; round < ROUNDS; round++)); do
	rm -f /export/file /export/large
	dd if=/dev/zero of=/export/file bs=1M count=4 status=none
	dd if=/dev/zero of=/export/large bs=1M count=32 status=none
	measure_rows "$@"
	[ $round -lt $((ROUNDS - 1)) ] || grep -i ' [tw] ' /proc/kallsyms >/share/kallsyms
	for at in /mnt/*; do
		! mountpoint -q "$at" || umount "$at"
	done
done
nfs_server_down
