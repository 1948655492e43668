# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for the stock kernel, and for an output tree to build modules against. The
# distribution's headers lack the Rust metadata. It is regenerated from the same source,
# configuration and compiler, and compared with the stock kernel symbol by symbol.
#
# The cache key covers code, not comments (recipe in cache.sh).

make_kernel_stock() {
	local out=$1 tree release
	tree=$(toolchain_path)
	release=$(stock_release "$tree")
	mkdir "$out/obj"
	ln -s "$tree/boot/vmlinuz-$release" "$out/vmlinuz"
	ln -s "$tree/usr/lib/modules/$release" "$out/modules"
	echo "$release" >"$out/release"

	same_rustc "$tree" "$release"
	configure_as_stock "$tree" "$release" "$out/obj"
	"$env_dir/enter" --obj "$out/obj" \
		make -s -C /obj -j"$(nproc)" prepare modules_prepare
	cp "$tree/usr/src/linux-headers-$release/Module.symvers" "$out/obj/"
	[ "$("$env_dir/enter" --obj "$out/obj" make -s -C /obj kernelrelease)" = "$release" ] ||
		fail "the prepared tree does not call itself $release" "see LOCALVERSION in $out/obj/.config"
	same_rust_symbols "$out/obj"
}

stock_release() {
	local release
	release=$(basename "$(echo "$1"/usr/lib/modules/*)")
	case $release in
	"$KERNEL_SERIES".*) echo "$release" ;;
	*) fail "$SUITE offers kernel $release, not $KERNEL_SERIES" "name its series in tools/env/config.sh" ;;
	esac
}

# A Rust module loads only into a kernel that the same rustc has built.
same_rustc() {
	local theirs ours
	theirs=$(sed -n 's/^CONFIG_RUSTC_VERSION_TEXT="\(.*\)"/\1/p' "$1/boot/config-$2")
	ours=$("$env_dir/enter" rustc --version)
	[ -n "$theirs" ] || fail "the stock kernel is built without Rust" "build the kernel: make KERNEL=built"
	[ "$theirs" = "$ours" ] ||
		fail "the stock kernel was built by $theirs, $SUITE offers $ours" "build the kernel: make KERNEL=built (slow)"
}

# The stock configuration without signing keys. Any other difference may change the
# layout of a structure, so known_config leaves out only options that cannot.
configure_as_stock() {
	local tree=$1 release=$2 obj=$3 base
	cp "$tree/boot/config-$release" "$obj/.config"
	base=$("$env_dir/enter" make -s -C "/usr/src/linux-source-$KERNEL_SERIES" kernelversion)
	"$env_dir/enter" --obj "$obj" "/usr/src/linux-source-$KERNEL_SERIES/scripts/config" --file /obj/.config \
		-d MODULE_SIG_ALL -d LOCALVERSION_AUTO \
		--set-str SYSTEM_TRUSTED_KEYS '' --set-str SYSTEM_REVOCATION_KEYS '' \
		--set-str LOCALVERSION "${release#"$base"}"
	"$env_dir/enter" --obj "$obj" make -s -C "/usr/src/linux-source-$KERNEL_SERIES" O=/obj olddefconfig
	if diff <(known_config "$tree/boot/config-$release") <(known_config "$obj/.config"); then
		return 0
	fi
	fail "the configuration differs from the stock kernel's where structures may depend on it" \
		"install what the missing options ask for (tools/env/packages-toolchain)"
}

known_config() {
	grep -E '^(CONFIG_|# CONFIG_.* is not set)' "$1" |
		grep -vE 'CONFIG_(CC_VERSION_TEXT|LOCALVERSION|BUILD_SALT|MODULE_SIG_(ALL|KEY|KEY_TYPE_.*)|SYSTEM_TRUSTED_KEYS|SYSTEM_REVOCATION_KEYS|OPENSSL_SUPPORTS_.*)[= ]' |
		sort
}

# Each Rust symbol that the rebuilt crates export exists in the stock kernel, and vice
# versa. Compiler and source are hashed into the names, so equal names prove both equal.
same_rust_symbols() {
	local ours theirs
	ours=$(cat "$1"/rust/exports_*_generated.h | sed -n 's/^EXPORT_SYMBOL_RUST_GPL(\(.*\));/\1/p' | sort -u)
	theirs=$(awk -F'\t' '$3 == "vmlinux" { print $2 }' "$1/Module.symvers" | sort -u)
	[ -n "$ours" ] || fail "the rebuilt crates export nothing" "look at $1/rust"
	echo "$(echo "$ours" | wc -l) Rust symbols exported by the rebuilt crates"
	no_strangers "the stock kernel lacks" "$(comm -23 <(echo "$ours") <(echo "$theirs"))"
	no_strangers "the rebuilt crates lack" \
		"$(comm -13 <(echo "$ours") <(echo "$theirs" | grep -E '^(_R|rust_helper_)'))"
}

no_strangers() {
	[ -z "$2" ] ||
		fail "$1 $(echo "$2" | wc -l) Rust symbols: $(echo "$2" | head -n 3 | paste -sd' ')" \
			"build the kernel: make KERNEL=built (slow)"
}
