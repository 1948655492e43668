#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Mounts and unmounts leak nothing: no slab object, no page, no RDMA resource, no module reference.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# Mounts per round.
CYCLES=${LONG:+130}
CYCLES=$((${CYCLES:-13} / PACE))

# A leak recurs in every round; growth in other parts of the system does not. There are two rounds,
# and more while something has grown in every round so far.
MAX_ROUNDS=6

# Normal variation of the number of free pages; a connection has more pages.
PAGES_OF_NOISE=64

# cycle VERSION PROTO: mounts, moves data in both directions, inline and in chunks, and unmounts.
cycle() {
	local version=$1 proto=$2

	nfs_mount "$version" "$proto"
	dd if=/dev/zero of="$WORK/file" bs=256k count=2 oflag=direct status=none
	dd if="$WORK/file" of=/dev/null bs=256k iflag=direct status=none
	stat "$WORK/file" >/dev/null
	nfs_umount
}

# cycles COUNT VERSION PROTO
cycles() {
	local count=$1 each

	for each in $(seq "$count"); do
		cycle "$2" "$3"
	done
}

# Prints the objects in use of each slab cache, after shrinking the caches. A vmap_area, and
# kmemleak's record of it (kmemleak_scan_area), stay allocated long after the unmap, so mappings are
# counted instead. debug_objects_cache grows on its own.
slab_objects() {
	local cache

	for cache in /sys/kernel/slab/*/; do
		echo 1 >"$cache/shrink" 2>/dev/null
	done
	{
		awk 'NR > 2 && $1 !~ /^(vmap_area|kmemleak_scan_area|debug_objects_cache)$/ { print $1, $2 }' /proc/slabinfo
		awk '!/unpurged/ { areas++ } END { print "mappings", areas }' /proc/vmallocinfo
	} | sort
}

# Prints the number of free pages, including those in per-CPU lists.
free_pages() {
	awk '$1 == "nr_free_pages" || $1 == "count:" { free += $2 }
		END { print free }' /proc/zoneinfo
}

rdma_resources() { rdma resource show | sed 's/^[0-9]*: //'; }

# Prints the RDMA resources and the module's reference count.
resources() {
	rdma_resources
	echo "module users $(module_users)"
}

# settle ROUND: waits for the asynchronous end of the last connections, which takes more than a
# minute if the CM loses a message. Round 0 waits until there is no cm_id and the resources are
# stable, later rounds until they are those of round 0.
settle() {
	local same=0 before now="" _

	for _ in $(seq 240); do
		before=$now
		now=$(resources)
		[ "$before" = "$now" ] && same=$((same + 1)) || same=1
		if [ "$1" -eq 0 ]; then
			[ "$same" -lt 10 ] || [[ $now =~ cm_id\ [1-9] ]] || break
		else
			[ "$now" != "$(cat "$ktap_dir/resources.0")" ] || break
		fi
		sleep 1
	done
	drop_caches
	sleep 1
}

TIME_WAIT=net.ipv4.tcp_max_tw_buckets
time_wait_before=""
time_wait_of_client=""

# Disables TIME-WAIT, in which TCP keeps connections to mountd for a minute.
disable_time_wait() {
	bed_is_local || return 0
	time_wait_before=$(sysctl -n $TIME_WAIT)
	time_wait_of_client=$(on_client sysctl -n $TIME_WAIT)
	sysctl -q $TIME_WAIT=0
	on_client sysctl -q $TIME_WAIT=0
}

test_cleanup() {
	cd /
	umount_all
	[ -z "$time_wait_of_client" ] || on_client sysctl -q $TIME_WAIT="$time_wait_of_client"
	[ -z "$time_wait_before" ] || sysctl -q $TIME_WAIT="$time_wait_before"
}

# take_stock ROUND: records what is in use. Stops the server first, which empties its duplicate
# reply cache.
take_stock() {
	! bed_is_local || server_stop
	settle "$1"
	slab_objects >"$ktap_dir/slab.$1"
	free_pages >"$ktap_dir/pages.$1"
	resources >"$ktap_dir/resources.$1"
	! bed_is_local || server_start
}

# grown_again FILE: FILE lists what grew in this round. Keeps only entries that grew in every round
# so far, with their growth in each.
grown_again() {
	local list="$ktap_dir/grown"

	sort "$1" >"$list.this"
	if [ -e "$list" ]; then
		join "$list" "$list.this" >"$list.both"
		mv "$list.both" "$list"
	else
		mv "$list.this" "$list"
	fi
}

# grown_in_round ROUND: prints the slab caches that grew by one object per cycle or more, and the
# pages that were lost.
grown_in_round() {
	local before=$(($1 - 1)) pages

	join "$ktap_dir/slab.$before" "$ktap_dir/slab.$1" |
		awk -v least="$CYCLES" '$3 - $2 >= least { print $1, $3 - $2 }'
	pages=$(($(cat "$ktap_dir/pages.$before") - $(cat "$ktap_dir/pages.$1")))
	[ "$pages" -lt "$PAGES_OF_NOISE" ] || echo "pages $pages"
}

mount_cycles_leak_nothing() {
	local version=$1 proto=$2 round

	[ "$proto" = rdma ] || [ -n "$SERVER6" ] || skip "no IPv6 server named"
	disable_time_wait
	nfs_mount "$version" "$proto"
	work_dir cycles
	nfs_umount
	cycles 5 "$version" "$proto"
	rm -f "$ktap_dir/grown"
	# Create all list files first: they use memory themselves.
	for round in $(seq 0 "$MAX_ROUNDS"); do
		touch "$ktap_dir"/{slab,pages,resources}."$round"
	done
	take_stock 0
	grep -q ' qp ' "$ktap_dir/resources.0" || fail "rdma shows no resources"
	for round in $(seq "$MAX_ROUNDS"); do
		cycles "$CYCLES" "$version" "$proto"
		take_stock "$round"
		diff "$ktap_dir/resources.0" "$ktap_dir/resources.$round" ||
			fail "RDMA resources or module references leaked"
		grown_in_round "$round" >"$ktap_dir/grown.round"
		grown_again "$ktap_dir/grown.round"
		[ "$round" -lt 2 ] || [ -s "$ktap_dir/grown" ] || break
	done
	echo "rounds of $CYCLES cycles: $round"
	if [ -s "$ktap_dir/grown" ]; then
		sed 's/^/grew in every round: /' "$ktap_dir/grown"
		# The C server leaks the rpc_xprt of each NFSv4.1 backchannel.
		xfail_on_c "objects or pages leaked"
	fi
}

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2))
[ $# -gt 0 ] || set -- "mount_cycles_leak_nothing 3 rdma" "mount_cycles_leak_nothing 4.2 rdma6"
ktap_run "$@"
