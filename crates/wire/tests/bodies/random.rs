//! Random bodies and streams, made of the pieces that matter, and random splits.
//!
//! How the seed is chosen says `testing`.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use wire::call::{CallHead, CallScanner};
use wire::sse::Mode;

use super::{json_head, sse_scan};

const KEYS: &[&str] = &[
    "model",
    "mod\\u0065l",
    "best_of",
    "prompt",
    "stream",
    "stream_options",
    "include_usage",
    "max_tokens",
    "n",
    "messages",
    "max_completion_tokens",
    "max_output_tokens",
    "user",
    "safety_identifier",
    "metadata",
    "é",
    "",
    "\\n",
    "\\ud83d\\ude00",
];
/// Names that some parsers take for names of those above.
const SPELLINGS: &[&str] = &[
    "Model",
    "MODEL",
    "\\u017ftream",
    "max_to\u{212a}ens",
    "max_to\\u212aens",
    "Stream_Options",
    "Include_Usage",
    "\u{131}nclude_usage",
    "Messages",
    "User",
    "metaData",
];
const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "1",
    "7",
    "-1",
    "1.5",
    "1e400",
    "4294967295",
    "4294967296",
    "\"m1\"",
    "\"a b\"",
    "\"gpt-oss\\u002d120b\"",
    "\"\"",
    "{}",
    "[]",
    "{\"include_usage\":true}",
    "{\"user_id\":\"u1\"}",
    "{\"user_id\":7,\"user\":\"u1\"}",
    "{\"User_id\":\"u1\"}",
    "{ \"include_usage\" : false }",
    "{\"include_usage\":null,\"x\":1}",
    "{\"x\":[1]}",
    "[{\"model\":\"inner\"}]",
    "{\"Include_usage\":true}",
    "{\"include_\\u0075sage\":true}",
    "{\"\\u0130nclude_usage\":true}",
    "[\"a\", \"b,\\\"c\"]",
    "[1,2, 3]",
    "[[1,2],[],[3]]",
    "[[1],\"a\",null,{\"x\":1}]",
    "\"long enough to leave the first words of the skip \\\" and go on\"",
    "{\"include_usage\":1}",
    "[[],{}]",
    "\"\\ud800\"",
    "-0",
    "00",
    "tru",
    "\"",
];
const NOISE: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u",
    "null",
    "tru",
    "1",
    "-",
    ".",
    "e",
    "0",
    " ",
    "\n",
    "\t",
    "\u{1}",
    "é",
    "model",
    "\"model\":",
    "\"stream\":true",
    "{}",
    "[]",
    "\u{feff}",
];
const EVENTS: &[&str] = &[
    "data: {\"choices\":[{\"delta\":{}}]}",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}",
    "data:{\"choices\":[],\"usage\":null}",
    "data: [DONE]",
    ": comment",
    "event: message_delta",
    "id: 1",
    "data",
    "data:",
    "data: {\"error\":{\"message\":\"no\"}}",
    "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}",
    "data: {\"usage\":{\"output_tokens\":12}}",
    "data: {\"choices\":[],",
    "data: \"usage\":{\"total_tokens\":5}}",
    "data: {\"response\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":0}}}",
    "data: {\"usage\":{\"prompt_tokens\":-1}}",
    "data: {\"usageMetadata\":{\"promptTokenCount\":8,\"thoughtsTokenCount\":3,\"toolUsePromptTokenCount\":1}}",
    "data: {\"usageMetadata\":{\"promptTokenCount\":8,\"candidatesTokenCount\":2,\"totalTokenCount\":14}}",
    "data: {\"usageMetadata\":{\"candidatesTokenCount\":-2,\"cachedContentTokenCount\":9}}",
    "data: {\"usageMetadata\":{\"promptTokenCount\":8,\"promptTokensDetails\":[{\"modality\":\"TEXT\",\"tokenCount\":1}, {\"tokenCount\":7,\"modality\":\"AUDIO\"}]}}",
    "\u{feff}data: {\"usage\":{\"prompt_tokens\":1}}",
    "datax: 1",
    "data: {\"choices\" : [ ] , \"usage\":{}}",
];
const ENDS: &[&str] = &[
    "\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\r\r", "\n\r\n", "\r\n\r", "", "\n\n\n",
];

