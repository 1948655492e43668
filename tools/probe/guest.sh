#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: groups of cases, each from this one on: guest.sh GROUP[:FROM]... The
# groups fuzz_server and fuzz_client have FUZZ_SEED and so many batches: FUZZ_BATCHES.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh

rdma_up "$RDMA"
# The listening end of siw leaves what comes before it is done with accepting where it is
# until something else comes (siw_cm_llp_data_ready, in SIW_EPSTATE_RDMA_MODE).
[ "$RDMA" != siw ] || export SETTLING=500
mkdir -p /export
mount -t tmpfs -o size=256m,mode=1777 tmpfs /export
mkdir /export/empty
ln -s probe /export/link
/probe/probe --pattern | head -c 3001 >/export/short
: >/export/probe
: >/export/fuzzed
chmod 666 /export/probe /export/fuzzed
for i in $(seq 1000); do : >"/export/file-with-a-rather-long-name-$i"; done
# As a client the probe speaks NFSv4.0, which servers no longer offer by themselves.
printf "[nfsd]\nvers4.0=y\n" >>/etc/nfs.conf
# nfsd gives no delegation before the locks of NFSv3 have had time to come back.
modprobe lockd
echo 3 >/proc/sys/fs/nfs/nlm_timeout
echo 3 >/proc/sys/fs/nfs/nlm_grace_period
# nfsd gives a Call of its own up after a tenth of this.
NFS_LEASE=$((90 * PATIENCE))
# By itself it offers less on a machine with little memory, which one region may hold.
export NFS_BLOCK=1048576
nfs_server_up /export
nfs_grace_over

# set_server NAME VALUE: a tunable of the server.
set_server() {
	# The C module does not have all of them.
	[ ! -e "/proc/sys/sunrpc/svc_rdma/$1" ] || echo "$2" >"/proc/sys/sunrpc/svc_rdma/$1"
}

# squash root_squash|no_root_squash: whether root is somebody to the server.
squash() {
	sed -i -E "s/(no_)?root_squash/$1/" /etc/exports
	exportfs -ra
}

# group NAME FROM
group() {
	local port=20050 fuzz=() requests reverse stall pulled

	echo "# group $1, kernel $(uname -r), $(date +%F)"
	# The groups before have written to it.
	/probe/probe --pattern >/export/probe
	if [ "$1" = pulled ] && [ ! -e /proc/sys/sunrpc/svc_rdma/pulled_replies ]; then
		echo "1..0 # SKIP the server exposes no Replies"
		return
	fi
	if [ "$1" = exposer ] && [ ! -e /proc/sys/sunrpc/rdma_pulled_replies ]; then
		echo "1..0 # SKIP the client pulls no Replies"
		return
	fi
	case $1 in
	pulled)
		stall=$(cat /proc/sys/sunrpc/svc_rdma/stall_seconds)
		set_server stall_seconds 3600
		set_server max_exposed_replies 4
		set_server exposed_seconds $((2 * PATIENCE)) ;;
	# So that its Send Queue is soon full.
	no_receives)
		requests=$(cat /proc/sys/sunrpc/svc_rdma/max_requests)
		set_server max_requests 8 ;;
	no_read_response)
		stall=$(cat /proc/sys/sunrpc/svc_rdma/stall_seconds 2>/dev/null || true)
		set_server stall_seconds $((3 * PATIENCE)) ;;
	read_throttle)
		requests=$(cat /proc/sys/sunrpc/svc_rdma/max_requests)
		pulled=$(cat /proc/sys/sunrpc/svc_rdma/max_pulled_pages 2>/dev/null || true)
		set_server max_requests 24
		set_server max_pulled_pages 528 ;;
	# Fewer than there are reasons to call.
	session)
		reverse=$(cat /proc/sys/sunrpc/svc_rdma/max_bc_requests 2>/dev/null || true)
		set_server max_bc_requests 2 ;;
	fuzz_*) fuzz=(--fuzz "$FUZZ_SEED" "$FUZZ_BATCHES") ;;
	esac
	# A LOOKUP needs one word changed to be a REMOVE. Only root may do that here.
	[ "$1" != fuzz_server ] || squash root_squash
	# Those that are usually long as well.
	[ "$1" != fuzz_client ] || [ ! -e /proc/sys/sunrpc/rdma_pulled_replies ] ||
		echo 2 >/proc/sys/sunrpc/rdma_pulled_replies
	! /probe/probe --is-client "$1" || port=$NFS_PORT
	/probe/probe "${fuzz[@]}" --from "$2" "$1" $SERVER4 "$port" export || status=1
	[ "$1" != no_receives ] || set_server max_requests "$requests"
	case $1 in
	no_read_response | pulled) set_server stall_seconds "$stall" ;;
	esac
	if [ "$1" = read_throttle ]; then
		set_server max_requests "$requests"
		set_server max_pulled_pages "$pulled"
	fi
	[ "$1" != session ] || set_server max_bc_requests "$reverse"
	[ "$1" != fuzz_server ] || squash no_root_squash
}

# in_time COMMAND...: it comes to an end, and a good one.
in_time() {
	local command

	"$@" &
	command=$!
	for _ in $(seq $((60 * PATIENCE))); do
		kill -0 $command 2>/dev/null || break
		sleep 1
	done
	! kill -0 $command 2>/dev/null && wait $command
}

# The device is removed under a connection that has seen others come and go before they were
# accepted: both ends of it are still told, and nobody else is.
removed_in_use() {
	nfs_mount /export /mnt/stands vers=4.2 || return
	# Some are accepted in vain, some are seen to have left before that.
	insmod /probe/delay_fn.ko function=rdma_accept entry=1 delay_ms=50 || return
	/probe/probe --connect-and-leave $SERVER4 || return
	rmmod delay_fn || return
	in_time rdma link delete "$RDMA_DEV" || return
	rdma link add "$RDMA_DEV" type "$RDMA" netdev "$RDMA_NETDEV" || return
	in_time ls /mnt/stands/empty && in_time umount /mnt/stands
}

status=0
for each; do
	group "${each%:*}" "${each#*:}"
done
case " $*" in
*" peers:"*)
	# The C module's listeners keep it from going. What siw does then has not been tried.
	if [ "$RDMA" = rxe ] && [ -e /proc/sys/sunrpc/svc_rdma/message_octets ] &&
		! removed_in_use; then
		echo "error: the device cannot be removed in use"
		exit 1
	fi ;;
esac
nfs_server_down
# Nobody keeps the device, not even for those who left before they were accepted.
if ! in_time rdma_down; then
	echo "error: the device cannot be removed"
	status=1
fi
exit $status
