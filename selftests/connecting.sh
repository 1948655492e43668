#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Connecting to a server that is away, unreachable, silent or moved, or over a device that is
# removed meanwhile: the caller gets the right error in time, and can be killed or unmounted.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12), SUNRPC reports servers that do not
# respond.
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

# Removing a device ends an attempt to connect over it. The client makes another attempt when the
# device is back.
device_removed_while_connecting() {
	local _ before mounting

	need_link
	# The neighbour entry must stay valid while the link is down.
	modprobe nfsv4
	server_resolve
	trace_on
	echo 1 >"$TRACING/events/rdma_cma/cm_qp_create/enable"
	link_down
	nfs_mount 4.2 rdma &
	mounting=$!
	for _ in $(seq $((600 * PACE))); do
		[ "$(traced cm_qp_create)" -eq 0 ] || break
		sleep 0.1
	done
	[ "$(traced cm_qp_create)" -gt 0 ] || fail "the client does not connect"
	trace_off
	sleep 1
	before=$SECONDS
	device_delete "$BED_CLIENT_DEV"
	echo "the device was removed after $((SECONDS - before)) s"
	# The attempt itself times out after a minute.
	[ $((SECONDS - before)) -lt 45 ] || fail "the removal waited for the attempt"
	device_add "$BED_CLIENT_DEV"
	link_up
	# On a slow kernel the next attempt may be made before the device is back, and mount fails.
	wait "$mounting" || { [ "$PACE" -gt 1 ] && nfs_mount 4.2 rdma; } || fail "not mounted"
	[ "$(xprt_stat connect_count)" -eq 1 ] || fail "more than one connect"
	ls "$MNT" >/dev/null
}

# route add|del|replace: changes the client's route to the server. rxe needs it for messages of the
# connection manager (see link_down).
route() { on_client ip route "$1" 192.0.2.0/24 dev "$BED_CLIENT_IF" src 192.0.2.2; }

# Waits until neither end has a queue pair of a connection.
wait_no_connection() {
	local _

	for _ in $(seq $((60 * PACE))); do
		rdma resource show qp | grep -q 'type RC ' || return 0
		sleep 1
	done
}

# A mount without a route fails at once. So does a system call in a network namespace that has lost
# its route, with fatal_neterrors.
no_route() {
	local status=0

	need_link
	nfs_mount 3 rdma fatal_neterrors=ENETDOWN:ENETUNREACH,actimeo=0
	work_dir no-route
	touch "$WORK/file"
	server_stop
	wait_no_connection
	# The last message of the CM is on its way when the queue pairs are gone.
	sleep 2
	route del
	timeout 100 stat "$WORK/file" 2>&1 || status=$?
	# timeout exits with 124.
	[ "$status" -eq 1 ] || fail "stat exited with $status, not with an error"
	umount -f -l "$MNT"
	server_start
	status=0
	nfs_mount 4.2 rdma clientaddr=192.0.2.2 >"$ktap_dir/mount" 2>&1 || status=$?
	route add
	cat "$ktap_dir/mount"
	[ "$status" -ne 0 ] || fail "mounted without a route"
	grep -q 'Network is unreachable' "$ktap_dir/mount" || fail "mount failed with another error"
	nfs_mount 4.2 rdma
	rm -r "$MNT/no-route"
}

# wait_backoff ATTEMPTS: waits until the client has made that many attempts to connect and then
# backs off. The backoff after the third attempt is 20 seconds, of which 3 may have passed.
wait_backoff() {
	local _

	for _ in $(seq $((600 * PACE))); do
		! awk -v enough="$1" '
			/ xprtrdma_connect: / { attempts++; backoff = 0 }
			/ xprtrdma_op_connect: / { backoff = !/ delay=0$/ }
			END { exit attempts >= enough && backoff ? 0 : 1 }' "$TRACING/trace" || return 0
		sleep 0.1
	done
	xfail_on_c "the client does not back off"
}

# jiffies_per_second: prints the rate at which the guest counts jiffies.
jiffies_per_second() {
	{ cat /proc/timer_list && sleep 1 && cat /proc/timer_list; } | awk '
		/^now at / { now = $3; begun = begun ? begun : now }
		/^jiffies: / { jiffies = $2; first = first ? first : jiffies }
		END { printf "%.0f\n", (jiffies - first) * 1e9 / (now - begun) }'
}

# attempts: prints the number of attempts to connect that have failed, the shortest time in ms from
# a failure to the next attempt, and the longest delay in jiffies that the module has asked for.
attempts() {
	awk '
		match($0, /[0-9]+\.[0-9]+: xprtrdma_/) { now = substr($0, RSTART) * 1000 }
		/ xprtrdma_connect: / { failed++; ended = now }
		match($0, / xprtrdma_op_connect: .* delay=/) {
			delay = substr($0, RSTART + RLENGTH) + 0
			if (delay > longest) longest = delay
			if (delay || !failed || !ended) next
			if (!least || now - ended < least) least = now - ended
			ended = 0
		}
		END { printf "%d %d %d\n", failed, least, longest }' "$TRACING/trace"
}