/// A runner whose seed is printed, so that a failure can be repeated.
pub(crate) fn runner(cases: u32) -> TestRunner {
    let seed = testing::seed("bodies");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(
        Config {
            cases,
            failure_persistence: None,
            ..Config::default()
        },
        rng,
    )
}

fn document() -> impl Strategy<Value = String> {
    let space = || select(&["", "", "", " ", "\n\t"][..]);
    let key = prop_oneof![12 => select(KEYS), 1 => select(SPELLINGS)];
    let member = (space(), key, space(), select(VALUES), space())
        .prop_map(|(a, key, b, value, c)| format!("{a}\"{key}\"{b}:{c}{value}{a}"));
    (space(), prop::collection::vec(member, 0..7))
        .prop_map(|(s, members)| format!("{s}{{{}}}{s}", members.join(",")))
}

fn stream() -> impl Strategy<Value = String> {
    prop::collection::vec((select(EVENTS), select(ENDS)), 0..9).prop_map(|lines| {
        lines
            .into_iter()
            .map(|(line, end)| format!("{line}{end}"))
            .collect()
    })
}

#[test]
fn documents_read_as_the_naive_reader_reads_them() {
    runner(1500)
        .run(&document(), |body| {
            json_head::fuzz_one(body.as_bytes());
            Ok(())
        })
        .unwrap();
}

#[test]
fn noise_is_refused_or_read_as_the_naive_reader_does() {
    let noise = prop::collection::vec(select(NOISE), 0..24).prop_map(|parts| parts.concat());
    runner(1500)
        .run(&noise, |body| {
            json_head::fuzz_one(body.as_bytes());
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_damaged_document_is_refused_or_read_as_the_naive_reader_does() {
    let damaged = (document(), any::<prop::sample::Index>(), any::<u8>());
    let run = |(body, at, byte): (String, prop::sample::Index, u8)| {
        let mut body = body.into_bytes();
        let at = at.index(body.len());
        body[at] = byte;
        json_head::fuzz_one(&body);
        Ok(())
    };
    runner(1500).run(&damaged, run).unwrap();
}

#[test]
fn a_body_reads_the_same_wherever_it_is_cut() {
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..6);
    let run = |(body, cuts): (String, Vec<prop::sample::Index>)| {
        let whole = CallHead::read(body.as_bytes());
        for chunks in all_cuts(body.as_bytes(), &cuts) {
            let mut scanner = CallScanner::new();
            let pushed = chunks.iter().try_for_each(|chunk| scanner.push(chunk));
            prop_assert_eq!(
                &whole,
                &pushed.and_then(|()| scanner.finish().map(std::mem::take))
            );
        }
        Ok(())
    };
    runner(500).run(&(document(), cuts), run).unwrap();
}

#[test]
fn a_stream_reads_as_the_naive_reader_reads_it() {
    runner(1000)
        .run(&stream(), |text| {
            sse_scan::fuzz_one(text.as_bytes());
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_stream_reads_the_same_wherever_it_is_cut() {
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..6);
    let run = |(text, cuts): (String, Vec<prop::sample::Index>)| {
        for mode in [Mode::Observe, Mode::Withhold] {
            let whole = sse_scan::scan(mode, [text.as_bytes()]);
            for chunks in all_cuts(text.as_bytes(), &cuts) {
                prop_assert_eq!(&whole, &sse_scan::scan(mode, chunks));
            }
        }
        Ok(())
    };
    runner(150).run(&(stream(), cuts), run).unwrap();
}

/// Every way to split once, and one way to split often.
fn all_cuts<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<Vec<&'a [u8]>> {
    let mut ways: Vec<Vec<&[u8]>> = (0..=bytes.len())
        .map(|at| vec![&bytes[..at], &bytes[at..]])
        .collect();
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    ways.push(
        places
            .windows(2)
            .map(|pair| &bytes[pair[0]..pair[1]])
            .collect(),
    );
    ways
}
