//! The order to the helper that mounts, and its encoding.

use std::ffi::{CStr, CString};

use super::framing::{FrameReader, FrameWriter, MAX_BODY_BYTES};

/// First bytes of an order; the last digit is the format's version.
pub(super) const MOUNT_ORDER_MAGIC: [u8; 4] = *b"JMO1";

/// The agent's answer after the namespaces were made, if it mapped the users.
pub(super) const USERS_MAPPED: u8 = 1;

/// The names of an overlay's layers, in the order that failures number them.
pub(super) const LAYER_NAMES: [&str; 3] =
    ["the lower layer", "the upper layer", "the overlay's work directory"];

/// A user and a mount namespace to make, and what to mount in it. Paths are absolute where nothing
/// else is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MountOrder<T> {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// The agent offers to map all its users; else there is only this one.
    pub(super) maps: bool,
    /// The directory whose descriptor is wanted.
    pub(super) root: T,
    /// Layers of an overlay over it.
    pub(super) overlay: Option<OverlayLayers<T>>,
    /// The directory of the real caches, which have the same names there.
    pub(super) real: T,
    pub(super) caches: Vec<CacheDirectory<T>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OverlayLayers<T> {
    pub(super) upper: T,
    pub(super) work: T,
}

/// A directory that is shown beneath the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CacheDirectory<T> {
    /// Relative to the root.
    pub(super) place: T,
    /// Without them it is read-only.
    pub(super) layers: Option<OverlayLayers<T>>,
}

impl MountOrder<CString> {
    /// Returns the order as bytes, header included; `None` if it is longer than can be sent.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let mut out = FrameWriter::new(MOUNT_ORDER_MAGIC);
        out.write_u32(self.uid);
        out.write_u32(self.gid);
        out.write_u32(u32::from(self.maps));
        out.write_text(&self.root);
        write_layers(&mut out, self.overlay.as_ref());
        out.write_text(&self.real);
        out.write_count(self.caches.len());
        for cache in &self.caches {
            out.write_text(&cache.place);
            write_layers(&mut out, cache.layers.as_ref());
        }
        let bytes = out.finish();
        (bytes.len() <= MAX_BODY_BYTES).then_some(bytes)
    }
}

fn write_layers(out: &mut FrameWriter, layers: Option<&OverlayLayers<CString>>) {
    out.write_count(layers.iter().len());
    if let Some(layers) = layers {
        out.write_text(&layers.upper);
        out.write_text(&layers.work);
    }
}

impl<'a> MountOrder<&'a CStr> {
    /// Reads a body; `None` if it is cut or malformed.
    pub(super) fn decode(body: &'a [u8]) -> Option<Self> {
        let mut from = FrameReader::new(body);
        let order = Self {
            uid: from.read_u32()?,
            gid: from.read_u32()?,
            maps: from.read_u32()? != 0,
            root: from.read_text()?,
            overlay: from.read_list(read_layers)?.pop(),
            real: from.read_text()?,
            caches: from.read_list(|from| {
                Some(CacheDirectory { place: from.read_text()?, layers: from.read_list(read_layers)?.pop() })
            })?,
        };
        from.is_empty().then_some(order)
    }
}

fn read_layers<'a>(from: &mut FrameReader<'a>) -> Option<OverlayLayers<&'a CStr>> {
    Some(OverlayLayers { upper: from.read_text()?, work: from.read_text()? })
}

#[cfg(test)]
mod tests {
    use super::super::framing::{HEADER_BYTES, body_length};
    use super::*;

    #[test]
    fn an_order_survives_the_wire_and_no_cut_of_it_does() {
        let c = |text: &str| CString::new(text).unwrap();
        let layers = || Some(OverlayLayers { upper: c("/u"), work: c("/w") });
        let caches = vec![
            CacheDirectory { place: c("target"), layers: layers() },
            CacheDirectory { place: c("a/b"), layers: None },
        ];
        let order = MountOrder {
            uid: 1,
            gid: 2,
            maps: true,
            root: c("/r"),
            overlay: layers(),
            real: c("/x"),
            caches,
        };
        for overlay in [layers(), None] {
            let order = MountOrder { overlay, ..order.clone() };
            let bytes = order.encode().unwrap();
            let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>().unwrap();
            assert_eq!(body_length(MOUNT_ORDER_MAGIC, header), Some(body.len()));
            assert_eq!(format!("{:?}", MountOrder::decode(body).unwrap()), format!("{order:?}"));
            for cut in 0..body.len() {
                assert!(MountOrder::decode(&body[..cut]).is_none(), "cut at {cut}");
            }
        }
    }
}
