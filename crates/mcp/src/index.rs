//! The words of a list's tools, cut once and kept with the list: which tools a word means, without a look at all of them.
//!
//! Invariant: it takes [`BYTES_MAX`] at most; of a list with more words the first tools are in it, and the words of the others are cut when they
//! are looked for. Whether a tool is in it changes nothing of what is found.
//! Not here: what the words of a query say together (`search`), how long a list is kept (the host).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::de::IgnoredAny;

use crate::envelope::{Value, members, text_of};

/// Most bytes of it.
pub const BYTES_MAX: usize = 8 << 20;
/// As much of a tool's description is looked through.
const LOOKED_BYTES_MAX: usize = 4 << 10;
/// As much of a word counts.
const WORD_BYTES_MAX: usize = 64;
/// From so many letters on, a word stands for those that begin with it.
const STEM: usize = 3;
/// A word that is the one that is looked for says more than one that begins alike.
const SAME: u8 = 2;
const ALIKE: u8 = 1;

/// The words of tools, in order, with the tools that have them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// Of so many tools, the first ones.
    tools: usize,
    /// The words, one behind the other.
    text: String,
    /// Where each begins there, and where its tools begin in `having`.
    words: Vec<(u32, u32)>,
    /// Tools by their places, twice; and one more where the word is in the tool's name.
    having: Vec<u32>,
}

/// How much a word says for a tool, by where it stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// In its name.
    pub in_name: u8,
    /// In what it says of itself, and in the names of its arguments.
    pub beside: u8,
}

impl Weight {
    fn most(&mut self, is_in_name: bool, weight: u8) {
        let of = if is_in_name {
            &mut self.in_name
        } else {
            &mut self.beside
        };
        *of = weight.max(*of);
    }

    /// With what a word says for the name that this is in.
    #[must_use]
    pub fn within(self, name: u8) -> Self {
        let in_name = self.in_name.max(name);
        Self { in_name, ..self }
    }
}

