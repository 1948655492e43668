# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# I/O that verifies its own data, in the background or in the foreground.

# shellcheck disable=SC2154 # ktap_dir is from ktap.sh
# load_start [WRITERS [BLOCKS]]: starts WRITERS (4) in the work directory, every other one with
# O_DIRECT, on files of BLOCKS (32) times 64 KiB.
# shellcheck disable=SC2120 # most callers pass no argument
load_start() {
	local path i

	load_jobs=()
	rm -f "$ktap_dir/stop"
	for ((i = 0; i < ${1:-4}; i++)); do
		path=direct
		[ $((i % 2)) -eq 0 ] || path=buffered
		"$HELPERS/load_helper" "$path" \
			"$WORK/load.$i" "${2:-32}" "$ktap_dir/stop" &
		load_jobs+=($!)
	done
	load_wait_progress
}

# Waits for 40 Replies. Fails after IO_TIMEOUT seconds.
load_wait_progress() {
	local before deadline=$((SECONDS + IO_TIMEOUT))

	before=$(xprt_stat recvs)
	while [ "$(xprt_stat recvs)" -lt $((before + 40)) ]; do
		[ "$SECONDS" -lt "$deadline" ] || fail "I/O makes no progress"
		sleep 0.5
	done
}

# Stops the load. Fails unless client and server have the data that was written.
load_stop() {
	local each

	touch "$ktap_dir/stop"
	for each in "${load_jobs[@]}"; do
		wait "$each" || fail "a writer found wrong data"
	done
	bed_is_local || return 0
	for each in "${!load_jobs[@]}"; do
		cmp "$WORK/load.$each" "$WORK_ON_SERVER/load.$each" ||
			fail "client and server have different data"
	done
}

# Sets or checks extended attributes; see attributes_helper.c.
attributes() { "$HELPERS/attributes_helper" "$@" || fail "$1 $2"; }

# users_by_number COUNT: succeeds if the NFSv4 ACL on stdin, in XDR or as nfs4_getfacl prints it,
# names users 100001 to 100000+COUNT and no others. A user may have two entries.
users_by_number() { grep -aoE '1[0-9]{5}' | uniq | cmp - <(seq 100001 $((100000 + $1))); }

# fio_verified JOBS OPTION...: writes random blocks of odd sizes to files of SIZE_MIB each, reads
# them back and verifies their checksums.
fio_verified() {
	local jobs=$1
	shift

	fio --name=verified --directory="$WORK" --numjobs="$jobs" \
		--size="${SIZE_MIB}M" --rw=randwrite --bsrange=512-256k \
		--bs_unaligned --norandommap=0 --randrepeat=1 \
		--verify=crc32c --verify_fatal=1 --do_verify=1 \
		--group_reporting --output="$ktap_dir/fio" "$@" ||
		{ tail -30 "$ktap_dir/fio"; fail "fio failed or found wrong data"; }
	grep -E '^ *(READ|WRITE):' "$ktap_dir/fio"
}
