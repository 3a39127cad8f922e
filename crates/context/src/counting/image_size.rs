//! The width and height of an image, from the beginning of its file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use journeyman_protocol::ImageData;

/// Maximum length of the part of an image that is decoded, in base 64. Cameras write up to 64 KiB
/// of metadata, and some programs a preview and colour profiles, before the size of a JPEG.
const MAX_ENCODED_BYTES: usize = 256 * 1024;

/// Returns the width and height of a PNG, JPEG, GIF or WebP in pixels, whatever its media type
/// says; `None` if they can't be read.
#[must_use]
pub fn image_size(image: &ImageData) -> Option<(u32, u32)> {
    let encoded = image.data.as_bytes();
    let bytes = match encoded.get(..MAX_ENCODED_BYTES) {
        Some(beginning) => STANDARD.decode(beginning),
        None => STANDARD.decode(encoded),
    };
    let bytes = bytes.ok()?;
    let size = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => png_size(&bytes),
        [b'G', b'I', b'F', b'8', ..] => gif_size(&bytes),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp_size(&bytes),
        [0xff, 0xd8, ..] => jpeg_size(&bytes),
        _ => None,
    };
    size.filter(|(width, height)| *width > 0 && *height > 0)
}

fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.get(12..24)?.strip_prefix(b"IHDR")?;
    let (width, height) = header.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(*height.first_chunk()?)))
}

fn gif_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let [width_low, width_high, height_low, height_high] = *bytes.get(6..)?.first_chunk()?;
    let number = |low, high| u32::from(u16::from_le_bytes([low, high]));
    Some((number(width_low, width_high), number(height_low, height_high)))
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let kind = bytes.get(12..16)?;
    let data = bytes.get(20..)?;
    match kind {
        // The canvas, three bytes for each length less one.
        b"VP8X" => {
            let [_, _, _, _, a, b, c, d, e, f] = *data.first_chunk()?;
            let number = |low, middle, high| u32::from_le_bytes([low, middle, high, 0]) + 1;
            Some((number(a, b, c), number(d, e, f)))
        }
        // Fourteen bits for each length less one, after a signature.
        b"VP8L" => {
            let bits = u32::from_le_bytes(*data.strip_prefix(&[0x2f])?.first_chunk()?);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        // Fourteen bits for each length, after the frame's tag and start code.
        b"VP8 " => {
            let [a, b, c, d] = *data.get(3..)?.strip_prefix(&[0x9d, 0x01, 0x2a])?.first_chunk()?;
            let number = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
            Some((number(a, b), number(c, d)))
        }
        _ => None,
    }
}

/// Walks the segments of a JPEG to the frame header (ITU-T T.81, section B.2.2).
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.get(2..)?;
    loop {
        let [0xff, marker, ..] = *rest else { return None };
        match marker {
            // A fill byte.
            0xff => rest = rest.get(1..)?,
            // Markers without a length.
            0x01 | 0xd0..=0xd7 => rest = rest.get(2..)?,
            // Frame headers, apart from the tables that share their range.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let [a, b, c, d] = *rest.get(5..)?.first_chunk()?;
                return Some((u32::from(u16::from_be_bytes([c, d])), u32::from(u16::from_be_bytes([a, b]))));
            }
            _ => {
                let length = usize::from(u16::from_be_bytes(*rest.get(2..)?.first_chunk()?));
                rest = rest.get(2 + length.max(2)..)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn image(bytes: &[u8]) -> ImageData {
        ImageData { media_type: "image/png".to_owned(), data: STANDARD.encode(bytes) }
    }

    #[test]
    fn sizes_of_each_format() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x07\x80\0\0\x04\x38\x08\x06\0\0\0";
        let gif = b"GIF89a\x40\x01\xf0\0\xf7\0\0";
        let lossless = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\xff\xc0\x3b\0\x07\x10";
        let extended = b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\x8f\x01\0\x2b\x01\0";
        let lossy = b"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0\x30\x01\0\x9d\x01\x2a\x90\x01\x2c\x01";
        let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xff\xdb\0\x04\0\0\
            \xff\xc4\0\x02\xff\xc2\0\x11\x08\x04\x38\x07\x80\x03";
        for (bytes, size) in [
            (png.as_slice(), (1_920, 1_080)),
            (gif, (320, 240)),
            (lossless, (256, 240)),
            (extended, (400, 300)),
            (lossy, (400, 300)),
            (jpeg, (1_920, 1_080)),
        ] {
            assert_eq!(image_size(&image(bytes)), Some(size), "{bytes:?}");
            for cut in 0..10 {
                assert_eq!(image_size(&image(&bytes[..cut])), None);
            }
        }
    }

    #[test]
    fn a_size_behind_much_metadata_is_found_and_behind_too_much_is_not() {
        let with_metadata = |segments: usize| {
            let mut bytes = vec![0xff, 0xd8];
            for _ in 0..segments {
                bytes.extend([0xff, 0xe1, 0xff, 0xff]);
                bytes.extend(vec![0; 65_533]);
            }
            bytes.extend(b"\xff\xc0\0\x11\x08\x01\0\x02\0\x03");
            bytes.extend(vec![7; 100]);
            image(&bytes)
        };
        assert_eq!(image_size(&with_metadata(2)), Some((512, 256)));
        assert_eq!(image_size(&with_metadata(9)), None);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(kind in 0..5_usize, rest in prop::collection::vec(any::<u8>(), 0..200)) {
            let starts: [&[u8]; 5] =
                [b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFFxxxxWEBPVP8 ", b"\xff\xd8\xff", b""];
            let mut bytes = starts[kind].to_vec();
            bytes.extend(rest);
            let _size = image_size(&image(&bytes));
            let _bad = image_size(&ImageData { media_type: String::new(), data: "%%%".to_owned() });
        }
    }
}
