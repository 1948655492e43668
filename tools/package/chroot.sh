#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The part of tools/package/test-chroot in the chroot. Each test continues where the one before
# it ended.
set -u
export DEBIAN_FRONTEND=noninteractive INITRD=No
cd /tmp/debs || exit
# shellcheck source=ktap.sh
. ./ktap.sh
release=$(basename "$(dirname /lib/modules/*/kernel)")
series=$(grep -o '^[0-9]*\.[0-9]*' <<<"$release")
modules=/lib/modules/$release
cache=/var/cache/rpcrdma-rust
c_module=$modules/kernel/net/sunrpc/xprtrdma/rpcrdma.ko.xz
first=$(dpkg-deb -f "$(echo rpcrdma-rust-dkms_*.deb | cut -d' ' -f1)" Version)

# chosen FIELD: prints a field of the module that modprobe would load.
chosen() {
	modinfo -k "$release" -F "$1" rpcrdma
}

# prepare: installs what the mirror has to provide, and makes a package of the kernel's source
# from the installed one, for later.
prepare() {
	local package=linux-source-$series

	apt-get -q -o Acquire::Check-Valid-Until=false update
	apt-get -q -y --no-install-recommends install dkms procps openssl libssl-dev dpkg-dev || return
	mkdir -p source/DEBIAN source/usr/src
	cp "/usr/src/$package.tar.xz" source/usr/src/
	dpkg-query -W -f 'Package: ${Package}\nVersion: ${Version}\nArchitecture: ${Architecture}\nMaintainer: ${Maintainer}\nDescription: ${Description}\n' \
		"$package" >source/DEBIAN/control
	dpkg-deb -Znone -b source linux-source.deb >/dev/null
	rm -r source "/usr/src/$package"
	dpkg --purge "$package"
	find / -xdev -not -path '/tmp/*' -not -path '/var/log/*' -not -path '/var/lib/dpkg/*' \
		-not -path '/var/cache/*' -not -path "$modules/modules.*" -not -path '/etc/ld.so.cache' | sort >before
	sha256sum "$c_module" >c_module
}

# Hooks of the kernel's headers run before dpkg configures the package, by which DKMS builds.
hook_is_silent_during_installation() {
	local said

	dpkg --unpack "rpcrdma-rust_${first}_all.deb" "rpcrdma-rust-dkms_${first}_all.deb" ||
		fail "the packages cannot be unpacked"
	said=$(/etc/kernel/header_postinst.d/zz-rpcrdma-rust "$release" 2>&1)
	! grep '^W: rpcrdma-rust' <<<"$said" || fail "the hook warns"
}

# Without the kernel's source the module cannot be built. The packages are installed all the
# same, and say what is missing.
refused_without_source() {
	dpkg -i "rpcrdma-rust_${first}_all.deb" "rpcrdma-rust-dkms_${first}_all.deb" ||
		fail "the installation failed"
	[ "$(chosen intree)" = Y ] || fail "modprobe would not load the C module"
	grep -q "apt install linux-source-$series" "$cache/$release.refused" || fail "the reason is not kept"
	rpcrdma-check "$release" | grep -q "apt install linux-source-$series" ||
		fail "rpcrdma-check does not name the missing package"
	rpcrdma-check --hook "$release" 2>&1 | grep -q '^W: ' || fail "the hook does not warn"
}

# The source package arrives: dpkg's trigger builds the module.
built_when_source_arrives() {
	time dpkg -i linux-source.deb || fail "the installation failed"
	dkms status
	[ "$(chosen version)" = "$first" ] || {
		cat "$cache"/*.refused
		tail -n 40 /var/lib/dkms/rpcrdma-rust/*/build/make.log
		fail "modprobe would not load version $first"
	}
	[ "$(modinfo -k "$release" -n rpcrdma | sed 's/\.[xgz]*$//')" = "$modules/updates/dkms/rpcrdma.ko" ] ||
		fail "the module is at another place"
	[ "$(chosen vermagic | cut -d' ' -f1)" = "$release" ] || fail "the module is for another kernel"
	[ ! -e "$cache/$release.refused" ] || fail "the kernel is still refused"
	rpcrdma-check "$release" || fail "rpcrdma-check does not agree"
	[ -z "$(rpcrdma-check --hook "$release" 2>&1)" ] || fail "the hook warns"
	du -sh "$cache/$release"
}

signed_by_key_of_dkms() {
	[ -f /var/lib/dkms/mok.pub ] || fail "there is no key to enrol"
	[ "$(chosen intree)$(chosen signer)" = "$(openssl x509 -inform DER -in /var/lib/dkms/mok.pub \
		-noout -subject -nameopt multiline | sed -n 's/^ *commonName *= //p')" ] ||
		fail "the module is not signed with it, but by \"$(chosen signer)\""
}

# Another compiler than the kernel's is refused; the module that exists stays.
refused_with_other_compiler() {
	local status=0

	mv /usr/bin/rustc /usr/bin/rustc.away
	printf '#!/bin/sh\necho "rustc 1.0.0 (other)"\n' >/usr/bin/rustc
	chmod +x /usr/bin/rustc
	"/usr/src/rpcrdma-rust-$first/dkms/metadata" "$release" "$modules/build" >output || status=$?
	mv /usr/bin/rustc.away /usr/bin/rustc
	cat output
	rm -f "$cache/$release.refused"
	[ "$status" = 77 ] || fail "the exit status is $status"
	grep -q 'this machine has rustc 1.0.0' output || fail "the message does not name the compiler"
	[ "$(chosen version)" = "$first" ] || fail "the module has gone"
}

