#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client's guest of tools/interop/recalls: reads files under delegations, which the server
# recalls, and checks that it sees the changes.
# shellcheck source=client.sh
. /interop/client.sh

FILES=50
# Time limit of a recall, in ms. Without a callback, a recall takes a lease or more.
SOON=3000

delegations_are_recalled() {
	local version=$1 dir=recalls-$1 held slowest each

	on_server files "$dir" $FILES
	nfs_mount "$version" rdma
	trace_on xprtrdma_cb_call
	cat "$MNT/$dir"/* >/dev/null
	held=$(on_server delegations)
	slowest=$(on_server change "$dir" $FILES)
	trace_off
	echo "$held delegations, slowest recall $slowest ms," \
		"$(traced xprtrdma_cb_call) backchannel Calls"
	[ "$held" -ge $((FILES / 2)) ] || fail "too few delegations"
	[ "$slowest" -lt $SOON ] || fail "a recall took $slowest ms"
	[ "$(traced xprtrdma_cb_call)" -gt 0 ] || fail "no backchannel Call"
	for each in "$MNT/$dir"/*; do
		grep -q "changed on the server" "$each" ||
			fail "the client has not noticed the change of $each"
	done
}

client_set_up || exit
# The server grants no delegations during its grace period.
on_server sleep 15
ktap_run "delegations_are_recalled 4.1" "delegations_are_recalled 4.2"
