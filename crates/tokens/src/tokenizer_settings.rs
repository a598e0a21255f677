//! What `transformers` makes of a `tokenizer.json` by the settings beside it (`tokenizer_config.json`).
//!
//! Tokens that the settings name become added tokens, and some classes build the tokenizer anew from its vocabulary.
//! `add_bos_token` and `add_eos_token` say nothing: beside a `tokenizer.json`, what is added to plain text is what its
//! post-processor says.
//! Invariant: what is not known to be the same is doubted.
//! Not here: reading a `tokenizer.json` (`vocabulary`), which tokens the settings name (`special`).

mod special;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use prompts::Doubt;
use prompts::UnusableModel;
use special::Special;

/// How `Qwen2Tokenizer` cuts text.
const QWEN2_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A `tokenizer.json` as it is used.
pub(crate) struct Fitted<'j> {
    pub(crate) json: Cow<'j, [u8]>,
    pub(crate) doubt: Option<Doubt>,
    /// The special tokens by the names that templates know them by, where there are settings.
    pub(crate) named: Option<Vec<(String, String)>>,
}

type File<'j> = BTreeMap<String, Cow<'j, RawValue>>;

/// Changes a `tokenizer.json` where its settings say so.
///
/// # Errors
/// When either is no JSON object.
pub(crate) fn fit<'j>(json: &'j [u8], settings: &str) -> Result<Fitted<'j>, UnusableModel> {
    let mut fitted = Fitted {
        json: Cow::Borrowed(json),
        doubt: None,
        named: None,
    };
    if settings.is_empty() {
        return Ok(fitted);
    }
    let unusable = |error: serde_json::Error| UnusableModel::Tokenizer(error.to_string());
    let settings: Value = serde_json::from_str(settings).map_err(unusable)?;
    let read: BTreeMap<String, &RawValue> = serde_json::from_slice(json).map_err(unusable)?;
    let mut file: File<'_> = read
        .into_iter()
        .map(|(name, value)| (name, Cow::Borrowed(value)))
        .collect();
    let special = Special::read(&settings);
    if truth(&settings, "split_special_tokens")
        || !keeps_the_file(&settings, &file)
        || is_ambiguous(&settings, &special, &file)
    {
        fitted.doubt = Some(Doubt::TokenizerSettings);
    }
    if add_tokens(&settings, &special, &mut file).map_err(unusable)? {
        fitted.json = Cow::Owned(serde_json::to_vec(&file).map_err(unusable)?);
    }
    fitted.named = Some(special.names());
    Ok(fitted)
}

/// Whether the tokenizer's class takes the file as it is, or builds the same again.
fn keeps_the_file(settings: &Value, file: &File<'_>) -> bool {
    let Some(class) = settings.get("tokenizer_class").and_then(Value::as_str) else {
        return true;
    };
    let part = |name: &str| member(file, name);
    let byte_level =
        |part: &Value| at(part, "/type") == "ByteLevel" && !truth(part, "add_prefix_space");
    match class.strip_suffix("Fast").unwrap_or(class) {
        "PreTrainedTokenizer" | "TokenizersBackend" => true,
        "Qwen2Tokenizer" => {
            let cut = part("pre_tokenizer");
            let parts = at(&cut, "/pretokenizers").as_array().map(Vec::as_slice);
            let Some([split, bytes]) = parts else {
                return false;
            };
            at(&part("normalizer"), "/type") == "NFC"
                && at(split, "/pattern/Regex") == QWEN2_PATTERN
                && at(split, "/behavior") == "Isolated"
                && byte_level(bytes)
                && at(bytes, "/use_regex") == false
        }
        "GPT2Tokenizer" => {
            let cut = part("pre_tokenizer");
            part("normalizer").is_null()
                && byte_level(&cut)
                && at(&cut, "/use_regex") != false
                && !truth(settings, "add_prefix_space")
        }
        "GemmaTokenizer" => {
            let (clean, cut) = (part("normalizer"), part("pre_tokenizer"));
            at(&clean, "/type") == "Replace"
                && at(&clean, "/pattern/String") == " "
                && at(&clean, "/content") == "▁"
                && at(&cut, "/type") == "Split"
                && at(&cut, "/pattern/String") == " "
                && at(&cut, "/behavior") == "MergedWithPrevious"
        }
        _ => false,
    }
}

fn member(file: &File<'_>, name: &str) -> Value {
    let raw = file.get(name).map_or("null", |raw| raw.get());
    serde_json::from_str(raw).unwrap_or_default()
}

/// What is at a place, or null.
fn at<'v>(value: &'v Value, place: &str) -> &'v Value {
    value.pointer(place).unwrap_or(&Value::Null)
}

fn truth(value: &Value, name: &str) -> bool {
    value.get(name) == Some(&Value::Bool(true))
}

