# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Tests of the choice of a build environment, with planted offers and without a network.

# The stanzas of an index: two kernels with their source, other flavours, metapackages, and a kernel
# whose source is of another version.
index_of_packages() {
	local name version
	while read -r name version; do
		printf 'Package: %s\nSource: linux\nVersion: %s\n\n' "$name" "$version"
	done <<-'END'
		linux-headers-7.2.12+deb13-amd64 7.2.12-1~bpo13+1
		linux-headers-7.2.12+deb13-cloud-amd64 7.2.12-1~bpo13+1
		linux-headers-7.2.12+deb13-arm64 7.2.12-1~bpo13+1
		linux-headers-7.2.12+deb13-arm64-16k 7.2.12-1~bpo13+1
		linux-headers-7.2.12+deb13-common 7.2.12-1~bpo13+1
		linux-headers-7.2.11+deb13-amd64 7.2.11-1~bpo13+1
		linux-headers-7.10.1+deb13-amd64 7.10.1-1~bpo13+1
		linux-headers-amd64 7.10.1-1~bpo13+1
		linux-source 7.10.1-1~bpo13+1
		linux-source-7.2 7.2.12-1~bpo13+1
		linux-source-7.10 7.10.1-1~bpo13+1
	END
}

# chosen_of SETTINGS LOST FAILING: prints what is said and chosen if the suites in LOST cannot be
# looked up, and the environments of the releases in FAILING cannot be made.
chosen_of() (
	# shellcheck disable=SC2034 # read by choose
	SUITES='a b c' PROVED='7.3 7.2' SUITE='' SERIES='' FLAVOUR=amd64
	# shellcheck disable=SC2086 # several settings
	local $1 lost=" $2 " failing=" $3 "
	ask() { [[ $lost != *" $1 "* ]]; }
	make_it() { [[ $failing != *" ${ENVIRONMENT##* } "* ]]; }
	choose ask make_it && echo "$ENVIRONMENT" || echo none
)

# tools/env/make lists kernels that have their source, and chooses: the first suite with a proved series
# that can be made, else any; only among what the user selected.
rule_test_environment() {
	local CACHE records settings lost failing expected
	CACHE=$(mktemp -d)
	# shellcheck source=../env/offers.sh
	. tools/env/offers.sh
	mkdir "$records"
	index_of_packages | FLAVOUR=amd64 list_offers | diff - <(printf '%s\n' \
		'7.10 7.10.1+deb13-amd64 7.10.1-1~bpo13+1' '7.2 7.2.12+deb13-amd64 7.2.12-1~bpo13+1')
	index_of_packages | FLAVOUR=arm64 list_offers |
		diff - <(echo '7.2 7.2.12+deb13-arm64 7.2.12-1~bpo13+1')
	printf '%s\n' '7.4 7.4.1+a-amd64 1' >"$records/offers-a-amd64"
	printf '%s\n' '7.4 7.4.1+a-arm64 1' >"$records/offers-a-arm64"
	printf '%s\n' '7.4 7.4.1+b-amd64 1' '7.3 7.3.4+b-amd64 1' >"$records/offers-b-amd64"
	printf '%s\n' '7.2 7.2.12+c-amd64 1' '7.1 7.1.3+c-amd64 1' >"$records/offers-c-amd64"
	while IFS='|' read -r settings lost failing expected; do
		diff <(chosen_of "${settings:-X=}" "$lost" "$failing" | tail -n 1) - <<<"$expected" |
			sed "s/^/with $settings, lost $lost, failing $failing: /"
	done <<-'END'
		|||b 7.3 7.3.4+b-amd64
		||7.3.4+b-amd64|c 7.2 7.2.12+c-amd64
		|b||c 7.2 7.2.12+c-amd64
		|b c||a 7.4 7.4.1+a-amd64
		|a b c||none
		||7.3.4+b-amd64 7.2.12+c-amd64|a 7.4 7.4.1+a-amd64
		||7.3.4+b-amd64 7.2.12+c-amd64 7.4.1+a-amd64|b 7.4 7.4.1+b-amd64
		SUITE=a|||a 7.4 7.4.1+a-amd64
		SUITE=a||7.4.1+a-amd64|none
		FLAVOUR=arm64 SUITE=a|||a 7.4 7.4.1+a-arm64
		SUITE=b|||b 7.4 7.4.1+b-amd64
		SERIES=7.4|||a 7.4 7.4.1+a-amd64
		SERIES=7.4||7.4.1+a-amd64|b 7.4 7.4.1+b-amd64
		SERIES=7.1|||c 7.1 7.1.3+c-amd64
		SERIES=7.2.12|||c 7.2 7.2.12+c-amd64
		SERIES=7.2.1|||none
		SERIES=7.3.4+b-amd64|||b 7.3 7.3.4+b-amd64
	END
	# Each suite that is left out is named once, with the reason.
	chosen_of X= '' '7.3.4+b-amd64' | diff - <(printf '%s\n' \
		'  Debian a is left out: the tests have not passed with its Linux 7.4' 'c 7.2 7.2.12+c-amd64')
	rm -r "$CACHE"
	# A recipe has the environment of the command that runs it.
	diff <(bash -c '. tools/env/cache.sh; toolchain_path') \
		<(bash -c '. tools/env/recipes.sh; toolchain_path')
}

