# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# NFSv4 delegations: has the client hold them and the server recall them.

# Shortens lockd's grace period: nfsd grants no delegations before it has ended.
shorten_grace() {
	modprobe lockd
	echo 3 >/proc/sys/fs/nfs/nlm_timeout
	echo 3 >/proc/sys/fs/nfs/nlm_grace_period
} 2>/dev/null

# with_files VERSION COUNT [OPTION...]: mounts with these options, creates COUNT new files on the server, and waits until the
# server grants delegations. A file that had a conflict gets no delegation for a while.
with_files() {
	local version=$1 count=$2 i
	shift 2

	need_local_bed
	nfs_mount "$version" rdma "$@"
	work_dir "callbacks-$RANDOM"
	for ((i = 0; i < count; i++)); do
		echo "as it was $i" >"$WORK_ON_SERVER/$i"
	done
	# shellcheck disable=SC2207 # numbers
	files=($(seq 0 $((count - 1))))
	wait_for_first_delegation
}

# delegations [NAME]: prints the number of delegations, or of those of that file.
delegations() {
	cat /proc/fs/nfsd/clients/*/states 2>/dev/null |
		grep 'type: deleg' | grep -c "filename: \".*${1:-}\""
}

wait_for_first_delegation() {
	local i probe

	for ((i = 0; i < 60; i++)); do
		probe=probe-$RANDOM-$i
		echo x >"$WORK_ON_SERVER/$probe"
		cat "$WORK/$probe" >/dev/null
		[ "$(delegations "$probe")" -eq 0 ] || return 0
		sleep 0.5
	done
	fail "the server grants no delegations"
}

# get_delegation read|write: opens files until the client has a delegation of one. Sets delegated to
# its name; with "write", file descriptor 8 is open. See hold_files for why a file may get none.
get_delegation() {
	local i

	for ((i = 0; i < 60; i++)); do
		echo "as it was $i" >"$WORK_ON_SERVER/$i"
		if [ "$1" = write ]; then
			exec 8<>"$WORK/$i"
		else
			cat "$WORK/$i" >/dev/null
		fi
		delegated=$i
		[ "$(delegations "/$i")" -eq 0 ] || return 0
	done
	fail "no delegation to recall"
}

milliseconds() { echo $((${EPOCHREALTIME/./} / 1000)); }

# timed COMMAND...: prints the milliseconds that COMMAND takes.
timed() {
	local begin
	begin=$(milliseconds)
	"$@" >/dev/null || fail "$* failed"
	echo $(($(milliseconds) - begin))
}

write_on_server() { echo "changed on the server" >>"$WORK_ON_SERVER/$1"; }

# recall LIMIT FILE...: writes to each file on the server, for at most LIMIT milliseconds each. The
# names of files that took longer go to $ktap_dir/late.
recall() {
	local limit=$1 file begin took slowest=0
	shift

	export WORK_ON_SERVER
	for file; do
		begin=$(milliseconds)
		# shellcheck disable=SC2016 # expanded there
		if ! timeout $((limit / 1000)) \
			sh -c 'echo "changed on the server" >>"$WORK_ON_SERVER/$1"' sh "$file"; then
			echo "recall of $file timed out after $(($(milliseconds) - begin)) ms"
			echo "$file" >>"$ktap_dir/late"
			continue
		fi
		took=$(($(milliseconds) - begin))
		[ "$took" -le "$slowest" ] || slowest=$took
	done
	echo "slowest recall: $slowest ms"
}

# Prints the names of the files that the client holds delegations of.
files_held() {
	sed -n "s|.*type: deleg.*filename: \"\(.*/\)\?${WORK##*/}/\([0-9]*\)\".*|\2|p" \
		/proc/fs/nfsd/clients/*/states | sort -un
}

# hold_files COUNT: opens files on the client until it holds COUNT delegations, and keeps them open:
# the client returns unused delegations. nfsd grants none for files that its Bloom filter mistakes
# for files recalled a short time ago.
hold_files() {
	local i=0 fd

	ulimit -n $((100 + 4 * $1))
	held=() files=()
	until [ ${#files[@]} -ge "$1" ]; do
		[ "$i" -lt $((4 * $1)) ] || fail "only ${#files[@]} delegations"
		for ((; i < 4 * $1 && ${#held[@]} - ${#files[@]} < $1; i++)); do
			echo "as it was $i" >"$WORK_ON_SERVER/$i"
			exec {fd}<"$WORK/$i"
			held+=("$fd")
		done
		mapfile -t files < <(files_held)
	done
	echo "${#files[@]} delegations, of ${#held[@]} files"
	files=("${files[@]:0:$1}")
}

release_files() {
	local fd

	for fd in "${held[@]}"; do
		exec {fd}<&-
	done
}

# need_delegations MIN
need_delegations() {
	local held

	held=$(delegations)
	echo "$held delegations"
	[ "$held" -ge "$1" ] || fail "too few delegations"
}

# start_recalls LIMIT: starts recalls of all files, four at a time.
start_recalls() {
	local i each=$(((${#files[@]} + 3) / 4))

	recalls=()
	rm -f "$ktap_dir/late"
	for ((i = 0; i < ${#files[@]}; i += each)); do
		recall "$1" "${files[@]:i:each}" &
		recalls+=($!)
	done
}

# end_recalls [LATE]: waits for all recalls. Fails if more than LATE (0) of them timed out.
end_recalls() {
	local each late=0

	for each in "${recalls[@]}"; do
		wait "$each" || fail "a recall failed"
	done
	[ ! -e "$ktap_dir/late" ] || late=$(wc -l <"$ktap_dir/late")
	[ "$late" -le "${1:-0}" ] || fail "$late of ${#files[@]} recalls timed out"
}

# Fails unless the client sees the changes that were made on the server.
files_are_changed() {
	local file

	for file in "${files[@]}"; do
		grep -qsx "$file" "$ktap_dir/late" || grep -q "changed on the server" "$WORK/$file" ||
			fail "the client does not see the change of $file"
	done
}
