//! The size of a picture by its header: PNG, JPEG, GIF and WebP, in base64.
//!
//! Invariant: no more is decoded than [`HEADER_BYTES`]; what is damaged, cut or none of these has no size.
//! Not here: pixels.

/// Bytes of a picture that are looked at; a JPEG may have a preview and a colour profile before its size.
const HEADER_BYTES: usize = 256 << 10;
/// The longest side that is believed.
const MAX_SIDE: u32 = 1 << 15;

/// Pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: u32,
    pub(super) height: u32,
}

/// The size of a picture in base64.
pub(super) fn size(base64: &str) -> Option<Size> {
    let bytes = decoded(base64);
    let size = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => png(&bytes),
        [0xff, 0xd8, ..] => jpeg(&bytes),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => {
            little(&bytes, 6, 2).zip(little(&bytes, 8, 2))
        }
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => webp(&bytes),
        _ => None,
    };
    let (width, height) = size?;
    let is_sane = |side: u32| (1..=MAX_SIDE).contains(&side);
    (is_sane(width) && is_sane(height)).then_some(Size { width, height })
}

/// The first bytes, up to the first letter that is none of base64's.
fn decoded(base64: &str) -> Vec<u8> {
    let digit = |letter: u8| {
        Some(match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        })
    };
    let letters = base64
        .bytes()
        .filter(|letter| !letter.is_ascii_whitespace());
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0_u32);
    for digit in letters.map_while(digit).take(HEADER_BYTES.div_ceil(3) * 4) {
        held = held << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits & 0xff) as u8);
        }
    }
    bytes
}

/// A number of `length` bytes, the greatest first.
fn big(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)),
    )
}

/// A number of `length` bytes, the smallest first.
fn little(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)),
    )
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.get(12..16)? == b"IHDR").then_some(())?;
    big(bytes, 16, 4).zip(big(bytes, 20, 4))
}

/// Walks the segments up to the frame's.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        // Any number of fill bytes stands before a marker.
        while bytes.get(at) == Some(&0xff) && bytes.get(at + 1) == Some(&0xff) {
            at += 1;
        }
        let (0xff, kind) = (*bytes.get(at)?, *bytes.get(at + 1)?) else {
            return None;
        };
        at += 2;
        match kind {
            0x01 | 0xd0..=0xd7 => {}
            // A frame, but for tables that look like one.
            0xc0..=0xcf if !matches!(kind, 0xc4 | 0xc8 | 0xcc) => {
                return big(bytes, at + 5, 2).zip(big(bytes, at + 3, 2));
            }
            // The picture begins or ends, and no frame was told.
            0xd9 | 0xda => return None,
            _ => {
                let length = big(bytes, at, 2).filter(|length| *length >= 2)?;
                at += length as usize;
            }
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => {
            let side = |at| little(bytes, at, 3).map(|less_one| less_one + 1);
            side(24).zip(side(27))
        }
        b"VP8L" => {
            (*bytes.get(20)? == 0x2f).then_some(())?;
            let bits = little(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => {
            (bytes.get(23..26)? == [0x9d, 0x01, 0x2a]).then_some(())?;
            let side = |at| little(bytes, at, 2).map(|side| side & 0x3fff);
            side(26).zip(side(28))
        }
        _ => None,
    }
}
