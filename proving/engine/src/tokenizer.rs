//! Text to token ids and back: the vocabulary of a model.
//!
//! Two vocabularies are built in (o200k with Harmony's marks, for gpt-oss; cl100k, for names that are not known);
//! any other is read from a `tokenizer.json`.
//! Invariant: text is never read as a mark: a `<|start|>` that a user wrote is ordinary characters. Only
//! [`Tokenizer::mark`] gives marks, and only [`Tokenizer::encode_marked`] reads them, in text that a template wrote.
//! Not here: which text a request becomes (`render`), text that is made (`text`).

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use tiktoken_rs::CoreBPE;

/// Id of a token in its vocabulary.
pub type TokenId = u32;

/// Marks that ChatML adds to cl100k, with the ids that OpenAI gave them.
const CL100K_MARKS: &[(&str, TokenId)] = &[
    ("<|endoftext|>", 100_257),
    ("<|im_start|>", 100_264),
    ("<|im_end|>", 100_265),
];

/// `vocab_size` of gpt-oss, and the ids of cl100k with its marks.
const O200K_SIZE: usize = 201_088;
const CL100K_SIZE: usize = 100_277;

/// One model's vocabulary. Cheap to clone.
#[derive(Clone)]
pub struct Tokenizer {
    kind: Kind,
    marks: Arc<BTreeMap<String, TokenId>>,
    /// What its post-processor puts before and behind a prompt.
    special: Arc<(Vec<TokenId>, Vec<TokenId>)>,
    vocabulary_size: usize,
}

#[derive(Clone)]
enum Kind {
    Tiktoken(&'static CoreBPE),
    File(Arc<tokenizers::Tokenizer>),
}

/// A part of text that a template wrote.
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Mark(TokenId),
}

/// A `tokenizer.json` that could not be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("tokenizer: {0}")]
pub struct Unreadable(String);

impl Tokenizer {
    /// gpt-oss's: o200k with Harmony's marks. The first call in a process reads 200,000 ranks.
    pub fn o200k() -> Self {
        // There are a thousand, and each is looked for in a text of its own.
        static MARKS: LazyLock<Arc<BTreeMap<String, TokenId>>> = LazyLock::new(|| {
            let bpe = tiktoken_rs::o200k_harmony_singleton();
            let marks = bpe.special_tokens().into_iter().filter_map(|mark| {
                let ids = bpe.encode_with_special_tokens(mark);
                (ids.len() == 1).then(|| (mark.to_owned(), ids[0]))
            });
            Arc::new(marks.collect())
        });
        Self {
            kind: Kind::Tiktoken(tiktoken_rs::o200k_harmony_singleton()),
            marks: Arc::clone(&MARKS),
            special: Arc::default(),
            vocabulary_size: O200K_SIZE,
        }
    }

    /// GPT-4's, with ChatML's marks.
    pub fn cl100k() -> Self {
        let marks = CL100K_MARKS
            .iter()
            .map(|(mark, id)| ((*mark).to_owned(), *id));
        Self {
            kind: Kind::Tiktoken(tiktoken_rs::cl100k_base_singleton()),
            marks: Arc::new(marks.collect()),
            special: Arc::default(),
            vocabulary_size: CL100K_SIZE,
        }
    }

