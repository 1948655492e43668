#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client is out of RPC slots, of room on its Send Queue or of MRs: tasks wait, no wakeup is
# lost, and all work gets done.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

CLIENT=/proc/sys/sunrpc

# sleeps QUEUE: prints how often a task went to sleep on that queue.
sleeps() { grep -c "rpc_task_sleep: .*queue=$1" "$TRACING/trace" || true; }

mount_with_four_slots() {
	local before

	[ -e "$CLIENT/rdma_slot_table_entries" ] || skip "this kernel's C module has no such file"
	before=$(cat "$CLIENT/rdma_slot_table_entries")
	echo 4 >"$CLIENT/rdma_slot_table_entries"
	nfs_mount "$1" rdma actimeo=0 || fail "cannot mount"
	echo "$before" >"$CLIENT/rdma_slot_table_entries"
}

# With four slots for sixteen writers, a task waits for a slot and continues as soon as it gets one.
tasks_wait_for_slots() {
	local each round writers

	mount_with_four_slots 4.2
	work_dir few-slots
	trace_on
	echo 1 >"$TRACING/events/sunrpc/rpc_task_sleep/enable"
	# At least five tasks have to need a slot at the same time: repeat until they do.
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
	echo "$(sleeps xprt_backlog) waits for a slot, $(sleeps delayq) sleeps on a timer," \
		"in $round rounds"
	[ "$(events_lost)" -eq 0 ] || fail "events were lost"
	[ "$(sleeps xprt_backlog)" -gt 0 ] || fail "no task waited for a slot"
	[ "$(sleeps delayq)" -eq 0 ] || fail "a task that got a slot slept on a timer first"
	[ "$(cat "$WORK"/* | wc -c)" = $((16 * 307200)) ] || fail "data is missing"
	rm -r "$WORK"
}

# stat_together ROUNDS TASKS: TASKS processes stat a file at the same time, without any other load.
stat_together() {
	local each asking round

	for round in $(seq "$1"); do
		asking=()
		for each in $(seq "$2"); do
			timeout 100 stat "$WORK/$each" >/dev/null &
			asking+=($!)
		done
		for each in "${asking[@]}"; do
			wait "$each" || fail "a task hangs in round $round"
		done
	done
}

# A task that finds no slot checks again after it has joined the backlog. Here all slots are freed
# in between, and no other task would wake it.
slots_freed_before_wait() {
	need_link
	mount_with_four_slots 3
	work_dir slots-freed
	touch "$WORK"/{1..5}
	link_set_delay "$BED_CLIENT_PORT" 200
	delay_fn entry '^xprt_add_backlog_noncongested$' 2500
	for _ in {1..10}; do
		stat_together 4 5
		[ "$(delay_hits)" -eq 0 ] || break
	done
	echo "$(delay_hits) tasks found no slot"
	[ "$(delay_hits)" -gt 0 ] || fail "no task waited for a slot"
	unload_fault_modules
	rm -r "$WORK"
}

# stat_during_free: while a task frees its slot and has found the backlog empty, another task needs
# a slot. Each makes a single Call. Sets took to the seconds that the second one takes.
stat_during_free() {
	local first hits began=$SECONDS

	hits=$(delay_hits)
	stat - <&"$file" >/dev/null &
	first=$!
	while [ "$(delay_hits)" -eq "$hits" ]; do
		[ $((SECONDS - began)) -lt $((30 * PACE)) ] || fail "no slot was freed"
	done
	began=$SECONDS
	stat - <&"$file" >/dev/null
	took=$((SECONDS - began))
	wait "$first"
}

# A task that frees a slot wakes a task that has joined the backlog in the meantime. Three of the
# four slots belong to sleeping tasks.
freed_slot_wakes_new_waiter() {
	local each file took writers=() _

	[ "$(module_kind)" = rust ] || skip "in the C module a Send completion may free the slot"
	mount_with_four_slots 3
	work_dir freed-slot
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
	for _ in $(seq $((300 * PACE))); do
		[ "$(sleeps delayq)" -lt 3 ] || break
		sleep 0.1
	done
	[ "$(sleeps delayq)" -eq 3 ] || fail "$(sleeps delayq) tasks sleep, not three"
	delay_fn return '^xprt_wake_up_backlog$' $((1500 * PACE))
	for _ in {1..5}; do
		stat_during_free
		[ "$(sleeps xprt_backlog)" -eq 0 ] || break
	done
	trace_off
	echo "$(sleeps xprt_backlog) waits for a slot, the last took $took s"
	[ "$(sleeps xprt_backlog)" -gt 0 ] || fail "no task waited for a slot"
	[ "$took" -lt $((20 * PACE)) ] || xfail_on_c "the waiting task did not get the freed slot"
	unload_fault_modules
	exec {file}<&-
	for each in "${writers[@]}"; do
		wait "$each" || fail "a writer failed"
	done
	rm -r "$WORK"
}

