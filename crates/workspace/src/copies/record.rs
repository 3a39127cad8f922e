//! The record of a copy on the disk: one small file, replaced whole, with a checksum.
//!
//! It is written when the copy is complete and goes first when the copy goes: a copy without a
//! record is half made or half removed, and is swept. So is one whose record doesn't say that it is
//! kept: its process died before the session was on record. A damaged record was damaged by hand or
//! by the disk; the copy may hold work and stays.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use journeyman_protocol::{ContentHash, SessionId};
use serde::{Deserialize, Serialize};

use crate::change::ChangeId;
use crate::copies::info::CopyInfo;
use crate::error::WorkspaceError;
use crate::limits::MAX_COPY_RECORD_BYTES;
use crate::state::lock::{replace_durably, state_error};

/// The format's number.
const RECORD_VERSION: u32 = 2;
const RECORD_FILE: &str = "record";

/// One copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyRecord {
    version: u32,
    pub(crate) info: CopyInfo,
    /// False until the copy's session is on record.
    pub(crate) kept: bool,
    /// The place of its files.
    pub(crate) beside: CopyPlacement,
    /// Which of its layers is the one that counts.
    pub(crate) layer: u32,
    /// The boot id of the machine when the copy was made, if it is known.
    pub(crate) boot: Option<String>,
    /// The newest landing of the session when the copy was opened last: an earlier one says nothing
    /// of what is in the copy now.
    #[serde(default)]
    pub(crate) opened_after: ChangeId,
    /// The session that hands the copy over to this one, until that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) handed_from: Option<SessionId>,
}

/// The result of reading a record.
#[derive(Debug)]
pub(crate) enum CopyRecordState {
    /// No record: nothing, or something half made.
    Nothing,
    /// The record's content or checksum is wrong.
    Damaged(&'static str),
    Record(Box<CopyRecord>),
}

impl CopyRecord {
    pub(crate) fn new(info: CopyInfo, beside: CopyPlacement) -> Self {
        Self {
            version: RECORD_VERSION,
            info,
            kept: false,
            beside,
            layer: 1,
            boot: boot_id(),
            opened_after: ChangeId::NONE,
            handed_from: None,
        }
    }

    /// Replaces the record in `dir` atomically.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), WorkspaceError> {
        let path = dir.join(RECORD_FILE);
        let failed = |source| state_error("write", &path, source);
        let json = serde_json::to_string(self).map_err(|error| failed(error.into()))?;
        let text = format!("{}\n{json}\n", ContentHash::of(json.as_bytes()));
        replace_durably(&path, text.as_bytes()).map_err(failed)
    }

    /// Reads the record of the session's copy in `dir`.
    pub(crate) fn read(dir: &Path, session: &SessionId) -> Result<CopyRecordState, WorkspaceError> {
        let path = dir.join(RECORD_FILE);
        let mut text = Vec::new();
        let read = fs::File::open(&path)
            .and_then(|file| file.take(MAX_COPY_RECORD_BYTES + 1).read_to_end(&mut text));
        match read {
            Ok(_) => Ok(parse(&text, session)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(CopyRecordState::Nothing),
            Err(source) => Err(state_error("read", &path, source)),
        }
    }

    /// Removes the record; from here on the copy counts as half removed.
    pub(crate) fn remove(dir: &Path) -> Result<(), WorkspaceError> {
        let path = dir.join(RECORD_FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(state_error("remove", &path, error))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if the machine hasn't restarted since, so that all that was written is there.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        self.boot.is_some() && self.boot == boot_id()
    }

    /// Returns true if this landing brought all that the copy has into the tree.
    pub(crate) fn is_landed_by(&self, landing: ChangeId) -> bool {
        landing.0 > self.info.base.0 && landing > self.opened_after
    }

    /// Records that the copy was found whole since the machine started.
    pub(crate) fn note_boot(&mut self) {
        self.boot = boot_id();
    }
}

fn parse(text: &[u8], session: &SessionId) -> CopyRecordState {
    if text.len() as u64 > MAX_COPY_RECORD_BYTES {
        return CopyRecordState::Damaged("it is longer than any record");
    }
    let Ok(text) = std::str::from_utf8(text) else { return CopyRecordState::Damaged("it isn't text") };
    let Some((sum, json)) = text.split_once('\n') else { return CopyRecordState::Damaged("it is cut off") };
    let json = json.trim_end_matches('\n');
    if ContentHash::of(json.as_bytes()).to_string() != sum {
        return CopyRecordState::Damaged("its checksum is wrong");
    }
    match serde_json::from_str::<CopyRecord>(json) {
        Ok(record) if record.version != RECORD_VERSION => {
            CopyRecordState::Damaged("another version of the program wrote it")
        }
        Ok(mut record) => {
            // Its directory hasn't got the new name: it wasn't handed over.
            if record.handed_from.as_ref() == Some(session) {
                record.handed_from = None;
                record.info.session = session.clone();
            }
            match record.info.session == *session {
                true => CopyRecordState::Record(Box::new(record)),
                false => CopyRecordState::Damaged("it is another session's"),
            }
        }
        Err(_) => CopyRecordState::Damaged("its fields aren't those of a record"),
    }
}

/// Returns the kernel's id of this boot.
fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Beside what a copy's files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CopyPlacement {
    /// In the state directory.
    State,
    /// In a directory beside the project's root.
    Root,
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::UnixMillis;

    use super::*;
    use crate::change::CheckpointId;
    use crate::copies::tier::IsolationTier;

    fn record() -> CopyRecord {
        let session = SessionId::new(UnixMillis(5), 6);
        let info = CopyInfo {
            session,
            tier: IsolationTier::Copy,
            created: UnixMillis(7),
            base: CheckpointId(8),
            holder: None,
        };
        CopyRecord::new(info, CopyPlacement::State)
    }

    #[test]
    fn a_record_comes_back_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let (dir, record) = (dir.path(), record());
        let session = record.info.session.clone();
        assert!(matches!(CopyRecord::read(dir, &session).unwrap(), CopyRecordState::Nothing));
        record.write(dir).unwrap();
        let CopyRecordState::Record(back) = CopyRecord::read(dir, &session).unwrap() else {
            panic!("not there")
        };
        assert_eq!(*back, record);
        let other = SessionId::new(UnixMillis(5), 7);
        assert!(matches!(CopyRecord::read(dir, &other).unwrap(), CopyRecordState::Damaged(_)));
        let text = fs::read(dir.join(RECORD_FILE)).unwrap();
        for cut in [0, 1, 64, 65, text.len() / 2] {
            fs::write(dir.join(RECORD_FILE), &text[..cut]).unwrap();
            assert!(
                matches!(CopyRecord::read(dir, &session).unwrap(), CopyRecordState::Damaged(_)),
                "cut at {cut}"
            );
        }
        for flip in 0..text.len() - 1 {
            let mut damaged = text.clone();
            damaged[flip] ^= 1;
            fs::write(dir.join(RECORD_FILE), &damaged).unwrap();
            let found = CopyRecord::read(dir, &session).unwrap();
            assert!(matches!(found, CopyRecordState::Damaged(_)), "bit flipped at {flip}");
        }
        CopyRecord::remove(dir).unwrap();
        assert!(matches!(CopyRecord::read(dir, &session).unwrap(), CopyRecordState::Nothing));
    }
}
