//! What reading costs: request bodies, and response streams in the chunks they come in.
//!
//! `cargo bench -p wire --bench bodies`. Not here: whole exchanges (`prove`).

use bytes::Bytes;
use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use wire::call::{CallHead, apply, splices};
use wire::sse::{Mode, Scanner};
use wire::usage::UnaryUsage;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// A chat call of about this many bytes: many turns of ordinary prose, with escapes here and there.
fn chat_body(bytes: usize) -> Vec<u8> {
    let turn = r#"{"role":"user","content":"The build fails with \"cannot find symbol\" in the third module, although the second one compiles as before. Here is what I tried so far, step by step, and what came of it:\n"},"#;
    let mut body = String::from(r#"{"model":"gpt-oss-120b","temperature":0.7,"messages":["#);
    while body.len() + turn.len() + 120 < bytes {
        body.push_str(turn);
    }
    let rest = bytes.saturating_sub(body.len() + 115);
    body.push_str(&format!(
        r#"{{"role":"user","content":"{}"}}]"#,
        "a".repeat(rest)
    ));
    body.push_str(r#","stream":true,"max_tokens":512,"stream_options":{"include_usage":true}}"#);
    body.into_bytes()
}

#[divan::bench(args = [1024, 32 * 1024, 1024 * 1024])]
fn read_chat_body(bencher: Bencher, bytes: usize) {
    let body = chat_body(bytes);
    bencher
        .counter(BytesCount::new(body.len()))
        .bench(|| CallHead::read(black_box(&body)).expect("a valid body"));
}

/// Turns of a kilobyte each, as the race sends them.
#[divan::bench]
fn read_long_turns(bencher: Bencher) {
    let turn = "the quick brown fox counts every token at the gate and ".repeat(18);
    let turns = vec![format!(r#"{{"role":"user","content":"{turn}"}}"#); 32];
    let body = format!(r#"{{"model":"m","messages":[{}]}}"#, turns.join(","));
    bencher
        .counter(BytesCount::new(body.len()))
        .bench(|| CallHead::read(black_box(body.as_bytes())).expect("a valid body"));
}

#[divan::bench]
fn read_one_long_string(bencher: Bencher) {
    let body = format!(r#"{{"model":"m","prompt":"{}"}}"#, "a".repeat(1024 * 1024));
    bencher
        .counter(BytesCount::new(body.len()))
        .bench(|| CallHead::read(black_box(body.as_bytes())).expect("a valid body"));
}

#[divan::bench]
fn read_spread_out_json(bencher: Bencher) {
    let value: serde_json::Value =
        serde_json::from_slice(&chat_body(32 * 1024)).expect("a valid body");
    let body = serde_json::to_vec_pretty(&value).expect("a valid body");
    bencher
        .counter(BytesCount::new(body.len()))
        .bench(|| CallHead::read(black_box(&body)).expect("a valid body"));
}

/// For comparison: the same members by `serde_json` with a typed struct.
#[divan::bench(args = [1024, 32 * 1024])]
fn read_chat_body_with_serde_json(bencher: Bencher, bytes: usize) {
    #[derive(serde::Deserialize)]
    #[expect(dead_code, reason = "only the cost of reading is of interest")]
    struct Call {
        model: String,
        stream: Option<bool>,
        max_tokens: Option<u32>,
    }
    let body = chat_body(bytes);
    bencher
        .counter(BytesCount::new(body.len()))
        .bench(|| serde_json::from_slice::<Call>(black_box(&body)).expect("a valid body"));
}

#[divan::bench]
fn splice_a_model_into_32_kib(bencher: Bencher) {
    let body = chat_body(32 * 1024);
    let head = CallHead::read(&body).expect("a valid body");
    let rope: Vec<Bytes> = body.chunks(16 * 1024).map(Bytes::copy_from_slice).collect();
    bencher.bench(|| apply(black_box(&rope), &splices(&head, Some("other"), true)));
}

const EVENT: &[u8] = b"data: {\"id\":\"chatcmpl-9f8a7b6c\",\"object\":\"chat.completion.chunk\",\"created\":1730000000,\"model\":\"gpt-oss-120b\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" symbol\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";

#[divan::bench(args = [1, 10])]
fn observe_a_chunk_of_events(bencher: Bencher, events: usize) {
    let chunk = Bytes::from(EVENT.repeat(events));
    let mut scanner = Scanner::new(Mode::Observe);
    bencher
        .counter(BytesCount::new(chunk.len()))
        .bench_local(move || scanner.observe(black_box(&chunk)));
}

#[divan::bench(args = [1, 10])]
fn withhold_from_a_chunk_of_events(bencher: Bencher, events: usize) {
    let chunk = Bytes::from(EVENT.repeat(events));
    let mut scanner = Scanner::new(Mode::Withhold);
    let mut out = Vec::with_capacity(4);
    bencher
        .counter(BytesCount::new(chunk.len()))
        .bench_local(move || {
            out.clear();
            scanner.push(black_box(chunk.clone()), &mut out);
        });
}

#[divan::bench]
fn observe_an_event_cut_in_two(bencher: Bencher) {
    let (head, tail) = EVENT.split_at(100);
    let mut scanner = Scanner::new(Mode::Observe);
    bencher
        .counter(BytesCount::new(EVENT.len()))
        .bench_local(move || {
            scanner.observe(black_box(head));
            scanner.observe(black_box(tail));
        });
}

#[divan::bench]
fn decode_a_usage_event(bencher: Bencher) {
    let event: &[u8] = b"data: {\"id\":\"chatcmpl-9f8a7b6c\",\"choices\":[],\"usage\":{\"prompt_tokens\":412,\"completion_tokens\":128,\"total_tokens\":540,\"prompt_tokens_details\":{\"cached_tokens\":400}}}\n\n";
    let mut scanner = Scanner::new(Mode::Observe);
    bencher.bench_local(move || scanner.observe(black_box(event)));
}

#[divan::bench(args = [2 * 1024, 32 * 1024])]
fn read_unary_usage(bencher: Bencher, bytes: usize) {
    let body = format!(
        r#"{{"id":"x","choices":[{{"message":{{"role":"assistant","content":"{}"}}}}],"usage":{{"prompt_tokens":412,"completion_tokens":128,"total_tokens":540}}}}"#,
        "word ".repeat(bytes / 5)
    );
    bencher.counter(BytesCount::new(body.len())).bench(|| {
        let mut usage = UnaryUsage::new();
        usage.push(black_box(body.as_bytes()));
        *usage.finish()
    });
}