# A server that is away is tried not more often than once a second, however many tasks wait. SUNRPC
# has each task wait three seconds after an attempt. The delay of this module begins at the same
# moment and is shorter: a second, or a part of the time for which the server has been away.
restarted_server_is_found_soon() {
	local _ count least longest hertz

	need_local_bed
	hertz=$(jiffies_per_second)
	nfs_mount 3 rdma
	work_dir restarted
	load_start 8
	trace_on xprtrdma_op_connect xprtrdma_connect
	server_stop
	for _ in $(seq $((120 * PACE))); do
		read -r count least longest < <(attempts)
		[ "$count" -lt 7 ] || break
		sleep 1
	done
	trace_off
	server_start
	longest=$((longest * 1000 / hertz))
	echo "$count attempts, $least ms or more after the one before, delays of up to $longest ms"
	[ "$count" -ge 4 ] || fail "only $count attempts"
	[ "$longest" -le 1500 ] || fail "the module delayed an attempt by $longest ms"
	[ "$least" -ge 900 ] || fail "an attempt came $least ms after the one before"
	load_wait_progress
	load_stop
	rm -r "$WORK"
}

# Writing a new server address to sysfs ends the backoff: the client connects to it at once. The
# attempts fail at the client, since the delay while a server is away is short.
new_address_ends_backoff() {
	local address=192.0.2.3 file began

	need_link
	ip address add "$address/24" dev "$BED_SERVER_IF"
	nfs_mount 3 rdma
	work_dir new-address
	load_start 1
	trace_on xprtrdma_op_connect xprtrdma_connect
	device_delete "$BED_CLIENT_DEV"
	wait_backoff 3
	device_add "$BED_CLIENT_DEV"
	began=$SECONDS
	file=$(with_client_sysfs sh -c \
		'echo /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/dstaddr')
	with_client_sysfs timeout --foreground -s KILL $((10 * PACE)) \
		sh -c "echo $address >$file" || fail "the address cannot be set during backoff"
	load_wait_progress
	trace_off
	echo "I/O continues after $((SECONDS - began)) s"
	grep -q " xprtrdma_op_connect: peer=\[$address\]:[0-9]* delay=0$" "$TRACING/trace" ||
		fail "the client does not connect to the new address at once"
	load_stop
	rm -r "$WORK"
}

# wait_destroyed COUNT ADDRESS SECONDS: waits until COUNT transports to ADDRESS are destroyed.
wait_destroyed() {
	local deadline=$((SECONDS + $3))

	while [ "$(grep -c " xprt_destroy: peer=\[$2\]" "$TRACING/trace")" -lt "$1" ]; do
		[ "$SECONDS" -lt "$deadline" ] || fail "a transport still exists after $3 s"
		sleep 0.1
	done
}

# An unmount does not wait for the end of the backoff.
unmount_during_backoff() {
	local each asking=() connects began

	need_link
	nfs_mount 3 rdma nconnect=2,actimeo=0
	work_dir unmounts
	touch "$WORK"/{1..4}
	trace_on xprtrdma_op_connect xprtrdma_connect
	echo 1 >"$TRACING/events/sunrpc/xprt_destroy/enable"
	device_delete "$BED_CLIENT_DEV"
	for each in {1..4}; do
		stat "$WORK/$each" >/dev/null 2>&1 &
		asking+=($!)
	done
	# Three for each of the two connections.
	wait_backoff 6
	kill -KILL "${asking[@]}"
	wait "${asking[@]}" 2>/dev/null || :
	connects=$(traced xprtrdma_connect)
	began=$SECONDS
	umount -f "$MNT"
	wait_destroyed 2 "$SERVER4" 15
	echo "unmounted after $((SECONDS - began)) s"
	trace_off
	# The backoff lasts for 17 seconds more.
	[ $((SECONDS - began)) -lt 16 ] || fail "the unmount waited for the backoff"
	[ "$(traced xprtrdma_connect)" -eq "$connects" ] || fail "the client still connects"
	device_add "$BED_CLIENT_DEV"
	rm -r "$EXPORT/unmounts"
}

# While the server's hardware address cannot be resolved, mount fails as with TCP: EHOSTUNREACH. A
# later mount works.
unresolved_neighbour() {
	local status=0

	need_link
	link_down
	on_client ip neighbour flush dev "$BED_CLIENT_IF"
	nfs_mount 4.2 rdma clientaddr=192.0.2.2,retry=0 2>"$ktap_dir/mount" || status=$?
	cat "$ktap_dir/mount"
	link_up
	[ "$status" -ne 0 ] || fail "mounted without a server"
	grep -q 'No route to host' "$ktap_dir/mount" || xfail_on_c "mount failed with another error"
	nfs_mount 4.2 rdma
}

