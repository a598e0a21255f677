//! Every record once, however a file is divided; long and broken ones do not hide the next.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::seeded::seeded;

type Record = (At, Result<Vec<u8>, &'static str>);

fn of_lines(unit: &Unit) -> Vec<Record> {
    let mut all = Vec::new();
    lines(unit, &mut |at, bytes| {
        all.push((at, bytes.map(<[u8]>::to_vec).map_err(|fault| fault.reason)));
        ControlFlow::Continue(())
    })
    .unwrap();
    all
}

fn of_array(text: &[u8]) -> Result<Vec<Record>, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.json");
    fs::write(&path, text).unwrap();
    let mut all = Vec::new();
    items(&path, &mut |at, bytes| {
        all.push((at, bytes.map(<[u8]>::to_vec).map_err(|fault| fault.reason)));
        ControlFlow::Continue(())
    })
    .map_err(|error| error.to_string())?;
    Ok(all)
}

#[test]
fn elements_of_an_array_are_found_whatever_they_hold() {
    let text = b"\xef\xbb\xbf [ {\"a\":\"],[\\\"\"} ,\n [1,{}], \"x\\\\\", 7 ] trailing";
    let all = of_array(text).unwrap();
    let texts: Vec<_> = all
        .iter()
        .map(|(_, r)| String::from_utf8(r.clone().unwrap()).unwrap())
        .collect();
    assert_eq!(texts, ["{\"a\":\"],[\\\"\"} ", "[1,{}]", "\"x\\\\\"", "7 "]);
    assert_eq!(all[1].0, At::Byte(23));
    assert_eq!(of_array(b"[]").unwrap(), []);
}

#[test]
fn an_array_that_is_cut_short_says_so_and_one_that_is_none_too() {
    let all = of_array(b"[1,{\"a\":2").unwrap();
    assert_eq!(all.last().unwrap(), &(At::Byte(3), Err("cut_short")));
    let error = of_array(b"{\"a\":1}").unwrap_err();
    assert!(error.contains("is no JSON array"), "{error}");
}

#[test]
fn a_long_line_is_passed_over_and_the_next_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    let mut text = vec![b'x'; MAX_RECORD_BYTES + 1];
    text.extend_from_slice(b"\n\nnext");
    fs::write(&path, &text).unwrap();
    let units = line_units(vec![path]).unwrap();
    assert_eq!(units.len(), 2, "a large file is divided");
    let all: Vec<_> = units.iter().flat_map(of_lines).collect();
    assert_eq!(all[0], (At::Byte(0), Err("too_long")));
    assert_eq!(all[1].1, Ok(b"next".to_vec()));
    assert_eq!(all.len(), 2);
}

proptest! {
    #![proptest_config(seeded("any_division_gives_every_line_once", 128))]

    #[test]
    fn any_division_gives_every_line_once(
        texts in proptest::collection::vec("[a-z]{0,6}", 0..30),
        cuts in proptest::collection::vec(0..200_u64, 0..5),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let text = texts.join("\n");
        fs::write(&path, &text).unwrap();
        let length = text.len() as u64;
        let mut cuts: Vec<u64> = cuts.into_iter().map(|cut| cut.min(length)).collect();
        cuts.extend([0, length]);
        cuts.sort_unstable();
        let file: Arc<Path> = Arc::from(path);
        let of = |pair: &[u64]| {
            let part = Part::Bytes { from: pair[0], to: pair[1] };
            of_lines(&Unit { file: Arc::clone(&file), part, bytes: 0 })
        };
        let divided: Vec<_> = cuts.windows(2).filter(|pair| pair[0] < pair[1]).flat_map(of).collect();
        let expected: Vec<_> = texts.iter().filter(|t| !t.is_empty()).map(|t| t.as_bytes().to_vec()).collect();
        let found: Vec<_> = divided
            .into_iter()
            .map(|(_, bytes)| bytes.unwrap().trim_ascii_end().to_vec())
            .collect();
        prop_assert_eq!(found, expected);
    }
}
