#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What administrators do to a server: listeners added and removed, RDMA configured without
# a device or without the module, file systems that do not splice, and copies that the server makes.
#
# LONG=1 repeats the rounds and leaves the connection idle before a copy.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# rxe reports connections that exceeded their retries (12), SUNRPC reports servers that do not
# respond, and the block layer that a loop device on a tmpfs cannot write zeros.
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
operation not supported error, dev loop[0-9]+, .*WRITE_ZEROES
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

ROUNDS=${LONG:+200}
ROUNDS=${ROUNDS:-30}

IO_CACHE_READ=/sys/kernel/debug/nfsd/io_cache_read
NO_SPLICE=/sys/kernel/debug/nfsd/disable-splice-read
MODPROBE_CONF=/etc/modprobe.d/rpcrdma-field.conf
GRANT=/proc/sys/sunrpc/rdma_max_bc_requests

# listener NETID PORT: adds a listener.
listener() { echo "$1 $2" >/proc/fs/nfsd/portlist || fail "no listener of $1"; }

set_threads() { echo "$1" >/proc/fs/nfsd/threads; }

# need_listeners NETID COUNT: fails unless nfsd has so many listeners.
need_listeners() {
	[ "$(grep -c "^$1 " /proc/fs/nfsd/portlist)" -eq "$2" ] ||
		fail "not $2 listeners of $1: $(xargs </proc/fs/nfsd/portlist)"
}

mount_tcp() { nfs_mount_at "$MNT-tcp" 3 tcp actimeo=0 "$1"; }

# Listeners of both transports come in any order, before and after the threads, and go with the
# last thread, while an NFSv3 client is under load. In every tenth round the server's device is away
# meanwhile.
listeners_added_and_removed() {
	local round

	need_link
	nfs_mount 3 rdma
	mount_tcp fatal_neterrors=none
	work_dir listeners
	load_start
	for round in $(seq "$ROUNDS"); do
		set_threads 0
		[ $((round % 10)) -ne 0 ] || device_delete "$BED_SERVER_DEV"
		case $((round % 3)) in
		0)	listener tcp 2049
			listener rdma "$BED_PORT"
			set_threads "$BED_NFSD_THREADS" ;;
		1)	listener rdma "$BED_PORT"
			set_threads "$BED_NFSD_THREADS"
			listener tcp 2049 ;;
		2)	listener tcp 2049
			set_threads "$BED_NFSD_THREADS"
			listener rdma "$BED_PORT" ;;
		esac
		need_listeners rdma 2
		need_listeners tcp 2
		if [ $((round % 10)) -eq 0 ]; then
			device_add "$BED_SERVER_DEV"
			load_wait_progress
			echo "$round" >"$MNT-tcp/listeners/tcp"
			[ "$(cat "$WORK_ON_SERVER/tcp")" = "$round" ] || fail "wrong data over TCP"
		fi
		ktap_progress "$round" "$ROUNDS"
	done
	load_stop
	rm -r "$WORK"
}

# With rdma=y in nfs.conf and no RDMA device, nfsd serves TCP. Once there is a device, RDMA works as
# well, without a restart of nfsd.
device_comes_after_nfsd() {
	need_link
	server_stop
	device_delete "$BED_SERVER_DEV"
	cp /etc/nfs.conf "$ktap_dir/nfs.conf"
	printf '[nfsd]\nrdma=y\nrdma-port=%s\n' "$BED_PORT" >>/etc/nfs.conf
	rpc.nfsd "$BED_NFSD_THREADS" || fail "nfsd does not start without a device"
	need_listeners tcp 2
	mount_tcp soft
	mkdir -p "$EXPORT/later"
	echo "over TCP" >"$MNT-tcp/later/file"
	device_add "$BED_SERVER_DEV"
	nfs_mount 3 rdma
	[ "$(cat "$MNT/later/file")" = "over TCP" ] || fail "wrong data over RDMA"
	rm -r "$EXPORT/later"
}

