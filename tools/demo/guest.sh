#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's part of tools/demo/run: serves /export over NFS/RDMA, mounts it, copies a
# tree in, reads it back and compares checksums. FILES and MEGABYTES come from the host.
set -eu
# shellcheck source=../lib/say.sh
. /vm/say.sh
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh

# step (say.sh) calls these functions as conditions, where bash ignores "set -e".
load() {
	[ "$(find /lib/modules/ -name 'rpcrdma.ko*' | wc -l)" = 1 ] &&
		modprobe rpcrdma || return
	[ "$VM_MODULE" = c ] || grep -q O /sys/module/rpcrdma/taint
}

serve() {
	mkdir -p /export &&
		mount -t tmpfs -o size=1G,mode=755 tmpfs /export &&
		nfs_server_up /export
}

mount_it() {
	nfs_mount /export /mnt vers=4.2 &&
		grep ' /mnt nfs4 .*vers=4.2,.*proto=rdma,' /proc/mounts
}

unpack() {
	mkdir -p /source &&
		mount -t tmpfs -o size=1G tmpfs /source &&
		tar -xf /dev/vda -C /source
}

copy_in() {
	cp -r /source/. /mnt/ && sync -f /mnt
}

drop_caches() {
	umount /source && echo 3 >/proc/sys/vm/drop_caches
}

read_back() {
	(cd /mnt && sha256sum --quiet -c /root/sums)
}

show_statistics() {
	line=$(nfs_xprt_line /mnt)
	echo
	echo "  mountstats: $(echo "$line" | tr '\t' ' ')"
	# Of the 27 numbers: 6 and 7 count Sends and Receives, 11 to 13 chunks, 14 bytes
	# offered in Write and Reply chunks, 15 bytes that the server wrote there.
	echo "$line" | awk -v megabytes="$MEGABYTES" -v files="$FILES" -v in_s="$in_s" -v out_s="$out_s" '
		{
			printf "  chunks:     %d Read, %d Write, %d Reply; %d Calls sent, %d Replies received\n",
				$13, $14, $15, $8, $9
			printf "  by RDMA:    %.1f MiB into Write and Reply chunks, of %.1f MiB offered\n",
				$17 / 1048576, $16 / 1048576
			printf "  throughput: in %.1f MiB/s, %.0f files/s; out %.1f MiB/s, %.0f files/s (emulated processor)\n",
				megabytes / in_s, files / in_s, megabytes / out_s, files / out_s
			# Small files are sent inline; most of the tree is not small.
			if ($13 < files / 2 || $17 < megabytes * 900000) {
				print "error: too little data went by RDMA Read and Write"
				exit 1
			}
		}'
	echo
}

unmount_it() {
	umount /mnt && nfs_server_down
}

# Connections release the module shortly after they end, or, if the CM loses a message, when the stall
# detector has ended them.
unload() {
	local _
	for _ in $(seq 300); do
		[ "$(cat /sys/module/rpcrdma/refcnt)" != 0 ] || break
		sleep 0.5
	done
	modprobe -r rpcrdma && [ ! -d /sys/module/rpcrdma ]
}

step 'rpcrdma loaded' load
step 'rxe on a veth pair' rdma_up
step 'NFS server on port 20049, listening for RDMA' serve
step 'mount -o vers=4.2,proto=rdma' mount_it
step 'tree unpacked in memory' unpack
start=$SECONDS
step "$FILES files, $MEGABYTES MiB, copied in" copy_in
in_s=$((SECONDS - start + (SECONDS == start)))
step 'caches dropped' drop_caches
start=$SECONDS
step "$FILES files read back, checksums compared" read_back
out_s=$((SECONDS - start + (SECONDS == start)))
show_statistics
step 'unmounted, server stopped' unmount_it
step 'rpcrdma unloaded' unload
rdma_down
