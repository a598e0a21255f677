//! Two tools in place of many: one finds the tools of a large catalogue by words, the other calls one that was found.
//!
//! A model's prompt has the definitions of all tools that its client lists; of a thousand it uses three. What is found is a part of the list
//! that the client would be told otherwise, and a call of one that was found is a call of that tool.
//! Invariant: the same words find the same tools in the same order; a call names the one tool that is called, and has its arguments as they
//! were written.
//! Not here: who may see and use what (the host asks as for any list and any call).

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use wire::json::Kind;

use crate::envelope::{Fault, Value, members, text_of};
use crate::handshake::{UNAVAILABLE, write_meta};
use crate::reply::{self, string};

/// The tool that finds tools.
pub const FIND: &str = "tollgate__find_tools";
/// The tool that calls one of them.
pub const CALL: &str = "tollgate__call_tool";
/// Tools that are found unless the call says how many.
const FOUND: usize = 5;
/// Most tools that are found.
const FOUND_MAX: usize = 20;
/// Most bytes of what is told of them; the first is told whatever it takes.
const TOLD_BYTES_MAX: usize = 64 << 10;
/// Most words of a query.
const WORDS_MAX: usize = 32;
/// As much of a tool's description is looked through.
const LOOKED_BYTES_MAX: usize = 4 << 10;
/// From so many letters on, a word stands for those that begin with it.
const STEM: usize = 3;
/// A word in a tool's name says more than one in its description.
const IN_NAME: u64 = 4;

/// Why a call of one of the two comes to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// The message is none that could be read.
    Message(Fault),
    /// Its arguments are not what the tool takes: a model wrote them, and is told how they should be.
    Arguments(String),
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Self {
        Self::Message(fault)
    }
}

