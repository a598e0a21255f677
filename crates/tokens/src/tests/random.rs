//! Random text that is hard on tokenizers. Not here: what is checked with it, where seeds come from (`testing`).

use testing::Draw;

/// What follows from a seed, also texts.
pub(crate) struct Random(Draw);

impl Random {
    /// With the seed of the test of this name.
    pub(crate) fn of(test: &str) -> Self {
        Self::seeded(testing::seed(test))
    }

    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(Draw::new(seed))
    }

    pub(crate) const fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    /// Words, numbers, signs and white space as in code.
    pub(crate) fn ascii(&mut self, bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            match self.below(8) {
                0..=2 => {
                    let upper = self.below(4) == 0;
                    for _ in 0..=self.below(9) {
                        let letter = char::from(b'a' + self.below(26) as u8);
                        text.push(if upper {
                            letter.to_ascii_uppercase()
                        } else {
                            letter
                        });
                    }
                }
                3 => text.push_str(&self.below(100_000).to_string()),
                4 | 5 => text.push(' '),
                6 => text.push(char::from(self.below(128) as u8)),
                _ => text.push_str(["\n", "\n    ", "'", "'s ", "  \n", "//", "\t"][self.below(7)]),
            }
        }
        text
    }

    pub(crate) fn text(&mut self, pieces: usize) -> String {
        (0..pieces)
            .map(|_| PIECES[self.below(PIECES.len())])
            .collect()
    }
}

/// Mixed so that a tokenizer's cuts depend on what follows: contractions, runs of space, letters of both cases and of
/// none, marks, signs before line ends.
const PIECES: &[&str] = &[
    "a",
    "b",
    "the",
    "The",
    "THE",
    "don",
    "'",
    "'t",
    "'r",
    "e",
    "'ll",
    "L",
    "Ǆ",
    "ǅ",
    "ʰ",
    "中",
    "文",
    "東京",
    "\u{301}",
    "\u{a0}",
    "\u{3000}",
    "\u{2028}",
    " ",
    " ",
    "  ",
    "   ",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "\n\n",
    "!",
    "...",
    "/",
    "//",
    "://",
    "-",
    "(",
    "{\"",
    "1",
    "12",
    "345",
    "6789",
    "½",
    "٣",
    "🦀",
    "👩‍👩‍👧",
    "\u{200d}",
    "é",
    "ß",
    "ſ",
    "K",
    "م",
    "<|start|>",
    "<|end|>",
    "<|",
    "|>",
    "_",
    "AbC",
    "xX",
    "zzzzzz",
];
