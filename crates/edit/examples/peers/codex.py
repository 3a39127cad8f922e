"""codex's `apply_patch` on the tasks of `mutations`: reads tasks, writes answers. Its argument is the binary."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        # By this name it is the tool and nothing else.
        tool = pathlib.Path(place) / "apply_patch"
        tool.symlink_to(program)
        tree = pathlib.Path(place) / "tree"
        tree.mkdir()
        for line in sys.stdin:
            task = json.loads(line)
            # The name has a line of its own in the patch; folders say nothing here.
            name = "file." + task["path"].rsplit(".", 1)[-1]
            answers = [answer(tool, tree, name, task, case) for case in task["cases"]]
            print(json.dumps({"id": task["id"], "answers": answers}), flush=True)


def answer(tool, tree, name, task, case):
    if "patch" not in case:
        return None
    before = case.get("files", [task["before"]])[0]
    file = tree / name
    file.write_bytes(before.encode())
    patch = f"*** Begin Patch\n*** Update File: {name}\n@@\n{case['patch']}*** End Patch\n"
    done = subprocess.run([tool, patch], cwd=tree, capture_output=True, timeout=60)
    if done.returncode:
        return {"error": done.stderr.decode(errors="replace")[:500]}
    return {"text": file.read_bytes().decode(errors="replace")}


if __name__ == "__main__":
    main()