# An unused address on the link, with a neighbour entry: messages to it are sent and lost.
SILENT=192.0.2.9

silent_peer() {
	on_client ip neighbour "$1" "$SILENT" lladdr 02:00:00:00:02:09 dev "$BED_CLIENT_IF" \
		nud permanent
}

# mount_silent_peer OPTION...
mount_silent_peer() {
	SERVER4=$SILENT nfs_mount 4.2 rdma "clientaddr=192.0.2.2,retry=0,$1" 2>"$ktap_dir/mount"
}

# A mount from a silent peer fails when the CM times out, after 74 seconds (16 messages, 4.6 seconds
# each), and is not retried.
silent_peer_times_out() {
	local began=$SECONDS status=0

	need_link
	silent_peer replace
	mount_silent_peer timeo=1200 || status=$?
	echo "mount failed after $((SECONDS - began)) s"
	cat "$ktap_dir/mount"
	[ "$status" -ne 0 ] || fail "mounted from a silent peer"
	[ $((SECONDS - began)) -lt 110 ] || fail "the client tried again"
	grep -q 'No route to host' "$ktap_dir/mount" || xfail_on_c "mount failed with another error"
}

# Killing a mount from a silent peer ends the attempt to connect, before the CM times out.
killed_mount_ends_connect() {
	local _ mounting began

	need_link
	# Loading nfsv4 first lets the mount reach the connection manager at once.
	modprobe nfsv4
	silent_peer replace
	trace_on
	echo 1 >"$TRACING/events/rdma_cma/cm_send_req/enable"
	echo 1 >"$TRACING/events/rdma_cma/cm_id_destroy/enable"
	mount_silent_peer timeo=1200 &
	mounting=$!
	for _ in $(seq $((600 * PACE))); do
		[ "$(traced cm_send_req)" -eq 0 ] || break
		sleep 0.1
	done
	[ "$(traced cm_send_req)" -gt 0 ] || fail "the client does not connect"
	began=$SECONDS
	kill_mount
	wait "$mounting" 2>/dev/null || :
	until grep -q " cm_id_destroy: .* dst=$SILENT:" "$TRACING/trace"; do
		[ $((SECONDS - began)) -lt 60 ] || xfail_on_c "the attempt continues"
		sleep 0.1
	done
	echo "ended after $((SECONDS - began)) s"
	trace_off
}

# Prints how many messages that accept a connection the server's CM has repeated.
reps_repeated() { cat "/sys/class/infiniband/$BED_SERVER_DEV/ports/1/cm_tx_retries/rep"; }

# The last message of the handshake is lost. The client's first Call tells the server that the
# connection is established; without that, the server's CM repeats its own message after 4.3 s.
# Other mounts may be that slow as well, but not each of them.
rtu_is_lost() {
	local each before repeated dropped

	need_local_bed
	[ "$BED_RDMA" != siw ] || skip "iWARP has no RTU"
	for each in {1..5}; do
		insmod "$HELPERS/drop_cm_rtu.ko"
		before=$(reps_repeated)
		nfs_mount "$1" rdma
		# The CM counts when it is done with a message.
		sleep 1
		repeated=$(($(reps_repeated) - before))
		dropped=$(cat /sys/module/drop_cm_rtu/parameters/dropped)
		rmmod drop_cm_rtu
		echo "mount $each: the server has repeated $repeated messages"
		[ "$dropped" -eq 1 ] || fail "$dropped messages were dropped"
		[ "$(xprt_stat connect_count)" -eq 1 ] || connection_lost fail "connected more than once"
		[ "$repeated" -gt 0 ] || return 0
		nfs_umount
	done
	fail "the first Call waited, each time"
}

test_cleanup() {
	[ ! -d /sys/module/drop_cm_rtu ] || rmmod drop_cm_rtu
	cd /
	trace_off
	! bed_has_link || { link_up; route replace; silent_peer delete; }
	server_up || server_start
	! bed_has_link || [ -e "/sys/class/infiniband/$BED_CLIENT_DEV" ] || device_add "$BED_CLIENT_DEV"
	umount_all
	ip address delete 192.0.2.3/24 dev "$BED_SERVER_IF"
} 2>/dev/null

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2))
[ $# -gt 0 ] || set -- device_removed_while_connecting no_route \
	restarted_server_is_found_soon new_address_ends_backoff unmount_during_backoff \
	unresolved_neighbour killed_mount_ends_connect \
	"rtu_is_lost 3" "rtu_is_lost 4.2" \
	${LONG:+silent_peer_times_out}
ktap_run "$@"
