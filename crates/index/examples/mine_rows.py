"""Mines rows for `cargo xtask bench recall` from the histories of git repositories.

    python mine_rows.py MIRROR ROWS [--per-repo N] [--salt TEXT] [--skip ROWS] OWNER/NAME ...

MIRROR has a bare clone `OWNER+NAME/repo` of each repository. A row is a commit that fixes something
and changes one to four source files, with its message as the query and its parent as the base.
Which commits of a repository are taken is decided by a hash of the salt and the commit's id, so that
a run can be repeated and two salts give different rows. Rows that `--skip` has are left out, by fix
and by first line. A folder with the result as `public.jsonl` beside the `score.py` and `common.py`
of the public data is what `cargo xtask bench recall --data` takes.
"""
import argparse
import hashlib
import json
import os
import re
import subprocess
import sys

LANGUAGES = {
    ".py": "python", ".pyx": "python", ".rs": "rust", ".go": "go", ".js": "javascript", ".jsx": "javascript",
    ".mjs": "javascript", ".cjs": "javascript", ".ts": "typescript", ".tsx": "typescript", ".vue": "javascript",
    ".svelte": "javascript", ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp",
    ".hh": "cpp", ".java": "java", ".rb": "ruby", ".php": "php", ".kt": "kotlin", ".scala": "scala",
    ".swift": "swift", ".cs": "csharp", ".lua": "lua",
}
ASIDE = re.compile(
    r"(^|/)(tests?|__tests__|__mocks__|specs?|testdata|test_data|fixtures|e2e|cypress|bench(es|marks?)?|examples?"
    r"|docs?|website|demos?|scripts|\.github|node_modules|vendor|third_party|_?dist|deps|build)/"
    r"|(^|/)(test_[^/]*|conftest|setup)\.py$|[._-](tests?|spec|bench)\.[a-z]+$|Tests?\.(java|kt|php|cs)$"
    r"|(^|/)tests?\.[a-z]+$|\.min\.js$|\.pb\.go$|_pb2\.py$|\.d\.ts$|^testing/",
    re.IGNORECASE,
)
FIX = re.compile(
    r"\b(fix(es|ed|ing)?|bugs?|crash(es|ed)?|regressions?|handle|avoid|prevent|support|allow|correct(ly)?|wrong|"
    r"fails?|missing|don't|should)\b",
    re.IGNORECASE,
)
NOT_FIX = re.compile(
    r"\b(tests?|typos?|docs?|documentation|comments?|readme|lint(er|ing)?|clippy|format(ting)?|whitespace|"
    r"warnings?|changelog|release|merge|reverts?|bump|deps|dependenc(y|ies)|ci|builds?|translations?|eslint)\b|^chore",
    re.IGNORECASE,
)
TRAILER = re.compile(r"^[A-Z][A-Za-z]+(-[A-Za-z]+)+: |^(Cc|Refs|PR-URL|Closes?|Fix(es)?): ", re.IGNORECASE)
LEAVE_OUT = re.compile(
    r"https?://\S+|\(?\B#\d+\)?|\bgh-\d+|\S*/\S*\.[A-Za-z]{1,6}\b\S*|\b[\w-]+\.(py|pyx|rs|go|jsx?|mjs|tsx?|vue|svelte|"
    r"c|h|cc|cpp|hpp|java|rb|php|kt|lua)\b"
)
MAX_CHANGED_FILES, MAX_GOLD_FILES = 12, 4
MIN_QUERY_WORDS, MAX_QUERY_CHARS = 6, 8_000
MIN_CANDIDATES, MAX_CANDIDATES = 10, 3_000


def git(place, *words):
    return subprocess.run(["git", "-C", place, *words], capture_output=True, check=True).stdout.decode("utf8", "replace")


def language_of(path):
    """Returns the language of a source file that isn't a test; `None` for other files."""
    return None if ASIDE.search(path) else LANGUAGES.get(os.path.splitext(path)[1])


def query_of(message):
    """Returns a message without its trailers, links, paths, file names and issue numbers."""
    lines = [line for line in message.strip().splitlines() if not TRAILER.match(line)]
    return "\n".join(" ".join(LEAVE_OUT.sub(" ", line).split()) for line in lines).strip()


def commits_of(place):
    """Yields id, date, parents, message and changed files (state, path) of the newest branch's commits."""
    form = "%x1e%H%x1f%cs%x1f%P%x1f%B%x1f"
    log = git(place, "log", "--no-merges", "--no-renames", "--since=2013-01-01", "--raw", "-z", f"--format={form}", "HEAD")
    for record in log.split("\x1e")[1:]:
        commit, date, parents, message, changes = record.split("\x1f", 4)
        parts = [part for part in changes.replace("\n", "").split("\0") if part]
        files = [(parts[at].split()[-1], parts[at + 1]) for at in range(0, len(parts) - 1, 2)]
        yield commit, date, parents.split(), message, files


def row_of(repo, place, commit, date, parents, message, files):
    """Returns the row of a commit; `None` if it doesn't make one."""
    title = message.strip().split("\n", 1)[0]
    source = [(state, path) for state, path in files if language_of(path)]
    modified = [path for state, path in source if state == "M"]
    if (
        len(parents) != 1 or len(files) > MAX_CHANGED_FILES or not FIX.search(title) or NOT_FIX.search(title)
        or len(modified) != len(source) or not 1 <= len(modified) <= MAX_GOLD_FILES
    ):
        return None
    query = query_of(message)
    names = [os.path.basename(path).lower() for path in modified]
    if (
        len(query.split()) < MIN_QUERY_WORDS or len(query) > MAX_QUERY_CHARS
        or any(name in query.lower() for name in names)
    ):
        return None
    candidates = sum(1 for path in git(place, "ls-tree", "-r", "-z", "--name-only", parents[0]).split("\0") if language_of(path))
    if not MIN_CANDIDATES <= candidates <= MAX_CANDIDATES:
        return None
    languages = [language_of(path) for path in modified]
    return {
        "id": f"{repo.replace('/', '__')}-{commit[:10]}", "repo": repo, "base_commit": parents[0], "fix_commit": commit,
        "date": date, "language": max(sorted(languages), key=languages.count), "query": query, "gold_files": sorted(modified),
        "source": "git-mined", "kind": "commit", "n_candidates": candidates, "mentions_gold_path": False,
        "mentions_gold_basename": False,
    }


def main():
    options = argparse.ArgumentParser()
    options.add_argument("mirror")
    options.add_argument("rows")
    options.add_argument("--per-repo", type=int, default=16)
    options.add_argument("--salt", default="own")
    options.add_argument("--skip", action="append", default=[])
    options.add_argument("repos", nargs="+")
    options = options.parse_args()
    known = [json.loads(line) for rows in options.skip for line in open(rows)]
    skipped = {row.get("fix_commit") for row in known} | {row["query"].split("\n", 1)[0].strip() for row in known}
    with open(options.rows, "w") as out:
        for repo in options.repos:
            place = os.path.join(options.mirror, repo.replace("/", "+"), "repo")
            commits = [commit for commit in commits_of(place) if commit[0] not in skipped]
            commits.sort(key=lambda commit: hashlib.sha256((options.salt + commit[0]).encode()).digest())
            count = 0
            for commit in commits:
                row = row_of(repo, place, *commit)
                if row and row["query"].split("\n", 1)[0].strip() not in skipped:
                    out.write(json.dumps(row) + "\n")
                    count += 1
                    if count == options.per_repo:
                        break
            print(f"{repo}: {count} rows of {len(commits)} commits", file=sys.stderr)


main()
