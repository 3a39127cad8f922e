"""aider's SEARCH/REPLACE engine on the tasks of `mutations`: reads tasks, writes answers."""

import importlib
import importlib.util
import json
import pathlib
import sys
import types


def engine():
    """`editblock_coder` alone: its package's start-up loads every model client."""
    root = pathlib.Path(importlib.util.find_spec("aider").origin).parent
    for name, path in (("aider", root), ("aider.coders", root / "coders")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    for name in ("aider.dump", "aider.utils", "aider.coders.base_coder", "aider.coders.editblock_prompts"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["aider"].utils = sys.modules["aider.utils"]
    sys.modules["aider.dump"].dump = print
    sys.modules["aider.coders.base_coder"].Coder = object
    sys.modules["aider.coders.editblock_prompts"].EditBlockPrompts = object
    return importlib.import_module("aider.coders.editblock_coder")


def block(lines):
    """Lines as they stand in a block."""
    return lines + "\n" if lines else ""


def main():
    coder = engine()
    for line in sys.stdin:
        task = json.loads(line)
        answers = []
        for case in task["cases"]:
            before = case.get("files", [task["before"]])[0]
            # It reads files in text mode.
            before = before.replace("\r\n", "\n")
            try:
                old, new = block(case["search"]), block(case["replace"])
                after = coder.do_replace(task["path"], before, old, new, coder.DEFAULT_FENCE)
            except ValueError as error:
                answers.append({"error": f"{type(error).__name__}: {error}"})
                continue
            answers.append({"text": after} if after else {"error": "no match"})
        print(json.dumps({"id": task["id"], "answers": answers}), flush=True)


if __name__ == "__main__":
    main()
