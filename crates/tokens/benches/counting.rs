//! What counting costs: prose, code and texts made to hurt, by each vocabulary; a chat body; a streamed answer.
//!
//! `cargo bench -p tokens --bench counting`. Not here: what the pool around it costs (`prove`).

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use tokens::calibration::Calibration;
use tokens::{BuiltIn, Counter, Ending, Feature, Lane, Shape, TemplateSettings, probes};
use wire::dialect::Operation;

fn main() {
    divan::main();
}

const MIB: usize = 1 << 20;

fn prose(bytes: usize) -> String {
    let turn = "The build fails with \"cannot find symbol\" in the third module, although the second one compiles as before. Here is what I tried so far, step by step, and what came of it:\n  let x = foo_bar(1234, &mut names)?;\n";
    turn.repeat(bytes / turn.len() + 1)
}

fn bench_text(bencher: Bencher<'_, '_>, counter: &Counter, text: &str) {
    let body = serde_json::json!({ "prompt": text }).to_string();
    bencher
        .counter(BytesCount::new(text.len()))
        .bench_local(|| counter.prompt(Operation::Completions, black_box(body.as_bytes()), 0));
}

#[divan::bench]
fn o200k_prose(bencher: Bencher<'_, '_>) {
    bench_text(
        bencher,
        &Counter::without_template(BuiltIn::O200k),
        &prose(MIB),
    );
}

#[divan::bench]
fn cl100k_prose(bencher: Bencher<'_, '_>) {
    bench_text(
        bencher,
        &Counter::without_template(BuiltIn::Cl100k),
        &prose(MIB),
    );
}

#[divan::bench]
fn own_tokenizer_prose(bencher: Bencher<'_, '_>) {
    let counter = Counter::from_template(
        include_bytes!("../../../vectors/tokens/tiny_tokenizer.json"),
        "",
        TemplateSettings::default(),
    )
    .expect("a usable model");
    bench_text(bencher, &counter, &prose(MIB));
}

#[divan::bench(args = ["a", " ", "🦀", "\n ", "A中"])]
fn o200k_hostile(bencher: Bencher<'_, '_>, unit: &str) {
    bench_text(
        bencher,
        &Counter::without_template(BuiltIn::O200k),
        &unit.repeat(MIB / unit.len()),
    );
}

#[divan::bench(args = [1024, 32 * 1024])]
fn harmony_chat(bencher: Bencher<'_, '_>, bytes: usize) {
    let counter = Counter::harmony();
    let body = serde_json::json!({"messages": [{"role": "user", "content": prose(bytes)}]});
    let body = body.to_string();
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| counter.prompt(Operation::Chat, black_box(body.as_bytes()), 0));
}

#[divan::bench]
fn a_streamed_answer_of_400_pieces(bencher: Bencher<'_, '_>) {
    let counter = Counter::harmony();
    let text = prose(2000);
    let pieces: Vec<&str> = text.split_inclusive(' ').take(400).collect();
    bencher.bench_local(|| {
        let mut output = counter.output();
        for piece in black_box(&pieces) {
            output.push(0, Lane::Content, piece).expect("countable");
        }
        output.finish(Ending::Stop)
    });
}

/// What the thread that reconciles does for each prompt that was reported, after an engine was asked for all probes.
#[divan::bench]
fn a_comparison(bencher: Bencher<'_, '_>) {
    let mut calibration = Calibration::default();
    for probe in probes::all() {
        calibration.probe(probe.name, probe.shape, 50, 50, 1);
    }
    calibration.asked(1);
    let shape = Shape::of(&[Feature::Chat, Feature::System, Feature::Tools]);
    bencher.bench_local(|| {
        let change = calibration.answer(black_box(shape), 200, 200, 2);
        (change.is_for_alarm, calibration.mark(shape))
    });
}
