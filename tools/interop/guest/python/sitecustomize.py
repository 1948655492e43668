# SPDX-License-Identifier: GPL-2.0
#
# What nfstest 3.2 expects of Python, and Python 3.14 does no more.
import ast
import builtins

import nfstest.rexec

# nfstest asks whether nodes of syntax trees are of these kinds. None is.
for kind in "Num", "Str", "Bytes":
    if not hasattr(ast, kind):
        setattr(ast, kind, type(kind, (ast.AST,), {}))

# A process of nfstest's executes statement after statement, and what one has
# imported or defined the next ones are to know.
scope = vars(nfstest.rexec)
scope["exec"] = lambda statement: builtins.exec(statement, scope)
