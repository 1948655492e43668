# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Functions for guests: an NFS server over RDMA and TCP, and its mounts.

NFS_PORT=20049

# nfs_server_up EXPORT...: serves these directories over RDMA and TCP. NFS_LEASE,
# NFS_BLOCK and NFS_THREADS change the lease, the longest READ and WRITE (1 MiB, while nfsd's
# default depends on memory), and the thread count.
nfs_server_up() {
	modprobe -a nfsd nfsv4 nfsv3 rpcrdma || return 1
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd || return 1
	mkdir -p /run/rpc_pipefs /var/lib/nfs/nfsdcld /run/rpcbind /run/sendsigs.omit.d
	mountpoint -q /run/rpc_pipefs ||
		mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs || return 1
	pidof rpcbind >/dev/null || rpcbind -w || return 1
	nfs_tracker_up || return 1
	pidof rpc.statd >/dev/null || rpc.statd --no-notify || return 1

	fsid=1
	: >/etc/exports
	for dir; do
		echo "$dir *(rw,no_root_squash,no_subtree_check,insecure,sec=sys,fsid=$fsid)" >>/etc/exports
		fsid=$((fsid + 1))
	done
	exportfs -ra || return 1
	echo "${NFS_LEASE:-10}" >/proc/fs/nfsd/nfsv4leasetime
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	echo "${NFS_BLOCK:-1048576}" >/proc/fs/nfsd/max_block_size || return 1
	rpc.nfsd "${NFS_THREADS:-8}" || return 1
	pidof rpc.mountd >/dev/null || rpc.mountd || return 1
	nfs_listen
}

# Starts nfsdcld, without which the server waits for the end of its grace period. nfsdcld
# goes to the background before it watches for nfsd's pipe, and nfsd waits for it for one
# second only; so wait here until the watch exists.
nfs_tracker_up() {
	pidof nfsdcld >/dev/null || nfsdcld || return 1
	for _ in $(seq 300); do
		! find "/proc/$(pidof -s nfsdcld)/fd" -lname '*inotify*' 2>/dev/null | grep -q . || return 0
		sleep 0.1
	done
	echo "error: nfsdcld does not watch /run/rpc_pipefs" >&2
	return 1
}

# Adds the IPv4 and the IPv6 listener, as an administrator does.
nfs_listen() {
	echo "rdma $NFS_PORT" >/proc/fs/nfsd/portlist
}

nfs_server_down() {
	rpc.nfsd 0
	exportfs -ua
	for daemon in rpc.mountd rpc.statd nfsdcld rpcbind; do
		pid=$(pidof $daemon) && kill "$pid"
	done
	umount /proc/fs/nfsd /run/rpc_pipefs 2>/dev/null
	return 0
}

# nfs_grace_over: waits until the server may grant delegations, that is, until the grace
# periods of NFSv4 and of NLM (nlm_grace_period) are over.
nfs_grace_over() {
	for _ in $(seq 60); do
		[ "$(cat /proc/fs/nfsd/v4_end_grace)" != Y ] || break
		sleep 1
	done
	sleep "$(cat /proc/sys/fs/nfs/nlm_grace_period)"
	sleep 1
}

# nfs_mount DIRECTORY MOUNTPOINT OPTIONS [ADDRESS]
nfs_mount() {
	mkdir -p "$2"
	case ${4:-$SERVER4} in
	*:*) mount -t nfs -o "proto=rdma6,port=$NFS_PORT,$3" "[$4]:$1" "$2" ;;
	*) mount -t nfs -o "proto=rdma,port=$NFS_PORT,$3" "${4:-$SERVER4}:$1" "$2" ;;
	esac
}

# nfs_xprt_line MOUNTPOINT: prints the transport line of a mount: "xprt: rdma" and 27
# numbers.
nfs_xprt_line() {
	awk -v at="$1" '$1 == "device" { here = ($5 == at) } here && $1 == "xprt:"' /proc/self/mountstats
}

# nfs_rpcs MOUNTPOINT OPERATION: prints how many RPCs of that operation, such as READ, a mount has
# performed.
nfs_rpcs() {
	awk -v at="$1" -v name="$2:" '
		$1 == "device" { here = ($5 == at) }
		here && $1 == name { print $2 }' /proc/self/mountstats
}
