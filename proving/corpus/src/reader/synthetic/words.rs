//! Words that are one token each.
//!
//! Invariant: each word, at the start of a text or after a space, is one token of o200k and of cl100k (a test counts).
//! Not here: how many words a text has.

use experiment::random::Rng;

const WORDS: &[&str] = &[
    "the", "of", "and", "to", "in", "is", "it", "you", "that", "he", "was", "for", "on", "are",
    "with", "as", "his", "they", "be", "at", "one", "have", "this", "from", "or", "had", "by",
    "but", "some", "what", "there", "we", "can", "out", "other", "were", "all", "your", "when",
    "up", "use", "word", "how", "said", "an", "each", "she", "which", "do", "their", "time", "if",
    "will", "way", "about", "many", "then", "them", "would", "write", "like", "so", "these", "her",
    "long", "make", "thing", "see", "him", "two", "has", "look", "more", "day", "could", "go",
    "come", "did", "my", "sound", "no", "most", "number", "who", "over", "know", "water", "than",
    "call", "first", "people", "may", "down", "side", "been", "now", "find", "any", "new", "work",
    "part", "take", "get", "place", "made", "live", "where", "after", "back", "little", "only",
    "round", "man", "year", "came", "show", "every", "good", "me", "give", "our", "under", "name",
    "very", "through", "just", "form", "much", "great", "think", "say", "help", "low", "line",
    "before", "turn", "cause", "same", "mean", "move", "right", "boy", "old", "too", "does",
    "tell", "set", "three", "want", "air", "well", "also", "play", "small", "end", "put", "home",
    "read", "hand", "port", "large", "add", "even", "land", "here", "must", "big", "high", "such",
    "follow", "act", "why", "ask", "men", "change", "went", "light", "kind", "off", "need",
    "house", "picture", "try", "us", "again", "animal", "point", "mother", "world", "near",
    "build", "self", "earth", "father", "head", "stand", "own", "page", "should", "country",
    "found", "answer", "school", "grow", "study", "still", "learn", "plant", "cover", "food",
    "sun", "four", "state", "keep", "eye", "never", "last", "let", "thought", "city", "tree",
    "cross", "farm", "hard", "start", "might", "story", "far", "sea", "draw", "left", "late",
    "run", "while", "press", "close", "night", "real", "life", "few", "stop", "open", "next",
    "white", "children", "begin", "got", "walk", "example", "ease", "paper", "group", "always",
    "music", "those", "both", "mark", "often", "letter", "until", "mile", "river", "car", "care",
    "second", "book", "carry", "science", "eat", "room", "friend",
];

/// A text of so many words.
pub(in crate::reader) fn text(words: usize, rng: &mut Rng) -> String {
    let mut text = String::with_capacity(words * 6);
    for i in 0..words {
        if i > 0 {
            text.push(' ');
        }
        let word = rng.below(WORDS.len() as u64);
        text.push_str(WORDS[word as usize]);
    }
    text
}

#[cfg(test)]
mod tests;
