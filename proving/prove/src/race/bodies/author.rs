//! Who writes: templates with places for words, made into text.
//!
//! `{n}` `{v}` `{a}` `{d}` are a noun, verb, adjective and adverb, `{N}` a noun with a capital, `{r}` a rare word, `{x}` a name
//! that means nothing, `{#}` a number, `{1}` a digit, `{h}` eight hexadecimal digits, `{f}` something foreign, `{q}` a few words, `{s}` a
//! sentence.
//! Invariant: what is written follows from the generator alone; the first places of a message can be made new, so that
//! none comes twice.
//! Not here: lines of code (`code`), who speaks (`conversation`).

use experiment::random::Rng;

use super::text::{Kind, Text};
use super::words::{Class, FOREIGN, PREFIXES, ROOTS, SUFFIXES, of, pick};

/// The first places of a message are made new whatever chance says.
const FIRST: usize = 4;
/// Of the other words, and of other numbers and names, one in so many.
const WORDS: u64 = 8;
const NUMBERS: u64 = 3;
/// Nouns that are no words of the list, in percent.
const UNUSUAL: u64 = 12;

/// Writes with its own generator.
pub(super) struct Author {
    rng: Rng,
    /// Places that the present message had when it began.
    began: usize,
}

const SENTENCES: [&str; 30] = [
    "The {a} {n} {v}s the {n} of each {n}, and the {n} {d} {v}s.",
    "We {d} {v}ed {#} {n}s before the {n} was {v}ed again.",
    "If a {n} is {a}, its {n} can be {v}ed without another {n}.",
    "Please {v} the {n} in `{n}_{n}` and say why the {n} is {a}.",
    "It took {#} ms in the {a} case, against {#} ms for the {a} {n}.",
    "What the {n} {v}s is not what its {n} {v}s; see {N} {#}.{#}.",
    "There were {#} {n}s, {#} of them {a} (about {#} %), and none had a {n}.",
    "However, the {n} has to {v} first: a {a} {n} never {v}s twice.",
    "She said that \u{201c}the {n} of a {n} is {a}\u{201d}, which the {n} {d} {v}s.",
    "In {N} the {n} is {v}ed by {x}, a {a} {n} that nobody {v}s.",
    "That is why {n}, {n} and {n} are {v}ed {d} \u{2014} and the {a} {n} is not.",
    "Can you {v} it so that every {n} {v}s the {n} only once?",
    "Its {r} was {v}ed as {r}, with a {n} of {#}.{#} and no {a} {n}.",
    "On the {#}th {n} of the {n} everything {v}ed as the {n} expects.",
    "I have {v}ed the {n} to {n}/{n}.{x}; the {a} {n}s are still {a}.",
    "{f} and {f} {v}ed the {n} together; {f} {d} did not.",
    "First {v} the {n}, then {v} the {a} {n}, and {d} {v} what is left.",
    "A {n} that is {a} or {a} is {v}ed by its {n}, not by the {n} of the {n}.",
    "The difference is {#} {n}s in {#}, which is within the {n} of the {n}.",
    "Nobody knows whether the {n} {v}s, because its {n} is {a}, {a} and {a}.",
    "Without a {n} there is no {n}: the {n} of {N} {v}s neither.",
    "Let me {v} the {a} {n} at https://{x}.example/{n}/{#}?{n}={h} first.",
    "The {n} for this is in the {n} with the {n} ({a}, {#} KiB, {h}).",
    "Many of the {n}s we {v} are {a} to the {n} they were {v}ed for.",
    "At {1}:3{1} the {n} was {a}; from then on each {n} {v}ed in its own {n}.",
    "Both {n}s {v} their {n} when a {n} is {v}ed, but only one {v}s it {d}.",
    "You will {v} that the {n} of {x} is no {n} of {n}, nor a {a} one.",
    "This {v}s {#},{1}{1}{1} {n}s a {n}, more than the {a} {n} ever {v}ed.",
    "The {a} {n} was {v}ed, the {n} was not, and that's all there is to it.",
    "They don't {v} the {n}; it isn't theirs, and it won't {v} without {n}.",
];

impl Author {
    pub(super) const fn new(rng: Rng) -> Self {
        Self { rng, began: 0 }
    }

