# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for the stock kernel, and for an output tree to build modules against. Where the
# distribution's headers lack the Rust metadata, it is regenerated from the same source,
# configuration and compiler, and compared with the stock kernel symbol by symbol.
#
# The cache key covers code, not comments (recipe in cache.sh).

make_kernel_stock() {
	local out=$1 tree headers image
	tree=$(toolchain_path)
	headers=/usr/src/linux-headers-$RELEASE
	for image in "boot/vmlinuz-$RELEASE" "usr/lib/modules/$RELEASE/vmlinuz"; do
		[ ! -f "$tree/$image" ] || ln -sf "$tree/$image" "$out/vmlinuz"
	done
	ln -s "$tree/usr/lib/modules/$RELEASE" "$out/modules"
	echo "$RELEASE" >"$out/release"

	same_rustc "$tree$headers/.config"
	if [ -f "$tree$headers/rust/libkernel.rmeta" ]; then
		ln -s "$tree$headers" "$out/obj"
		return
	fi
	mkdir "$out/obj"
	configure_as_stock "$tree$headers/.config" "$out/obj"
	"$env_dir/enter" --obj "$out/obj" \
		make -s -C /obj -j"$(nproc)" KERNELRELEASE="$RELEASE" prepare modules_prepare
	cp "$tree$headers/Module.symvers" "$out/obj/"
	same_rust_symbols "$out/obj"
}

# A Rust module loads only into a kernel that the same rustc has built.
same_rustc() {
	local theirs ours
	grep -q '^CONFIG_RUST=y' "$1" ||
		fail "kernel $RELEASE of $SUITE is built without Rust" "use one of the suites $SUITES, or make KERNEL=built"
	theirs=$(sed -n 's/^CONFIG_RUSTC_VERSION_TEXT="\(.*\)"/\1/p' "$1")
	ours=$("$env_dir/enter" rustc --version)
	[ "$theirs" = "$ours" ] ||
		fail "kernel $RELEASE was built by $theirs, $USER_SUITE offers $ours" "build the kernel: make KERNEL=built (slow)"
}

# The stock configuration without signing keys. Any other difference may change the
# layout of a structure.
configure_as_stock() {
	local stock=$1 obj=$2
	cp "$stock" "$obj/.config"
	"$env_dir/enter" --obj "$obj" "/usr/src/linux-source-$SERIES/scripts/config" --file /obj/.config \
		-d MODULE_SIG_ALL -d LOCALVERSION_AUTO \
		--set-str SYSTEM_TRUSTED_KEYS '' --set-str SYSTEM_REVOCATION_KEYS ''
	"$env_dir/enter" --obj "$obj" make -s -C "/usr/src/linux-source-$SERIES" O=/obj olddefconfig
	if diff <(known_config "$stock") <(known_config "$obj/.config"); then
		return 0
	fi
	fail "the configuration differs from the stock kernel's where structures may depend on it" \
		"install what the missing options ask for (tools/env/packages-toolchain)"
}

# Each Rust symbol that the rebuilt crates export exists in the stock kernel, and vice versa.
same_rust_symbols() {
	local differing
	differing=$(differing_symbols "$1" "$1/Module.symvers")
	[ -n "$(crate_symbols "$1")" ] || fail "the rebuilt crates export nothing" "look at $1/rust"
	echo "$(crate_symbols "$1" | wc -l) Rust symbols exported by the rebuilt crates"
	[ -z "$differing" ] ||
		fail "$(wc -l <<<"$differing") Rust symbols differ from the stock kernel's: $(head -n 3 <<<"$differing" | paste -sd' ')" \
			"build the kernel: make KERNEL=built (slow)"
}
