//! The text of one lane that is not counted yet.
//!
//! A built-in vocabulary cuts text into pieces that are encoded apart. Whether a piece ends where it does can depend
//! on the text behind it, but never beyond the piece that follows: its pattern reads on through one run of letters,
//! of space or of signs, and that run is at most the next piece. So all pieces but the last [`UNSETTLED`] are settled
//! and can be counted and forgotten.
//! Invariant: at most [`HELD_BYTES`] and one piece from outside are held, and every byte is encoded a bounded number
//! of times.
//! Not here: what is counted apart from what (`output`).

use crate::vocabulary::Vocabulary;
use prompts::Uncountable;

/// How much text is gathered before pieces are looked for.
const GATHERED_BYTES: usize = 8 * 1024;
/// How long one piece may be before it is cut where it should not be, and how much text is held for a vocabulary that
/// does not tell its pieces.
const HELD_BYTES: usize = 256 * 1024;
/// How many pieces at the end may yet change: two can, two more are for safety.
const UNSETTLED: usize = 4;

/// Text of a lane.
#[derive(Default)]
pub(super) struct Segment {
    held: String,
    /// How long `held` must be before it is worth another look.
    look_at: usize,
    tokens: u64,
    was_cut: bool,
}

impl Segment {
    pub(super) fn push(&mut self, text: &str, vocabulary: &Vocabulary) -> Result<(), Uncountable> {
        self.held.push_str(text);
        if self.held.len() < self.look_at.max(GATHERED_BYTES) {
            return Ok(());
        }
        self.settle(vocabulary)?;
        if self.held.len() >= HELD_BYTES {
            self.cut(vocabulary)?;
        }
        // Twice what is left: a long piece is looked at a few times, not at every push.
        self.look_at = 2 * self.held.len();
        if self.look_at > HELD_BYTES {
            self.look_at = HELD_BYTES;
        }
        Ok(())
    }

    /// The bytes of text that are held.
    pub(super) const fn held(&self) -> usize {
        self.held.len()
    }

    /// Holds less: what is settled is counted now, and if that is not half of it, then all up to a cut that should not be.
    pub(super) fn relieve(&mut self, vocabulary: &Vocabulary) -> Result<(), Uncountable> {
        let before = self.held.len();
        self.settle(vocabulary)?;
        if self.held.len() > before / 2 {
            self.cut(vocabulary)?;
        }
        self.held.shrink_to_fit();
        self.look_at = 2 * self.held.len();
        Ok(())
    }

    pub(super) fn finish(self, vocabulary: &Vocabulary) -> Result<(u64, bool), Uncountable> {
        Ok((self.tokens + vocabulary.count(&self.held)?, self.was_cut))
    }

    fn settle(&mut self, vocabulary: &Vocabulary) -> Result<(), Uncountable> {
        if let Some(settled) = vocabulary.count_all_but::<UNSETTLED>(&self.held) {
            let (bytes, tokens) = settled?;
            self.tokens += tokens;
            self.held.drain(..bytes);
        }
        Ok(())
    }

    fn cut(&mut self, vocabulary: &Vocabulary) -> Result<(), Uncountable> {
        let end = self.held.floor_char_boundary(self.forced_end());
        self.was_cut = true;
        self.count_up_to(end, vocabulary)
    }

    fn count_up_to(&mut self, end: usize, vocabulary: &Vocabulary) -> Result<(), Uncountable> {
        if let Some(text) = self.held.get(..end) {
            self.tokens += vocabulary.count(text)?;
            self.held.drain(..end);
        }
        Ok(())
    }

    /// Before the last space, where most tokenizers cut; all of it where there is none.
    fn forced_end(&self) -> usize {
        self.held
            .rfind(' ')
            .filter(|at| *at > 0)
            .unwrap_or(self.held.len())
    }
}
