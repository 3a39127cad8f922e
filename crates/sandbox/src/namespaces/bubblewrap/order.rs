//! The frames that the agent sends to the outer helper before the policy, and that the outer helper
//! sends to the inner one.

use std::ffi::{CStr, CString};

use super::super::framing::{FrameReader, FrameWriter};
use super::arguments::{BwrapArguments, MountCheck, MountCheckKind};

/// First bytes of an order to `bwrap`; the last digit is the format's version.
pub(super) const ORDER_MAGIC: [u8; 4] = *b"JMB2";

/// The order of the outer helper.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BwrapOrder<'a> {
    pub(super) program: &'a CStr,
    pub(super) arguments: Vec<&'a CStr>,
    pub(super) texts: Vec<&'a CStr>,
    pub(super) checks: Vec<MountCheck<&'a CStr>>,
}

/// Returns the order as bytes, header included.
pub(super) fn encode_order(program: &CString, arguments: &BwrapArguments) -> Vec<u8> {
    let mut out = FrameWriter::new(ORDER_MAGIC);
    out.write_text(program);
    out.write_count(arguments.list.len());
    arguments.list.iter().for_each(|argument| out.write_text(argument));
    out.write_count(arguments.texts.len());
    arguments.texts.iter().for_each(|text| out.write_text(text));
    out.write_count(arguments.checks.len());
    for check in &arguments.checks {
        out.write_u32(check.kind as u32);
        out.write_text(&check.path);
        out.write_text(&check.source);
    }
    out.finish()
}

impl<'a> BwrapOrder<'a> {
    /// Reads a body; `None` if it is cut or malformed.
    pub(super) fn decode(body: &'a [u8]) -> Option<Self> {
        let mut from = FrameReader::new(body);
        let order = Self {
            program: from.read_text()?,
            arguments: from.read_list(FrameReader::read_text)?,
            texts: from.read_list(FrameReader::read_text)?,
            checks: from.read_list(|from| {
                let kind = MountCheckKind::from_number(from.read_u32()?)?;
                Some(MountCheck { kind, path: from.read_text()?, source: from.read_text()? })
            })?,
        };
        from.is_empty().then_some(order)
    }
}

/// The file that must be at a path inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExpectedFile<T> {
    pub(super) path: T,
    pub(super) kind: MountCheckKind,
    /// Device and inode of the host's.
    pub(super) identity: (u64, u64),
}

/// Encodes the files that the inner helper must find, header included.
pub(super) fn encode_expected(all: &[ExpectedFile<CString>]) -> Vec<u8> {
    let mut out = FrameWriter::new(ORDER_MAGIC);
    out.write_count(all.len());
    for ExpectedFile { path, kind, identity } in all {
        out.write_u32(*kind as u32);
        out.write_u64(identity.0);
        out.write_u64(identity.1);
        out.write_text(path);
    }
    out.finish()
}

pub(super) fn decode_expected(body: &[u8]) -> Option<Vec<ExpectedFile<&CStr>>> {
    let mut from = FrameReader::new(body);
    let all = from.read_list(|from| {
        let kind = MountCheckKind::from_number(from.read_u32()?)?;
        let identity = (from.read_u64()?, from.read_u64()?);
        Some(ExpectedFile { path: from.read_text()?, kind, identity })
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
        let arguments = BwrapArguments {
            list: vec![c("--dir"), c("/w")],
            texts: vec![c(""), c("[x]\n")],
            checks: vec![MountCheck {
                path: c("/w"),
                source: c("/copies/w"),
                kind: MountCheckKind::Writable,
            }],
        };
        let bytes = encode_order(&c("/usr/bin/bwrap"), &arguments);
        let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>().unwrap();
        assert_eq!(body_length(ORDER_MAGIC, header), Some(body.len()));
        let order = BwrapOrder::decode(body).unwrap();
        assert_eq!(order.program, c"/usr/bin/bwrap");
        assert_eq!(order.arguments, [c"--dir", c"/w"]);
        assert_eq!(
            order.checks,
            [MountCheck { path: c"/w", source: c"/copies/w", kind: MountCheckKind::Writable }]
        );
        assert_eq!(order.texts, [c"", c"[x]\n"]);
        assert!((0..body.len()).all(|cut| BwrapOrder::decode(&body[..cut]).is_none()));
    }

    #[test]
    fn expectations_survive_the_wire_and_no_cut_of_them_does() {
        let (kind, identity) = (MountCheckKind::Hidden, (1, u64::MAX));
        let bytes = encode_expected(&[ExpectedFile { path: c("/w"), kind, identity }]);
        let body = &bytes[HEADER_BYTES..];
        let expected = ExpectedFile { path: c"/w", kind, identity };
        assert_eq!(decode_expected(body).unwrap(), [expected]);
        assert!((0..body.len()).all(|cut| decode_expected(&body[..cut]).is_none()));
    }
}
