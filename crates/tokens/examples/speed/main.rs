//! How fast texts are counted, beside the tokenizers that others use: `cargo run --profile dist -p tokens --example speed --
//! [FILE…]`.
//!
//! Each text is counted whole, again and again for a while, by one counter after the other in turn; printed are the medians of
//! the rounds in MB/s of one core, and whether the counts agree. Without files the texts are this project's own documents
//! and sources, and made ones. `--times N FILE…` counts with ours alone, N times: for a profiler, and for `callgrind`.
//! Not here: the texts that are made (`texts`), the vocabulary as `tokenizers` has it (`file`).

#![expect(clippy::disallowed_methods, reason = "speed is measured")]

mod file;
mod texts;

use std::time::{Duration, Instant};

use tokens::{BuiltIn, Counter};
use wire::dialect::Operation;

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(100);

/// One that counts a text.
struct Column<'t> {
    name: &'static str,
    count: Box<dyn Fn(&str) -> u64 + 't>,
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if_eq("--times").is_some() {
        let times = arguments.next().and_then(|times| times.parse().ok());
        own_alone(times.expect("--times N: a number"), arguments);
        return;
    }
    let texts = texts::all(arguments);
    let ours = Counter::without_template(BuiltIn::O200k);
    let openai = bpe_openai::o200k_base();
    let tiktoken = tiktoken_rs::o200k_base().expect("a vocabulary that is built in");
    let tokenizers = file::tokenizer(openai);
    let columns = [
        column("tokenizers", |text| {
            let encoding = tokenizers.encode_fast(text, false);
            encoding.map_or(0, |encoding| encoding.len() as u64)
        }),
        column("tiktoken-rs", |text| tiktoken.count_ordinary(text) as u64),
        column("bpe-openai", |text| openai.count(text) as u64),
        column("tollgate", |text| ours.text(text).unwrap_or(0)),
    ];
    print!("{:24} {:>9} {:>9}", "o200k, MB/s", "bytes", "tokens");
    for column in &columns {
        print!(" {:>11}", column.name);
    }
    println!(" {:>11}", "with JSON");
    for (name, text) in texts {
        let body = serde_json::json!({ "prompt": text }).to_string();
        let with_json = column("with JSON", |_| {
            let prompt = ours.prompt(Operation::Completions, body.as_bytes(), 0);
            prompt.map_or(0, |prompt| prompt.count.tokens)
        });
        line(&name, &text, columns.iter().chain([&with_json]));
    }
}

fn column<'t>(name: &'static str, count: impl Fn(&str) -> u64 + 't) -> Column<'t> {
    Column {
        name,
        count: Box::new(count),
    }
}

fn line<'t>(name: &str, text: &str, columns: impl Iterator<Item = &'t Column<'t>> + Clone) {
    let mut speeds: Vec<Vec<f64>> = columns.clone().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (column, speeds) in columns.clone().zip(&mut speeds) {
            speeds.push(speed(text, &column.count));
        }
    }
    let counts: Vec<u64> = columns.map(|column| (column.count)(text)).collect();
    print!("{name:24} {:9} {:9}", text.len(), counts[0]);
    for speeds in speeds {
        print!(" {:11.0}", median(speeds));
    }
    let agree = counts.iter().all(|count| *count == counts[0]);
    println!("{}", if agree { "" } else { "  DIFFER" });
}

fn own_alone(times: usize, files: impl Iterator<Item = String>) {
    let ours = Counter::without_template(BuiltIn::O200k);
    for (name, text) in texts::all(files) {
        let began = Instant::now();
        let mut tokens = 0;
        for _ in 0..times {
            tokens = ours.text(std::hint::black_box(&text)).unwrap_or(0);
        }
        let speed = (text.len() * times) as f64 / 1e6 / began.elapsed().as_secs_f64();
        println!("{name:24} {:9} {tokens:9} {speed:11.0}", text.len());
    }
}

fn speed(text: &str, count: impl Fn(&str) -> u64) -> f64 {
    let (began, mut rounds) = (Instant::now(), 0);
    while began.elapsed() < ROUND || rounds == 0 {
        std::hint::black_box(count(std::hint::black_box(text)));
        rounds += 1;
    }
    (text.len() * rounds) as f64 / 1e6 / began.elapsed().as_secs_f64()
}

fn median(mut speeds: Vec<f64>) -> f64 {
    speeds.sort_by(f64::total_cmp);
    speeds[speeds.len() / 2]
}
