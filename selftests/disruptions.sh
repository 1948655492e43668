#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the middle of I/O the server restarts, a device is taken away and given
# back, the link goes down: I/O waits, goes on, and its data is whole.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe tells of each connection that ran out of retries (12).
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'

ROUNDS=${LONG:+10}
ROUNDS=${ROUNDS:-2}

server_restarts() {
	server_stop
	sleep 2
	server_start
}

server_device_goes() {
	device_delete "$BED_SERVER_DEV"
	sleep 3
	device_add "$BED_SERVER_DEV"
}

client_device_goes() {
	device_delete "$BED_CLIENT_DEV"
	sleep 3
	device_add "$BED_CLIENT_DEV"
}

link_goes_down() {
	link_down
	sleep 10
	link_up
}

# disturbed VERSION PROTO DISTURBANCE
disturbed() {
	local version=$1 proto=$2 round connects

	need_local_bed
	[ "$3" != link_goes_down ] || need_link
	nfs_mount "$version" "$proto"
	work_dir "disturbed-$version-$3"
	load_start
	for round in $(seq "$ROUNDS"); do
		connects=$(xprt_stat connect_count)
		"$3" || fail "round $round: $3"
		load_progresses
		echo "round $round: connected" \
			"$(($(xprt_stat connect_count) - connects)) times"
	done
	load_stop
	rm -r "$WORK"
}

bed_up
ktap_run \
	"disturbed 4.2 rdma server_restarts" "disturbed 3 rdma server_restarts" \
	"disturbed 4.2 rdma server_device_goes" \
	"disturbed 4.2 rdma client_device_goes" \
	"disturbed 3 rdma6 client_device_goes" \
	"disturbed 4.2 rdma link_goes_down" "disturbed 3 rdma link_goes_down"
