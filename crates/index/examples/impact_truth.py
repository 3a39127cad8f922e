"""Which test files run which function, as coverage.py saw it: the truth for the example impact_truth.

usage: impact_truth.py TREE SOURCE COVERAGE [EACH]

TREE is a checkout, SOURCE the folder of it whose functions count, COVERAGE the data file of a run of its tests with
`dynamic_context = test_function`, EACH that only every EACHth function is told. Prints a JSON object a function: its path, a line of
its body, and the test files that ran a line of it. Functions that no test ran are left out.
"""

import ast
import json
import os
import sys

import coverage


def test_file(root, context):
    """The file of `tests.test_shop.TestShop.test_pay`, or of pytest-cov's `tests/test_shop.py::test_pay|setup`."""
    path, nodes, _ = context.partition("::")
    if nodes:
        return path if os.path.exists(os.path.join(root, path)) else None
    parts = context.split("|")[0].split(".")
    for length in range(len(parts), 0, -1):
        for base in ("", "tests/"):
            path = base + "/".join(parts[:length]) + ".py"
            if os.path.exists(os.path.join(root, path)):
                return path
    return None


def functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            docstring = lambda part: isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
            body = [part for part in node.body if not docstring(part)]
            if body:
                yield body[0].lineno, {line for part in body for line in range(part.lineno, part.end_lineno + 1)}


def main():
    root, source, data_file = sys.argv[1:4]
    each = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    root = os.path.realpath(root)
    data = coverage.CoverageData(data_file)
    data.read()
    files, rows = {}, []
    for path in sorted(data.measured_files()):
        if not path.startswith(os.path.join(root, source) + os.sep):
            continue
        contexts = data.contexts_by_lineno(path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for first, lines in functions(text):
            tests = set()
            for context in {context for line in lines for context in contexts.get(line, ()) if context}:
                if context not in files:
                    files[context] = test_file(root, context)
                if files[context]:
                    tests.add(files[context])
            if tests:
                rows.append({"path": os.path.relpath(path, root), "line": first, "tests": sorted(tests)})
    for row in rows[::each]:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
