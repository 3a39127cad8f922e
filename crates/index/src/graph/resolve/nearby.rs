//! Files imported by path: headers, style sheets, pages, documents, shell scripts.

use journeyman_syntax::imports::Import;

use super::nearest_files;
use super::{FileResolver, ImportTarget, folder_and_ancestors, join_path, last};

/// Names of header folders, looked up in each enclosing folder.
const HEADER_FOLDERS: [&str; 4] = ["", "include", "src", "inc"];
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
            [] if !import.relative => ImportTarget::Package(target.to_owned()),
            // The header is ambiguous.
            _ => ImportTarget::Nothing,
        }
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
            if !last(&path).contains('.')
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
