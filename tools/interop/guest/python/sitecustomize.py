# SPDX-License-Identifier: GPL-2.0
#
# Provides what nfstest 3.2 expects of Python and Python 3.14 no longer has.
import ast
import builtins

import nfstest.rexec

# nfstest tests whether AST nodes are instances of these removed classes. No node is.
for kind in "Num", "Str", "Bytes":
    if not hasattr(ast, kind):
        setattr(ast, kind, type(kind, (ast.AST,), {}))

# A process of nfstest executes statements one by one. Each must see the names that earlier
# ones have imported or defined.
scope = vars(nfstest.rexec)
scope["exec"] = lambda statement: builtins.exec(statement, scope)