# A kernel source that the user names is known by the contents of the files that .gitignore does not
# exclude, and its copy has only these.
rule_test_source() (
	# shellcheck disable=SC2034,SC2030 # read by functions of cache.sh
	CACHE=$(mktemp -d) KERNEL=built
	SOURCE=$CACHE/linux
	known_as() { record_source; basename "$(kernel_path)"; }
	# shellcheck source=../env/source.sh
	. tools/env/source.sh
	mkdir -p "$CACHE/records" "$SOURCE/rust" "$CACHE/copy" "$CACHE/unpacked"
	echo '*.o' >"$SOURCE/.gitignore"
	echo 'obj-y += a.o' >"$SOURCE/rust/Makefile"
	ln -s Makefile "$SOURCE/rust/link"
	first=$(known_as)
	touch "$SOURCE/rust/a.o" "$SOURCE/rust/Makefile"
	[ "$(known_as)" = "$first" ] || echo "products of a build make another kernel of the same source"
	make_source "$CACHE/copy"
	(cd "$CACHE/copy" && find . -type f -o -type l | sort) |
		diff - <(printf './%s\n' .gitignore rust/Makefile rust/link)
	echo 'obj-y += b.o' >>"$SOURCE/rust/Makefile"
	[ "$(known_as)" != "$first" ] || echo "a changed source makes the same kernel"
	tar -C "$CACHE" -cJf "$CACHE/linux-7.1.orig.tar.xz" linux
	SOURCE=$CACHE/linux-7.1.orig.tar.xz
	[ "$(known_as)" != "$first" ] || echo "a tarball makes the kernel of the tree"
	make_source "$CACHE/unpacked"
	cmp "$CACHE/unpacked/rust/Makefile" "$CACHE/linux/rust/Makefile"
	rm -r "$CACHE"
)

# kinds_in_cache: prints the kinds of directories that the tools keep in the cache.
kinds_in_cache() {
	grep -rhoE '"\$CACHE/[a-z]+-' --exclude-dir=check tools | sed 's|.*/||' | sort -u
}

# used_in_cache: prints what the environments in the loop, and a source, use there.
used_in_cache() {
	local KERNEL source=$SOURCE SOURCE ENVIRONMENT
	for ENVIRONMENT in 'a 7.2 7.2.1+a-amd64' 'b 7.3 7.3.1+b-arm64'; do
		for SOURCE in '' "$source"; do
			for KERNEL in built debug $([ -n "$SOURCE" ] || echo stock); do
				kernel_path
				base_path
			done
		done
		toolchain_path; guest_path; native_guest_path; nfstest_path; tree_path; package_tree_path
	done
	SUITE=a KERNELS='7.1.1+a-amd64 7.2.1+a-amd64' server_path
	SOURCE=$source source_path
}

