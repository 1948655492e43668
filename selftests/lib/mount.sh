# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Mounts and unmounts on the client.

# nfs_mount VERSION PROTO [OPTION...]: mounts the export on $MNT. PROTO is rdma, rdma6 or tcp.
nfs_mount() {
	nfs_mount_at "$MNT" "$@"
}

nfs_mount_at() {
	local where=$1 version=$2 proto=$3 server options mount
	shift 3

	case $proto in
	rdma)	server=$SERVER4 options=port=$BED_PORT, ;;
	rdma6)	server="[$SERVER6]" options=port=$BED_PORT, ;;
	tcp)	server=$SERVER4 options='' ;;
	esac
	options+="vers=$version,proto=$proto"
	# The client's namespace has no statd, and mountd is reached over TCP.
	[ "$version" != 3 ] || options+=",nolock,mountproto=${proto/rdma/tcp}"
	# In a network namespace other than the initial one, ENETUNREACH is fatal by default. The
	# client sees it while its only RDMA device is removed.
	! bed_is_local || options+=",fatal_neterrors=none"
	[ $# -eq 0 ] || options+=",$(IFS=,; echo "$*")"
	mkdir -p "$where"
	mount=(on_client mount -t nfs -o "$options" "$server:$EXPORT" "$where")
	# Data that arrives before siw has finished accepting stays in the socket until more data
	# arrives (siw_cm_llp_data_ready). NFSv4 waits one minute for the first Reply: try again.
	[ "$BED_RDMA" != siw ] || ! "${mount[@]}" || return 0
	"${mount[@]}"
}

# Kills the mount.nfs that mounts the export on $MNT, and no other.
kill_mount() { pkill -KILL -f "^[^ ]*mount\.nfs [^ ]+ $(readlink -m "$MNT") "; }

nfs_umount() { umount "$MNT"; }

# Drops all of the client's caches for the mount.
nfs_remount() {
	nfs_umount
	nfs_mount "$@"
}

nfs_mounts() {
	awk -v under="$MNT" '$3 ~ /^nfs4?$/ && index($2, under) == 1 { print $2 }' \
		/proc/self/mounts
}

umount_all() {
	local each
	for each in $(nfs_mounts); do
		umount "$each" || umount -f -l "$each"
	done
}

umount_forced() {
	local each
	for each in $(nfs_mounts); do
		umount -f -l "$each"
	done
}

# transfer_size r|w: prints rsize or wsize of the mount.
transfer_size() {
	awk -v at="$MNT" '$2 == at { print $4 }' /proc/self/mounts |
		sed "s/.*\\b$1size=\\([0-9]*\\).*/\\1/"
}

# Runs a command with the client's view of /sys.
with_client_sysfs() {
	if bed_has_link; then
		ip netns exec "$BED_NETNS" "$@"
	else
		"$@"
	fi
}

# Disconnects each of the client's connections once; SUNRPC reconnects. A write to dstaddr waits for
# the transport lock, and SUNRPC does not wake it when a task releases the lock. The writer is
# therefore killed after five seconds and tries again, unless the trace shows that the kill let it
# take the lock and disconnect.
reconnect() {
	local each address before lost=no _

	# A test has started this trace, while memory was available.
	[ -e "$LOSS_TRACE" ] || loss_trace_on
	for each in $(with_client_sysfs sh -c \
		'echo /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/dstaddr'); do
		address=$(with_client_sysfs cat "$each") || continue
		for _ in {1..8}; do
			before=$(disconnects_traced)
			with_client_sysfs timeout --foreground -s KILL 5 sh -c "echo $address >$each" ||
				[ "$(disconnects_traced)" -gt "$before" ] || continue
			lost=yes
			break
		done
	done
	[ $lost = yes ] || fail "no connection to disconnect"
}

# wait_connect COUNT: waits until the mount has connected more than COUNT times. Some I/O has to be
# under way, or nothing reconnects.
wait_connect() {
	local deadline=$((SECONDS + IO_TIMEOUT))

	while [ "$(xprt_stat connect_count)" -le "$1" ]; do
		[ "$SECONDS" -lt "$deadline" ] || fail "the client did not reconnect"
		sleep 0.5
	done
}

# set_pulled_replies [CLIENT SERVER]: sets both ends' pulled_replies sysctl, effective from the next
# mount on; without arguments, restores them. Does nothing if the module has no such sysctl.
set_pulled_replies() {
	local client=/proc/sys/sunrpc/rdma_pulled_replies
	local server=/proc/sys/sunrpc/svc_rdma/pulled_replies

	[ -e "$client" ] || return 0
	[ $# -eq 0 ] || : "${pulled_before:=$(cat "$client") $(cat "$server")}"
	# shellcheck disable=SC2086 # two numbers
	[ $# -gt 0 ] || set -- $pulled_before
	echo "$1" >"$client"
	echo "$2" >"$server"
}

# work_dir NAME: creates a directory for one test; sets its path on the client and on the server.
work_dir() {
	WORK=$MNT/$1
	# shellcheck disable=SC2034 # used by the tests
	WORK_ON_SERVER=$EXPORT/$1
	rm -rf "$WORK"
	mkdir "$WORK"
}

drop_caches() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

# Default cleanup, run after each test whether it passed or not.
test_cleanup() {
	cd /
	umount_all
}
