# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Counters of the client (mountstats) and of the server (sysctl).

# Column of each counter in "xprt: rdma ...", counted from 1.
# shellcheck disable=SC2034 # read through indirection
{
	STAT_port=1		STAT_bind_count=2	STAT_connect_count=3
	STAT_connect_time=4	STAT_idle_time=5	STAT_sends=6
	STAT_recvs=7		STAT_bad_xids=8		STAT_req_u=9
	STAT_bklog_u=10		STAT_read_chunks=11	STAT_write_chunks=12
	STAT_reply_chunks=13	STAT_rdma_request=14	STAT_rdma_reply=15
	STAT_pullup=16		STAT_fixup=17		STAT_hardway=18
	STAT_failed_marshal=19	STAT_bad_reply=20	STAT_nomsg_calls=21
	STAT_mrs_recycled=22	STAT_mrs_orphaned=23	STAT_mrs_allocated=24
	STAT_local_inv=25	STAT_empty_sendctx=26	STAT_reply_waits=27
}

# Prints the counters of each connection of the mount at $MNT.
xprt_lines() {
	awk -v at="$MNT" '
		$1 == "device" { here = $5 == at }
		here && $1 == "xprt:" && $2 == "rdma" {
			sub(/^.*rdma /, ""); print
		}' /proc/self/mountstats
}

# xprt_stat NAME: prints that counter, summed over the mount's connections.
xprt_stat() {
	local column="STAT_$1"
	xprt_lines | awk -v c="${!column}" '{ sum += $c } END { print sum + 0 }'
}

# stat_delta NAME COMMAND...: prints by how much COMMAND moves the counter. Fails if COMMAND does.
stat_delta() {
	local name=$1 before
	shift
	before=$(xprt_stat "$name")
	"$@" >/dev/null || return
	echo $(($(xprt_stat "$name") - before))
}

# rpcs_sent NAME: prints how many RPCs of that operation the mount has performed.
rpcs_sent() {
	awk -v at="$MNT" -v name="$1:" '
		$1 == "device" { here = $5 == at }
		here && $1 == name { print $2 }' /proc/self/mountstats
}

# rxe_timeouts: prints how often the bed's rxe devices have retransmitted after a timeout. The RDMA
# core caches the counters for 10 ms.
rxe_timeouts() {
	local each file sum=0

	sleep 0.02
	for each in "$BED_CLIENT_DEV" "$BED_SERVER_DEV"; do
		file=/sys/class/infiniband/$each/ports/1/hw_counters/completer_retry_err
		[ ! -e "$file" ] || sum=$((sum + $(cat "$file")))
	done
	echo "$sum"
}

svc_stat() { cat "/proc/sys/sunrpc/svc_rdma/rdma_stat_$1"; }
