/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The version of the module, for modinfo, the kernel log and the packages. The
 * first section of Documentation/changes.rst has the same number.
 */

#ifndef _RPCRDMA_VERSION_H
#define _RPCRDMA_VERSION_H

#define RPCRDMA_MODULE_VERSION "0.1.0"

#endif
