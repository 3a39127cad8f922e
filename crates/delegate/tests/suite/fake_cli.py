#!/usr/bin/python3
"""A coding CLI that does what its prompt says, line by line. It writes JSON lines."""
import json, os, subprocess, sys, time

if "--version" in sys.argv:
    print("fake 1.2.3")
    sys.exit(0)
if "--new-flag" in sys.argv:
    print("error: unexpected argument '--new-flag' found", file=sys.stderr)
    sys.exit(2)


def tell(kind, **fields):
    print(json.dumps({"type": kind, **fields}), flush=True)


home = os.environ["HOME"]
resumed = sys.argv[sys.argv.index("--resume") + 1] if "--resume" in sys.argv else None
session = resumed or f"s-{os.getpid()}-{time.time_ns()}"
notes = os.path.join(home, "sessions", session)
if resumed and not os.path.exists(notes):
    print("no such session", file=sys.stderr)
    sys.exit(1)
os.makedirs(os.path.dirname(notes), exist_ok=True)
prompt = sys.stdin.read()
with open(notes, "a") as file:
    file.write("prompt\n")
tell("session", id=session)
message = "done"
for line in prompt.splitlines():
    word, _, rest = line.strip().partition(" ")
    if word == "edit":
        path, _, text = rest.partition(" ")
        tell("tool", id=path, name="edit", summary=path)
        with open(path, "w") as file:
            file.write(text + "\n")
        tell("tool_end", id=path, failed=False, output="")
        tell("files", files=[path])
    elif word == "run":
        tell("tool", id=rest, name="bash", summary=rest)
        done = subprocess.run(rest, shell=True, capture_output=True, text=True)
        tell("tool_end", id=rest, failed=done.returncode != 0, output=done.stdout + done.stderr)
        message = done.stdout.strip() or done.stderr.strip() or message
    elif word == "say":
        tell("text", text=rest + "\n")
        message = rest
    elif word == "count":
        with open(notes) as file:
            message = f"{len(file.readlines())} prompts in this session"
    elif word == "strange":
        tell("thinking_about_lunch", dish="soup")
        print("not JSON at all", flush=True)
    elif word == "sleep":
        tell("text", text="sleeping\n")
        time.sleep(float(rest))
    elif word == "flood":
        for _ in range(int(rest) // 1000):
            tell("text", text="x" * 1000)
    elif word == "leave":
        # A process of its own session, which outlives its parent and its group.
        child = f"{rest}; sleep 1000"
        subprocess.Popen(["/bin/sh", "-c", child], start_new_session=True, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    elif word == "crash":
        os.abort()
    elif word == "cut":
        sys.stdout.write('{"type": "do')
        sys.stdout.flush()
        sys.exit(0)
    elif word == "fail":
        tell("failed", message=rest)
        sys.exit(1)
    elif word == "linger":
        tell("done", message="all said", usage={"input": 1, "output": 1})
        time.sleep(1000)
tell("done", message=message, usage={"input": 100, "output": 20}, cost=0.25)
