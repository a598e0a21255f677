//! Parts of what refusals say: amounts, waits, budgets and base URLs in words.
//!
//! Not here: which refusal says them (`refusal`).

use std::time::Duration;

use crate::mcp::CallersToken;
use crate::whose::Holder;

/// The base URL by which a call of the table comes.
pub(super) fn base_of(meant: &str) -> &'static str {
    match meant.starts_with("messages") {
        true => "a base URL without /v1 at its end, which Anthropic's SDKs add themselves",
        false => "a base URL that ends in /v1, once and without a slash behind it",
    }
}

/// What the gate may keep in the upstream's place.
pub(super) fn kept_here(member: &str) -> &'static str {
    match member {
        "previous_response_id" => " have the gate keep responses (`responses.store`),",
        _ => "",
    }
}

/// What is known of a base URL, by a call that is none.
pub(super) fn base_by(call: &str) -> &'static str {
    match call.contains(" /v1/v1beta") {
        true => "a base URL for Google's SDKs ends without /v1, as they add their own version",
        false => "a base URL ends in /v1, once",
    }
}

/// What somebody said, behind a colon where it is something.
pub(super) fn colon(says: &str) -> String {
    if says.is_empty() {
        String::new()
    } else {
        format!(": {says}")
    }
}

/// So many of a kind, in words.
pub(super) fn counted(amount: u64, what: &str) -> String {
    match (amount, what.strip_suffix('s')) {
        (1, Some(one)) => format!("1 {one}"),
        _ => format!("{amount} {what}"),
    }
}

/// A window as configurations write it.
pub(super) fn window(per: Duration) -> String {
    let whole = [(86_400, 'd'), (3_600, 'h'), (60, 'm')];
    let mut whole = whole
        .into_iter()
        .filter(|(unit, _)| per.as_secs() > 0 && per.as_secs().is_multiple_of(*unit));
    match whole.next().filter(|_| per.subsec_nanos() == 0) {
        Some((unit, letter)) => format!("{}{letter}", per.as_secs() / unit),
        None => format!("{per:?}"),
    }
}

/// Whole seconds, as `retry-after` says them.
pub(super) fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// What a server did to a caller's token.
pub(super) fn refused(token: &CallersToken) -> String {
    match token {
        CallersToken::Brought(header) => format!("refused the token in the header {header}"),
        CallersToken::Missing(header) => {
            format!("wants a token of its caller's, in the header {header}")
        }
        CallersToken::Given => "refused the token that was given for yours".to_owned(),
    }
}

/// What a caller can do whose call its budget never admits.
pub(super) fn way_out(is_fixed: bool) -> &'static str {
    if is_fixed {
        "ask for a larger budget"
    } else {
        "set a lower max_tokens, shorten the prompt, or ask for a larger budget"
    }
}

/// A budget, in words.
pub(super) fn budget_of(name: Option<&str>, holder: Option<Holder>) -> String {
    match (name, holder) {
        (Some(name), None) => format!("the budget {name:?}"),
        (Some(name), Some(holder)) => format!("the budget {name:?} for {}", holder.as_str()),
        (None, Some(holder)) => format!("{}'s own budget", holder.as_str()),
        (None, None) => "a budget of this caller's own".to_owned(),
    }
}

/// What has no price, in words.
pub(super) fn unpriced(model: &str) -> String {
    if model.is_empty() {
        return "a call that names no model".to_owned();
    }
    format!("the model {model:?}")
}