# If the module cannot be loaded, rpc.nfsd says so, and TCP is served.
module_cannot_be_loaded() {
	local message

	need_link
	server_stop
	module_wait_unused 0 || fail "the module is still used"
	! module_loaded || skip "the module stays loaded on this kernel"
	echo 'install rpcrdma /bin/false' >$MODPROBE_CONF
	message=$(rpc.nfsd --rdma="$BED_PORT" "$BED_NFSD_THREADS" 2>&1) || :
	rm $MODPROBE_CONF
	echo "$message"
	grep -qi rdma <<<"$message" || fail "rpc.nfsd does not report that RDMA is missing"
	need_listeners tcp 2
	need_listeners rdma 0
	mount_tcp soft
	ls "$MNT-tcp" >/dev/null
}

# set_splice off|on|toggled: whether nfsd splices pages of the page cache into Replies to READ.
set_splice() {
	case $1 in
	on)	echo 0 >$NO_SPLICE ;;
	off)	echo 1 >$NO_SPLICE ;;
	toggled) while sleep 0.05; do
			echo 1 >$NO_SPLICE
			sleep 0.05
			echo 0 >$NO_SPLICE
		done ;;
	esac
}

# Some file systems cannot splice; nfsd then reads into the pages of the Reply.
reads_without_splice() {
	local toggling layout

	need_local_bed
	[ -e $NO_SPLICE ] || skip "this kernel's nfsd always splices"
	nfs_mount "$1" rdma
	work_dir "no-splice-$1"
	trace_on
	echo 1 >"$TRACING/events/nfsd/nfsd_read_vector/enable"
	echo 1 >"$TRACING/events/nfsd/nfsd_read_splice/enable"
	set_splice off
	for layout in over fresh; do
		"$HELPERS/io_sizes_helper" "$WORK" "$WORK_ON_SERVER" direct direct "$layout" 5 \
			0 1 3 4 100 3500 4000 4093 4096 4097 65535 65536 65537 300001 1048579 ||
			fail "wrong data without splice"
	done
	"$HELPERS/io_sizes_helper" "$WORK" "$WORK_ON_SERVER" buffered buffered fresh \
		5 1 4097 300001 || fail "wrong data without splice"
	[ "$(traced nfsd_read_splice)" -eq 0 ] || fail "nfsd spliced"
	[ "$(traced nfsd_read_vector)" -ge 40 ] || fail "nfsd read too little"
	set_splice toggled &
	toggling=$!
	SIZE_MIB=2 fio_verified 4 --direct=1 --bsrange=512-256k --bs_unaligned=1 \
		--ioengine=libaio --iodepth=4
	kill "$toggling"
	trace_off
	echo "$(traced nfsd_read_vector) READs without splice, $(traced nfsd_read_splice) with it"
	[ "$(traced nfsd_read_splice)" -gt 0 ] || fail "nfsd did not splice"
}

