#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Trace events with the C module's names: I/O works with all of them enabled, and each of the main
# events is recorded. So are faults.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports a peer that refuses access.
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 10
'

trace_all() {
	trace_on
	[ -d "$TRACING/events/rpcrdma" ] || fail "the module has no trace events"
	echo 1 >"$TRACING/events/rpcrdma/enable"
}

# Stops tracing. Fails if the trace is incomplete.
trace_end() {
	trace_off
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
}

# seen EVENT...
seen() {
	local each missing=""
	for each; do
		grep -q " $each:" "$TRACING/trace" || missing+=" $each"
	done
	[ -z "$missing" ] || fail "events not recorded:$missing"
}

main_events_exist() {
	local each missing=""

	trace_all
	trace_off
	for each in xprtrdma_inline_thresh xprtrdma_op_connect \
		xprtrdma_op_inject_dsc xprtrdma_marshal xprtrdma_marshal_failed \
		xprtrdma_post_send xprtrdma_post_recvs xprtrdma_wc_receive \
		xprtrdma_wc_send xprtrdma_reply xprtrdma_chunk_read \
		xprtrdma_chunk_write xprtrdma_chunk_reply xprtrdma_mr_map \
		xprtrdma_mr_reminv xprtrdma_err_chunk xprtrdma_err_vers \
		svcrdma_accept_err svcrdma_decode_rqst svcrdma_wc_recv \
		svcrdma_post_send svcrdma_wc_send svcrdma_wc_read \
		svcrdma_send_err svcrdma_sq_full xprtrdma_decode_seg \
		svcrdma_dma_map_err svcrdma_wc_write_err xprtrdma_frwr_dereg \
		xprtrdma_err_unrecognized; do
		[ -d "$TRACING/events/rpcrdma/$each" ] || missing+=" $each"
	done
	[ -z "$missing" ] || fail "missing events:$missing"
}

io_is_traced() {
	local version=$1

	trace_all
	nfs_mount "$version" rdma
	work_dir "traced-$version"
	head -c 300000 /dev/urandom >"$WORK/file"
	nfs_remount "$version" rdma
	cat "$WORK/file" >/dev/null
	ls "$WORK" >/dev/null
	rm -r "$WORK"
	nfs_umount
	trace_end
	seen xprtrdma_op_connect xprtrdma_inline_thresh xprtrdma_marshal \
		xprtrdma_post_send xprtrdma_post_recvs xprtrdma_wc_receive \
		xprtrdma_reply xprtrdma_chunk_read xprtrdma_chunk_write \
		xprtrdma_mr_map xprtrdma_decode_seg
	bed_is_local || return 0
	seen svcrdma_decode_rqst svcrdma_wc_recv svcrdma_post_send \
		svcrdma_wc_send svcrdma_wc_read
}

# The XID in events of this module is the one in SUNRPC's events.
xids_match_sunrpc() {
	local xid

	trace_all
	echo 1 >"$TRACING/events/sunrpc/xprt_transmit/enable"
	nfs_mount 4.2 rdma
	ls "$MNT" >/dev/null
	nfs_umount
	trace_end
	xid=$(grep -o 'xprt_transmit:.*xid=0x[0-9a-f]*' "$TRACING/trace" |
		grep -o '0x[0-9a-f]*$' | tail -n 1)
	[ -n "$xid" ] || fail "no xprt_transmit event"
	grep -q "xprtrdma_marshal:.*xid=$xid" "$TRACING/trace" ||
		fail "no xprtrdma_marshal event for XID $xid"
}

# No event reveals a kernel address.
no_kernel_addresses() {
	local connects

	trace_all
	nfs_mount 4.2 rdma
	work_dir no-addresses
	head -c 300000 /dev/urandom >"$WORK/file"
	nfs_remount 4.2 rdma
	cat "$WORK/file" >/dev/null
	connects=$(xprt_stat connect_count)
	reconnect
	rm -r "$WORK"
	wait_connect "$connects"
	nfs_umount
	trace_end
	! grep -m 5 -iE '[^0-9a-f](0x)?ffff[0-9a-f]{12}([^0-9a-f]|$)' "$TRACING/trace" ||
		fail "events contain kernel addresses"
}

