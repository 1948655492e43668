#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client's part of tools/bench/memory. Usage: memory-client.sh CONNECTIONS
# Prints "memory WHAT CLIENT SERVER" in KiB of a connection.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh
# shellcheck source=../vm/guest/pair.sh
. /vm/pair.sh
# shellcheck source=memory-used.sh
. /memory-used.sh
OPTIONS=vers=3,nolock,mountvers=3,mountproto=tcp,mountport=20048

# ask WORD: has the server do that.
ask() {
	tell "ask.$1"
	await "done.$1"
}

# both_hold WHEN
both_hold() {
	kernel_holds >"/share/client.$1"
	ask "$1"
}

# each_took WHAT WHEN BEFORE FIELD CONNECTIONS
each_took() {
	local end sum=()

	for end in client server; do
		sum+=("$(awk -v field="$4" -v connections="$5" '{ kib[NR] = $field }
			END { print int((kib[2] - kib[1]) / connections) }' \
			"/share/$end.$3" "/share/$end.$2")")
	done
	echo "memory $1 ${sum[*]}"
}

# io MOUNT read|write BYTES COUNT: 128 at a time.
io() {
	fio --name=io --filename="/mnt/$1/file" --rw="rand$2" --bs="$3" --io_size=$(($3 * $4)) \
		--size=1M --direct=1 --ioengine=libaio --iodepth=128 --minimal >/dev/null
}

rdma_link_up 192.168.20.2 fd20::2
ip route add 10.9.0.0/24 dev eth0
modprobe -a rpcrdma nfsv3
await up
# What the first connection loads does not count.
nfs_mount /export /mnt/first $OPTIONS $BASE_ADDRESS
io first read 65536 256
umount /mnt/first
both_hold before

for ((i = 1; i <= $1; i++)); do
	nfs_mount /export /mnt/$i $OPTIONS 10.9.0.$i
done
both_hold idle
each_took idle idle before 1 "$1"
each_took idle,_queues_of_the_device idle before 2 "$1"
each_took idle,_all_else idle before 3 "$1"

for ((i = 1; i <= $1; i++)); do
	io $i read 65536 256
done
both_hold loaded
each_took after_load,_all_else loaded before 3 "$1"

# What one of many connections adds is less than what the others give back meanwhile.
if [ "$1" -le 10 ]; then
	ask freeze
	io 1 write 4096 128 &
	sleep 10
	both_hold busy
	each_took 128_under_way,_in_addition busy loaded 3 1
	ask thaw
	wait $!
fi
for ((i = 1; i <= $1; i++)); do
	umount /mnt/$i
done
rdma_down
