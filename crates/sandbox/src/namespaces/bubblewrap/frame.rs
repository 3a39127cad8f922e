//! The frames that the agent sends to the outer helper before the policy, and that the outer helper
//! sends to the inner one.

use std::ffi::{CStr, CString};

use super::super::framing::{FrameReader, FrameWriter};
use super::arguments::{Arguments, Check, CheckKind};

/// First bytes of an order to `bwrap`; the last digit is the format's version.
pub(super) const MAGIC: [u8; 4] = *b"JMB2";

/// The order of the outer helper.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OuterOrder<'a> {
    pub(super) program: &'a CStr,
    pub(super) arguments: Vec<&'a CStr>,
    pub(super) texts: Vec<&'a CStr>,
    pub(super) checks: Vec<Check<&'a CStr>>,
}

/// Returns the order as bytes, header included.
pub(super) fn encode_order(program: &CString, arguments: &Arguments) -> Vec<u8> {
    let mut out = FrameWriter::new(MAGIC);
    out.text(program);
    out.count(arguments.list.len());
    arguments.list.iter().for_each(|argument| out.text(argument));
    out.count(arguments.texts.len());
    arguments.texts.iter().for_each(|text| out.text(text));
    out.count(arguments.checks.len());
    for check in &arguments.checks {
        out.u32(check.kind as u32);
        out.text(&check.path);
        out.text(&check.source);
    }
    out.finish()
}

impl<'a> OuterOrder<'a> {
    /// Reads a body; `None` if it is cut or malformed.
    pub(super) fn decode(body: &'a [u8]) -> Option<Self> {
        let mut from = FrameReader::new(body);
        let order = Self {
            program: from.text()?,
            arguments: from.list(FrameReader::text)?,
            texts: from.list(FrameReader::text)?,
            checks: from.list(|from| {
                let kind = CheckKind::from_number(from.u32()?)?;
                Some(Check { kind, path: from.text()?, source: from.text()? })
            })?,
        };
        from.is_empty().then_some(order)
    }
}

/// The file that must be at a path inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expected<T> {
    pub(super) path: T,
    pub(super) kind: CheckKind,
    /// Device and inode of the host's.
    pub(super) identity: (u64, u64),
}

/// Encodes the files that the inner helper must find, header included.
pub(super) fn encode_expected(all: &[Expected<CString>]) -> Vec<u8> {
    let mut out = FrameWriter::new(MAGIC);
    out.count(all.len());
    for Expected { path, kind, identity } in all {
        out.u32(*kind as u32);
        out.u64(identity.0);
        out.u64(identity.1);
        out.text(path);
    }
    out.finish()
}

pub(super) fn decode_expected(body: &[u8]) -> Option<Vec<Expected<&CStr>>> {
    let mut from = FrameReader::new(body);
    let all = from.list(|from| {
        let kind = CheckKind::from_number(from.u32()?)?;
        let identity = (from.u64()?, from.u64()?);
        Some(Expected { path: from.text()?, kind, identity })
    })?;
    from.is_empty().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::super::super::framing::{HEADER_BYTES, body_length};
    use super::*;

    fn c(text: &str) -> CString {
        CString::new(text).unwrap()
    }

    #[test]
    fn an_order_survives_the_wire_and_no_cut_of_it_does() {
        let arguments = Arguments {
            list: vec![c("--dir"), c("/w")],
            texts: vec![c(""), c("[x]\n")],
            checks: vec![Check { path: c("/w"), source: c("/copies/w"), kind: CheckKind::Writable }],
        };
        let bytes = encode_order(&c("/usr/bin/bwrap"), &arguments);
        let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>().unwrap();
        assert_eq!(body_length(MAGIC, header), Some(body.len()));
        let order = OuterOrder::decode(body).unwrap();
        assert_eq!(order.program, c"/usr/bin/bwrap");
        assert_eq!(order.arguments, [c"--dir", c"/w"]);
        assert_eq!(order.checks, [Check { path: c"/w", source: c"/copies/w", kind: CheckKind::Writable }]);
        assert_eq!(order.texts, [c"", c"[x]\n"]);
        assert!((0..body.len()).all(|cut| OuterOrder::decode(&body[..cut]).is_none()));
    }

    #[test]
    fn expectations_survive_the_wire_and_no_cut_of_them_does() {
        let (kind, identity) = (CheckKind::Hidden, (1, u64::MAX));
        let bytes = encode_expected(&[Expected { path: c("/w"), kind, identity }]);
        let body = &bytes[HEADER_BYTES..];
        let expected = Expected { path: c"/w", kind, identity };
        assert_eq!(decode_expected(body).unwrap(), [expected]);
        assert!((0..body.len()).all(|cut| decode_expected(&body[..cut]).is_none()));
    }
}
