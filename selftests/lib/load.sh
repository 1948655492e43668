# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# I/O that verifies itself: in the background, for tests that disturb it, or not.

# shellcheck disable=SC2154 # ktap_dir is from ktap.sh
# load_start [WRITERS [BLOCKS]]: so many of them (4) in the work directory, every
# other one past the cache, with files of so many times 64 KiB (32).
# shellcheck disable=SC2120 # callbacks.sh wants more writers
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

# Fails unless replies arrive before it has stood still for too long.
load_wait_progress() {
	local before deadline=$((SECONDS + IO_TIMEOUT))

	before=$(xprt_stat recvs)
	while [ "$(xprt_stat recvs)" -lt $((before + 40)) ]; do
		[ "$SECONDS" -lt "$deadline" ] || fail "I/O does not go on"
		sleep 0.5
	done
}

# Ends the load; all of its data must be whole, on either side.
load_stop() {
	local each

	touch "$ktap_dir/stop"
	for each in "${load_jobs[@]}"; do
		wait "$each" || fail "a writer found its data broken"
	done
	bed_is_local || return 0
	for each in "${!load_jobs[@]}"; do
		cmp "$WORK/load.$each" "$WORK_ON_SERVER/load.$each" ||
			fail "the server has other data"
	done
}

# Extended attributes: sets them, or compares them.
attributes() { "$HELPERS/attributes_helper" "$@" || fail "$1 $2"; }

# users_by_number COUNT: whether the NFSv4 ACL on the input, as it is sent or as nfs4_getfacl
# shows it, names that many users from 100001 on, and no others. One may have two entries.
users_by_number() { grep -aoE '1[0-9]{5}' | uniq | cmp - <(seq 100001 $((100000 + $1))); }

# fio_verified JOBS OPTION...: random blocks of odd sizes in files of SIZE_MIB, written,
# then read back and compared with their checksums.
fio_verified() {
	local jobs=$1
	shift

	fio --name=verified --directory="$WORK" --numjobs="$jobs" \
		--size="${SIZE_MIB}M" --rw=randwrite --bsrange=512-256k \
		--bs_unaligned --norandommap=0 --randrepeat=1 \
		--verify=crc32c --verify_fatal=1 --do_verify=1 \
		--group_reporting --output="$ktap_dir/fio" "$@" ||
		{ tail -30 "$ktap_dir/fio"; fail "fio found a difference"; }
	grep -E '^ *(READ|WRITE):' "$ktap_dir/fio"
}
