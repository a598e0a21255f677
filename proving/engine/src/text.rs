//! Tokens of the simulated engine: how text is cut into them, and how output is made of them.
//!
//! A token is a run of at most four alphanumeric characters, or one other visible character; white space
//! belongs to the token after it (at the very end, to the one before) and counts nothing by itself. It is an
//! approximation of a BPE tokenizer, near one token per four characters of English.
//! Invariant: for every output, `count(output.text()) == output.tokens()`: prompt and output are counted alike.
//! Not here: a real tokenizer or chat template.

mod words;

use words::WORDS;

const RUN: usize = 4;

/// Number of tokens in `text`.
pub fn count(text: &str) -> u64 {
    let mut tokens = 0;
    scan(text, |_| tokens += 1);
    tokens
}

/// Calls `start` with the offset at which each token's first visible character stands.
fn scan(text: &str, mut start: impl FnMut(usize)) {
    let mut run = 0;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            run = 0;
        } else if c.is_alphanumeric() {
            if run == 0 || run == RUN {
                start(at);
                run = 0;
            }
            run += 1;
        } else {
            start(at);
            run = 0;
        }
    }
}

/// Generated text with the end of each of its tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    text: String,
    ends: Vec<usize>,
}

impl Output {
    /// Natural-looking text of exactly `tokens` tokens, the same for the same `seed`.
    pub fn compose(seed: u64, tokens: usize) -> Self {
        let mut rng = Rng(seed);
        let mut text = String::with_capacity(tokens * 5);
        let (mut made, mut left_in_sentence) = (0, 0);
        while made < tokens {
            if made > 0 && left_in_sentence == 0 {
                text.push('.');
                made += 1;
                if made == tokens {
                    break;
                }
            }
            let opens = left_in_sentence == 0;
            if made > 0 {
                text.push_str(if opens && rng.below(6) == 0 {
                    "\n\n"
                } else {
                    " "
                });
            }
            if opens {
                left_in_sentence = 5 + rng.below(10);
            }
            left_in_sentence -= 1;
            made += push_word(
                &mut text,
                WORDS[rng.below(WORDS.len())],
                opens,
                tokens - made,
            );
        }
        Self::of(text)
    }

    /// `text` cut into its tokens.
    pub fn of(text: String) -> Self {
        let mut ends = Vec::with_capacity(text.len() / RUN);
        let mut open = false;
        scan(&text, |at| {
            if open {
                ends.push(text[..at].trim_end().len());
            }
            open = true;
        });
        if open {
            ends.push(text.len());
        }
        Self { text, ends }
    }

    /// Keeps the first `tokens` tokens. Returns whether any were cut.
    pub fn truncate(&mut self, tokens: usize) -> bool {
        let cut = tokens < self.ends.len();
        if cut {
            self.ends.truncate(tokens);
            self.text.truncate(self.ends.last().copied().unwrap_or(0));
        }
        cut
    }

    /// Widens the text to at least `bytes` bytes by spaces before tokens, which changes no count.
    pub fn pad(self, bytes: usize) -> Self {
        let tokens = self.tokens();
        let missing = bytes.saturating_sub(self.text.len());
        if missing == 0 || tokens == 0 {
            return self;
        }
        let mut padded = Self {
            text: String::with_capacity(bytes),
            ends: Vec::with_capacity(tokens),
        };
        for i in 0..tokens {
            let spaces = missing / tokens + usize::from(i < missing % tokens);
            padded.text.extend(std::iter::repeat_n(' ', spaces));
            padded.text.push_str(self.token(i));
            padded.ends.push(padded.text.len());
        }
        padded
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number of tokens.
    pub fn tokens(&self) -> usize {
        self.ends.len()
    }

    /// Token `i` with the white space before it; empty past the end.
    pub fn token(&self, i: usize) -> &str {
        let start = if i == 0 {
            0
        } else {
            self.ends.get(i - 1).copied().unwrap_or(self.text.len())
        };
        let end = self.ends.get(i).copied().unwrap_or(self.text.len());
        &self.text[start..end]
    }
}

/// Appends at most `room` tokens of `word`; returns how many.
fn push_word(text: &mut String, word: &str, capital: bool, room: usize) -> usize {
    let mut chars = 0;
    for (i, c) in word.chars().take(room.saturating_mul(RUN)).enumerate() {
        text.push(if capital && i == 0 {
            c.to_ascii_uppercase()
        } else {
            c
        });
        chars += 1;
    }
    usize::div_ceil(chars, RUN)
}

/// A prompt as it is read: its tokens, and a hash from which its answer follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    pub(crate) tokens: u64,
    pub(crate) hash: u64,
}

impl Tally {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            tokens: 0,
            hash: seed ^ 0xcbf2_9ce4_8422_2325,
        }
    }

    pub(crate) fn add(&mut self, text: &str) {
        self.tokens += count(text);
        self.hash = hash(self.hash, text.as_bytes());
    }

    /// Tokens that stand for something which is not text (template marks, images).
    pub(crate) fn add_fixed(&mut self, tokens: u64) {
        self.tokens += tokens;
    }
}

/// FNV-1a, continued from `state`.
pub(crate) fn hash(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// SplitMix64: small, seeded, the same on every machine.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[cfg(test)]
mod tests;