# server_copies COUNT MIB [COMMAND...]: has the server copy a file of MIB mebibytes COUNT times at
# once, and runs COMMAND meanwhile. The server reports the end of each copy over the backchannel.
server_copies() {
	local each copying=() before count=$1 mib=$2
	shift 2

	need_local_bed
	[[ $(uname -r) != 6.18.* ]] || skip "nfsd of Linux 6.18 leaks the files of a copy, with either module"
	nfs_mount 4.2 rdma
	work_dir copies
	head -c "${mib}M" /dev/urandom >"$WORK_ON_SERVER/source"
	cat "$WORK/source" >/dev/null
	[ -z "$LONG" ] || sleep 360
	before=$(rpcs_sent COPY)
	for each in $(seq "$count"); do
		cp "$WORK/source" "$WORK/copy.$each" &
		copying+=($!)
	done
	[ $# -eq 0 ] || "$@"
	for each in "${copying[@]}"; do
		wait "$each" || fail "a copy failed"
	done
	for each in $(seq "$count"); do
		cmp "$WORK_ON_SERVER/source" "$WORK_ON_SERVER/copy.$each" || fail "a copy differs"
	done
	echo "$(($(rpcs_sent COPY) - before)) COPYs"
	[ $(($(rpcs_sent COPY) - before)) -ge "$count" ] || fail "the server did not copy"
	rm -r "$WORK"
}

# The backchannel has room for one Call at a time.
copies_with_one_credit() {
	[ ! -e $GRANT ] || echo 1 >$GRANT
	server_copies 20 8
}

# direct_export SECTOR: exports a file system that nfsd can read by direct I/O, on a device with
# sectors of this size.
direct_export() {
	modprobe loop &&
	truncate -s 64M "$BED_DIR/image" &&
	direct_device=$(losetup --find --show --sector-size "$1" "$BED_DIR/image") &&
	mkfs.ext4 -q "$direct_device" &&
	mkdir -p "$BED_DIR/direct" &&
	mount "$direct_device" "$BED_DIR/direct" &&
	exportfs -o rw,insecure,no_root_squash,no_subtree_check,fsid=20050 "*:$BED_DIR/direct"
}

direct_unexport() {
	exportfs -u "*:$BED_DIR/direct"
	umount "$BED_DIR/direct"
	losetup -j "$BED_DIR/image" | cut -d: -f1 | xargs -r losetup -d
	rm -f "$BED_DIR/image"
}

# READs whose ends are not those of sectors, with each way in which nfsd can read: through the page
# cache, past it if that is possible, and dropping the pages afterwards.
misaligned_reads() {
	local mode size

	need_local_bed
	echo 2 2>/dev/null >$IO_CACHE_READ || skip "this kernel's nfsd always uses the page cache"
	direct_export "$1" || fail "no file system for direct I/O"
	EXPORT=$BED_DIR/direct nfs_mount 4.2 rdma
	head -c 400000 /dev/urandom >"$BED_DIR/direct/file"
	trace_on
	echo 1 >"$TRACING/events/nfsd/nfsd_read_direct/enable"
	for mode in 0 1 2; do
		echo $mode >$IO_CACHE_READ
		for size in 47008 5000 513; do
			drop_caches
			dd if="$MNT/file" bs=$size iflag=direct status=none |
				cmp - "$BED_DIR/direct/file" ||
				fail "READs of $size bytes return other data in mode $mode"
		done
	done
	trace_off
	umount_all
	direct_unexport
	echo "$(traced nfsd_read_direct) direct READs of nfsd"
	[ "$(traced nfsd_read_direct)" -gt 0 ] || fail "nfsd did not read directly"
}

test_cleanup() {
	cd /
	trace_off
	[ ! -e $NO_SPLICE ] || set_splice on
	[ ! -e $GRANT ] || echo "$GRANT_BEFORE" >$GRANT
	rm -f $MODPROBE_CONF
	[ ! -e "$ktap_dir/nfs.conf" ] || mv "$ktap_dir/nfs.conf" /etc/nfs.conf
	umount_all
	[ ! -e $IO_CACHE_READ ] || echo 0 >$IO_CACHE_READ
	bed_is_local || return 0
	[ ! -e "$BED_DIR/image" ] || direct_unexport
	module_loaded || modprobe rpcrdma
	[ -e "/sys/class/infiniband/$BED_SERVER_DEV" ] || device_add "$BED_SERVER_DEV"
	server_stop
	server_start
} 2>/dev/null

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * (2 + ROUNDS / 20)))
GRANT_BEFORE=$(cat $GRANT 2>/dev/null)
[ $# -gt 0 ] || set -- listeners_added_and_removed device_comes_after_nfsd \
	module_cannot_be_loaded "reads_without_splice 3" "reads_without_splice 4.2" \
	"server_copies 1 64" "server_copies 1 256 reconnect" copies_with_one_credit \
	"misaligned_reads 512" "misaligned_reads 4096"
ktap_run "$@"