# An upgrade of the package builds the new version, with the metadata that exists.
upgraded() {
	local made

	[ -f "$cache/$release/made" ] || fail "there is no metadata"
	made=$(stat -c %Y "$cache/$release/made")
	time dpkg -i rpcrdma-rust_0.9999_all.deb rpcrdma-rust-dkms_0.9999_all.deb || fail "the upgrade failed"
	[ "$(chosen version)" = 0.9999 ] || fail "modprobe would load version \"$(chosen version)\""
	[ "$(stat -c %Y "$cache/$release/made")" = "$made" ] || fail "the metadata was made again"
}

# A kernel for which the module does not compile is skipped with the reason. DKMS succeeds, so that the
# installation of such a kernel does. A version that compiles is built.
skipped_if_it_does_not_compile() {
	local file=/usr/src/rpcrdma-rust-0.9999/rust/rpcrdma.rs status=0

	cp "$file" source.rs || fail "$file does not exist"
	dkms unbuild rpcrdma-rust/0.9999 -k "$release" || fail "dkms unbuild failed"
	echo 'compile_error!("as with a newer kernel");' >>"$file"
	dkms autoinstall -k "$release" || status=$?
	[ "$status" = 0 ] || fail "DKMS failed with status $status"
	[ "$(chosen intree)" = Y ] || fail "modprobe would not load the C module"
	rpcrdma-check "$release" | grep "does not compile for kernel $release" ||
		fail "rpcrdma-check does not say why"
	grep -q 'as with a newer kernel' "$cache/$release/build.log" || fail "the log does not have the error"
	cp source.rs "$file"
	dkms autoinstall -k "$release" || fail "DKMS failed without the error"
	[ "$(chosen version)" = 0.9999 ] || fail "modprobe would load version \"$(chosen version)\""
	[ ! -e "$cache/$release.refused" ] || fail "the kernel is still refused"
}

# Removal of a kernel removes its metadata.
metadata_goes_with_kernel() {
	[ -d "$cache/$release" ] || fail "there is no metadata"
	linux-run-hooks image postrm "$release" "/boot/vmlinuz-$release" -- remove || fail "a hook failed"
	[ ! -e "$cache/$release" ] || fail "the metadata is left"
}

c_module_back_after_removal() {
	dpkg --remove rpcrdma-rust-dkms || fail "the removal failed"
	[ "$(chosen intree)" = Y ] || fail "modprobe would not load the C module"
	sha256sum -c c_module || fail "the C module has changed"
	! rpcrdma-check "$release" || fail "rpcrdma-check does not notice"
}

# images: prints the rpcrdma that the initial RAM disk holds.
images() {
	lsinitrd "$image" | grep -o '[^ ]*/rpcrdma\.ko[^ ]*'
}

# The package for one kernel needs no compiler, and keeps the initial RAM disk up to date, here
# one of dracut that holds little but rpcrdma.
initial_ram_disk_follows_package() {
	local image=/boot/initrd.img-$release

	printf '%s\n' 'hostonly=no' 'dracutmodules=" base kernel-modules "' 'drivers=" ext4 "' \
		>/etc/dracut.conf.d/small.conf
	# As Documentation/operating.rst says.
	echo 'add_drivers+=" rpcrdma "' >/etc/dracut.conf.d/nfs-rdma.conf
	dracut --force "$image" "$release" || fail "dracut failed"
	images | grep -q '/kernel/net/' || fail "the image does not hold the C module: $(images)"
	dpkg -i "rpcrdma-rust_${first}_all.deb" rpcrdma-rust-modules-*.deb || fail "the installation failed"
	rpcrdma-check "$release" || fail "modprobe would not load the module"
	[ "$(images)" = "usr/lib/modules/$release/updates/rpcrdma.ko" ] ||
		fail "the image holds $(images)"
	dpkg --remove "rpcrdma-rust-modules-$release" || fail "the removal failed"
	images | grep -q '/kernel/net/' || fail "the image does not hold the C module again: $(images)"
	[ "$(chosen intree)" = Y ] || fail "modprobe would not load the C module"
	rm "$image" /etc/dracut.conf.d/{small,nfs-rdma}.conf
}

nothing_left_after_purge() {
	dpkg --purge rpcrdma-rust-dkms "rpcrdma-rust-modules-$release" rpcrdma-rust linux-source-"$series" || fail "the purge failed"
	find / -xdev -not -path '/tmp/*' -not -path '/var/log/*' -not -path '/var/lib/dpkg/*' \
		-not -path '/var/cache/*' -not -path "$modules/modules.*" -not -path '/etc/ld.so.cache' | sort >after
	# DKMS keeps its signing key.
	comm -3 before after | grep -v '/var/lib/dkms/mok\.' >left
	cat left
	[ ! -s left ] || fail "these files were left or have gone"
	[ ! -e "$cache" ] || fail "$cache is left"
}

prepare >prepare.log 2>&1 || {
	tail -n 20 prepare.log
	echo "Bail out! the mirror does not provide dkms"
	exit 1
}
run_in_order hook_is_silent_during_installation refused_without_source built_when_source_arrives \
	signed_by_key_of_dkms refused_with_other_compiler upgraded skipped_if_it_does_not_compile \
	metadata_goes_with_kernel c_module_back_after_removal initial_ram_disk_follows_package nothing_left_after_purge
