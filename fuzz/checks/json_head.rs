//! One request body: the scanner against `serde_json` and plain rules, and every edit against the text.
//!
//! Invariant: the scanner accepts exactly what the naive reader accepts, and reads the same of it.
//! Also compiled into the fuzz target of the same name.

use bytes::Bytes;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use wire::call::{CallFault, CallHead, CallScanner, apply, spliced_len, splices};
use wire::dialect::Operation;

/// Panics if the scanner or an edit breaks a promise on this body.
pub(crate) fn fuzz_one(body: &[u8]) {
    let head = CallHead::read(body);
    for step in [1, 2, 3, 7, 16, 33] {
        assert_eq!(head, read_in_steps(body, step), "in chunks of {step}");
    }
    check_user(body, &head);
    if head.is_ok() {
        assert!(
            serde_json::from_slice::<IgnoredAny>(body).is_ok(),
            "accepted what is no JSON"
        );
    }
    let Some(naive) = naive(body) else { return };
    match (&head, naive) {
        (Ok(head), Ok(naive)) => {
            assert_eq!(Naive::of(head), naive);
            for (model, force) in [
                (None, true),
                (Some("other/model"), false),
                (Some("other/model"), true),
            ] {
                check_edit(body, head, model, force);
            }
        }
        (Err(_), Err(_)) => {}
        (Ok(_), Err(why)) => panic!("accepted in spite of {why}"),
        (Err(fault), Ok(_)) => panic!("refused without cause: {fault}"),
    }
}

/// Who is behind the call is read beside the rest, changes nothing of it, and is what `serde_json` reads.
fn check_user(body: &[u8], head: &Result<CallHead, CallFault>) {
    for (operation, paths) in [
        (Operation::Chat, &["/user", "/safety_identifier"][..]),
        (Operation::Messages, &["/metadata/user_id"]),
    ] {
        let read = |step| read_with(CallScanner::with_user(operation), body, step);
        let whole = read(body.len().max(1));
        for step in [1, 7, 33] {
            assert_eq!(whole, read(step), "{operation:?} in chunks of {step}");
        }
        let Ok(mut with_user) = whole else { continue };
        let user = with_user.user.take();
        assert_eq!(Ok(&with_user), head.as_ref(), "{operation:?}");
        if let Ok(document) = serde_json::from_slice::<Value>(body) {
            let mut texts = paths
                .iter()
                .filter_map(|path| document.pointer(path)?.as_str());
            let first = texts.find(|text| !text.is_empty());
            assert_eq!(user.as_deref(), first, "{operation:?}");
        }
    }
}

fn read_in_steps(body: &[u8], step: usize) -> Result<CallHead, CallFault> {
    read_with(CallScanner::new(), body, step)
}

fn read_with(mut scanner: CallScanner, body: &[u8], step: usize) -> Result<CallHead, CallFault> {
    body.chunks(step)
        .try_for_each(|chunk| scanner.push(chunk))?;
    scanner.finish().map(std::mem::take)
}

/// What the naive reader makes of a body.
#[derive(Debug, PartialEq)]
struct Naive {
    model: Option<String>,
    stream: bool,
    asked_for_usage: bool,
    counts: [Option<u32>; 5],
    prompts: u64,
    token_ids: Option<u64>,
}

impl Naive {
    fn of(head: &CallHead) -> Self {
        Self {
            model: head.model.as_deref().map(str::to_owned),
            stream: head.stream,
            asked_for_usage: head.asked_for_usage(),
            counts: [
                head.max_tokens,
                head.max_completion_tokens,
                head.max_output_tokens,
                head.n,
                head.best_of,
            ],
            prompts: head.prompts.count,
            token_ids: head.prompts.token_ids,
        }
    }
}

/// `None` where `serde_json` cannot say: text that is not Unicode somewhere outside what policy reads.
fn naive(body: &[u8]) -> Option<Result<Naive, &'static str>> {
    if serde_json::from_slice::<IgnoredAny>(body).is_err() {
        return Some(Err("the grammar"));
    }
    if depth(body) > wire::json::REQUEST_DEPTH_LIMIT as usize {
        return Some(Err("the depth"));
    }
    if !body.trim_ascii_start().starts_with(b"{") {
        return Some(Err("the document's kind"));
    }
    let members = serde_json::from_slice::<Members>(body).ok()?;
    // Longer names are never compared, whatever they hold.
    let options = match members.only("stream_options") {
        Err(why) => return Some(Err(why)),
        Ok(None | Some("null")) => Members::default(),
        Ok(Some(text)) if text.starts_with('{') => serde_json::from_str(text).ok()?,
        Ok(Some(_)) => return Some(Err("stream_options")),
    };
    Some(read_members(&members, &options))
}

/// The names that have one spelling only: those that policy reads, those that a prompt is counted by, and those in which further models
/// may be named.
const ONE_SPELLING: [&str; 25] = [
    "background",
    "previous_response_id",
    "conversation",
    "container",
    "model",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "n",
    "best_of",
    "prompt",
    "messages",
    "input",
    "instructions",
    "system",
    "tools",
    "functions",
    "models",
    "plugins",
    "fallbacks",
    "safety_model",
    "compound_custom",
    "provider_options",
];

/// Every character by what readers without regard to case take it for.
fn folded(name: &str) -> String {
    let fold = |c: char| match c {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        '\u{130}' | '\u{131}' => 'i',
        c => c.to_ascii_lowercase(),
    };
    name.chars().map(fold).collect()
}

