//! Documents damaged at random: never a panic, and always either a snapshot or a fault.

use super::examples::example_world;
use crate::parse_document;
use std::path::Path;

/// xorshift64*: enough to pick places and pieces.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let value = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16;
        usize::try_from(value).unwrap() % below.max(1)
    }
}

const PIECES: &[&str] = &[
    "",
    " ",
    "\n",
    "\n  ",
    ":",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "#",
    "&a ",
    "*a",
    "!!str ",
    "|",
    ">",
    "${",
    "${X}",
    "${X:-0}",
    "$",
    "$$",
    "~",
    "true",
    "0",
    "-1",
    "1e9",
    "99999999999999999999",
    "1m",
    "é",
    "\t",
    "\u{feff}",
    "\0",
    "---\n",
    "...\n",
    "<<: *a",
    "? ",
    "@",
    "`",
    "%YAML 1.2\n",
    "limits: []",
    "model: \"*\"",
];

#[test]
#[expect(clippy::disallowed_methods, reason = "a seed to repeat, or a new one")]
fn damaged_documents_never_panic() {
    let seed: u64 = std::env::var("SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or_else(|| {
            std::time::SystemTime::UNIX_EPOCH
                .elapsed()
                .unwrap()
                .subsec_nanos()
                .into()
        });
    println!("seed {seed}");
    let mut dice = Dice(seed | 1);
    let examples: Vec<String> = ["white-paper", "vllm-and-gemini", "failover"]
        .iter()
        .map(|name| format!("{}/../../examples/{name}.yaml", env!("CARGO_MANIFEST_DIR")))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let (mut taken, mut refused) = (0, 0);
    for round in 0..2000 {
        let mut text: Vec<char> = examples[round % examples.len()].chars().collect();
        for _ in 0..=dice.roll(4) {
            let start = dice.roll(text.len());
            let end = (start + dice.roll(12)).min(text.len());
            let piece: Vec<char> = PIECES[dice.roll(PIECES.len())].chars().collect();
            text.splice(start..end, piece);
        }
        let text: String = text.into_iter().collect();
        let world = example_world(&text);
        match parse_document(
            Path::new("/etc/tollgate/tollgate.yaml"),
            text.as_bytes(),
            &world,
        ) {
            Ok(loaded) => {
                taken += 1;
                assert!(
                    !format!("{loaded:?}").contains("canary"),
                    "seed {seed}: {text}"
                );
            }
            Err(faults) => {
                refused += 1;
                assert!(
                    !faults.faults.is_empty(),
                    "seed {seed}: refused without a fault: {text}"
                );
                assert!(
                    !faults.to_string().contains("canary"),
                    "seed {seed}: {text}"
                );
            }
        }
    }
    assert!(
        taken > 25 && refused > 500,
        "seed {seed}: {taken} taken, {refused} refused"
    );
}
