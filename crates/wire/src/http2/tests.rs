//! Frame boundaries by example and by chance.

use super::{DATA, FrameHead, Frames, HEADERS, PREFACE};

/// A frame with a payload of bytes that look like heads.
fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
    let length = u32::try_from(payload).expect("short").to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags, 0, 0, 0, 7]);
    bytes.extend((0..payload).map(|n| (n % 3) as u8));
    bytes
}

fn heads(frames: &mut Frames, chunks: &[&[u8]]) -> Vec<FrameHead> {
    let mut found = Vec::new();
    for chunk in chunks {
        let mut rest = *chunk;
        while let Some(head) = frames.next(&mut rest) {
            found.push(head);
        }
        assert!(rest.is_empty());
    }
    found
}

/// What a client may send, with every length that matters: none, one, and one of three bytes.
fn conversation() -> (Vec<u8>, Vec<FrameHead>) {
    let plan = [
        (4, 0, 18),
        (HEADERS, 5, 40),
        (DATA, 0, 70_000),
        (DATA, 1, 0),
        (2, 0, 5),
        (0xfa, 0xff, 1),
        (8, 0, 4),
        (HEADERS, 4, 300),
    ];
    let mut bytes = PREFACE.to_vec();
    let mut expected = Vec::new();
    for (kind, flags, payload) in plan {
        bytes.extend(frame(kind, flags, payload));
        expected.push(FrameHead {
            length: u32::try_from(payload).expect("short"),
            kind,
            flags,
        });
    }
    (bytes, expected)
}

#[test]
fn any_cut_of_the_bytes_gives_the_same_frames() {
    let (bytes, expected) = conversation();
    let mut whole = Frames::of_client();
    assert_eq!(heads(&mut whole, &[&bytes]), expected);
    assert!(whole.is_between());
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(heads(&mut Frames::of_client(), &single), expected);
    for cut in 0..bytes.len().min(400) {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(heads(&mut Frames::of_client(), &[a, b]), expected, "{cut}");
    }
    let seed = 0x5EED_u64;
    let mut state = seed;
    for round in 0..500 {
        let mut rest = &bytes[..];
        let mut chunks = Vec::new();
        while !rest.is_empty() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let most = [3, 12, 700, 40_000][usize::from((state >> 8) as u8 % 4)];
            let (chunk, after) = rest.split_at((1 + state as usize % most).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        let found = heads(&mut Frames::of_client(), &chunks);
        assert_eq!(found, expected, "seed {seed}, round {round}");
    }
}

#[test]
fn a_server_has_no_preface() {
    let mut frames = Frames::of_server();
    assert!(frames.is_between());
    let bytes = [frame(4, 0, 6), frame(HEADERS, 4, 2)].concat();
    assert_eq!(heads(&mut frames, &[&bytes]).len(), 2);
    assert!(frames.is_between());
    assert!(heads(&mut frames, &[&frame(DATA, 0, 4)[..10]]).len() == 1);
    assert!(!frames.is_between());
}
