#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage, in the guest: flood-guest.sh KIND:CLIENTS...
# For each KIND, runs so many hostile clients beside a client that mounts the server, and prints
# that client's latency before and meanwhile. Environment: RDMA is the device, NFS_THREADS the
# number of nfsd threads, SECONDS_EACH the time for each KIND, LIMIT_MS the longest latency that
# passes; without it, everything passes.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../vm/guest/nfs.sh
. /vm/nfs.sh

rdma_up "$RDMA"
mkdir -p /export
mount -t tmpfs -o size=64m,mode=1777 tmpfs /export
/probe/probe --pattern >/export/probe
chmod 666 /export/probe
printf "[nfsd]\nvers4.0=y\n" >>/etc/nfs.conf
modprobe lockd
echo 3 >/proc/sys/fs/nfs/nlm_grace_period
nfs_server_up /export
nfs_grace_over
# Without cached attributes every stat() is an RPC.
nfs_mount /export /mnt/honest vers=3,nolock,actimeo=0,lookupcache=none

# latency SECONDS: prints the number of calls of stat(), and the mean and longest time in ms.
latency() {
	timeout "$(($1 + 300))" /probe/probe --stat-latency /mnt/honest/probe "$1" || echo "0 0 300000"
}

# stat_of NAME: prints a counter of the server; nothing if the module does not have it.
stat_of() {
	cat "/proc/sys/sunrpc/svc_rdma/rdma_stat_$1" 2>/dev/null || :
}

# growth_of NAME BEFORE: prints by how much a counter has grown.
growth_of() {
	[ -z "$2" ] && echo - || echo $(($(stat_of "$1") - $2))
}

# connections: prints how often the honest client has connected.
connections() {
	nfs_xprt_line /mnt/honest | awk '{ print $5 }'
}

status=0
echo "# $NFS_THREADS nfsd threads; latencies are mean/longest in ms"
printf '%-14s %7s  %-12s %-12s %6s %8s %7s %7s\n' \
	kind clients before during stats starved stalled flooded
for each; do
	kind=${each%:*} clients=${each#*:}
	read -r _ mean longest < <(latency 5)
	before=$mean/$longest
	starved=$(stat_of sq_starve) stalled=$(stat_of stalled) flooded=$(stat_of flooded)
	connects=$(connections)
	/probe/probe --flood "$kind" "$clients" "$((SECONDS_EACH + 30))" $SERVER4 $NFS_PORT export \
		>/tmp/flood &
	flood=$!
	for _ in $(seq 30); do
		! grep -qs connected /tmp/flood || break
		sleep 1
	done
	read -r n mean longest < <(latency "$SECONDS_EACH")
	printf '%-14s %7s  %-12s %-12s %6s %8s %7s %7s\n' "$kind" "$clients" "$before" "$mean/$longest" \
		"$n" "$(growth_of sq_starve "$starved")" "$(growth_of stalled "$stalled")" \
		"$(growth_of flooded "$flooded")"
	kill $flood
	wait $flood 2>/dev/null || :
	sed 's/^/# /' /tmp/flood
	if [ "$(connections)" != "$connects" ]; then
		echo "# the honest client had to connect again"
		[ -z "$LIMIT_MS" ] || status=1
	fi
	if [ -n "$LIMIT_MS" ] && [ "$longest" -gt "$LIMIT_MS" ]; then
		echo "# a stat took $longest ms; the limit is $LIMIT_MS"
		status=1
	fi
	sleep 2
done
umount -f /mnt/honest
nfs_server_down
rdma_down
exit $status
