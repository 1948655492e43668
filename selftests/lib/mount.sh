# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Mounting and unmounting on the client.

# nfs_mount VERSION PROTO [OPTION...]: mounts a directory of the export that
# is this test's own on $MNT. PROTO is rdma or rdma6.
nfs_mount() {
	nfs_mount_at "$MNT" "$@"
}

nfs_mount_at() {
	local where=$1 version=$2 proto=$3 server options mount
	shift 3

	case $proto in
	rdma)	server=$SERVER4 ;;
	rdma6)	server="[$SERVER6]" ;;
	esac
	options="vers=$version,proto=$proto,port=$BED_PORT"
	# No statd in the client's namespace, and mountd speaks TCP and UDP.
	[ "$version" != 3 ] || options+=",nolock,mountproto=${proto/rdma/tcp}"
	# In a namespace of its own a client gives up when it finds no route,
	# as it does while its only RDMA device is away.
	! bed_is_local || options+=",fatal_neterrors=none"
	[ $# -eq 0 ] || options+=",$(IFS=,; echo "$*")"
	mkdir -p "$where"
	mount=(on_client mount -t nfs -o "$options" "$server:$EXPORT" "$where")
	# What comes before siw is done with accepting stays in its socket until something else
	# comes (siw_cm_llp_data_ready). NFSv4 gives the first Reply a minute.
	[ "$BED_RDMA" != siw ] || ! "${mount[@]}" || return 0
	"${mount[@]}"
}

nfs_umount() { umount "$MNT"; }

# Nothing that the client remembers survives this.
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

# Runs a command that finds the client's part of /sys.
with_client_sysfs() {
	if bed_has_link; then
		ip netns exec "$BED_NETNS" "$@"
	else
		"$@"
	fi
}

# The client's connections are lost, each once, and made again. SUNRPC has who writes here
# wait for the lock of the transport, and does not wake it when a task gives that up: it is
# killed and tries again, unless it got the lock by being killed.
reconnect() {
	local each address before lost=no traced='' _

	# A test for which there will be no memory has begun already.
	if [ -e "$DISCONNECT_TRACE" ]; then
		traced=yes
	else
		disconnect_trace_on
	fi
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
	[ "$traced" ] || disconnect_trace_off
	[ $lost = yes ] || fail "there was no connection to lose"
}

# wait_connect COUNT: waits for the mount to have connected more often than that, which
# somebody has to have a use for.
wait_connect() {
	local deadline=$((SECONDS + IO_TIMEOUT))

	while [ "$(xprt_stat connect_count)" -le "$1" ]; do
		[ "$SECONDS" -lt "$deadline" ] || fail "no connection was made anew"
		sleep 0.5
	done
}

# set_pulled_replies CLIENT SERVER: what the ends do about pulled Replies from the next mount
# on, where they can; without arguments, what they did before.
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

# A directory on the export for one test; its path on client and server.
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

# What a test leaves behind, whichever way it ended.
test_cleanup() {
	cd /
	umount_all
}
