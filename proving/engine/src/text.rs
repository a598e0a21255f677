//! Generated text, whose number of tokens is known before it is made.
//!
//! Words are taken that are one token each in the model's own vocabulary, wherever they stand, so that the text read
//! back by the same tokenizer gives exactly the tokens that it was made of.
//! Invariant: for every output, `tokenizer.count(output.text()) == output.tokens()`; its pieces join to its text.
//! Not here: how an answer is framed (`turn`), vocabularies (`tokenizer`).

use std::sync::Arc;

use experiment::random::Rng;

use crate::tokenizer::Tokenizer;

/// Plain words, some outside ASCII: letters only, so that a tokenizer cuts before and after each.
const WORDS: &str = "\
    the a of to and in that it is was for on with as by at from this which when where each every some many most \
    more less than then request answer model token stream server gateway engine budget limit route latency queue \
    batch cache memory worker client header record ledger credential measure count forward reserve settle \
    release observe follow carry begin finish small large quick steady honest careful simple quiet clear early \
    late exact river mountain garden window morning evening summer winter letter paper number often always never \
    again before after under over between through without naïve café façade rôle Zürich señor смысл слово 数据 模型";

/// Text that is made of known tokens, with the end of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    text: String,
    ends: Vec<usize>,
}

impl Output {
    /// `text` cut into its tokens.
    pub fn of(tokenizer: &Tokenizer, text: String) -> Self {
        let ends = tokenizer.ends(&text);
        Self { text, ends }
    }

    fn of_pieces<'a>(pieces: impl Iterator<Item = &'a str>) -> Self {
        let mut output = Self::default();
        for piece in pieces {
            output.text.push_str(piece);
            output.ends.push(output.text.len());
        }
        output
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number of tokens.
    pub fn tokens(&self) -> usize {
        self.ends.len()
    }

    /// The end of each token, in bytes.
    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends
    }
}

/// Makes text for one vocabulary. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Composer {
    tokenizer: Tokenizer,
    forms: Arc<Forms>,
}

/// Words by where they stand, each one token there.
#[derive(Debug, Default)]
struct Forms {
    /// At the very start and after an empty line.
    bare: Vec<String>,
    /// After a full stop.
    opening: Vec<String>,
    inner: Vec<String>,
    stop: Option<String>,
    empty_line: Option<String>,
}

impl Composer {
    /// Chooses words for a vocabulary. Fails when it has none that are one token, so that no text could be exact.
    pub fn new(tokenizer: &Tokenizer) -> Result<Self, String> {
        let composer = Self {
            tokenizer: tokenizer.clone(),
            forms: Arc::new(Forms::of(tokenizer)),
        };
        for tokens in [1, 2, 3, 64] {
            let made = composer.plain(1, tokens);
            if tokenizer.count(made.text()) != tokens as u64 {
                return Err("tokenizer: has too few plain words of one token to write text of a known length".to_owned());
            }
        }
        Ok(composer)
    }

    /// Natural-looking text of exactly `tokens` tokens, the same for the same `seed`.
    pub fn compose(&self, seed: u64, tokens: usize) -> Output {
        let made = self.sentences(seed, tokens);
        if self.tokenizer.is_built_in() || self.tokenizer.count(made.text()) == tokens as u64 {
            return made;
        }
        self.plain(seed, tokens)
    }

    fn sentences(&self, seed: u64, tokens: usize) -> Output {
        let (mut rng, forms) = (Rng::new(seed), &*self.forms);
        let mut pieces: Vec<&str> = Vec::with_capacity(tokens);
        let (mut left, mut place) = (5 + below(&mut rng, 10), &forms.bare);
        while pieces.len() < tokens {
            let room = tokens - pieces.len();
            match (&forms.stop, &forms.empty_line) {
                (_, Some(end)) if left == 0 && room > 1 && below(&mut rng, 6) == 0 => {
                    pieces.push(end);
                    place = &forms.bare;
                    left = 5 + below(&mut rng, 10);
                }
                (Some(end), _)
                    if left == 0
                        || (room == 1 && pieces.len() > 2 && std::ptr::eq(place, &forms.inner)) =>
                {
                    pieces.push(end);
                    place = &forms.opening;
                    left = 5 + below(&mut rng, 10);
                }
                _ => {
                    pieces.push(&place[below(&mut rng, place.len())]);
                    place = &forms.inner;
                    left = left.saturating_sub(1);
                }
            }
        }
        Output::of_pieces(pieces.into_iter())
    }

    /// Nothing but words: what any vocabulary can do.
    fn plain(&self, seed: u64, tokens: usize) -> Output {
        let (mut rng, forms) = (Rng::new(seed), &*self.forms);
        if forms.inner.is_empty() || forms.bare.is_empty() {
            return Output::default();
        }
        let first = forms.bare[below(&mut rng, forms.bare.len())].as_str();
        let rest = (1..tokens).map(|_| forms.inner[below(&mut rng, forms.inner.len())].as_str());
        Output::of_pieces(std::iter::once(first).take(tokens).chain(rest))
    }

    /// The vocabulary that it writes in.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }
}

impl Forms {
    fn of(tokenizer: &Tokenizer) -> Self {
        let is_one = |piece: &String| tokenizer.count(piece) == 1;
        let own = tokenizer.own_words(400);
        let words = || {
            WORDS
                .split_whitespace()
                .map(str::to_owned)
                .chain(own.iter().cloned())
        };
        let all =
            |form: &dyn Fn(String) -> String| words().map(form).filter(is_one).collect::<Vec<_>>();
        let inner = all(&|word| format!(" {word}"));
        let capitals = all(&|word| capital(&word));
        let opening = all(&|word| format!(" {}", capital(&word)));
        let bare = if capitals.is_empty() {
            all(&|word| word)
        } else {
            capitals
        };
        Self {
            opening: if opening.is_empty() {
                inner.clone()
            } else {
                opening
            },
            bare: if bare.is_empty() { inner.clone() } else { bare },
            inner,
            stop: Some(".".to_owned()).filter(is_one),
            empty_line: Some(".\n\n".to_owned()).filter(is_one),
        }
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// FNV-1a, continued from `state`.
pub(crate) fn hash(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A number less than `n`, which must not be 0.
pub(crate) fn below(rng: &mut Rng, n: usize) -> usize {
    (rng.bits() % n as u64) as usize
}

#[cfg(test)]
mod tests;
