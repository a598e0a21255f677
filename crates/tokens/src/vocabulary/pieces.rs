//! Where a tokenizer cuts text into the pieces that it encodes apart.
//!
//! What the patterns of published tokenizers say, by hand: a regular expression costs more than all that follows it.
//! English and code are cut 64 bytes at a time ([`ascii`]), whatever is special about a stretch one piece at a time
//! ([`Grammar::end_of_piece`]).
//! Invariant: the pieces are those of the pattern; together they are the text; a piece takes time in its length.
//! Not here: tokens (`bpe`), the classes of characters (`classes`).

mod ascii;
mod deepseek;

use super::classes::Class;
use super::processor::Level;
use crate::work;

/// A published pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    /// OpenAI's since GPT-4o: words end where upper case begins, and keep a contraction.
    ///
    /// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
    /// the same with `+` and `*` exchanged, `\p{N}{1,3}`, ` ?[^\s\p{L}\p{N}]+[\r\n/]*`, `\s*[\r\n]+`, `\s+(?!\S)`, `\s+`
    O200k,
    /// OpenAI's before that, and Llama 3's: a contraction is a piece of its own.
    ///
    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    Cl100k,
    /// Qwen's since 2: the same with single digits.
    Qwen2,
    /// GPT-2's and all that came from it.
    ///
    /// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    Gpt2,
    /// DeepSeek's since V3: three patterns, one after the other (`deepseek`).
    DeepSeek3,
}

/// Pieces that are found together, at most.
pub(super) const TOGETHER: usize = ascii::BYTES;

/// Goes through a text, some pieces at a time.
pub(super) struct Pieces<'t> {
    grammar: Grammar,
    text: &'t str,
    at: usize,
}

impl<'t> Pieces<'t> {
    pub(super) const fn new(grammar: Grammar, text: &'t str) -> Self {
        Self {
            grammar,
            text,
            at: 0,
        }
    }

    /// Where the next piece begins.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// Tells where each of the next pieces begins and ends, and the 16 bytes from its beginning on, what is behind the text
    /// being zero. False at the end of the text.
    #[inline(always)]
    pub(super) fn next<L: Level>(
        &mut self,
        level: L,
        mut tell: impl FnMut(usize, usize, &[u8; 16]),
    ) -> bool {
        let text = self.text.as_bytes();
        let Some(next) = text.get(self.at) else {
            return false;
        };
        if next.is_ascii() && self.grammar != Grammar::Gpt2 {
            let end = ascii::pieces(level, self.grammar, text, self.at, &mut tell);
            if end > self.at {
                self.at = end;
                return true;
            }
        }
        let end = self.grammar.end_of_piece(self.text, self.at);
        tell(self.at, end, &sixteen(text, self.at));
        self.at = end;
        true
    }
}

/// The 16 bytes from a place on, what is behind the text being zero.
#[inline]
pub(super) fn sixteen(text: &[u8], at: usize) -> [u8; 16] {
    let rest = text.get(at..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk() {
        return *bytes;
    }
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(rest) {
        *to = *from;
    }
    bytes
}

/// A place in a text, before a character.
#[derive(Clone, Copy)]
struct Place<'t> {
    text: &'t str,
    at: usize,
}

impl Place<'_> {
    #[inline]
    fn character(self) -> Option<char> {
        work::note(1);
        match self.text.as_bytes().get(self.at)? {
            byte if byte.is_ascii() => Some(char::from(*byte)),
            _ => self.text.get(self.at..)?.chars().next(),
        }
    }

    #[inline]
    fn class(self) -> Option<Class> {
        self.character().map(Class::of)
    }

    /// Behind the character here.
    #[inline]
    fn next(self) -> Self {
        let length = self.character().map_or(0, char::len_utf8);
        Self {
            at: self.at + length,
            ..self
        }
    }

    /// Behind all characters from here on that are such.
    #[inline]
    fn past(mut self, is: impl Fn(Class) -> bool) -> Self {
        while self.class().is_some_and(&is) {
            self = self.next();
        }
        self
    }

    /// Behind one of the contractions `'s 't 're 've 'm 'll 'd`, which begin here.
    fn past_contraction(self, any_case: bool) -> Option<Self> {
        if self.character() != Some('\'') {
            return None;
        }
        let fold = |letter: char| match letter {
            // The one letter that is not ASCII and whose case folds to one that is asked for here.
            'ſ' if any_case => 's',
            letter if any_case => letter.to_ascii_lowercase(),
            letter => letter,
        };
        let first = self.next();
        let second = first.next();
        match (fold(first.character()?), second.character().map(fold)) {
            ('s' | 't' | 'm' | 'd', _) => Some(second),
            ('r' | 'v', Some('e')) | ('l', Some('l')) => Some(second.next()),
            _ => None,
        }
    }
}