    /// Whether something with this chance, in percent, is the case.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    /// A whole number from `least` to `most`.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.rng.below(most - least + 1)
    }

    /// One of a list that is not empty.
    pub(super) fn one<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.rng.below(list.len() as u64) as usize]
    }

    /// A message begins here.
    pub(super) const fn begin(&mut self, text: &Text) {
        self.began = text.slots();
    }

    /// Sentences in paragraphs, at least `bytes` of them.
    pub(super) fn prose(&mut self, text: &mut Text, bytes: usize) {
        let end = text.len() + bytes;
        while text.len() < end {
            self.sentence(text);
            let apart = if self.chance(15) { "\n\n" } else { " " };
            text.say(apart);
        }
    }

    pub(super) fn sentence(&mut self, text: &mut Text) {
        let template = self.one(&SENTENCES);
        self.write(text, template, "");
    }

    /// What `template` comes to; every line begins with `indent`.
    pub(super) fn write(&mut self, text: &mut Text, template: &str, indent: &str) {
        text.say(indent);
        let mut rest = template;
        while let Some((said, after)) = rest.split_once('{') {
            lines(text, said, indent);
            let place = after.as_bytes().get(..2);
            rest = match place {
                Some([name, b'}']) if self.place(text, *name) => &after[2..],
                _ => {
                    text.say("{");
                    after
                }
            };
        }
        lines(text, rest, indent);
    }

    /// Fills one place; whether there is such a one.
    fn place(&mut self, text: &mut Text, name: u8) -> bool {
        match name {
            b'n' => self.word(text, Class::Noun),
            b'v' => self.word(text, Class::Verb),
            b'a' => self.word(text, Class::Adjective),
            b'd' => self.word(text, Class::Adverb),
            b'N' => {
                let word = pick(of(Class::Noun), self.rng.bits());
                let (first, rest) = word.split_at(1);
                text.say(&first.to_ascii_uppercase());
                text.say(rest);
            }
            b'r' => self.rare(text),
            b'x' => {
                let len = self.between(5, 9) as usize;
                self.drawn(text, Kind::Name, len);
            }
            b'#' => {
                let len = self.between(1, 4) as usize;
                self.drawn(text, Kind::Digits, len);
            }
            b'1' => self.drawn(text, Kind::Digits, 1),
            b'h' => self.drawn(text, Kind::Hex, 8),
            b'f' => {
                let word = self.one(&FOREIGN);
                text.say(word);
            }
            b'q' => {
                let template = self.one(&[
                    "{a} {n}",
                    "{n} is {a}",
                    "no {n} for {n}",
                    "{v} the {a} {n}",
                    "{n} {#} of {#}",
                ]);
                self.write(text, template, "");
            }
            b's' => self.sentence(text),
            _ => return false,
        }
        true
    }

    fn word(&mut self, text: &mut Text, class: Class) {
        if class == Class::Noun && self.chance(UNUSUAL) {
            return self.unusual(text);
        }
        let word = pick(of(class), self.rng.bits());
        if self.is_renewed(text, WORDS) {
            text.slot(Kind::Word(class), word);
        } else {
            text.say(word);
        }
    }

    fn drawn(&mut self, text: &mut Text, kind: Kind, len: usize) {
        if self.is_renewed(text, NUMBERS) {
            text.drawn(kind, len, &mut self.rng);
        } else {
            let mut still = Text::default();
            still.drawn(kind, len, &mut self.rng);
            text.append(&still.fixed());
        }
    }

    /// Whether the next place can be made new.
    fn is_renewed(&mut self, text: &Text, one_in: u64) -> bool {
        text.slots() < self.began + FIRST || self.rng.below(one_in) == 0
    }

    /// A noun that few texts have: of two others, or a rare word.
    fn unusual(&mut self, text: &mut Text) {
        if self.chance(30) {
            return self.rare(text);
        }
        for _ in 0..2 {
            let part = pick(of(Class::Noun), self.rng.bits());
            text.say(part);
        }
    }

    fn rare(&mut self, text: &mut Text) {
        for part in [&PREFIXES[..], &ROOTS, &SUFFIXES] {
            let part = self.one(part);
            text.say(part);
        }
    }
}

/// What is said between places; a line end that something follows is followed by the indent.
fn lines(text: &mut Text, said: &str, indent: &str) {
    let mut lines = said.split('\n');
    text.say(lines.next().unwrap_or_default());
    for line in lines {
        text.say("\n");
        if !line.is_empty() {
            text.say(indent);
            text.say(line);
        }
    }
}