fn content(token: &Value) -> Option<&str> {
    token.as_str().or_else(|| token.get("content")?.as_str())
}

/// Whether a text is a token by several names with several rules: which of them holds depends on more than the names.
fn is_ambiguous(settings: &Value, special: &Special<'_>, file: &File<'_>) -> bool {
    let known = member(file, "added_tokens");
    let known = known.as_array().map(Vec::as_slice).unwrap_or_default();
    let numbered: Vec<_> = numbered(settings).collect();
    let replaces = |token: &Value| {
        let mut same = known.iter().filter(|it| content(it) == content(token));
        same.any(|it| rules(it) != rules(token))
    };
    // Without it, it follows from whether the token is special, which one without a name is not.
    let is_partial = |token: &Value| token.is_object() && token.get("normalized").is_none();
    if numbered.iter().any(|it| replaces(it) || is_partial(it))
        || special.nameless().iter().any(is_partial)
        || special.tokens().any(|it| is_partial(it) && !is_special(it))
    {
        return true;
    }
    let mut seen = BTreeMap::new();
    let is_known = |text: &str| {
        let mut all = known.iter().chain(numbered.iter().copied());
        all.any(|it| content(it) == Some(text))
    };
    let named = special.tokens().filter_map(|it| Some((content(it)?, it)));
    let mut new = named.filter(|(text, _)| !text.is_empty() && !is_known(text));
    new.any(|(text, token)| {
        let before = seen.insert(text.to_owned(), rules(token));
        before.is_some_and(|before| before != rules(token))
    })
}

/// What a token asks of the text around it, and whether it is looked for before that is normalised.
fn rules(token: &Value) -> [bool; 4] {
    let is_special = is_special(token);
    [
        truth(token, "single_word"),
        truth(token, "lstrip"),
        truth(token, "rstrip"),
        token.get("normalized").map_or(!is_special, |it| it == true),
    ]
}

fn is_special(token: &Value) -> bool {
    token.get("special").is_none_or(|special| special == true)
}

/// Tokens that the settings name by number.
fn numbered(settings: &Value) -> impl Iterator<Item = &Value> {
    let number = |id: &str| id.parse::<u64>().unwrap_or(u64::MAX);
    let numbered = settings
        .get("added_tokens_decoder")
        .and_then(Value::as_object);
    let mut numbered: Vec<_> = numbered.into_iter().flatten().collect();
    numbered.sort_by_key(|(id, _)| number(id));
    numbered.into_iter().map(|(_, token)| token)
}

/// Adds the tokens that only the settings name, and says whether there were any.
fn add_tokens(
    settings: &Value,
    special: &Special<'_>,
    file: &mut File<'_>,
) -> Result<bool, serde_json::Error> {
    let mut tokens = match member(file, "added_tokens") {
        Value::Array(tokens) => tokens,
        _ => Vec::new(),
    };
    let wanted = wanted(settings, special);
    let is_there = |tokens: &[Value], text: &str| tokens.iter().any(|it| content(it) == Some(text));
    if wanted
        .iter()
        .all(|token| content(token).is_none_or(|text| is_there(&tokens, text)))
    {
        return Ok(false);
    }
    let model = member(file, "model");
    let vocabulary = at(&model, "/vocab");
    let in_vocabulary = |text: &str| match vocabulary {
        Value::Object(numbers) => numbers.get(text)?.as_u64(),
        Value::Array(pieces) => {
            let place = pieces.iter().position(|piece| at(piece, "/0") == text);
            place.map(|place| place as u64)
        }
        _ => None,
    };
    let size = match vocabulary {
        Value::Object(numbers) => numbers.len(),
        Value::Array(pieces) => pieces.len(),
        _ => 0,
    };
    let numbers = tokens.iter().filter_map(|token| at(token, "/id").as_u64());
    let mut free = numbers.map(|id| id + 1).fold(size as u64, u64::max);
    for token in &wanted {
        let Some(text) = content(token).filter(|text| !text.is_empty()) else {
            continue;
        };
        if is_there(&tokens, text) {
            continue;
        }
        let id = in_vocabulary(text).unwrap_or_else(|| {
            free += 1;
            free - 1
        });
        let [single_word, lstrip, rstrip, normalized] = rules(token);
        tokens.push(json!({
            "id": id,
            "content": text,
            "single_word": single_word,
            "lstrip": lstrip,
            "rstrip": rstrip,
            "normalized": normalized,
            "special": is_special(token),
        }));
    }
    let written = serde_json::value::to_raw_value(&tokens)?;
    file.insert("added_tokens".to_owned(), Cow::Owned(written));
    Ok(true)
}

/// Tokens as the settings name them: text, or an object.
fn wanted(settings: &Value, special: &Special<'_>) -> Vec<Value> {
    let named = special.tokens();
    numbered(settings).chain(named).cloned().collect()
}

#[cfg(test)]
mod tests;
