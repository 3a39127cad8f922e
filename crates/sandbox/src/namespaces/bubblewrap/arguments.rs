//! Converts the steps that build a root to arguments of `bwrap`, and to the checks that `bwrap` did
//! as told. Pure.

use std::ffi::CString;
use std::path::Path;

use super::super::c_string::display_path;
use super::super::root_steps::{BindAccess, RootStep};
use crate::SandboxError;

/// The helper's path in the sandbox. Its directory can't be listed.
pub(super) const HELPER_PATH: &str = "/.sandbox/helper";
/// The first of the descriptors that masked files read from.
pub(super) const FIRST_TEXT_DESCRIPTOR: u32 = 200;
/// Files that are masked at once: a descriptor each, and the usual hard limit of them is 4,096 or
/// more.
const MAX_MASKED_FILES: u32 = 2_000;

/// Bytes of the smallest file system: a page.
const MIN_SCRATCH_BYTES: u64 = 4096;

/// The arguments of `bwrap`, and the checks of its work.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BwrapArguments {
    pub(super) list: Vec<CString>,
    /// The contents of the descriptors from [`FIRST_TEXT_DESCRIPTOR`] on: mostly nothing.
    pub(super) texts: Vec<CString>,
    pub(super) checks: Vec<MountCheck<CString>>,
}

/// A path in the sandbox, the host's file that must be there, and its protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MountCheck<T> {
    /// Absolute, inside.
    pub(super) path: T,
    /// Absolute, on the host, without links.
    pub(super) source: T,
    pub(super) kind: MountCheckKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountCheckKind {
    /// The host's file, read-only.
    ReadOnly,
    /// The host's file, writable.
    Writable,
    /// Another file, read-only.
    Hidden,
}

impl MountCheckKind {
    pub(super) fn from_number(number: u32) -> Option<Self> {
        [Self::ReadOnly, Self::Writable, Self::Hidden].into_iter().find(|kind| *kind as u32 == number)
    }
}

/// Returns the arguments for these steps. `scratch_bytes` bounds all private directories together.
///
/// `bwrap` has nothing that several private directories share, so `/tmp` gets half of the space and
/// the others equal parts of the rest; and no layers for a layered directory, which is read-only.
pub(super) fn build_arguments(
    steps: &[RootStep<CString>],
    helper: &CString,
    own_network: bool,
    scratch_bytes: u64,
) -> Result<BwrapArguments, SandboxError> {
    let scratches = steps.iter().filter(|step| matches!(step, RootStep::Scratch { .. })).count();
    let mut out = ArgumentWriter {
        out: BwrapArguments::default(),
        binds: Vec::new(),
        share: scratch_bytes / 2 / (scratches.max(2) as u64 - 1),
        temporary: scratch_bytes / 2,
        devices: false,
    };
    for option in [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup",
        "--disable-userns",
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
    ] {
        out.push_words(&[option])?;
    }
    if own_network {
        out.push_words(&["--unshare-net"])?;
    }
    out.push_words(&["--cap-drop", "ALL", "--perms", "0111", "--dir", "/.sandbox", "--ro-bind"])?;
    out.out.list.push(helper.clone());
    out.push_words(&[HELPER_PATH])?;
    for step in steps {
        out.push_step(step)?;
    }
    out.push_words(&["--remount-ro", "/"])?;
    Ok(out.out)
}

struct ArgumentWriter {
    out: BwrapArguments,
    /// Places and what of the host is there, in order.
    binds: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes of a private directory; of `/tmp`.
    share: u64,
    temporary: u64,
    devices: bool,
}

impl ArgumentWriter {
    fn push_words(&mut self, words: &[&str]) -> Result<(), SandboxError> {
        for word in words {
            self.out.list.push(to_c_string(word.as_bytes())?);
        }
        Ok(())
    }

