#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tracepoints that one debugs with: there by name, in the trace when what
# they tell of happens, and harmless when all of them are on.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

TRACING=/sys/kernel/tracing

# Seen in any mount that moves data.
USUAL="
xprtrdma_op_connect xprtrdma_connect xprtrdma_inline_thresh
xprtrdma_marshal xprtrdma_chunk_read xprtrdma_chunk_write xprtrdma_chunk_reply
xprtrdma_post_send xprtrdma_post_recvs xprtrdma_wc_receive xprtrdma_reply
xprtrdma_mr_map xprtrdma_mr_fastreg xprtrdma_mr_unmap
xprtrdma_createmrs xprtrdma_disconnect
svcrdma_decode_rqst svcrdma_wc_recv svcrdma_post_recv
svcrdma_post_read_chunk svcrdma_wc_read svcrdma_read_finished
svcrdma_post_write_chunk svcrdma_post_send svcrdma_wc_send"

# Told when something goes wrong.
UNUSUAL="
xprtrdma_marshal_failed xprtrdma_nomrs_err xprtrdma_post_send_err
xprtrdma_reply_rqst_err xprtrdma_reply_short_err xprtrdma_reply_vers_err
xprtrdma_err_vers xprtrdma_err_chunk xprtrdma_frwr_alloc xprtrdma_frwr_maperr
xprtrdma_frwr_sgerr xprtrdma_mrs_zap xprtrdma_device_removal
svcrdma_wc_recv_flush svcrdma_wc_recv_err svcrdma_wc_send_flush
svcrdma_wc_send_err svcrdma_wc_read_err svcrdma_decode_short_err
svcrdma_decode_badvers_err svcrdma_decode_badproc_err svcrdma_decode_parse_err
svcrdma_err_vers svcrdma_err_chunk svcrdma_sq_full svcrdma_send_err
svcrdma_accept_err svcrdma_qp_error"

need_tracing() {
	[ -d $TRACING/events ] || mount -t tracefs tracefs $TRACING ||
		skip "no tracefs"
}

tracing_off() {
	local group

	for group in rpcrdma sunrpc rdma_core rdma_cma; do
		[ ! -d "$TRACING/events/$group" ] ||
			echo 0 >"$TRACING/events/$group/enable"
	done
	test_cleanup
}

# traced GROUP... -- COMMAND...: the trace of COMMAND, in the file $trace.
traced() {
	trace=$ktap_dir/trace
	trap tracing_off EXIT
	: >$TRACING/trace
	echo 16384 >$TRACING/buffer_size_kb
	while [ "$1" != -- ]; do
		if [ -d "$TRACING/events/$1" ]; then
			echo 1 >"$TRACING/events/$1/enable"
		fi
		shift
	done
	shift
	"$@"
	cat $TRACING/trace >"$trace"
}

present() {
	local each

	need_tracing
	for each in $USUAL $UNUSUAL; do
		[ -f "$TRACING/events/rpcrdma/$each/enable" ] ||
			fail "no event $each"
		echo 1 >"$TRACING/events/rpcrdma/$each/enable"
		echo 0 >"$TRACING/events/rpcrdma/$each/enable"
	done
}

workload() {
	nfs_mount 4.2 rdma
	work_dir traced
	dd if=/dev/zero of="$WORK/file" bs=128k count=4 oflag=direct status=none
	dd if="$WORK/file" of=/dev/null bs=128k iflag=direct status=none
	ls -l "$WORK" >/dev/null
	rm -r "$WORK"
	nfs_umount
}

usual_events() {
	local each missing=""

	need_tracing
	need_local_bed
	traced rpcrdma -- workload
	for each in $USUAL; do
		grep -q " $each: " "$trace" || missing+=" $each"
	done
	[ -z "$missing" ] || fail "not traced:$missing"
}

# An event that names an RPC names the one that the layers above know.
xids_agree() {
	local xid

	need_tracing
	traced rpcrdma sunrpc -- workload
	xid=$(grep -o 'xprt_transmit:.*xid=0x[0-9a-f]*' "$trace" |
		grep -o '0x[0-9a-f]*$' | tail -n 1)
	[ -n "$xid" ] || skip "sunrpc did not trace a transmission"
	grep -q "xprtrdma_marshal:.*xid=$xid" "$trace" ||
		fail "$xid was transmitted, but not marshalled"
}

all_on_at_once() {
	need_tracing
	traced rpcrdma sunrpc rdma_core rdma_cma nfs nfs4 nfsd -- workload
	[ "$(wc -l <"$trace")" -gt 1000 ] || fail "hardly anything is traced"
}

all_on_during_trouble() {
	need_tracing
	need_local_bed
	traced rpcrdma sunrpc rdma_core rdma_cma -- trouble
	grep -q ' svcrdma_wc_recv_flush: ' "$trace" ||
		fail "no flushed Receive is traced"
}

trouble() {
	nfs_mount 4.2 rdma
	work_dir trouble
	load_start
	server_stop
	server_start
	load_progresses
	device_delete "$BED_CLIENT_DEV"
	device_add "$BED_CLIENT_DEV"
	load_progresses
	load_stop
	rm -r "$WORK"
}

bed_up
ktap_run present usual_events xids_agree all_on_at_once \
	all_on_during_trouble
