# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# An NFS server and its mounts in a guest.

NFS_PORT=20049

# nfs_server_up EXPORT...: serve these directories over RDMA and TCP.
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
	[ -z "${NFS_BLOCK:-}" ] || echo "$NFS_BLOCK" >/proc/fs/nfsd/max_block_size
	rpc.nfsd "${NFS_THREADS:-8}" || return 1
	pidof rpc.mountd >/dev/null || rpc.mountd || return 1
	nfs_listen
}

# nfsdcld, without which a server sits out its grace period. It is in the background before it
# watches for nfsd's pipe, and nfsd gives it a second.
nfs_tracker_up() {
	pidof nfsdcld >/dev/null || nfsdcld || return 1
	for _ in $(seq 300); do
		! find "/proc/$(pidof -s nfsdcld)/fd" -lname '*inotify*' 2>/dev/null | grep -q . || return 0
		sleep 0.1
	done
	echo "nfsdcld does not watch /run/rpc_pipefs" >&2
	return 1
}

# The listeners of both families, by the names that administrators write.
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

# nfs_grace_over: the server gives delegations. That of locks of NFSv3, which nlm_grace_period
# says, begins with the server.
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

# The transport line of a mount: 27 numbers after "xprt: rdma".
nfs_xprt_line() {
	awk -v at="$1" '$1 == "device" { here = ($5 == at) } here && $1 == "xprt:"' /proc/self/mountstats
}
