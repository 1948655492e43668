#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Mounts and unmounts keep nothing: no object of any slab cache, no page, no
# RDMA resource, no reference to the module.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# In each round, for each of two versions.
CYCLES=${LONG:+130}
CYCLES=$((${CYCLES:-13} / PACE))

# A leak comes again in every round; what other parts of the system keep does
# not. There are two rounds, and more as long as something has grown in each.
MOST_ROUNDS=6

# By how many pages the count of free ones differs from one time to another; a
# connection has more than that.
PAGES_OF_NOISE=64

# A mount that moves data both ways, inline and in chunks.
cycle() {
	local version=$1 proto=$2

	nfs_mount "$version" "$proto"
	dd if=/dev/zero of="$WORK/file" bs=256k count=2 oflag=direct status=none
	dd if="$WORK/file" of=/dev/null bs=256k iflag=direct status=none
	stat "$WORK/file" >/dev/null
	nfs_umount
}

cycles() {
	local count=$1 each

	for each in $(seq "$count"); do
		cycle "$2" "$3"
	done
}

# Objects in use, cache by cache, with what is only kept for reuse given back.
# A vmap_area, and a note of kmemleak about it (kmemleak_scan_area), stay in use long after
# its mapping ended: mappings are counted. The pool of a kernel that watches objects
# (debug_objects_cache) grows by itself.
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

# Those that a processor keeps at hand are free, too.
free_pages() {
	awk '$1 == "nr_free_pages" || $1 == "count:" { free += $2 }
		END { print free }' /proc/zoneinfo
}

rdma_resources() { rdma resource show | sed 's/^[0-9]*: //'; }

# All that is looked at until it is as it was.
held() {
	rdma_resources
	echo "module users $(module_users)"
}

# settle ROUND: the last connections of a server go away in the background. Before the
# first round nobody knows what is left in the end, and it has to stay for a while; after
# that it has to be the same again.
settle() {
	local same=0 before now="" _

	for _ in $(seq 60); do
		before=$now
		now=$(held)
		[ "$before" = "$now" ] && same=$((same + 1)) || same=1
		if [ "$1" -eq 0 ]; then
			[ "$same" -lt 10 ] || break
		else
			[ "$now" != "$(cat "$ktap_dir/held.0")" ] || break
		fi
		sleep 1
	done
	drop_caches
	sleep 1
}

# TCP keeps its connections to mountd for a minute after their end, on either
# side, if it may.
forget_tcp() {
	bed_is_local || return 0
	sysctl -q net.ipv4.tcp_max_tw_buckets=0
	on_client sysctl -q net.ipv4.tcp_max_tw_buckets=0
}

# A server that runs keeps its replies to NFSv3; one that stops forgets them.
take_stock() {
	! bed_is_local || server_stop
	settle "$1"
	slab_objects >"$ktap_dir/slab.$1"
	free_pages >"$ktap_dir/pages.$1"
	held >"$ktap_dir/held.$1"
	! bed_is_local || server_start
}

# Takes another of the lists of what grew in one round, and leaves in the list
# of all rounds what is in both, with its growth in each.
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

# What round $1 has left more of: caches that grew by an object a cycle or
# more, and pages.
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
	forget_tcp
	nfs_mount "$version" "$proto"
	work_dir cycles
	nfs_umount
	cycles 5 "$version" "$proto"
	rm -f "$ktap_dir/grown"
	# The lists are files themselves, three in each round.
	for round in $(seq 0 "$MOST_ROUNDS"); do
		touch "$ktap_dir"/{slab,pages,held}."$round"
	done
	take_stock 0
	grep -q ' qp ' "$ktap_dir/held.0" || fail "no RDMA resources are to be seen"
	for round in $(seq "$MOST_ROUNDS"); do
		cycles "$CYCLES" "$version" "$proto"
		take_stock "$round"
		diff "$ktap_dir/held.0" "$ktap_dir/held.$round" ||
			fail "RDMA resources, or references to the module, were kept"
		grown_in_round "$round" >"$ktap_dir/grown.round"
		grown_again "$ktap_dir/grown.round"
		[ "$round" -lt 2 ] || [ -s "$ktap_dir/grown" ] || break
	done
	echo "rounds of $CYCLES cycles: $round"
	if [ -s "$ktap_dir/grown" ]; then
		sed 's/^/grew in every round: /' "$ktap_dir/grown"
		# The rpc_xprt of each NFSv4.1 backchannel, on the server.
		xfail_on_c "objects or pages were kept"
	fi
}

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2))
ktap_run "mount_cycles_leak_nothing 3 rdma" "mount_cycles_leak_nothing 4.2 rdma6"