    /// Reads the text of a `tokenizer.json`. Fails if it is not one.
    pub fn from_json(text: &str) -> Result<Self, Unreadable> {
        let mut inner =
            tokenizers::Tokenizer::from_str(text).map_err(|error| Unreadable(error.to_string()))?;
        inner.with_padding(None);
        inner
            .with_truncation(None)
            .map_err(|error| Unreadable(error.to_string()))?;
        // Marks in text stay text; `encode_marked` cuts them out itself.
        inner.set_encode_special_tokens(true);
        let marks = inner
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(_, added)| added.special);
        let marks = Arc::new(marks.map(|(id, added)| (added.content, id)).collect());
        Ok(Self {
            special: Arc::new(special(&inner)),
            vocabulary_size: inner.get_vocab_size(true),
            kind: Kind::File(Arc::new(inner)),
            marks,
        })
    }

    /// Ids are less than this.
    pub(crate) fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// Whether it cuts text before every word and every mark of punctuation, so that words keep their tokens.
    pub(crate) fn is_built_in(&self) -> bool {
        matches!(self.kind, Kind::Tiktoken(_))
    }

    /// The ids of `text`, in which nothing is a mark.
    pub fn encode(&self, text: &str) -> Vec<TokenId> {
        match &self.kind {
            Kind::Tiktoken(bpe) => bpe.encode_ordinary(text),
            // A file's vocabulary may lack a byte and have no unknown token: such text has no tokens.
            Kind::File(inner) => inner
                .encode_fast(text, false)
                .map(|e| e.get_ids().to_vec())
                .unwrap_or_default(),
        }
    }

    /// The ids of text that a template wrote, in which marks are marks.
    pub fn encode_marked(&self, text: &str) -> Vec<TokenId> {
        let mut ids = Vec::new();
        self.cut_at_marks(text, |piece| match piece {
            Piece::Text(text) => ids.extend(self.encode(text)),
            Piece::Mark(id) => ids.push(id),
        });
        ids
    }

    /// The ids of a plain prompt, in which marks are marks, and what is put around every prompt if `adds_special`.
    pub(crate) fn encode_prompt(&self, text: &str, adds_special: bool) -> Vec<TokenId> {
        let ids = self.encode_marked(text);
        if adds_special {
            self.with_special(ids)
        } else {
            ids
        }
    }

    /// A prompt with what is put around every prompt.
    pub(crate) fn with_special(&self, ids: Vec<TokenId>) -> Vec<TokenId> {
        let (before, behind) = &*self.special;
        [before.as_slice(), &ids, behind].concat()
    }

    /// Hands on the marks of `text` and what is between them, in order; of two marks at one place the longer counts.
    /// Looks at the text once for each mark of the vocabulary.
    pub(crate) fn cut_at_marks(&self, text: &str, mut each: impl FnMut(Piece<'_>)) {
        let mut next: Vec<(usize, &str, TokenId)> = self
            .marks
            .iter()
            .filter_map(|(mark, id)| Some((text.find(mark.as_str())?, mark.as_str(), *id)))
            .collect();
        let mut at = 0;
        while let Some(&(start, mark, id)) = next
            .iter()
            .min_by_key(|(start, mark, _)| (*start, std::cmp::Reverse(mark.len())))
        {
            if start > at {
                each(Piece::Text(&text[at..start]));
            }
            each(Piece::Mark(id));
            at = start + mark.len();
            next.retain_mut(|(start, mark, _)| {
                if *start < at {
                    match text[at..].find(*mark) {
                        Some(further) => *start = at + further,
                        None => return false,
                    }
                }
                true
            });
        }
        if at < text.len() {
            each(Piece::Text(&text[at..]));
        }
    }

    /// Number of tokens in `text`, in which nothing is a mark.
    pub fn count(&self, text: &str) -> u64 {
        self.encode(text).len() as u64
    }

    /// The id of a mark, such as `<|start|>`.
    pub fn mark(&self, name: &str) -> Option<TokenId> {
        self.marks.get(name).copied()
    }

    /// The text of a mark.
    fn mark_text(&self, id: TokenId) -> Option<&str> {
        self.marks
            .iter()
            .find(|(_, mark)| **mark == id)
            .map(|(name, _)| name.as_str())
    }

    /// The text of `ids`, marks included; what is no UTF-8 becomes U+FFFD. Fails with an id that there is not.
    pub fn decode(&self, ids: &[TokenId]) -> Result<String, TokenId> {
        match &self.kind {
            Kind::Tiktoken(bpe) => {
                let mut bytes = Vec::new();
                for id in ids {
                    match bpe.decode_bytes(&[*id]) {
                        Ok(piece) => bytes.extend(piece),
                        Err(_) => bytes.extend(self.mark_text(*id).ok_or(*id)?.bytes()),
                    }
                }
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Kind::File(inner) => {
                if let Some(unknown) = ids.iter().find(|id| inner.id_to_token(**id).is_none()) {
                    return Err(*unknown);
                }
                inner
                    .decode(ids, false)
                    .map_err(|_| ids.first().copied().unwrap_or_default())
            }
        }
    }

    /// Where each token of `text` ends, in bytes and moved down to a character's edge, as a stream that holds back
    /// half characters shows them.
    pub(crate) fn ends(&self, text: &str) -> Vec<usize> {
        let mut at = 0;
        let mut ends: Vec<usize> = match &self.kind {
            Kind::Tiktoken(bpe) => bpe
                .encode_ordinary(text)
                .iter()
                .map(|id| {
                    at += bpe.decode_bytes(&[*id]).map_or(0, |bytes| bytes.len());
                    at
                })
                .collect(),
            Kind::File(inner) => inner
                .encode(text, false)
                .map(|e| e.get_offsets().iter().map(|(_, end)| *end).collect())
                .unwrap_or_default(),
        };
        for end in &mut ends {
            *end = text.floor_char_boundary(*end);
        }
        if let Some(last) = ends.last_mut() {
            *last = text.len();
        }
        ends
    }

    /// Words that the vocabulary itself has as one token after a space, for text in a language that is not known.
    pub(crate) fn own_words(&self, limit: usize) -> Vec<String> {
        let Kind::File(inner) = &self.kind else {
            return Vec::new();
        };
        let mut all: Vec<(u32, String)> = inner
            .get_vocab(false)
            .into_iter()
            .filter_map(|(token, id)| {
                let word = token
                    .strip_prefix('\u{120}')
                    .or_else(|| token.strip_prefix('\u{2581}'))?;
                (word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase()))
                    .then(|| (id, word.to_owned()))
            })
            .collect();
        all.sort_unstable();
        all.into_iter().take(limit).map(|(_, word)| word).collect()
    }
}

/// What a post-processor adds to any text: what one that is known has more with it than without.
fn special(inner: &tokenizers::Tokenizer) -> (Vec<TokenId>, Vec<TokenId>) {
    let ids = |adds| {
        let encoded = inner.encode_fast("a", adds);
        encoded.map(|e| e.get_ids().to_vec()).unwrap_or_default()
    };
    let (bare, whole) = (ids(false), ids(true));
    let at = whole
        .windows(bare.len().max(1))
        .position(|within| within == bare);
    match at {
        Some(at) => (whole[..at].to_vec(), whole[at + bare.len()..].to_vec()),
        None => Default::default(),
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match &self.kind {
            Kind::Tiktoken(_) => "tiktoken",
            Kind::File(_) => "tokenizer.json",
        };
        f.debug_struct("Tokenizer")
            .field("kind", &kind)
            .field("marks", &self.marks.len())
            .finish()
    }
}

#[cfg(test)]
mod tests;