/// The result of a call that a model wrote wrong: it can write it anew.
#[must_use]
pub fn misused(says: &str) -> Vec<u8> {
    let text = string(says);
    let start = &br#"{"content":[{"type":"text","text":"#[..];
    [start, &*text, br#"}],"isError":true}"#].concat()
}

/// What a client is told of the tools in their place.
#[must_use]
pub fn listed() -> Vec<u8> {
    format!(
        r#"{{"tools":[{{"name":"{FIND}","description":"Finds tools by what they do. Describe the task in a few words; the answer has the tools that fit best, with their input schemas. Call one with {CALL}.","inputSchema":{{"type":"object","properties":{{"query":{{"type":"string","description":"what the tool should do, or its name"}},"limit":{{"type":"integer","minimum":1,"maximum":{FOUND_MAX},"description":"how many; {FOUND} unless said"}}}},"required":["query"]}},"annotations":{{"readOnlyHint":true}}}},{{"name":"{CALL}","description":"Calls a tool that {FIND} has found.","inputSchema":{{"type":"object","properties":{{"name":{{"type":"string","description":"the name of the tool"}},"arguments":{{"type":"object","description":"its arguments, by its input schema"}}}},"required":["name"]}}}}]}}"#
    )
    .into_bytes()
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    words: BTreeSet<String>,
    limit: usize,
}

impl Query {
    /// Reads it out of the params of a call.
    ///
    /// # Errors
    /// [`Wrong`] where it says no words.
    pub fn read(message: &[u8], params: Option<&Range<usize>>) -> Result<Self, Wrong> {
        let (_, arguments) = called(message, params)?;
        let text = arguments.map_or(&b"{}"[..], |(_, text, _)| text);
        let [query, limit] = members(text, ["query", "limit"], 0)?;
        let query = query.as_ref().and_then(text_of);
        let words: BTreeSet<String> = query
            .iter()
            .flat_map(|of| words(of))
            .take(WORDS_MAX)
            .collect();
        if words.is_empty() {
            let says =
                "`query` must be a text: a few words about what the tool should do, or its name";
            return Err(Wrong::Arguments(says.to_owned()));
        }
        let limit = match limit {
            None => Some(FOUND),
            Some((_, text, _)) => serde_json::from_slice(text).ok(),
        };
        let limit = limit.filter(|limit| (1..=FOUND_MAX).contains(limit));
        let limit = limit.ok_or_else(|| {
            Wrong::Arguments(format!(
                "`limit` must be a whole number from 1 to {FOUND_MAX}"
            ))
        })?;
        Ok(Self { words, limit })
    }

    /// The result of the call: what fits best of a list of tools, as its client would be told it.
    ///
    /// # Errors
    /// [`Fault`] where that is no list.
    pub fn answer(&self, list: &[u8]) -> Result<Vec<u8>, Fault> {
        let list: List<'_> = serde_json::from_slice(list).map_err(|_| Fault::NotJson)?;
        let tools: Vec<Tool<'_>> = list
            .tools
            .iter()
            .filter_map(|raw| Tool::read(raw))
            .collect();
        let mut told = String::from("[");
        let mut is_whole = true;
        for tool in self.best(&tools) {
            let shown = tool.shown();
            if told.len() > 1 && told.len() + shown.len() > TOLD_BYTES_MAX {
                is_whole = false;
                break;
            }
            if told.len() > 1 {
                told.push(',');
            }
            told.push_str(&shown);
        }
        told.push(']');
        if told == "[]" {
            told = format!("None of {} tools has these words: try others.", tools.len());
        }
        let away: Vec<&str> = list.meta.away.iter().map(|of| &**of).collect();
        // Beside what is found, which stays JSON.
        let mut texts = vec![told];
        if !is_whole {
            let says = "More fit, which are too long to be told at once: use more words.";
            texts.push(says.to_owned());
        }
        if !away.is_empty() {
            let (names, its) = (away.join(", "), if away.len() == 1 { "does" } else { "do" });
            texts.push(format!(
                "{names} {its} not answer at the moment: the tools there are not among these. Try again later."
            ));
        }
        let texts: Vec<Vec<u8>> = texts
            .iter()
            .map(|text| [br#"{"type":"text","text":"#, &*string(text), b"}"].concat())
            .collect();
        let mut out = [&b"{\"content\":["[..], &texts.join(&b','), b"]"].concat();
        write_meta(UNAVAILABLE, &away, &mut out);
        out.push(b'}');
        Ok(out)
    }

    /// Those in which words of the query stand, the best first, and of those that are as good the one that is listed first.
    fn best<'t, 'a>(&self, tools: &'t [Tool<'a>]) -> Vec<&'t Tool<'a>> {
        let mut scores = vec![0_u64; tools.len()];
        for word in &self.words {
            let found: Vec<u64> = tools.iter().map(|tool| tool.weight(word)).collect();
            let with = found.iter().filter(|weight| **weight > 0).count().max(1);
            // What few tools have tells more.
            let rarity = u64::from((tools.len() / with).max(1).ilog2()) + 1;
            for (score, weight) in scores.iter_mut().zip(found) {
                *score += weight * rarity;
            }
        }
        let mut best: Vec<(u64, &Tool<'_>)> = scores.into_iter().zip(tools).collect();
        best.retain(|(score, _)| *score > 0);
        best.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        best.into_iter()
            .take(self.limit)
            .map(|(_, of)| of)
            .collect()
    }
}

/// The message that a call of a found tool is: a call of that tool itself.
///
/// # Errors
/// [`Wrong`] where it names none.
pub fn unwrapped(message: &[u8], params: Option<&Range<usize>>) -> Result<Vec<u8>, Wrong> {
    let unnamed = || {
        Wrong::Arguments(format!(
            "`name` must be the name of a tool, as {FIND} tells it"
        ))
    };
    let (name_at, arguments) = called(message, params)?;
    let (_, text, at) = arguments.ok_or_else(unnamed)?;
    let [name, own] = members(text, ["name", "arguments"], 0)?;
    let name = name.as_ref().and_then(text_of).ok_or_else(unnamed)?;
    let own = match own {
        None => b"{}",
        Some((Kind::Object, own, _)) => own,
        Some((kind, ..)) => {
            let within = match kind {
                Kind::String => ", not a text with one in it",
                _ => "",
            };
            return Err(Wrong::Arguments(format!(
                "`arguments` must be an object{within}: the tool's arguments by their names, as its input schema has them"
            )));
        }
    };
    Ok(reply::edited(
        message,
        vec![(name_at, string(&name)), (at, own.to_vec())],
    ))
}

/// Where a call's name stands, and its arguments.
fn called<'a>(
    message: &'a [u8],
    params: Option<&Range<usize>>,
) -> Result<(Range<usize>, Option<Value<'a>>), Fault> {
    let params = params.ok_or(Fault::NotRpc("`params` is missing"))?;
    let text = message.get(params.clone()).unwrap_or_default();
    let [name, arguments] = members(text, ["name", "arguments"], params.start)?;
    let (.., name) = name.ok_or(Fault::NotRpc("`params` names nothing"))?;
    if arguments.as_ref().is_some_and(|of| of.0 != Kind::Object) {
        return Err(Fault::NotRpc("`params.arguments` must be an object"));
    }
    Ok((name, arguments))
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(default, rename = "_meta")]
    meta: Meta,
}

#[derive(Default, Deserialize)]
struct Meta {
    /// Servers that gave no list.
    #[serde(default, rename = "tollgate/unavailable")]
    away: Vec<String>,
}

/// A tool, as far as it is looked through and told.
struct Tool<'a> {
    name: Cow<'a, str>,
    description: Option<Cow<'a, str>>,
    schema: Option<&'a [u8]>,
    in_name: Vec<String>,
    beside: HashSet<String>,
}