impl Grammar {
    /// Where the piece ends that begins here; here, at the end of the text.
    #[inline(never)]
    pub(super) fn end_of_piece(self, text: &str, at: usize) -> usize {
        let start = Place { text, at };
        let Some(class) = start.class() else {
            return at;
        };
        let end = match self {
            Self::DeepSeek3 => Some(start.past_deepseek(class)),
            Self::O200k => start.word_by_case(class),
            Self::Cl100k | Self::Qwen2 => {
                start.past_contraction(true).or_else(|| start.word(class))
            }
            Self::Gpt2 => start
                .past_contraction(false)
                .or_else(|| start.after_space(class, Class::is_letter)),
        };
        let end = end.unwrap_or_else(|| match (self, class) {
            (Self::Gpt2, _) => start
                .after_space(class, |class| class == Class::Number)
                .or_else(|| start.after_space(class, is_sign))
                .unwrap_or_else(|| start.space(false, Place::is_end)),
            (Self::Qwen2, Class::Number) => start.next(),
            (_, Class::Number) => start.past_three_numbers(),
            _ => match start.after_space(class, is_sign) {
                Some(end) if self == Self::O200k => end.past_lines_and_slashes(),
                Some(end) => end.past(|class| class == Class::Newline),
                None => start.space(true, Place::is_end),
            },
        });
        end.at
    }
}

const fn is_sign(class: Class) -> bool {
    !class.is_letter() && !class.is_space() && !matches!(class, Class::Number)
}

impl Place<'_> {
    /// Letters, and what stands before them when it is no line end and no number.
    fn word(self, class: Class) -> Option<Self> {
        let letters = match class {
            _ if class.is_letter() => self,
            Class::Newline | Class::Number => return None,
            _ => self.next(),
        };
        let end = letters.past(Class::is_letter);
        (end.at > letters.at).then_some(end)
    }

    /// The same, where lower case ends a word that upper case follows, marks are letters, and a contraction belongs to
    /// the word.
    fn word_by_case(self, class: Class) -> Option<Self> {
        let letters = match class {
            Class::Upper | Class::Lower | Class::Caseless | Class::Mark => self,
            Class::Newline | Class::Number => return None,
            _ => self.next(),
        };
        // Upper case and what has none; the last of the latter may end the word.
        let (mut upper, mut last) = (letters, None);
        while let Some(class) = upper.class() {
            match class {
                Class::Upper => upper = upper.next(),
                Class::Caseless | Class::Mark => {
                    upper = upper.next();
                    last = Some(upper);
                }
                _ => break,
            }
        }
        let is_lower = |class| matches!(class, Class::Lower | Class::Caseless | Class::Mark);
        let lower = upper.past(is_lower);
        let end = if lower.at > upper.at {
            lower
        } else {
            last.unwrap_or(upper)
        };
        (end.at > letters.at).then(|| end.past_contraction(true).unwrap_or(end))
    }

    /// At least one such character, behind a space or not.
    fn after_space(self, class: Class, is: impl Fn(Class) -> bool) -> Option<Self> {
        let first = if class == Class::Blank && self.character() == Some(' ') {
            self.next()
        } else {
            self
        };
        let end = first.past(is);
        (end.at > first.at).then_some(end)
    }

    /// `\p{N}{1,3}`
    fn past_three_numbers(self) -> Self {
        (0..3).fold(self, |place, _| match place.class() {
            Some(Class::Number) => place.next(),
            _ => place,
        })
    }

    const fn is_end(self) -> bool {
        self.at == self.text.len()
    }

    fn past_lines_and_slashes(mut self) -> Self {
        while let Some('\r' | '\n' | '/') = self.character() {
            self = self.next();
        }
        self
    }

    /// White space: through its last line end, where lines matter; else all that ends the text, or what is cut like one; else
    /// all but its last character, which belongs to what follows, unless it is the only one.
    fn space(self, by_lines: bool, is_end: impl Fn(Self) -> bool) -> Self {
        let (mut end, mut last, mut after_line) = (self, self, None);
        while let Some(class) = end.class().filter(|class| class.is_space()) {
            last = end;
            end = end.next();
            if class == Class::Newline {
                after_line = Some(end);
            }
        }
        match after_line {
            Some(after) if by_lines => after,
            _ if is_end(end) || last.at == self.at => end,
            _ => last,
        }
    }
}

#[cfg(test)]
mod tests;
