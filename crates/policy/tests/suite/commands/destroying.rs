//! What would be lost is named.

use journeyman_policy::analyse_command;
use journeyman_protocol::Level;

use crate::commands::checks;

/// A command, and words of what it is said to destroy.
const DESTROYING: &[(&str, &str)] = &[
    ("rm -rf target", "target"),
    ("rm -fr target", "target"),
    ("rm -r -f a b", "a, b"),
    ("rm --recursive --force x", "x"),
    ("rm -R x", "x"),
    ("r\\m -rf x", "x"),
    ("'rm' -rf x", "x"),
    ("\"rm\" \"-rf\" \"x\"", "x"),
    ("/bin/rm -rf x", "x"),
    ("rm${IFS}-rf${IFS}x", "x"),
    ("{rm,-rf,x}", "x"),
    ("ls | xargs rm -rf", "removed"),
    ("bash -c 'rm -rf x'", "x"),
    ("find . -name x -exec rm -f {} +", "removed"),
    ("find . -delete", "finds"),
    ("cd x && rm -rf y", "y"),
    ("rm -rf a b c d e", "and more"),
    ("git clean -fdx", "track"),
    ("git reset --hard HEAD~1", "committed"),
    ("git reset --har", "committed"),
    ("git checkout -- .", "committed"),
    ("git checkout .", "committed"),
    ("git checkout -f main", "committed"),
    ("git checkout src/lib.rs", "committed"),
    ("git restore x", "committed"),
    ("git restore --staged --worktree x", "committed"),
    ("git switch -f x", "committed"),
    ("git branch -D x", "branch"),
    ("git branch -d -f x", "branch"),
    ("git push --force", "remote"),
    ("git push -f", "remote"),
    ("git push --force-with-lease", "remote"),
    ("git push origin +main", "remote"),
    ("git push origin :x", "remote"),
    ("git push --delete origin x", "remote"),
    ("git stash", "committed"),
    ("git stash drop", "stash"),
    ("git stash clear", "stash"),
    ("git filter-branch x", "history"),
    ("truncate -s 0 x", "x"),
    ("dd if=/dev/zero of=x", "x"),
    ("mkfs.ext4 x", "x"),
    ("chmod -R 777 x", "x"),
    ("chown -R me x", "x"),
    ("shred x", "x"),
    ("psql -c 'DROP TABLE users'", "table"),
    ("echo 'drop   database x' | mysql", "database"),
    ("sqlite3 a \"DELETE FROM t\"", "rows"),
    ("kubectl delete ns x", "delete"),
    ("terraform destroy", "configuration"),
    ("docker system prune", "prune"),
    ("rsync -a --delete a/ b/", "side"),
    ("python -c 'import shutil; shutil.rmtree(\"x\")'", "rmtree"),
    ("npm unpublish x", "published"),
    ("dropdb x", "x"),
    ("\\rm -rf x", "x"),
    ("command rm -rf x", "x"),
    ("env rm -rf x", "x"),
    ("sudo rm -rf x", "x"),
    ("r$'m' -rf x", "x"),
    ("if true; then rm -r x; fi", "x"),
    ("for f in a; do rm -f \"$f\"; done", "removed"),
    ("echo $(rm -rf x)", "x"),
    ("sh -c \"rm -rf x\"", "x"),
    ("find . -exec sh -c 'rm -rf x' \\;", "x"),
    ("git -c alias.x='!rm -rf y' x", "y"),
    ("git reflog expire --expire=now --all", "way back"),
    ("git gc --prune=now", "objects"),
    ("git push --mirror", "remote"),
    ("git worktree remove x", "work tree"),
    ("mv -f a b", "before"),
    ("psql db -c 'TRUNCATE TABLE users'", "rows"),
    ("mysql -e 'drop database x'", "database"),
    ("redis-cli FLUSHALL", "database"),
    ("helm uninstall x", "uninstall"),
    ("aws s3 rm s3://b --recursive", "rm"),
    ("gh repo delete x", "delete"),
    ("cat <<E | sh\nrm -rf x\nE", "x"),
    ("[[ a && rm -rf x ]]", "x"),
];

#[test]
fn what_destroys_is_named() {
    for (command, words) in DESTROYING {
        let analysis = analyse_command(command, &checks());
        let destroys = analysis.destroys.unwrap_or_default();
        assert!(destroys.contains(words), "{command}: `{destroys}`");
        assert!(analysis.level >= Level::Edit, "{command}");
    }
    for command in [
        "git clean -n",
        "git restore --staged x",
        "git checkout main",
        "git branch -d x",
        "chmod +x y",
        "git reset x",
        "git commit -m 'delete from the list; rm -rf it'",
        "echo rm -rf x",
        "grep -rn 'DROP TABLE' .",
        "ls rm",
        "cat rm/README",
    ] {
        assert_eq!(analyse_command(command, &checks()).destroys, None, "{command}");
    }
}

#[test]
fn what_undoing_does_not_bring_back_is_told_apart() {
    for command in [
        "rm -rf target",
        "rm a.txt",
        "rm -rf build/x",
        "truncate -s 0 x",
        "chmod -R +x src",
        "git stash",
        "git stash push -u -m x",
        "git rm a.txt",
    ] {
        assert!(!analyse_command(command, &checks()).beyond_undo, "{command}");
    }
    for command in [
        "rm -rf .",
        "rm -rf *",
        "rm -rf $x",
        "rm .env",
        "rm -rf ~",
        "rm -rf ../x",
        "rm -rf /srv/x",
        "find . -delete",
        "git clean -fdx",
        "ls | xargs rm",
        "rm -rf \"$dir\"/x",
        "rm -rf {a,b}",
        "git reset --hard",
        "git push --force",
        "git stash --all",
        "git stash drop",
        "git rm -rf src",
    ] {
        assert!(analyse_command(command, &checks()).beyond_undo, "{command}");
    }
}
