# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The commands of "Watching" in Documentation/operating.rst, for a guest that is server and
# client at once. Sourced by tools/package/guest.sh and server-guest.sh.

# shown COMMAND PATTERN: runs a command, prints it with its output, and fails if no line of the
# output matches the pattern.
shown() {
	local said

	said=$(sh -c "$1" 2>&1)
	printf '%s\n' "\$ $1" "$said"
	grep -qE "$2" <<<"$said" || fail "the output lacks $2"
}

# show_the_connection AT: AT is a mount over RDMA.
show_the_connection() {
	local at=$1

	mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
	mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
	shown 'grep proto=rdma /proc/mounts' 'proto=rdma,port=20049'
	shown 'cat /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/xprt_info' 'state=CONNECTED|cong_win'
	shown 'grep "xprt:.*rdma" /proc/self/mountstats' 'rdma( [0-9]+){27}$'
	shown 'ls /sys/kernel/debug/sunrpc/rpc_clnt/*/tasks' '/tasks$'
	shown 'cat /proc/fs/nfsd/portlist' '^rdma 20049'
	shown 'nfsdctl listener' 'rdma'
	shown 'cat /proc/fs/nfsd/clients/*/info' "address: .*$SERVER4"
	shown 'grep . /proc/sys/sunrpc/svc_rdma/rdma_stat_*' 'rdma_stat_recv:[1-9]'
	shown 'cat /proc/sys/sunrpc/rdma_message_octets /proc/sys/sunrpc/svc_rdma/message_octets' '^[1-9]'
	shown 'sysctl sunrpc.rdma_max_inline_read sunrpc.svc_rdma.max_requests' 'max_requests = [1-9]'
	shown 'rdma link' 'link rxe0/1 state ACTIVE'
	shown 'rdma resource show qp' 'type RC state RTS .*comm \[rdma_cm\]'
	shown 'rdma resource show cm_id' 'state CONNECT .*comm \[rpcrdma\]'
	shown "cd /sys/kernel/tracing && echo 1 >events/rpcrdma/enable && stat -f $at >/dev/null
		echo 0 >events/rpcrdma/enable; grep -e xprtrdma_post_send -e svcrdma_decode trace" \
		' (xprtrdma_post_send|svcrdma_decode_[a-z]*): '
	! command -v trace-cmd ||
		shown "trace-cmd record -q -e rpcrdma -e sunrpc -o /tmp/trace.dat stat -f $at
			trace-cmd report -i /tmp/trace.dat | grep -m 3 xprtrdma_" 'xprtrdma_post_send: '
}
