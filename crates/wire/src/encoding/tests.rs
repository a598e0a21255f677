//! Bodies in each coding, cut anywhere, damaged, and made to expand.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::*;

const TEXT: &[u8] =
    b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n";

/// `TEXT` twice, by the `brotli` command (1.0.9, quality 5).
const BROTLI: &[u8] = include_bytes!("text_twice.br");
/// The same by the `zstd` command (1.5.4): with a checksum; without one; as two frames with one between them that holds no text.
const ZSTD: &[u8] = include_bytes!("text_twice.zst");
const ZSTD_BARE: &[u8] = include_bytes!("text_twice_bare.zst");
const ZSTD_FRAMES: &[u8] = include_bytes!("text_twice_frames.zst");
/// 64 MiB of blanks.
const ZSTD_BOMB: &[u8] = include_bytes!("blanks.zst");

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn decoded(coding: Coding, coded: &[u8], step: usize) -> Result<Vec<u8>, CodingFault> {
    let mut decoder = Decoder::new(coding);
    let mut text = Vec::new();
    for piece in coded.chunks(step) {
        decoder.push(piece, |decoded| text.extend_from_slice(decoded))?;
    }
    decoder.finish()?;
    Ok(text)
}

#[test]
fn a_body_decodes_to_the_same_wherever_it_is_cut() {
    let twice = [TEXT, TEXT].concat();
    let cases = [
        (Coding::Gzip, gzip(&twice)),
        (Coding::Gzip, [gzip(TEXT), gzip(TEXT)].concat()),
        (Coding::Deflate, zlib(&twice)),
        (Coding::Deflate, deflate(&twice)),
        (Coding::Brotli, BROTLI.to_vec()),
        (Coding::Zstd, ZSTD.to_vec()),
        (Coding::Zstd, ZSTD_BARE.to_vec()),
        (Coding::Zstd, ZSTD_FRAMES.to_vec()),
    ];
    for (coding, coded) in cases {
        for step in 1..=coded.len() {
            let text = decoded(coding, &coded, step);
            assert_eq!(text.as_deref(), Ok(&twice[..]), "{coding:?} by {step}");
        }
    }
}

#[test]
fn what_has_arrived_is_decoded_at_once() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(TEXT).unwrap();
    encoder.flush().unwrap();
    let begun = encoder.get_ref().clone();
    let (mut decoder, mut text) = (Decoder::new(Coding::Gzip), Vec::new());
    for piece in begun.chunks(7) {
        let pushed = decoder.push(piece, |decoded| text.extend_from_slice(decoded));
        assert_eq!(pushed, Ok(()));
    }
    assert_eq!(text, TEXT);
    assert_eq!(decoder.finish(), Err(CodingFault), "the rest is missing");
}

#[test]
fn damage_is_a_fault_and_stays_one() {
    let mut coded = gzip(TEXT);
    coded[12] ^= 0xff;
    coded[20] ^= 0xff;
    let mut decoder = Decoder::new(Coding::Gzip);
    let faulty = decoder.push(&coded, |_| {});
    assert_eq!(faulty, Err(CodingFault));
    assert_eq!(decoder.push(TEXT, |_| {}), Err(CodingFault));
    assert_eq!(decoded(Coding::Brotli, &[0xff; 64], 64), Err(CodingFault));
}

#[test]
fn a_wrong_checksum_and_a_missing_end_are_faults_at_the_end() {
    let whole = gzip(TEXT);
    let mut other = whole.clone();
    let checksum = other.len() - 8;
    other[checksum] ^= 1;
    assert_eq!(decoded(Coding::Gzip, &other, 16), Err(CodingFault));
    let cut = &whole[..whole.len() - 1];
    assert_eq!(decoded(Coding::Gzip, cut, 16), Err(CodingFault));
    for end in 0..ZSTD.len() {
        assert_eq!(
            decoded(Coding::Zstd, &ZSTD[..end], 16),
            Err(CodingFault),
            "{end}"
        );
    }
    let mut other = ZSTD.to_vec();
    *other.last_mut().unwrap() ^= 1;
    assert_eq!(decoded(Coding::Zstd, &other, 16), Err(CodingFault));
    let more = [ZSTD, b"x"].concat();
    assert_eq!(decoded(Coding::Zstd, &more, 16), Err(CodingFault));
}

#[test]
fn a_body_that_expands_beyond_the_ratio_is_a_fault_and_takes_no_memory() {
    let gzip = gzip(&vec![b' '; 64 << 20]);
    for (coding, bomb) in [(Coding::Gzip, &gzip[..]), (Coding::Zstd, ZSTD_BOMB)] {
        assert!(bomb.len() < 100 << 10);
        let (mut given, mut longest) = (0, 0);
        let mut decoder = Decoder::new(coding);
        let pushed = decoder.push(bomb, |piece| {
            given += piece.len() as u64;
            longest = longest.max(piece.len());
        });
        assert_eq!(pushed, Err(CodingFault), "{coding:?}");
        assert!(given <= ALLOWANCE_BYTES + RATIO_MAX * bomb.len() as u64);
        assert!(longest <= PIECE_BYTES_MAX);
    }
}

#[test]
fn only_single_codings_that_are_decoded_here_have_a_name() {
    for (value, coding) in [
        (&b"gzip"[..], Some(Coding::Gzip)),
        (b" GZip ", Some(Coding::Gzip)),
        (b"x-gzip", Some(Coding::Gzip)),
        (b"deflate", Some(Coding::Deflate)),
        (b"br", Some(Coding::Brotli)),
        (b"zstd", Some(Coding::Zstd)),
        (b"x-zstd", None),
        (b"gzip, br", None),
        (b"identity", None),
        (b"", None),
    ] {
        assert_eq!(Coding::of(value), coding);
    }
}
