#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client is out of RPC slots, of room on its Send Queue or of MRs: tasks wait, no wakeup is
# lost, and all work gets done.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

CLIENT=/proc/sys/sunrpc

# How often a task went to sleep on this queue.
sleeps() { grep -c "rpc_task_sleep: .*queue=$1" "$TRACING/trace" || true; }

mount_with_four_slots() {
	local before

	[ -e "$CLIENT/rdma_slot_table_entries" ] || skip "no such file here"
	before=$(cat "$CLIENT/rdma_slot_table_entries")
	echo 4 >"$CLIENT/rdma_slot_table_entries"
	nfs_mount "$1" rdma actimeo=0 || fail "does not mount"
	echo "$before" >"$CLIENT/rdma_slot_table_entries"
}

# A client that may have few Calls outstanding still does all of its work: a task waits
# for a slot, and goes on as soon as it has got one.
tasks_wait_for_slots() {
	local each round writers

	mount_with_four_slots 4.2
	work_dir few-slots
	trace_on
	echo 1 >"$TRACING/events/sunrpc/rpc_task_sleep/enable"
	# Five of the sixteen have to ask at a time, which they do sooner or later.
	for round in {1..10}; do
		writers=()
		for each in $(seq 16); do
			dd if=/dev/urandom of="$WORK/$each" bs=100k count=3 conv=fsync \
				status=none &
			writers+=($!)
		done
		for each in "${writers[@]}"; do
			wait "$each" || fail "a writer failed"
		done
		[ "$(sleeps xprt_backlog)" -eq 0 ] || break
	done
	trace_off
	echo "$(sleeps xprt_backlog) waits for a slot, $(sleeps delayq) for time to pass," \
		"in $round rounds"
	[ "$(events_lost)" -eq 0 ] || fail "events were lost"
	[ "$(sleeps xprt_backlog)" -gt 0 ] || fail "nobody waited for a slot"
	[ "$(sleeps delayq)" -eq 0 ] || fail "who is given a slot sleeps first"
	[ "$(cat "$WORK"/* | wc -c)" = $((16 * 307200)) ] || fail "octets are missing"
	rm -r "$WORK"
}

# all_are_served ROUNDS TASKS: as many tasks ask at a time, and nobody else.
all_are_served() {
	local each asking round

	for round in $(seq "$1"); do
		asking=()
		for each in $(seq "$2"); do
			timeout 100 stat "$WORK/$each" >/dev/null &
			asking+=($!)
		done
		for each in "${asking[@]}"; do
			wait "$each" || fail "a task waits for ever, in round $round"
		done
	done
}

# Who finds no slot looks again when it waits for one. Here all of them are free by then,
# and nobody else comes who could wake it.
slots_freed_before_wait() {
	need_link
	mount_with_four_slots 3
	work_dir slots-free-again
	touch "$WORK"/{1..5}
	link_set_delay "$BED_CLIENT_PORT" 200
	delay_fn entry '^xprt_add_backlog_noncongested$' 2500
	for _ in {1..10}; do
		all_are_served 4 5
		[ "$(delay_hits)" -eq 0 ] || break
	done
	echo "$(delay_hits) found no slot"
	[ "$(delay_hits)" -gt 0 ] || fail "nobody waited for a slot"
	unload_fault_modules
	rm -r "$WORK"
}

# one_asks_meanwhile: a task frees its slot, and has found nobody who waits for one when another
# task comes to ask. Each makes a single Call. How long the other one took.
one_asks_meanwhile() {
	local first times began=$SECONDS

	times=$(delay_hits)
	stat - <&"$file" >/dev/null &
	first=$!
	while [ "$(delay_hits)" -eq "$times" ]; do
		[ $((SECONDS - began)) -lt $((10 * PACE)) ] || fail "no slot is freed"
	done
	began=$SECONDS
	stat - <&"$file" >/dev/null
	took=$((SECONDS - began))
	wait "$first"
}

# Who puts a slot back looks for others who have begun to wait for one since. Three of the four
# slots are those of tasks that sleep.
freed_slot_wakes_new_waiter() {
	local each file took writers=() _

	[ "$(module_kind)" = rust ] || skip "in the C module the end of a Send may free the slot"
	mount_with_four_slots 3
	work_dir asked-meanwhile
	touch "$WORK"/{1..4}
	exec {file}<"$WORK/4"
	insmod "$HELPERS/fail_dma_map.ko" size=53248 delay_ms=$((40000 * PACE)) fail=0
	trace_on
	echo 1 >"$TRACING/events/sunrpc/rpc_task_sleep/enable"
	for each in {1..3}; do
		dd if=/dev/zero of="$WORK/$each" bs=53248 count=1 oflag=direct conv=notrunc \
			status=none &
		writers+=($!)
	done
	for _ in $(seq $((100 * PACE))); do
		[ "$(sleeps delayq)" -lt 3 ] || break
		sleep 0.1
	done
	[ "$(sleeps delayq)" -eq 3 ] || fail "$(sleeps delayq) tasks sleep"
	delay_fn return '^xprt_wake_up_backlog$' $((1500 * PACE))
	for _ in {1..5}; do
		one_asks_meanwhile
		[ "$(sleeps xprt_backlog)" -eq 0 ] || break
	done
	trace_off
	echo "$(sleeps xprt_backlog) waits for a slot, $took s"
	[ "$(sleeps xprt_backlog)" -gt 0 ] || fail "nobody waited for a slot"
	[ "$took" -lt $((20 * PACE)) ] || xfail_on_c "nobody is given the slot that was put back"
	unload_fault_modules
	exec {file}<&-
	for each in "${writers[@]}"; do
		wait "$each" || fail "a writer failed"
	done
	rm -r "$WORK"
}