    fn push_step(&mut self, step: &RootStep<CString>) -> Result<(), SandboxError> {
        match step {
            // Made with the devices, in a file system of their own.
            RootStep::Directory { path } | RootStep::File { path } | RootStep::Link { path, .. }
                if is_in_dev(path) =>
            {
                self.push_devices()
            }
            RootStep::Bind { access: BindAccess::Device, .. } => self.push_devices(),
            RootStep::Terminals { .. } => self.push_devices(),
            RootStep::Directory { path } => {
                self.push_words(&["--dir"])?;
                self.push_path(path)
            }
            // `bwrap` creates the mount point with the mount.
            RootStep::File { .. } => Ok(()),
            RootStep::Link { path, target } => {
                self.push_words(&["--symlink"])?;
                self.out.list.push(target.clone());
                self.push_path(path)
            }
            RootStep::Bind { path, source, access } => {
                let (option, kind) = match access {
                    BindAccess::Writable => ("--bind", MountCheckKind::Writable),
                    _ => ("--ro-bind", MountCheckKind::ReadOnly),
                };
                self.push_bind(option, path, source, kind)
            }
            // Layers that are thrown away are beyond it.
            RootStep::Layer { path, source } => {
                self.push_bind("--ro-bind", path, source, MountCheckKind::ReadOnly)
            }
            RootStep::Base { path, .. } => Err(SandboxError::Refused(format!(
                "the copy at `{}` is mounted in namespaces of its own, which bubblewrap can't join",
                display_path(path)
            ))),
            RootStep::Scratch { path, mode } => {
                let size = if path.as_bytes() == b"tmp" { self.temporary } else { self.share };
                let (mode, size) = (format!("{mode:04o}"), size.max(MIN_SCRATCH_BYTES).to_string());
                self.push_words(&["--perms", &mode, "--size", &size, "--tmpfs"])?;
                self.push_path(path)
            }
            RootStep::Proc { path } => {
                self.push_words(&["--proc"])?;
                self.push_path(path)?;
                // All of it: root would write to the kernel's settings.
                self.push_words(&["--remount-ro"])?;
                self.push_path(path)
            }
            RootStep::Guard { path } => {
                let source = self.host_path(path)?;
                self.push_bind("--ro-bind", path, &source, MountCheckKind::ReadOnly)
            }
            RootStep::Mask { path, directory, text } => self.push_mask(path, *directory, text),
        }
    }

    /// Adds devices, terminals and shared memory, once; the rest of `/dev` is read-only.
    fn push_devices(&mut self) -> Result<(), SandboxError> {
        if std::mem::replace(&mut self.devices, true) {
            return Ok(());
        }
        self.push_words(&["--dev", "/dev", "--remount-ro", "/dev"])
    }

    fn push_path(&mut self, path: &CString) -> Result<(), SandboxError> {
        self.out.list.push(absolute_path(path)?);
        Ok(())
    }

    fn push_bind(
        &mut self,
        option: &str,
        path: &CString,
        source: &CString,
        kind: MountCheckKind,
    ) -> Result<(), SandboxError> {
        self.push_words(&[option])?;
        self.out.list.push(source.clone());
        self.push_path(path)?;
        self.binds.push((path.as_bytes().to_vec(), source.as_bytes().to_vec()));
        self.add_check(path, source, kind)
    }

    /// Records the file that must be at a path; a later one replaces it.
    fn add_check(
        &mut self,
        path: &CString,
        source: &CString,
        kind: MountCheckKind,
    ) -> Result<(), SandboxError> {
        let path = absolute_path(path)?;
        self.out.checks.retain(|check| check.path != path);
        self.out.checks.push(MountCheck { path, source: source.clone(), kind });
        Ok(())
    }

    /// Returns the host's path of a path inside, by the last mount above it.
    fn host_path(&self, path: &CString) -> Result<CString, SandboxError> {
        let bytes = path.as_bytes();
        let above = self.binds.iter().rev().find_map(|(at, source)| {
            let rest = bytes.strip_prefix(at.as_slice())?;
            (rest.is_empty() || rest.first() == Some(&b'/')).then(|| [source.as_slice(), rest].concat())
        });
        match above {
            Some(source) => to_c_string(&source),
            None => absolute_path(path),
        }
    }

    fn push_mask(&mut self, path: &CString, directory: bool, text: &CString) -> Result<(), SandboxError> {
        let source = self.host_path(path)?;
        if directory {
            self.push_words(&["--perms", "0555", "--size", "4096", "--tmpfs"])?;
            self.push_path(path)?;
            self.push_words(&["--remount-ro"])?;
            self.push_path(path)?;
        } else {
            let index = u32::try_from(self.out.texts.len()).ok().filter(|index| *index < MAX_MASKED_FILES);
            let Some(index) = index else {
                return Err(SandboxError::Refused(format!("more than {MAX_MASKED_FILES} files are masked")));
            };
            let descriptor = (FIRST_TEXT_DESCRIPTOR + index).to_string();
            self.out.texts.push(text.clone());
            self.push_words(&["--perms", "0444", "--ro-bind-data", &descriptor])?;
            self.push_path(path)?;
        }
        self.add_check(path, &source, MountCheckKind::Hidden)
    }
}

fn is_in_dev(path: &CString) -> bool {
    Path::new(std::str::from_utf8(path.as_bytes()).unwrap_or_default()).starts_with("dev")
}

fn absolute_path(path: &CString) -> Result<CString, SandboxError> {
    to_c_string(&[b"/", path.as_bytes()].concat())
}

