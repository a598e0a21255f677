//! The members of a response that say again what its request said.

use wire::filter::Keeping;

use crate::call::Echo;
use crate::json::Json;
use crate::raw::{Object, Raw};

/// Each member, and what stands there where the request says nothing; optional ones then stand nowhere.
const MEMBERS: [(&str, Option<&str>); 14] = [
    ("instructions", Some("null")),
    ("max_output_tokens", None),
    ("metadata", Some("{}")),
    ("parallel_tool_calls", Some("true")),
    ("prompt_cache_key", None),
    ("reasoning", None),
    ("safety_identifier", None),
    ("temperature", None),
    ("text", None),
    ("tool_choice", Some("\"auto\"")),
    ("tools", Some("[]")),
    ("top_p", None),
    ("truncation", None),
    ("user", None),
];

/// What the response to this body says again of it.
pub(super) fn of(body: &Object<'_>, keeping: Option<&Keeping>, is_kept: bool) -> Echo {
    let mut json = Json::default();
    json.object(|json| {
        for (name, default) in MEMBERS {
            let said = body.look(name).or(default.map(Raw::literal));
            if let Some(said) = said {
                json.key(name).raw(said);
            }
        }
        match keeping.and_then(|keeping| keeping.previous.as_deref()) {
            Some(previous) => json.say("previous_response_id", previous),
            None => json.key("previous_response_id").null(),
        }
        // What is not kept here is not, whatever was asked for.
        json.key("store").flag(is_kept);
    });
    Echo::of(json)
}
