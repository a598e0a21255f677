//! How fast texts are counted, beside the tokenizers that others use: `cargo run --release -p tokens --example speed --
//! FILE…`.
//!
//! Each file is counted whole as a text completion, again and again for a second, by one counter after the other in turn;
//! printed are the median of the rounds in MB/s and whether the counts agree.

use std::time::{Duration, Instant};

use tokens::{BuiltIn, Counter};
use wire::dialect::Operation;

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(150);

fn main() {
    let ours = Counter::without_template(BuiltIn::O200k);
    let openai = bpe_openai::o200k_base();
    println!(
        "{:32} {:>9} {:>9} {:>12} {:>9}",
        "o200k, MB/s", "bytes", "tokens", "bpe-openai", "tollgate"
    );
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let body = serde_json::json!({ "prompt": text }).to_string();
        let count = || {
            ours.prompt(Operation::Completions, body.as_bytes(), 0)
                .map(|count| count.tokens)
                .unwrap_or(0)
        };
        let reference = || openai.count(text.as_str()) as u64;
        let mut speeds = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            speeds[0].push(speed(text.len(), reference));
            speeds[1].push(speed(text.len(), count));
        }
        let [reference_speed, own] = speeds.map(median);
        let agrees = if count() == reference() {
            ""
        } else {
            "DIFFERS"
        };
        println!(
            "{:32} {:9} {:9} {reference_speed:12.0} {own:9.0} {agrees}",
            file.rsplit('/').next().unwrap_or(&file),
            text.len(),
            count()
        );
    }
}

fn speed(bytes: usize, count: impl Fn() -> u64) -> f64 {
    let (began, mut rounds) = (Instant::now(), 0);
    while began.elapsed() < ROUND || rounds == 0 {
        std::hint::black_box(count());
        rounds += 1;
    }
    (bytes * rounds) as f64 / 1e6 / began.elapsed().as_secs_f64()
}

fn median(mut speeds: Vec<f64>) -> f64 {
    speeds.sort_by(f64::total_cmp);
    speeds[speeds.len() / 2]
}