/// What `prompt` holds: how many prompts, and how many token ids if it holds nothing else.
fn prompts(raw: Option<&str>) -> (u64, Option<u64>) {
    let value = raw.map(serde_json::from_str::<Box<RawValue>>);
    let Some(Ok(value)) = value else {
        return (1, None);
    };
    let Ok(list) = serde_json::from_str::<Vec<Box<RawValue>>>(value.get()) else {
        return (1, None);
    };
    let is_number = |raw: &&RawValue| {
        raw.get()
            .starts_with(|c: char| c == '-' || c.is_ascii_digit())
    };
    let each = |list: &[Box<RawValue>]| list.iter().map(|raw| &**raw).filter(is_number).count();
    let numbers = each(&list);
    let inner = |raw: &RawValue| {
        if raw.get().starts_with('{') {
            return parse(raw.get().as_bytes())
                .0
                .iter()
                .filter(|(_, value)| value.starts_with(|c: char| c == '-' || c.is_ascii_digit()))
                .count();
        }
        let list = serde_json::from_str::<Vec<Box<RawValue>>>(raw.get()).unwrap_or_default();
        each(&list)
    };
    let ids = (numbers + list.iter().map(|raw| inner(raw)).sum::<usize>()) as u64;
    let has_text = list.iter().any(|raw| raw.get().starts_with('"'));
    let count = list.len() - numbers + usize::from(numbers > 0);
    (count.max(1) as u64, (ids > 0 && !has_text).then_some(ids))
}

fn read_members(members: &Members, options: &Members) -> Result<Naive, &'static str> {
    let is_other = |known: &[&str], name: &str| {
        known
            .iter()
            .any(|known| *known != name && **known == *folded(name))
    };
    if members
        .0
        .iter()
        .any(|(name, _)| is_other(&ONE_SPELLING, name))
        || options
            .0
            .iter()
            .any(|(name, _)| is_other(&["include_usage"], name))
    {
        return Err("another spelling");
    }
    // Read for whether they are there.
    for name in [
        "background",
        "previous_response_id",
        "conversation",
        "container",
    ] {
        members.only(name)?;
    }
    let (prompts, token_ids) = prompts(members.only("prompt")?);
    let count = |name| match members.only(name)? {
        None | Some("null") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| "a count"),
    };
    let model = match members.only("model")? {
        None => None,
        Some(text) => {
            serde_json::from_str::<Option<String>>(text).map_err(|_| "the model's type")?
        }
    };
    if let Some(name) = &model {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._:/@-".contains(c);
        if name.is_empty() || name.len() > 256 || !name.chars().all(allowed) {
            return Err("the model's name");
        }
        if members.only("model")?.is_some_and(|raw| raw.len() > 4098) {
            return Err("the model's length");
        }
    }
    Ok(Naive {
        model,
        stream: flag(members.only("stream")?)?,
        asked_for_usage: flag(options.only("include_usage")?)?,
        counts: [
            count("max_tokens")?,
            count("max_completion_tokens")?,
            count("max_output_tokens")?,
            count("n")?,
            count("best_of")?,
        ],
        prompts,
        token_ids,
    })
}

fn flag(raw: Option<&str>) -> Result<bool, &'static str> {
    match raw {
        None | Some("null" | "false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err("a flag"),
    }
}

/// How deep a valid document nests.
fn depth(body: &[u8]) -> usize {
    let (mut depth, mut most, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for &byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// The members of an object in order, with their values as written.
#[derive(Debug, Default, PartialEq)]
struct Members(Vec<(String, String)>);

impl Members {
    fn only(&self, name: &str) -> Result<Option<&str>, &'static str> {
        let mut values = self
            .0
            .iter()
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.as_str());
        let first = values.next();
        if values.next().is_some() {
            Err("a member that appears twice")
        } else {
            Ok(first)
        }
    }
}

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push((key, value.get().to_owned()));
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Reader)
    }
}

/// The edited body says what was wanted, and says everything else as before.
fn check_edit(body: &[u8], head: &CallHead, model: Option<&str>, force: bool) {
    let edits = splices(head, model, force);
    let mut plain = body.to_vec();
    for edit in edits.iter().rev() {
        plain.splice(edit.at.clone(), edit.with.iter().copied());
    }
    assert_eq!(plain.len(), spliced_len(body.len(), &edits));
    for step in [1, 5, 64, body.len()] {
        let rope: Vec<Bytes> = body.chunks(step).map(Bytes::copy_from_slice).collect();
        assert_eq!(apply(&rope, &edits).concat(), plain, "rope of {step}");
    }
    let edited = CallHead::read(&plain).expect("the edited body is a call");
    let force = force && head.stream;
    assert_eq!(edited.model.as_deref(), model.or(head.model.as_deref()));
    assert_eq!(edited.asked_for_usage(), force || head.asked_for_usage());

    let (mut before, mut after) = (parse(body), parse(&plain));
    for members in [&mut before, &mut after] {
        members
            .0
            .retain(|(key, _)| !(model.is_some() && key == "model"));
        if force
            && let Some(at) = members
                .0
                .iter()
                .position(|(key, _)| key == "stream_options")
        {
            let (_, options) = members.0.remove(at);
            let options = if options == "null" {
                Members::default()
            } else {
                parse(options.as_bytes())
            };
            let others = options
                .0
                .into_iter()
                .filter(|(key, _)| key != "include_usage");
            members
                .0
                .extend(others.map(|(key, value)| (format!("stream_options.{key}"), value)));
        }
    }
    assert_eq!(before, after, "an edit touched something else");
}

fn parse(text: &[u8]) -> Members {
    serde_json::from_slice(text).expect("members of an object")
}
