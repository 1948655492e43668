# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Trace events of rpcrdma, to count what happens.

TRACING=/sys/kernel/tracing

# Names of tasks would come from events of the scheduler. Turning those on patches code that
# all processors run, which an emulated machine now and then does not survive. An instance
# is made with what is set for the whole.
tracefs() {
	mountpoint -q "$TRACING" || mount -t tracefs tracefs "$TRACING" 2>/dev/null || return
	echo 0 >"$TRACING/options/record-cmd"
}

# trace_on EVENT...: from now on these are recorded, and nothing else.
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

# events_lost [INSTANCE]: events that had no room, since trace_on: the trace itself does not
# tell of those that others have taken the place of.
# shellcheck disable=SC2120 # few have one
events_lost() {
	awk -F: '/^(overrun|commit overrun|dropped events):/ { lost += $2 }
		END { print lost + 0 }' "${1:-$TRACING}"/per_cpu/cpu*/stats
}

# traced EVENT: how often it was recorded. None may have been lost.
traced() {
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	grep -c " $1: " "$TRACING/trace" || true
}

# How often SUNRPC was told to give up a connection, in a trace of its own: others may be
# recording. Without tracefs that is never.
DISCONNECT_TRACE=$TRACING/instances/disconnects

disconnect_trace_on() {
	tracefs || return 0
	mkdir -p "$DISCONNECT_TRACE"
	echo 1 >"$DISCONNECT_TRACE/events/sunrpc/xprt_disconnect_force/enable"
}

disconnects_traced() {
	if [ -e "$DISCONNECT_TRACE" ]; then
		grep -c " xprt_disconnect_force: " "$DISCONNECT_TRACE/trace" || true
	else
		echo 0
	fi
}

disconnect_trace_off() {
	[ ! -e "$DISCONNECT_TRACE" ] || rmdir "$DISCONNECT_TRACE"
}

# The server's own Calls in a trace of its own, whose first events stay: nfsd makes a Call that
# has failed again at once, thousands of times while its client is gone.
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