# A task finds the ring of messages full, and before it waits for room they have all been
# sent: nobody is left to wake it.
send_ring_drained_before_wait() {
	local reverse

	[ "$(module_kind)" = rust ] || skip "delays a function of this module"
	reverse=$(cat "$CLIENT/rdma_max_bc_requests")
	echo 1 >"$CLIENT/rdma_max_bc_requests"
	mount_with_four_slots 3
	echo "$reverse" >"$CLIENT/rdma_max_bc_requests"
	work_dir room-again
	touch "$WORK"/{1..4}
	delay_fn entry "$RUST_SEND_DONE" $((50 * PACE)) \
		entry '^xprt_wait_for_buffer_space$' $((400 * PACE))
	all_are_served 8 4
	echo "$(delay_hits 2) found the ring full, $(delay_hits) reports of messages sent"
	[ "$(delay_hits 2)" -gt 0 ] || fail "the ring was never full"
	unload_fault_modules
	rm -r "$WORK"
}

# Calls that were sent after there was no region left, and before others had been made.
sent_meanwhile() {
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	awk '
		/ xprtrdma_nomrs_err: / { short = 1 }
		/ xprtrdma_createmrs: / { short = 0 }
		/ xprtrdma_post_send: / { sent += short }
		END { print sent + 0 }' "$TRACING/trace"
}

# All memory regions are in use, and to make others takes long. What was sent is answered
# meanwhile, and with the regions that this frees Calls go on.
mrs_reused_during_allocation() {
	local each writers=()

	[ "$(module_kind)" = rust ] || skip "the C module waits until others are made"
	set_pulled_replies 0 0
	nfs_mount 4.2 rdma
	set_pulled_replies
	work_dir regions-come-back
	touch "$WORK"/{1..6}
	delay_fn entry '^ib_alloc_mr$' 500
	trace_on xprtrdma_nomrs_err xprtrdma_createmrs xprtrdma_post_send
	for each in {1..6}; do
		dd if=/dev/zero of="$WORK/$each" bs=1M count=3 oflag=direct \
			conv=notrunc status=none &
		writers+=($!)
	done
	for each in "${writers[@]}"; do
		wait "$each" || fail "a writer failed"
	done
	trace_off
	unload_fault_modules
	echo "$(traced xprtrdma_nomrs_err) found no region," \
		"$(sent_meanwhile) Calls were sent while others were made"
	[ "$(traced xprtrdma_nomrs_err)" -gt 0 ] || fail "there were regions for all"
	[ "$(sent_meanwhile)" -ge 6 ] || fail "nothing was sent while regions were made"
	rm -r "$WORK"
}

# The connection is lost while regions are made, which takes long: the next one does not wait
# for that, with the Calls that may free the memory.
disconnect_during_mr_allocation() {
	local each writers=() _

	set_pulled_replies 0 0
	nfs_mount 4.2 rdma
	set_pulled_replies
	work_dir lost-meanwhile
	touch "$WORK"/{1..6}
	delay_fn entry '^ib_alloc_mr$' $((1500 * PACE))
	trace_on xprtrdma_createmrs
	echo 1 >"$TRACING/events/rdma_cma/cm_qp_create/enable"
	for each in {1..6}; do
		dd if=/dev/zero of="$WORK/$each" bs=1M count=3 oflag=direct \
			conv=notrunc status=none &
		writers+=($!)
	done
	wait_delay_hits || fail "there were regions for all"
	reconnect
	for _ in $(seq $((600 * PACE))); do
		[ "$(traced cm_qp_create)" -eq 0 ] || break
		sleep 0.1
	done
	trace_off
	grep -E ' (cm_qp_create|xprtrdma_createmrs): ' "$TRACING/trace" || fail "nobody connects"
	unload_fault_modules
	grep -E -m 1 ' (cm_qp_create|xprtrdma_createmrs): ' "$TRACING/trace" |
		grep -q ' cm_qp_create: ' || xfail_on_c "the end of the connection waited"
	for each in "${writers[@]}"; do
		wait "$each" || fail "a writer failed"
	done
	rm -r "$WORK"
}

test_cleanup() {
	cd /
	unload_fault_modules
	! bed_has_link || link_clear_delay "$BED_CLIENT_PORT" || :
	umount_all
} 2>/dev/null

bed_up
[ $# -gt 0 ] || set -- tasks_wait_for_slots slots_freed_before_wait freed_slot_wakes_new_waiter \
	send_ring_drained_before_wait mrs_reused_during_allocation disconnect_during_mr_allocation
ktap_run "$@"