# tools/env/make prune keeps what the chosen environments use, and what another run makes, and
# removes everything else of each kind.
rule_test_prune() (
	top=$(mktemp -d)
	# shellcheck disable=SC2030,SC2034 # read by functions of cache.sh
	CACHE=$top/rpcrdma SOURCE=$top/linux
	records=$CACHE/records
	for file in demo/tree.sh package/tree.sh package/server.sh; do
		# shellcheck source=/dev/null
		. "tools/$file"
	done
	mkdir -p "$records" "$CACHE/logs" "$CACHE/cargo"
	echo 'a 7.2 7.2.1+a-amd64' >"$(SUITE='' SERIES='' FLAVOUR=amd64 choice)"
	echo 'b 7.3 7.3.1+b-arm64' >"$records/use-b-arm64"
	echo 'c 7.3 7.3.1+c-amd64' >"$records/use-default-000000000000"
	printf '%s\n' '7.2 7.2.1+a-amd64 1' '7.1 7.1.1+a-amd64 1' '7.0 7.0.1+a-amd64 1' >"$records/offers-a-amd64"
	echo 0123456789ab >"$(source_record)"
	echo 123456789abc >"$records/source-000000000000"
	used_in_cache | sort -u >"$top/used"
	xargs -d '\n' mkdir <"$top/used"
	kinds_in_cache >"$top/kinds"
	sed "s|$CACHE/||; s/-.*/-/" "$top/used" | sort -u | diff - "$top/kinds"
	while read -r kind; do
		mkdir "$CACHE/${kind}000000000000" "$CACHE/${kind}000000000001.part"
		touch "$CACHE/${kind}000000000001.lock" "$CACHE/logs/${kind}000000000000.log"
	done <"$top/kinds"
	mkdir "$CACHE/guest-000000000002.part"
	exec {lock}>"$CACHE/guest-000000000002.lock"
	flock "$lock"
	echo kvm >"$(kvm_record "$(grep -m 1 /base- "$top/used")")"
	echo kvm >"$(kvm_record base-000000000000)"
	{
		cat "$top/used"
		printf "$CACHE/%s\n" cargo logs records guest-000000000002.{part,lock}
		kvm_record "$(grep -m 1 /base- "$top/used")"
		SUITE='' SERIES='' FLAVOUR=amd64 choice
		printf '%s\n' "$records"/{use-b-arm64,offers-a-amd64} "$(source_record)"
	} | sort >"$top/expected"
	XDG_CACHE_HOME=$top SOURCE=$SOURCE KERNEL=built tools/env/make prune
	find "$CACHE" -mindepth 1 -maxdepth 2 -not -path "$CACHE/cargo/*" | sort | diff "$top/expected" -
	exec {lock}>&-
	rm -r "$top"
)

# The hook that adds no suite succeeds. mmdebstrap executes a hook of one word without a shell.
rule_test_kernel_suite() {
	# shellcheck disable=SC2034 # read by add_kernel_suite
	local SUITE=forky USER_SUITE=forky
	# shellcheck source=../env/toolchain.sh
	. tools/env/toolchain.sh
	env "$(add_kernel_suite)" tree
}

# Rust symbols are compared in both directions, and so is the configuration but for the options that
# cannot matter.
rule_test_rust_metadata() {
	local dir

	dir=$(mktemp -d)
	mkdir "$dir/rust"
	printf 'EXPORT_SYMBOL_RUST_GPL(%s);\n' _Rboth _Rcrates >"$dir/rust/exports_a_generated.h"
	printf '0x0\t%s\n' $'_Rboth\tvmlinux' $'_Rkernel\tvmlinux' $'kfree\tvmlinux' $'_Rmodule\tdrivers/a' \
		>"$dir/Module.symvers"
	printf '%s\n' CONFIG_SMP=y CONFIG_LD_VERSION=24500 '# CONFIG_NUMA is not set' >"$dir/.config"
	bash -euo pipefail -c '. tools/lib/rust-metadata.sh; differing_symbols "$1" "$1/Module.symvers"
		known_config "$1/.config"' bash "$dir" | diff - <(printf '%s\n' _Rcrates _Rkernel \
		'# CONFIG_NUMA is not set' CONFIG_SMP=y)
	rm -r "$dir"
}
