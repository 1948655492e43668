# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Counts events with the kernel's tracing.

TRACING=/sys/kernel/tracing

# Mounts tracefs and turns record-cmd off. record-cmd enables scheduler events, and patching their
# code on all CPUs sometimes crashes an emulated machine. Trace instances inherit the setting.
tracefs() {
	mountpoint -q "$TRACING" || mount -t tracefs tracefs "$TRACING" 2>/dev/null || return
	echo 0 >"$TRACING/options/record-cmd"
}

# trace_on EVENT...: clears the trace and records these rpcrdma events only.
trace_on() {
	local each

	tracefs || skip "this kernel has no tracefs"
	echo 0 >"$TRACING/tracing_on"
	echo 0 >"$TRACING/events/enable"
	echo 16384 >"$TRACING/buffer_size_kb"
	echo >"$TRACING/trace"
	for each; do
		echo 1 >"$TRACING/events/rpcrdma/$each/enable"
	done
	echo 1 >"$TRACING/tracing_on"
}

trace_off() {
	echo 0 >"$TRACING/tracing_on"
	echo 0 >"$TRACING/events/enable"
}

# events_lost [INSTANCE]: prints the number of events lost since trace_on. The trace itself does not
# show overwritten events.
# shellcheck disable=SC2120 # most callers pass no argument
events_lost() {
	awk -F: '/^(overrun|commit overrun|dropped events):/ { lost += $2 }
		END { print lost + 0 }' "${1:-$TRACING}"/per_cpu/cpu*/stats
}

# traced EVENT: prints how often the event was recorded. Fails if events were lost.
traced() {
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	grep -c " $1: " "$TRACING/trace" || true
}

# What ends connections, in a trace instance of its own: a failed test prints the last events.
LOSS_TRACE=$TRACING/instances/losses

# loss_trace_on: clears this trace and records its events. A module that was loaded again has new
# ones.
loss_trace_on() {
	local event events=$LOSS_TRACE/events

	tracefs || return 0
	[ -e "$LOSS_TRACE" ] || {
		mkdir "$LOSS_TRACE"
		echo 64 >"$LOSS_TRACE/buffer_size_kb"
	}
	for event in "$events"/sunrpc/{xprt_disconnect_*,svc_xprt_close} \
			"$events"/rdma_cma/cm_event_handler \
			"$events"/rpcrdma/xprtrdma_{connect,disconnect} \
			"$events"/rpcrdma/{svcrdma_qp_error,svcrdma_*_err,xprtrdma_wc_*}; do
		[ -e "$event" ] && [ "$(cat "$event/enable")" = 0 ] || continue
		# Every loss flushes all that was posted.
		case $event in
		*_wc_*) echo 'status != 0 && status != 5' >"$event/filter" ;;
		esac
		echo 1 >"$event/enable"
	done
	echo >"$LOSS_TRACE/trace"
}

# loss_trace_print: prints the last events.
loss_trace_print() {
	[ ! -e "$LOSS_TRACE" ] || grep -v '^#' "$LOSS_TRACE/trace" | tail -n 30
}

# disconnects_traced: counts calls of xprt_force_disconnect(). Without tracefs the count is zero.
disconnects_traced() {
	if [ -e "$LOSS_TRACE" ]; then
		grep -c " xprt_disconnect_force: " "$LOSS_TRACE/trace" || true
	else
		echo 0
	fi
}

# losses_traced: the same, and counts connections that the server closes.
losses_traced() {
	grep -cE ' (xprt_disconnect_force|svc_xprt_close): ' "$LOSS_TRACE/trace" 2>/dev/null || true
}

loss_trace_off() {
	[ ! -e "$LOSS_TRACE" ] || rmdir "$LOSS_TRACE"
}

# Callbacks of nfsd, in a trace instance that keeps its oldest events: nfsd retries a failed
# callback at once, thousands of times while its client is gone.
CALLBACK_TRACE=$TRACING/instances/callbacks

callback_trace_on() {
	mkdir "$CALLBACK_TRACE"
	echo 64 >"$CALLBACK_TRACE/buffer_size_kb"
	echo 0 >"$CALLBACK_TRACE/options/overwrite"
	echo 'progname == "nfs4_cb"' >"$CALLBACK_TRACE/events/sunrpc/rpc_request/filter"
	echo 1 >"$CALLBACK_TRACE/events/sunrpc/rpc_request/enable"
}

callback_trace_off() {
	[ ! -e "$CALLBACK_TRACE" ] || rmdir "$CALLBACK_TRACE"
}
