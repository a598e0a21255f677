//! Two tools in place of many: one finds the tools of a large catalogue by words, the other calls one that was found.
//!
//! A model's prompt has the definitions of all tools that its client lists; of a thousand it uses three. What is found is a part of the list
//! that the client would be told otherwise, and a call of one that was found is a call of that tool.
//! Invariant: the same words find the same tools in the same order; a call names the one tool that is called, and has its arguments as they
//! were written.
//! Not here: which tools a word means (`index`), who may see and use what (the host asks as for any list and any call).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use wire::json::Kind;

use crate::catalog::{Catalog, Seen};
use crate::envelope::{Fault, Value, members, text_of};
use crate::handshake::{UNAVAILABLE, write_meta};
use crate::index::{Room, Weight, Words, each_word, meant};
use crate::name;
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

    /// The result of the call: what fits best of what its caller is shown of lists.
    #[must_use]
    pub fn answer(&self, shown: &Looked) -> Vec<u8> {
        let mut told = String::from("[");
        let mut is_whole = true;
        for tool in self.best(shown) {
            let as_told = shown.told(tool);
            if told.len() > 1 && told.len() + as_told.len() > TOLD_BYTES_MAX {
                is_whole = false;
                break;
            }
            if told.len() > 1 {
                told.push(',');
            }
            told.push_str(&as_told);
        }
        told.push(']');
        if told == "[]" {
            let all = shown.tools.len();
            told = format!("None of {all} tools has these words: try others.");
        }
        let away: Vec<&str> = shown.away.iter().map(|of| &**of).collect();
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
        out
    }

    /// Those in which words of the query stand, the best first, and of those that are as good the one that is listed first.
    fn best<'l>(&self, shown: &'l Looked) -> impl Iterator<Item = &'l Seen> {
        let mut scores = vec![0_u64; shown.tools.len()];
        let places = shown.places();
        let mut room = Room::default();
        for word in &self.words {
            let found = shown.found(word, &places, &mut room);
            // What few tools have tells more.
            let rarity = u64::from((shown.tools.len() / found.len().max(1)).max(1).ilog2()) + 1;
            for (at, weight) in found {
                let weight = u64::from(weight.in_name) * IN_NAME + u64::from(weight.beside);
                if let Some(score) = scores.get_mut(at) {
                    *score += weight * rarity;
                }
            }
        }
        let mut best: Vec<(u64, &Seen)> = scores.into_iter().zip(&shown.tools).collect();
        best.retain(|(score, _)| *score > 0);
        best.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        best.into_iter().take(self.limit).map(|(_, of)| of)
    }
}

/// What a caller is shown of lists, and who gave none.
#[derive(Debug, Default)]
pub struct Looked {
    /// Servers, with their lists.
    pub lists: Vec<(Box<str>, Arc<Catalog>)>,
    /// The tools, in order.
    pub tools: Vec<Seen>,
    /// Servers that gave no list.
    pub away: Vec<Box<str>>,
}

impl Looked {
    /// Bytes of the lists.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lists.iter().map(|(_, list)| list.bytes()).sum()
    }

    /// By list and place in it: which of the tools that are shown it is.
    fn places(&self) -> Vec<Vec<Option<usize>>> {
        let lists = self.lists.iter();
        let mut places: Vec<Vec<Option<usize>>> = lists
            .map(|(_, list)| vec![None; list.items().len()])
            .collect();
        for (at, seen) in self.tools.iter().enumerate() {
            let place = places.get_mut(seen.list).and_then(|of| of.get_mut(seen.at));
            if let Some(place) = place {
                *place = Some(at);
            }
        }
        places
    }

    /// The tools that a word means, each once, with how much it says for them.
    fn found(
        &self,
        word: &str,
        places: &[Vec<Option<usize>>],
        room: &mut Room,
    ) -> Vec<(usize, Weight)> {
        let mut found = Vec::new();
        for ((server, list), places) in self.lists.iter().zip(places) {
            let mut of_server = 0;
            each_word(server, |own| of_server = meant(word, own).max(of_server));
            let index = list.index();
            let mut put = |at: usize, weight: Weight| {
                if let Some(Some(shown)) = places.get(at) {
                    found.push((*shown, weight.within(of_server)));
                }
            };
            if of_server == 0 {
                index.weigh(word, room, &mut put);
            } else {
                // It says something for each of them.
                let mut weights = vec![Weight::default(); index.tools()];
                index.weigh(word, room, |at, weight| {
                    if let Some(of) = weights.get_mut(at) {
                        *of = weight;
                    }
                });
                weights
                    .into_iter()
                    .enumerate()
                    .for_each(|(at, of)| put(at, of));
            }
            for (at, item) in list.items().enumerate().skip(index.tools()) {
                if places.get(at).is_some_and(Option::is_some) {
                    put(at, Words::of(&item.name, item.raw()).weight(word));
                }
            }
        }
        found.retain(|(_, weight)| *weight != Weight::default());
        found
    }

    /// A tool as it is told: what a model needs to call it.
    fn told(&self, seen: &Seen) -> String {
        let Some((server, list)) = self.lists.get(seen.list) else {
            return String::new();
        };
        let Some(item) = list.items().nth(seen.at) else {
            return String::new();
        };
        let name = match &seen.name {
            Some(name) => name.clone(),
            None => name::shown(&name::whole(server, &item.name)).into_owned(),
        };
        let members = members(item.raw(), ["description", "inputSchema"], 0);
        let [description, schema] = members.unwrap_or_default();
        let mut out = b"{\"name\":".to_vec();
        out.extend(string(&name));
        if let Some(description) = description.as_ref().and_then(text_of) {
            out.extend_from_slice(b",\"description\":");
            out.extend(string(&description));
        }
        if let Some((_, schema, _)) = schema {
            out.extend_from_slice(b",\"inputSchema\":");
            out.extend_from_slice(schema);
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
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

/// The words of a text.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word| words.push(word.to_owned()));
    words
}

#[cfg(test)]
mod tests;