# A task finds the ring of send contexts full, but all Sends complete before the task starts to
# wait: no completion is left to wake it.
send_ring_drained_before_wait() {
	local backchannel _

	[ "$(module_kind)" = rust ] || skip "delays a function of this module"
	backchannel=$(cat "$CLIENT/rdma_max_bc_requests")
	echo 1 >"$CLIENT/rdma_max_bc_requests"
	mount_with_four_slots 3
	echo "$backchannel" >"$CLIENT/rdma_max_bc_requests"
	work_dir ring-full
	touch "$WORK"/{1..4}
	delay_fn entry "$RUST_SEND_DONE" $((50 * PACE)) \
		entry '^xprt_wait_for_buffer_space$' $((400 * PACE))
	for _ in {1..10}; do
		stat_together 8 4
		[ "$(delay_hits 2)" -eq 0 ] || break
	done
	echo "$(delay_hits 2) tasks found the ring full, $(delay_hits) Send completions"
	[ "$(delay_hits 2)" -gt 0 ] || fail "the ring was never full"
	unload_fault_modules
	rm -r "$WORK"
}

# Prints how many Calls were sent between MR exhaustion and the end of the next allocation.
sent_without_mrs() {
	[ "$(events_lost)" -eq 0 ] || fail "$(events_lost) events were lost"
	awk '
		/ xprtrdma_nomrs_err: / { short = 1 }
		/ xprtrdma_createmrs: / { short = 0 }
		/ xprtrdma_post_send: / { sent += short }
		END { print sent + 0 }' "$TRACING/trace"
}

# All MRs are in use, and allocating others is slow. Meanwhile Replies arrive, and Calls are sent
# with the MRs that they free. A connection begins with the MRs of one Call of 4 MiB: five for rxe, and
# more for a device whose MRs are smaller.
mrs_reused_during_allocation() {
	local each writers=()

	[ "$(module_kind)" = rust ] || skip "the C module waits for the allocation of MRs"
	set_pulled_replies 0 0
	nfs_mount 4.2 rdma
	set_pulled_replies
	work_dir mrs-reused
	touch "$WORK"/{1..16}
	delay_fn entry '^ib_alloc_mr$' 500
	trace_on xprtrdma_nomrs_err xprtrdma_createmrs xprtrdma_post_send
	for each in {1..16}; do
		dd if=/dev/zero of="$WORK/$each" bs=1M count=2 oflag=direct \
			conv=notrunc status=none &
		writers+=($!)
	done
	for each in "${writers[@]}"; do
		wait "$each" || fail "a writer failed"
	done
	trace_off
	unload_fault_modules
	echo "$(traced xprtrdma_nomrs_err) tasks found no MR," \
		"$(sent_without_mrs) Calls were sent during allocation"
	[ "$(traced xprtrdma_nomrs_err)" -gt 0 ] || fail "no task ran out of MRs"
	[ "$(sent_without_mrs)" -ge 6 ] || fail "too few Calls were sent during allocation"
	rm -r "$WORK"
}

# The connection is lost while MRs are allocated slowly. The client reconnects without waiting for
# the allocation: it may need the Calls of the next connection to free memory.
disconnect_during_mr_allocation() {
	local each writers=() _

	set_pulled_replies 0 0
	nfs_mount 4.2 rdma
	set_pulled_replies
	work_dir disconnect
	touch "$WORK"/{1..16}
	delay_fn entry '^ib_alloc_mr$' $((1500 * PACE))
	trace_on xprtrdma_createmrs
	echo 1 >"$TRACING/events/rdma_cma/cm_qp_create/enable"
	for each in {1..16}; do
		dd if=/dev/zero of="$WORK/$each" bs=1M count=2 oflag=direct \
			conv=notrunc status=none &
		writers+=($!)
	done
	wait_delay_hits || fail "no MRs were allocated"
	reconnect
	for _ in $(seq $((600 * PACE))); do
		[ "$(traced cm_qp_create)" -eq 0 ] || break
		sleep 0.1
	done
	trace_off
	grep -E ' (cm_qp_create|xprtrdma_createmrs): ' "$TRACING/trace" ||
		fail "the client does not connect"
	unload_fault_modules
	grep -E -m 1 ' (cm_qp_create|xprtrdma_createmrs): ' "$TRACING/trace" |
		grep -q ' cm_qp_create: ' || xfail_on_c "the disconnect waited for the allocation"
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