impl Index {
    /// Of these tools, each by its name and as its server wrote it.
    #[must_use]
    pub fn of<'t>(tools: impl Iterator<Item = (&'t str, &'t [u8])>) -> Self {
        Self::with_bound(tools, BYTES_MAX)
    }

    fn with_bound<'t>(tools: impl Iterator<Item = (&'t str, &'t [u8])>, bytes_max: usize) -> Self {
        let (mut numbers, mut pairs) = (HashMap::<String, u32>::new(), Vec::new());
        let (mut bytes, mut count) = (0, 0_u32);
        for (name, raw) in tools {
            let own = Words::of(name, raw);
            let taken = own.all().map(|(word, _)| {
                let is_new = !numbers.contains_key(word);
                size_of::<u32>()
                    + if is_new {
                        word.len() + size_of::<(u32, u32)>()
                    } else {
                        0
                    }
            });
            bytes += taken.sum::<usize>();
            if bytes > bytes_max {
                break;
            }
            for (word, is_in_name) in own.all() {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                let number = match numbers.get(word) {
                    Some(number) => *number,
                    None => *numbers.entry(word.to_owned()).or_insert(next),
                };
                pairs.push((number, (count << 1) | u32::from(is_in_name)));
            }
            count += 1;
        }
        let mut words: Vec<(String, u32)> = numbers.into_iter().collect();
        words.sort_unstable();
        // By word, and within it by tool: what each word's number becomes in their order.
        let mut place = vec![0_u32; words.len()];
        for (at, (_, number)) in (0..).zip(&words) {
            if let Some(place) = place.get_mut(*number as usize) {
                *place = at;
            }
        }
        for (number, _) in &mut pairs {
            *number = place.get(*number as usize).copied().unwrap_or_default();
        }
        pairs.sort_unstable();
        let mut index = Self {
            tools: count as usize,
            ..Self::default()
        };
        let mut pairs = pairs.into_iter().peekable();
        for (at, (word, _)) in (0..).zip(&words) {
            index
                .words
                .push((end(index.text.len()), end(index.having.len())));
            index.text.push_str(word);
            while let Some((_, tool)) = pairs.next_if(|(of, _)| *of == at) {
                index.having.push(tool);
            }
        }
        index.text.shrink_to_fit();
        index.having.shrink_to_fit();
        index
    }

    /// How many of the list's tools are in it, from its beginning.
    #[must_use]
    pub const fn tools(&self) -> usize {
        self.tools
    }

    /// What a word of a query says for the tools that it means: by their places, each once, among `room` for all of them.
    pub fn weigh(&self, word: &str, room: &mut Room, mut put: impl FnMut(usize, Weight)) {
        room.weights
            .resize(self.tools.max(room.weights.len()), Weight::default());
        let start = self.at_least(word);
        let is_stem = letters(word) >= STEM;
        for at in start..self.words.len() {
            let own = self.word(at);
            let weight = match own == word {
                true => SAME,
                false if is_stem && own.starts_with(word) => ALIKE,
                false => break,
            };
            self.take(at, weight, room);
        }
        for (end, _) in word.char_indices().skip(STEM) {
            let begin = word.get(..end).unwrap_or_default();
            let at = self.at_least(begin);
            if at < self.words.len() && self.word(at) == begin {
                self.take(at, ALIKE, room);
            }
        }
        for tool in room.meant.drain(..) {
            if let Some(weight) = room.weights.get_mut(tool) {
                put(tool, std::mem::take(weight));
            }
        }
    }

    fn take(&self, at: usize, weight: u8, room: &mut Room) {
        let begin = |at: usize| self.words.get(at).map(|(_, begin)| *begin as usize);
        let from = begin(at).unwrap_or_default();
        let to = begin(at + 1).unwrap_or(self.having.len());
        for having in self.having.get(from..to).unwrap_or_default() {
            let tool = (*having >> 1) as usize;
            if let Some(of) = room.weights.get_mut(tool) {
                if *of == Weight::default() {
                    room.meant.push(tool);
                }
                of.most(having & 1 == 1, weight);
            }
        }
    }

    /// The place of the first word that is not before this one.
    fn at_least(&self, word: &str) -> usize {
        let (mut low, mut high) = (0, self.words.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.word(middle) < word {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn word(&self, at: usize) -> &str {
        let begin = |at: usize| self.words.get(at).map(|(begin, _)| *begin as usize);
        let from = begin(at).unwrap_or_default();
        let to = begin(at + 1).unwrap_or(self.text.len());
        self.text.get(from..to).unwrap_or_default()
    }
}

fn end(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn letters(word: &str) -> usize {
    word.chars().count()
}

/// Room to weigh tools in, for one word after the other.
#[derive(Debug, Default)]
pub struct Room {
    weights: Vec<Weight>,
    meant: Vec<usize>,
}

/// The words of one tool, each once in its name and once beside.
#[derive(Debug, Default)]
pub struct Words {
    in_name: HashSet<String>,
    beside: HashSet<String>,
}

impl Words {
    /// Of a tool of this name, as its server wrote it.
    #[must_use]
    pub fn of(name: &str, raw: &[u8]) -> Self {
        let mut of = Self::default();
        add(name, &mut of.in_name);
        let names = ["title", "description", "inputSchema", "annotations"];
        let Ok([title, description, schema, annotations]) = members(raw, names, 0) else {
            return of;
        };
        let text = |of: Option<Value<'_>>| of.as_ref().and_then(text_of).map(Cow::into_owned);
        let annotated = annotations.and_then(|(_, of, _)| {
            let [title] = members(of, ["title"], 0).ok()?;
            text(title)
        });
        for title in text(title).iter().chain(&annotated) {
            add(title, &mut of.beside);
        }
        if let Some(description) = text(description) {
            add(looked(&description), &mut of.beside);
        }
        let properties = schema.and_then(|(_, text, _)| {
            let [properties] = members(text, ["properties"], 0).ok()?;
            serde_json::from_slice::<HashMap<Cow<'_, str>, IgnoredAny>>(properties?.1).ok()
        });
        for name in properties.unwrap_or_default().keys() {
            add(name, &mut of.beside);
        }
        of
    }

    fn all(&self) -> impl Iterator<Item = (&str, bool)> {
        let in_name = self.in_name.iter().map(|word| (&**word, true));
        in_name.chain(self.beside.iter().map(|word| (&**word, false)))
    }

    /// What a word of a query says for it.
    #[must_use]
    pub fn weight(&self, word: &str) -> Weight {
        let mut weight = Weight::default();
        for (own, is_in_name) in self.all() {
            weight.most(is_in_name, meant(word, own));
        }
        weight
    }
}

fn add(text: &str, words: &mut HashSet<String>) {
    each_word(text, |word| {
        if !words.contains(word) {
            words.insert(word.to_owned());
        }
    });
}

/// How much a word of a query says for a word of a tool: it is it, or one begins with the other (`file`, `files`).
#[must_use]
pub fn meant(word: &str, own: &str) -> u8 {
    let begins = |long: &str, short: &str| long.starts_with(short) && letters(short) >= STEM;
    match word == own {
        true => SAME,
        false if begins(own, word) || begins(word, own) => ALIKE,
        false => 0,
    }
}

/// As much of a text as is looked through.
fn looked(text: &str) -> &str {
    let mut end = text.len().min(LOOKED_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Gives `put` each word of a text in small letters: letters and digits, of `readFile` two. Most of a long text are there several times, and
/// none is kept here.
pub fn each_word(text: &str, mut put: impl FnMut(&str)) {
    let (mut word, mut was_small) = (String::new(), false);
    for c in text.chars() {
        let is_part = c.is_alphanumeric();
        if !word.is_empty() && (!is_part || was_small && c.is_uppercase()) {
            put(&word);
            word.clear();
        }
        was_small = c.is_lowercase() || c.is_numeric();
        if is_part && word.len() < WORD_BYTES_MAX {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        put(&word);
    }
}

#[cfg(test)]
mod tests;