fn to_c_string(bytes: &[u8]) -> Result<CString, SandboxError> {
    CString::new(bytes).map_err(|_| SandboxError::Refused("a path has a NUL byte".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> CString {
        CString::new(text).unwrap()
    }

    fn told(steps: &[RootStep<CString>]) -> (String, BwrapArguments) {
        let all = build_arguments(steps, &text("/opt/jm"), true, 64 * 1024).unwrap();
        let words: Vec<&str> = all.list.iter().map(|word| word.to_str().unwrap()).collect();
        let words = words.join(" ");
        let begin = words.find("/.sandbox/helper").unwrap() + "/.sandbox/helper ".len();
        let steps = words[begin..].strip_suffix("--remount-ro /").unwrap().trim().to_owned();
        (steps, all)
    }

    fn bind(path: &str, source: &str, access: BindAccess) -> RootStep<CString> {
        RootStep::Bind { path: text(path), source: text(source), access }
    }

    #[test]
    fn every_step_has_its_arguments() {
        let cases = [
            (RootStep::Directory { path: text("w") }, "--dir /w"),
            (RootStep::File { path: text("etc/x") }, ""),
            (RootStep::Link { path: text("bin"), target: text("usr/bin") }, "--symlink usr/bin /bin"),
            (bind("usr", "/usr", BindAccess::ReadOnly), "--ro-bind /usr /usr"),
            (bind("w", "/w", BindAccess::Writable), "--bind /w /w"),
            (bind("dev/null", "/dev/null", BindAccess::Device), "--dev /dev --remount-ro /dev"),
            (RootStep::Directory { path: text("dev/pts") }, "--dev /dev --remount-ro /dev"),
            (RootStep::Directory { path: text("devices") }, "--dir /devices"),
            (RootStep::Terminals { path: text("dev/pts") }, "--dev /dev --remount-ro /dev"),
            (RootStep::Scratch { path: text("tmp"), mode: 0o1777 }, "--perms 1777 --size 32768 --tmpfs /tmp"),
            (RootStep::Layer { path: text("l"), source: text("/l") }, "--ro-bind /l /l"),
            (RootStep::Proc { path: text("proc") }, "--proc /proc --remount-ro /proc"),
            (RootStep::Guard { path: text("w/.git") }, "--ro-bind /w/.git /w/.git"),
            (
                RootStep::Mask { path: text("w/keys"), directory: true, text: text("") },
                "--perms 0555 --size 4096 --tmpfs /w/keys --remount-ro /w/keys",
            ),
            (
                RootStep::Mask { path: text("w/key"), directory: false, text: text("") },
                "--perms 0444 --ro-bind-data 200 /w/key",
            ),
        ];
        for (step, expected) in cases {
            assert_eq!(told(std::slice::from_ref(&step)).0, expected, "{step:?}");
        }
        let refused = build_arguments(
            &[RootStep::Base { path: text("w"), access: BindAccess::Writable }],
            &text("/opt/jm"),
            true,
            1,
        );
        assert!(refused.unwrap_err().to_string().contains("can't join"));
    }

    #[test]
    fn what_is_guarded_and_masked_in_a_copy_is_the_copys() {
        let steps = [
            bind("w", "/copies/1", BindAccess::Writable),
            RootStep::Guard { path: text("w/.git") },
            RootStep::Mask { path: text("w/key"), directory: false, text: text("") },
            RootStep::Mask { path: text("w2/key"), directory: false, text: text("") },
        ];
        let (words, all) = told(&steps);
        assert_eq!(
            words,
            "--bind /copies/1 /w --ro-bind /copies/1/.git /w/.git --perms 0444 --ro-bind-data 200 /w/key \
             --perms 0444 --ro-bind-data 201 /w2/key"
        );
        let check = |path, source, kind| MountCheck { path: text(path), source: text(source), kind };
        assert_eq!(
            all.checks,
            [
                check("/w", "/copies/1", MountCheckKind::Writable),
                check("/w/.git", "/copies/1/.git", MountCheckKind::ReadOnly),
                check("/w/key", "/copies/1/key", MountCheckKind::Hidden),
                check("/w2/key", "/w2/key", MountCheckKind::Hidden),
            ]
        );
        assert_eq!(all.texts.len(), 2);
    }

    #[test]
    fn everything_is_unshared_and_dropped() {
        let words = |own_network| -> Vec<String> {
            let all = build_arguments(&[], &text("/opt/jm"), own_network, 1).unwrap();
            all.list.iter().map(|word| word.to_str().unwrap().to_owned()).collect()
        };
        for option in [
            "--unshare-user",
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup",
            "--disable-userns",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
        ] {
            assert!(words(false).iter().any(|word| word == option), "{option}");
        }
        assert!(words(true).contains(&"--unshare-net".to_owned()));
        assert!(!words(false).contains(&"--unshare-net".to_owned()));
    }

    #[test]
    fn what_is_mounted_twice_is_checked_once_as_it_ends() {
        let steps = [
            bind("w", "/w", BindAccess::Writable),
            bind("w/env", "/w/env", BindAccess::ReadOnly),
            RootStep::Mask { path: text("w/env"), directory: false, text: text("") },
        ];
        let kinds: Vec<MountCheckKind> = told(&steps).1.checks.iter().map(|check| check.kind).collect();
        assert_eq!(kinds, [MountCheckKind::Writable, MountCheckKind::Hidden]);
    }
}
