//! The frame from the agent to the supervisor before the policy.

use std::ffi::{CStr, CString};

use super::super::framing::{FrameReader, FrameWriter};
use super::super::landlock_rules::Grant;

/// First bytes of an order to the supervisor; the last digit is the format's version.
pub(super) const ORDER_MAGIC: [u8; 4] = *b"JML2";

/// The name of the home directory in a private directory.
pub(super) const HOME_NAME: &str = "home";

/// The supervisor's work before the command starts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SupervisorOrder<T> {
    /// A directory to make, and to remove with all in it when the command is gone.
    pub(super) private: T,
    /// The variable that takes the place of `HOME`, where there is one: `HOME=…`.
    pub(super) home: T,
    /// The command's working directory, on the host.
    pub(super) cwd: T,
    pub(super) grants: Vec<(T, Grant)>,
    /// The filter in place of the policy's.
    pub(super) filter: Vec<u8>,
    /// The filter holds changes of files' metadata, and the supervisor makes them.
    pub(super) notify: bool,
}

const GRANTS_BY_NUMBER: [Grant; 3] = [Grant::Read, Grant::Write, Grant::List];

impl SupervisorOrder<CString> {
    /// Returns the order as bytes, header included.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = FrameWriter::new(ORDER_MAGIC);
        [&self.private, &self.home, &self.cwd].into_iter().for_each(|text| out.write_text(text));
        out.write_count(self.grants.len());
        for (path, grant) in &self.grants {
            let number =
                GRANTS_BY_NUMBER.iter().position(|known| known == grant).unwrap_or(GRANTS_BY_NUMBER.len());
            out.write_count(number);
            out.write_text(path);
        }
        out.write_count(usize::from(self.notify));
        out.write_count(self.filter.len());
        out.write_bytes(&self.filter);
        out.finish()
    }
}

impl<'a> SupervisorOrder<&'a CStr> {
    /// Reads a body; `None` if it is cut or malformed.
    pub(super) fn decode(body: &'a [u8]) -> Option<Self> {
        let mut from = FrameReader::new(body);
        let order = Self {
            private: from.read_text()?,
            home: from.read_text()?,
            cwd: from.read_text()?,
            grants: from.read_list(|from| {
                let grant = *GRANTS_BY_NUMBER.get(from.read_u32()? as usize)?;
                Some((from.read_text()?, grant))
            })?,
            notify: from.read_u32()? != 0,
            filter: {
                let length = from.read_u32()? as usize;
                from.read_bytes(length)?.to_vec()
            },
        };
        from.is_empty().then_some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::framing::{HEADER_BYTES, body_length};
    use super::*;

    #[test]
    fn an_order_survives_the_wire_and_no_cut_of_it_does() {
        let c = |text: &str| CString::new(text).unwrap();
        let grants = vec![(c("/usr"), Grant::Read), (c("/w"), Grant::Write), (c("/etc"), Grant::List)];
        let (private, home, cwd) = (c("/tmp/x"), c("HOME=/tmp/x/home"), c("/w"));
        let order = SupervisorOrder { private, home, cwd, grants, filter: vec![7; 16], notify: true };
        let bytes = order.encode();
        let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>().unwrap();
        assert_eq!(body_length(ORDER_MAGIC, header), Some(body.len()));
        assert_eq!(format!("{:?}", SupervisorOrder::decode(body).unwrap()), format!("{order:?}"));
        assert!((0..body.len()).all(|cut| SupervisorOrder::decode(&body[..cut]).is_none()));
    }
}