# Addresses in binary records are padded with zeroes: the rest of such a field does not have what an
# earlier record has left in the buffer.
addresses_are_padded() {
	local each _

	trace_all
	# The buffer is overwritten many times.
	echo 64 >"$TRACING/buffer_size_kb"
	nfs_mount 3 rdma
	work_dir padded
	for _ in 1 2 3; do
		head -c 3000000 /dev/urandom >"$WORK/file"
		drop_caches
		cat "$WORK/file" >/dev/null
		reconnect
	done
	rm -r "$WORK"
	trace_off
	for each in "$TRACING"/per_cpu/cpu*/trace_pipe_raw; do
		timeout 5 cat "$each" >>"$ktap_dir/raw" || :
	done
	# The fields have 48 bytes at least.
	python3 -c '
import re, sys
raw = open(sys.argv[1], "rb").read()
tails = [raw[m.end():m.start() + 48] for m in re.finditer(rb"192\.0\.2\.[12]\0", raw)]
bad = [tail for tail in tails if any(tail)]
print(len(tails), "addresses,", len(bad), "with something behind them", *bad[:3])
sys.exit(len(tails) < 5 or len(bad) > 0)' "$ktap_dir/raw" || fail "see above"
}

# fault_seen MODULE EVENT...: stops tracing. Fails unless the module has injected its fault, and the
# events were recorded.
fault_seen() {
	local module=$1
	shift

	trace_off
	[ "$(cat "/sys/module/$module/parameters/injected")" -gt 0 ] || fail "no fault was injected"
	unload_fault_modules
	seen "$@"
}

# An RDMA Write of the server fails at the client, and those behind it are flushed. If the client
# disconnects before the server has processed its NAK, that Write is flushed, too.
failed_write() {
	local _

	need_local_bed
	[ "$BED_RDMA" = rxe ] || skip "a Write over $BED_RDMA has no response"
	nfs_mount 3 rdma
	work_dir failed-write
	head -c 4000000 /dev/urandom >"$WORK_ON_SERVER/file"
	trace_on svcrdma_wc_write_err svcrdma_wc_write_flush
	for _ in {1..30}; do
		insmod "$HELPERS/spoil_wr.ko" device="$BED_SERVER_DEV"
		cmp "$WORK/file" "$WORK_ON_SERVER/file" || fail "wrong data"
		[ "$(module_kind)" != c ] || break
		! grep -q " svcrdma_wc_write_err: " "$TRACING/trace" || break
		unload_fault_modules
		drop_caches
	done
	[ "$(module_kind)" != c ] || [ "$(traced svcrdma_wc_write_err)" -gt 0 ] ||
		xfail_on_c "its Writes have no completion handler"
	fault_seen spoil_wr svcrdma_wc_write_err svcrdma_wc_write_flush
	rm -r "$WORK"
}

# An RDMA_ERROR of the server has an unknown code. This client drops it.
unknown_error_code() {
	need_local_bed
	[ "$BED_RDMA" = rxe ] || skip "both ends share a device, and the Call is spoiled instead"
	nfs_mount 3 rdma timeo=50
	work_dir unknown-error
	trace_on xprtrdma_err_unrecognized
	insmod "$HELPERS/spoil_wr.ko" device="$BED_SERVER_DEV" error=99
	(stat "$WORK"/none) >/dev/null 2>&1 || :
	fault_seen spoil_wr xprtrdma_err_unrecognized
	grep -q "xprtrdma_err_unrecognized:.* procedure=99" "$TRACING/trace" ||
		fail "$(grep xprtrdma_err_unrecognized "$TRACING/trace")"
	rm -r "$WORK"
}

# A device cannot release an MR.
failed_dereg() {
	need_local_bed
	nfs_mount 3 rdma
	trace_on xprtrdma_frwr_dereg
	insmod "$HELPERS/fail_fn.ko" symbol=ib_dereg_mr_user ret=-5
	nfs_umount
	wait_for "no MR was released" grep -q " xprtrdma_frwr_dereg:" "$TRACING/trace"
	fault_seen fail_fn xprtrdma_frwr_dereg
	grep -q "xprtrdma_frwr_dereg:.* rc=-5" "$TRACING/trace" ||
		fail "$(grep xprtrdma_frwr_dereg "$TRACING/trace")"
}

test_cleanup() {
	trace_off
	unload_fault_modules
	umount_all
} 2>/dev/null

bed_up
[ $# -gt 0 ] || set -- main_events_exist "io_is_traced 3" "io_is_traced 4.2" xids_match_sunrpc \
	no_kernel_addresses addresses_are_padded failed_write unknown_error_code failed_dereg
ktap_run "$@"
