//! Ropes and turns by example.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use tokio::runtime::LocalOptions;
use wire::call::CallScanner;

use super::{GATHERED_BYTES, Rope, SHORT_BYTES, scan};
use crate::stint::{STINT_BYTES, Stint};

#[test]
fn scanning_a_long_body_lets_others_run_after_each_stint() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build_local(LocalOptions::default())
        .expect("a runtime");
    let stints = 8;
    let mut body = br#"{"model":"m""#.to_vec();
    while body.len() < stints * STINT_BYTES {
        body.extend_from_slice(br#","\u0061\u0062":1"#);
    }
    body.push(b'}');
    let turns = Rc::new(Cell::new(0));
    let others = Rc::clone(&turns);
    let call = runtime.block_on(async move {
        let other = tokio::task::spawn_local(async move {
            loop {
                others.set(others.get() + 1);
                tokio::task::yield_now().await;
            }
        });
        let mut scanner = CallScanner::new();
        let mut stint = Stint::default();
        scan(&mut scanner, &body, &mut stint).await.expect("a call");
        other.abort();
        scanner.finish().expect("a whole call").clone()
    });
    assert_eq!(call.model.as_deref(), Some("m"));
    assert!(turns.get() + 1 >= stints, "{} turns", turns.get());
}

#[test]
fn a_body_in_single_bytes_becomes_a_few_pieces_and_none_is_lost() {
    let body: Vec<u8> = (0..3 * GATHERED_BYTES).map(|n| (n % 251) as u8).collect();
    let mut rope = Rope::default();
    for byte in &body {
        rope.push(Bytes::copy_from_slice(&[*byte]));
    }
    let pieces = rope.into_pieces();
    assert!(pieces.len() <= 4, "{} pieces", pieces.len());
    assert_eq!(pieces.concat(), body);
}

#[test]
fn long_pieces_stay_as_they_came_and_in_their_place() {
    let long = Bytes::from(vec![1; SHORT_BYTES]);
    let short = Bytes::from_static(b"short");
    let mut rope = Rope::default();
    for piece in [&short, &short, &long, &short, &short, &long] {
        rope.push(piece.clone());
    }
    let pieces = rope.into_pieces();
    let lengths: Vec<usize> = pieces.iter().map(Bytes::len).collect();
    assert_eq!(lengths, [5, 5, SHORT_BYTES, 10, SHORT_BYTES]);
    assert_eq!(pieces[2].as_ptr(), long.as_ptr(), "no copy");
}
