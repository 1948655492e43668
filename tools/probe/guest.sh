#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage, in the guest: guest.sh GROUP[:FROM]...
# Runs each group, from case FROM on. Environment: RDMA is the device, TIME_FACTOR multiplies time
# limits; for fuzz_server and fuzz_client, FUZZ_SEED is the seed, FUZZ_BATCHES the number of
# batches.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh

rdma_up "$RDMA"
# siw processes data that arrives while a connection is being accepted only when more data
# arrives (siw_cm_llp_data_ready, in SIW_EPSTATE_RDMA_MODE).
[ "$RDMA" != siw ] || export SETTLE_MS=500
mkdir -p /export
mount -t tmpfs -o size=256m,mode=1777 tmpfs /export
mkdir /export/empty
ln -s probe /export/link
/probe/probe --pattern | head -c 3001 >/export/short
: >/export/probe
: >/export/fuzzed
chmod 666 /export/probe /export/fuzzed
for i in $(seq 1000); do : >"/export/file-with-a-rather-long-name-$i"; done
# The probe's client uses NFSv4.0, which nfsd does not offer by default.
printf "[nfsd]\nvers4.0=y\n" >>/etc/nfs.conf
# nfsd grants no delegations before lockd's grace period is over.
modprobe lockd
echo 3 >/proc/sys/fs/nfs/nlm_timeout
echo 3 >/proc/sys/fs/nfs/nlm_grace_period
# nfsd gives up a callback after a tenth of the lease time.
NFS_LEASE=$((180 * TIME_FACTOR))
nfs_server_up /export
nfs_grace_over

# get_server NAME: prints a sysctl of the server; nothing if the C module does not have it.
get_server() {
	cat "/proc/sys/sunrpc/svc_rdma/$1" 2>/dev/null || true
}

# set_server NAME VALUE: sets it, if it exists.
set_server() {
	[ ! -e "/proc/sys/sunrpc/svc_rdma/$1" ] || echo "$2" >"/proc/sys/sunrpc/svc_rdma/$1"
}

# squash root_squash|no_root_squash: sets that export option.
squash() {
	sed -i -E "s/(no_)?root_squash/$1/" /etc/exports
	exportfs -ra
}

# set_block BYTES: restarts nfsd with READs and WRITEs of up to BYTES.
set_block() {
	rpc.nfsd 0
	echo "$1" >/proc/fs/nfsd/max_block_size
	rpc.nfsd 8
	nfs_listen
	nfs_grace_over
}

# prepare GROUP: sets the server's limits, and saves the previous ones.
saved=()
prepare() {
	local name

	saved=()
	for name in max_requests stall_seconds max_pulled_pages max_bc_requests; do
		saved+=("$name" "$(get_server $name)")
	done
	case $1 in
	large_blocks) set_block 4194304 ;;
	pulled)
		set_server stall_seconds 3600
		set_server max_exposed_replies 4
		set_server exposed_seconds $((8 + 2 * TIME_FACTOR)) ;;
	# Few requests make a small Send Queue, which is soon full.
	no_receives) set_server max_requests 8 ;;
	no_read_response) set_server stall_seconds $((3 * TIME_FACTOR)) ;;
	read_throttle)
		set_server max_requests 24
		set_server max_pulled_pages 2112 ;;
	# Fewer than a case has delegations to be recalled.
	session) set_server max_bc_requests 2 ;;
	# A mutation can turn the LOOKUP of the test file into a REMOVE. Only root may remove it.
	fuzz_server) squash root_squash ;;
	# Pull Replies that are usually long, too.
	fuzz_client)
		[ ! -e /proc/sys/sunrpc/rdma_pulled_replies ] ||
			echo 2 >/proc/sys/sunrpc/rdma_pulled_replies ;;
	esac
}

# restore GROUP: undoes what prepare has done.
restore() {
	[ "$1" != fuzz_server ] || squash no_root_squash
	[ "$1" != large_blocks ] || set_block 1048576
	set -- "${saved[@]}"
	while [ $# -gt 0 ]; do
		[ -z "$2" ] || set_server "$1" "$2"
		shift 2
	done
}

# group NAME FROM
group() {
	local port=20050 fuzz=()

	echo "# group $1, kernel $(uname -r), $(date +%F)"
	# Earlier groups have written to the file.
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
	fuzz_*) fuzz=(--fuzz "$FUZZ_SEED" "$FUZZ_BATCHES") ;;
	esac
	prepare "$1"
	! /probe/probe --is-client "$1" || port=$NFS_PORT
	/probe/probe "${fuzz[@]}" --from "$2" "$1" $SERVER4 "$port" export || status=1
	restore "$1"
}

# in_time COMMAND...: runs it for at most three minutes, since the CM may lose messages. Fails if it
# fails or does not end.
in_time() {
	local command

	"$@" &
	command=$!
	for _ in $(seq $((180 * TIME_FACTOR))); do
		kill -0 $command 2>/dev/null || break
		sleep 1
	done
	! kill -0 $command 2>/dev/null && wait $command
}

# Removes the device while a mount uses it, after other clients have connected and left before
# they were accepted. Both ends of the mount have to be notified, and the mount has to survive.
removed_in_use() {
	nfs_mount /export /mnt/in_use vers=4.2 || return
	# With the delay some clients leave before rdma_accept(), others after it.
	insmod /probe/delay_fn.ko function=rdma_accept entry=1 delay_ms=50 || return
	/probe/probe --connect-and-leave $SERVER4 || return
	rmmod delay_fn || return
	in_time rdma link delete "$RDMA_DEV" || return
	rdma link add "$RDMA_DEV" type "$RDMA" netdev "$RDMA_NETDEV" || return
	in_time ls /mnt/in_use/empty && in_time umount /mnt/in_use
}

status=0
for each; do
	group "${each%:*}" "${each#*:}"
done
case " $*" in
*" peers:"*)
	# The C module's listeners keep a reference to the device. siw has not been tried.
	if [ "$RDMA" = rxe ] && [ -e /proc/sys/sunrpc/svc_rdma/message_octets ]; then
		echo "# group removed_in_use, kernel $(uname -r), $(date +%F)"
		echo 1..1
		name="a device is removed in use, after clients that left early (-)"
		echo "# case 1 - $name"
		removed_in_use || {
			echo "not ok 1 - $name"
			exit 1
		}
		echo "ok 1 - $name"
	fi ;;
esac
nfs_server_down
# All references to the device are gone, also those for clients that left early.
if ! in_time rdma_down; then
	echo "error: the device cannot be removed"
	status=1
fi
exit $status