impl<'a> Tool<'a> {
    fn read(raw: &'a RawValue) -> Option<Self> {
        let raw = raw.get().as_bytes();
        let names = ["name", "title", "description", "inputSchema", "annotations"];
        let [name, title, description, schema, annotations] = members(raw, names, 0).ok()?;
        let name = text_of(&name?)?;
        let text = |of: Option<Value<'a>>| of.as_ref().and_then(text_of);
        let (title, description) = (text(title), text(description));
        let annotated = annotations.and_then(|(_, of, _)| {
            let [title] = members(of, ["title"], 0).ok()?;
            text(title)
        });
        let mut beside: HashSet<String> = HashSet::new();
        let mut add = |text: &str| {
            each_word(text, |word| {
                if !beside.contains(word) {
                    beside.insert(word.to_owned());
                }
            });
        };
        for title in title.iter().chain(&annotated) {
            add(title);
        }
        if let Some(description) = &description {
            add(looked(description));
        }
        let schema = schema.map(|(_, text, _)| text);
        let properties = schema.and_then(|text| {
            let [properties] = members(text, ["properties"], 0).ok()?;
            serde_json::from_slice::<HashMap<Cow<'_, str>, IgnoredAny>>(properties?.1).ok()
        });
        let properties = properties.unwrap_or_default();
        for name in properties.keys() {
            add(name);
        }
        Some(Self {
            in_name: words(&name),
            name,
            description,
            schema,
            beside,
        })
    }

    /// How much a word of a query says for it.
    fn weight(&self, word: &str) -> u64 {
        let of = |own: &str| u64::from(is_meant(word, own)) * if own == word { 2 } else { 1 };
        let in_name = self.in_name.iter().map(|own| of(own)).max().unwrap_or(0);
        let beside = self.beside.iter().map(|own| of(own)).max().unwrap_or(0);
        in_name * IN_NAME + beside
    }

    /// As it is told: what a model needs to call it.
    fn shown(&self) -> String {
        let mut out = b"{\"name\":".to_vec();
        out.extend(string(&self.name));
        if let Some(description) = &self.description {
            out.extend_from_slice(b",\"description\":");
            out.extend(string(description));
        }
        if let Some(schema) = self.schema {
            out.extend_from_slice(b",\"inputSchema\":");
            out.extend_from_slice(schema);
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Whether a word of a query means a tool's: it is it, or one begins with the other (`file`, `files`).
fn is_meant(word: &str, own: &str) -> bool {
    let begins = |long: &str, short: &str| long.starts_with(short) && short.chars().count() >= STEM;
    word == own || begins(own, word) || begins(word, own)
}

/// As much of a text as is looked through.
fn looked(text: &str) -> &str {
    let mut end = text.len().min(LOOKED_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The words of a text in small letters: letters and digits, of `readFile` two.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word| words.push(word.to_owned()));
    words
}

/// Gives `put` each of them; most of a long text are there several times, and none is kept here.
fn each_word(text: &str, mut put: impl FnMut(&str)) {
    let (mut word, mut was_small) = (String::new(), false);
    for c in text.chars() {
        let is_part = c.is_alphanumeric();
        if !word.is_empty() && (!is_part || was_small && c.is_uppercase()) {
            put(&word);
            word.clear();
        }
        was_small = c.is_lowercase() || c.is_numeric();
        if is_part {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        put(&word);
    }
}

#[cfg(test)]
mod tests;
