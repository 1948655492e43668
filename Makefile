# SPDX-License-Identifier: GPL-2.0
#
# Commands for people; "make help" lists them. Kbuild has the build of the module.

.DEFAULT_GOAL := all
.PHONY: copy all install deb dkms demo test test-long test-debug test-hundred test-kernels
.PHONY: test-package test-package-guest interop mutants sim coverage check bench profile probe docs
.PHONY: nfsrdma shell kernels clean help
.PHONY: environment cargo kernel-tree

# KDIR is a prepared kernel tree with CONFIG_RUST=y. Without KDIR, tools/env provides the
# kernel, the compilers and the virtual machines.
ifdef KDIR
kbuild = $(MAKE) -C $(abspath $(KDIR)) M=$(CURDIR)
ready  = kernel-tree
else
kbuild = tools/env/enter --src . $(make_in_tree) -C /obj M=/src$(apart)
# clang's tree has no Module.symvers.
make_in_tree = make $(if $(filter debug clang,$(KERNEL)),LLVM=1) \
	$(if $(filter clang,$(KERNEL)),KBUILD_MODPOST_WARN=1) $(if $(V),V=$(V),-s) -j$(shell nproc)
ready  = environment
# For another environment than the default, build a copy of the sources in out/, so that
# the modules for all of them exist.
in_shell = SUITE='$(SUITE)' SERIES='$(SERIES)' FLAVOUR='$(FLAVOUR)' KERNEL='$(KERNEL)' \
	SOURCE='$(SOURCE)' bash -c
variant := $(shell $(in_shell) '. tools/env/cache.sh; echo "$${variant:1}"')
ifneq ($(variant),)
apart  = /out/$(variant)
ready += copy
endif
endif

all: $(ready) ## build rpcrdma.ko (the default)
	$(kbuild) modules

copy: environment
	@$(in_shell) '. tools/env/cache.sh; for_this_kernel out/$(variant)'
	@tools/env/enter --src . rsync -a --delete --exclude='*.o' --exclude='.*' \
		--exclude='generated.rs' --exclude='probed*' Kbuild include rust out/$(variant)/

install: ## install the module for its kernel, where modprobe prefers it
	tools/install

deb: ## build a Debian package of the module, for its kernel, in out/package
	@[ -n "$(KDIR)" ] || $(MAKE) --no-print-directory all
	tools/package/build

dkms: ## build a Debian package of the source, for DKMS, in out/package
	tools/package/build dkms

demo: ## copy a source tree over NFS/RDMA in a virtual machine and compare
	tools/demo/run

interop: ## run this module against the C module, in two virtual machines
	tools/interop/run

test: ## run host tests, checks and selftests; ends with "N passed, N failed"
	$(if $(KERNELS),tools/test/kernels,tools/test/run)

test-long: ## run what "make test" leaves out, part by part (PARTS=); takes days
	tools/test/long --record $(PARTS)

test-kernels: ## build for all kernels (KERNELS=), and run the selftests on each; takes hours
	tools/test/kernels

test-debug: ## run selftests and probe under KASAN, lockdep, kmemleak; a day without KVM
	tools/test/debug

test-hundred: ## reconnect, remove devices, unload: a hundred times each; takes hours
	tools/test/hundred

test-package: ## install, upgrade, remove the packages in a chroot; cross-build one; takes minutes
	tools/package/test-chroot
	tools/package/test-cross

test-package-guest: ## the package for DKMS on a Debian server, with Secure Boot; takes longer
	tools/package/test-guest

mutants: cargo ## change wire and engine, and see that host tests fail; half an hour (PART=K/N for a part)
	tools/mutants/run $(PART)

sim: cargo ## tell the story of a simulated run (PLAY=server_answers SEED=1), try COUNT= seeds, run HOURS=, or REPLAY=
	tools/test/sim $(if $(REPLAY),replay $(abspath $(REPLAY)),$(HOURS) $(PLAY) $(SEED) $(COUNT))

coverage: environment ## say which functions of client and server no simulated run reaches
	tools/test/coverage

check: ## check formatting, lints, and the rules of this tree
	tools/check/run

bench: ## measure instructions per operation, for this and the C module
	tools/bench/run

profile: ## count instructions by function, for this and the C module (OP=read4k)
	tools/bench/profile $(OP)

probe: ## run the protocol probe: hostile peers, by requirement of the RFCs
	tools/probe/run

docs: ## build the documents as HTML in out/docs
	tools/docs

nfsrdma: cargo ## build the command that shows connections, in out/nfsrdma
	@mkdir -p out
	tools/nfsrdma/run --build out/nfsrdma

shell: ## open a shell in a virtual machine with the module
	@[ -n "$(KDIR)" ] || $(MAKE) --no-print-directory all
	tools/vm/run --time 86400 --shell

kernels: ## list the environments (SUITE=, SERIES=) that exist or can be made
	@tools/env/make list

clean: ## remove build products, and all results in out/
	@if [ -n "$(KDIR)" ] || { tools/env/make found && [ -d .$(apart) ]; }; then $(kbuild) clean; fi
	rm -rf tools/host/target tools/fuzz/target tools/conformance/target tools/rooms/target \
		tools/nfsrdma/target out

# The kernel's own messages for these two mistakes do not name the cause.
kernel-tree:
	@[ -z "$(word 2,$(CURDIR))" ] || { \
		echo 'error: the path "$(CURDIR)" contains a space' >&2; \
		echo '    next: move this tree: Kbuild does not support spaces in paths' >&2; exit 1; }
	@[ -f "$(KDIR)/rust/libkernel.rmeta" ] || { \
		echo 'error: KDIR=$(KDIR) has no rust/libkernel.rmeta' >&2; \
		echo '    next: set KDIR to a tree in which a kernel with CONFIG_RUST=y was built;' \
			'for the kernel of Debian forky, run make without KDIR' >&2; exit 1; }

environment: ## make the build environment, unless it exists
	@tools/env/make

cargo:
	@tools/env/make cargo

help: ## print this list
	@echo 'Targets:'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-20s%s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'Settings:'
	@echo '  KDIR=<tree>   build for this kernel tree, without the build environment'
	@echo '  SUITE=<suite> use the kernel and the compilers of another Debian suite'
	@echo '  SERIES=<n>    use another kernel of the suite than its newest ("make kernels" lists them)'
	@echo '  FLAVOUR=arm64 cross-compile for arm64, or arm64-16k (pages of 16 KiB); guests are emulated'
	@echo '  SOURCE=<path> build a small kernel from this kernel tree or tarball, and use it'
	@echo '  KERNELS="..." run the selftests on these kernels, SUITE, or SUITE: and SERIES, FLAVOUR, SOURCE or clang'
	@echo '  KERNEL=built  build the kernel too, if the stock kernel cannot be used'
	@echo '  KERNEL=debug  build a kernel with KASAN, lockdep, kmemleak and DMA API checks'
	@echo '  KERNEL=clang  compile the module by clang, in a tree that clang has prepared'
	@echo '  MODULE_SIGN_KEY=<file> MODULE_SIGN_CERT=<file>  sign the module of "make deb"'
	@echo '  LONG=1        long variants of selftests and the probe, in hours'
	@echo '  BED_BOUNCE=1  a device behind bounce buffers in selftests (bounce.ko)'
	@echo '  ICOUNT=1      guests count instructions, and their idle time passes at once'
	@echo '  VM_ACCEL=tcg  emulate the processor (auto: KVM if a trial boot under it succeeds)'
	@echo '  V=1           show the commands of the build'
