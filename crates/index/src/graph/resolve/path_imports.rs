//! Files imported by path: headers, style sheets, pages, documents, shell scripts.

use journeyman_syntax::imports::Import;

use super::nearest_files;
use super::{FileResolver, ImportTarget, folder_and_ancestors, join_path, last_part};
use crate::analyser::purpose_of_file;

/// Names of header folders, looked up in each enclosing folder.
const HEADER_FOLDERS: [&str; 4] = ["", "include", "src", "inc"];
/// Headers of C, POSIX and common systems, sorted: third-party code may have one of the name for
/// systems that lack it.
const SYSTEM_HEADERS: [&str; 93] = [
    "aio.h",
    "assert.h",
    "byteswap.h",
    "complex.h",
    "cpio.h",
    "ctype.h",
    "dirent.h",
    "dlfcn.h",
    "elf.h",
    "endian.h",
    "err.h",
    "errno.h",
    "execinfo.h",
    "fcntl.h",
    "features.h",
    "fenv.h",
    "float.h",
    "fmtmsg.h",
    "fnmatch.h",
    "ftw.h",
    "getopt.h",
    "glob.h",
    "grp.h",
    "iconv.h",
    "ifaddrs.h",
    "intrin.h",
    "inttypes.h",
    "io.h",
    "iso646.h",
    "langinfo.h",
    "libgen.h",
    "limits.h",
    "locale.h",
    "malloc.h",
    "math.h",
    "memory.h",
    "monetary.h",
    "mqueue.h",
    "ndbm.h",
    "netdb.h",
    "nl_types.h",
    "nmmintrin.h",
    "paths.h",
    "poll.h",
    "pthread.h",
    "pwd.h",
    "regex.h",
    "resolv.h",
    "sched.h",
    "search.h",
    "semaphore.h",
    "setjmp.h",
    "sgtty.h",
    "signal.h",
    "spawn.h",
    "stdalign.h",
    "stdarg.h",
    "stdatomic.h",
    "stdbit.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "stdnoreturn.h",
    "string.h",
    "strings.h",
    "stropts.h",
    "syscall.h",
    "sysexits.h",
    "syslog.h",
    "tar.h",
    "termio.h",
    "termios.h",
    "tgmath.h",
    "threads.h",
    "time.h",
    "uchar.h",
    "ucontext.h",
    "ulimit.h",
    "unistd.h",
    "utime.h",
    "utmp.h",
    "utmpx.h",
    "values.h",
    "varargs.h",
    "wchar.h",
    "wctype.h",
    "windows.h",
    "winsock2.h",
    "wordexp.h",
    "ws2tcpip.h",
    "x86intrin.h",
];
/// Files that a link to a folder means.
const FOLDER_INDEX_FILES: [&str; 4] = ["README.md", "index.md", "index.html", "index.rst"];

impl FileResolver<'_> {
    /// `"x"` is looked up beside the file first; `<x>` only in header folders.
    pub(super) fn resolve_include(&mut self, import: &Import) -> ImportTarget {
        let target = import.target.as_str();
        if import.relative
            && let Some(file) = self.lookup.first_existing(self.folder, [target])
        {
            return ImportTarget::Files(vec![file]);
        }
        for folder in folder_and_ancestors(self.folder).map(str::to_owned).collect::<Vec<_>>() {
            for include in HEADER_FOLDERS {
                let Some(root) = join_path(&folder, include) else { continue };
                if let Some(file) = self.lookup.first_existing(&root, [target]) {
                    return ImportTarget::Files(vec![file]);
                }
            }
        }
        // A single name in angle brackets is the system's, unless a header folder has it.
        let plain = target.trim_start_matches("../").trim_start_matches("./");
        let end = if import.relative || plain.contains('/') {
            plain.to_owned()
        } else {
            format!("include/{plain}")
        };
        let files = self.lookup.files_ending_with(&end);
        match nearest_files(self.folder, files).as_slice() {
            [only] => ImportTarget::Files(vec![only.clone()]),
            [] if !import.relative => match self.vendored_header(plain) {
                Some(header) => ImportTarget::Files(vec![header]),
                None => ImportTarget::Package(target.to_owned()),
            },
            // The header is ambiguous.
            _ => ImportTarget::Nothing,
        }
    }

    /// Returns the only header of third-party code with a name, which builds find by an option.
    fn vendored_header(&mut self, plain: &str) -> Option<String> {
        if SYSTEM_HEADERS.binary_search(&plain).is_ok() {
            return None;
        }
        let mut files = self.lookup.files_ending_with(plain);
        files.retain(|file| purpose_of_file(file, "").vendored);
        let [only] = files.as_slice() else { return None };
        Some(only.clone())
    }

    /// Resolves a path from the file's folder, or from the root of the project.
    pub(super) fn resolve_link(&mut self, import: &Import) -> ImportTarget {
        let target = import.target.as_str();
        let rooted = target.strip_prefix('/');
        let mut folders = vec![self.folder.to_owned()];
        match rooted {
            // A page's root may be any enclosing folder.
            Some(_) => {
                folders = folder_and_ancestors(self.folder)
                    .flat_map(|folder| [Some(folder.to_owned()), join_path(folder, "public")])
                    .flatten()
                    .collect()
            }
            None => folders.push(String::new()),
        }
        let target = rooted.unwrap_or(target);
        for folder in folders {
            let Some(path) = join_path(&folder, target) else { continue };
            if let Some(file) = self.lookup.existing_file(path.clone()) {
                return ImportTarget::Files(vec![file]);
            }
            if !last_part(&path).contains('.')
                && let Some(file) = self
                    .lookup
                    .first_existing(&path, FOLDER_INDEX_FILES)
                    .or_else(|| self.lookup.existing_file(format!("{path}.md")))
            {
                return ImportTarget::Files(vec![file]);
            }
        }
        ImportTarget::Nothing
    }
}
