//! Reads a request of the Responses API.

use wire::filter::Keeping;

use super::read_tools::Offered;
use super::{echo, read_items, read_tools};
use crate::call::{Call, Format, Message, Names, Other, Part, Role, Said};
use crate::fault::{Fault, Result};
use crate::raw::{Object, Raw};

const NAMES: Names = Names {
    messages: "input",
    parts: "content",
    format: "text.format.type",
    effort: "reasoning.effort",
    parallel: "parallel_tool_calls",
};

/// Members of its own, and whether an answer can be used without them: what is kept with the provider, hints of caching, tiers and
/// safety; what bounds built-in tools, which are none; and what makes a prompt fit that is refused as too long without it.
const OTHERS: [(&str, bool); 24] = [
    ("access_programs", false),
    ("background", false),
    ("background_options", true),
    // Codex's, of its own sessions.
    ("client_metadata", true),
    ("context_management", true),
    ("conversation", false),
    ("image", true),
    ("max_tool_calls", true),
    ("metadata", true),
    ("moderation", false),
    ("previous_response_id", false),
    ("prompt", false),
    ("prompt_cache_key", true),
    ("prompt_cache_options", true),
    ("prompt_cache_retention", true),
    ("reasoning.context", true),
    ("reasoning.mode", false),
    ("safety_identifier", true),
    ("service_tier", true),
    ("store", true),
    ("stream_options", true),
    ("text.verbosity", true),
    ("top_logprobs", false),
    ("truncation", true),
];

/// Values that ask for what is done anyway.
fn asks_nothing(name: &str, value: Raw<'_>) -> bool {
    match name {
        "background" | "store" => value.json() == "false",
        "metadata" => value.json() == "{}",
        "reasoning.mode" => value.json() == "\"standard\"",
        "service_tier" => matches!(value.json(), "\"auto\"" | "\"default\""),
        "top_logprobs" => value.json() == "0",
        "truncation" => value.json() == "\"disabled\"",
        _ => false,
    }
}

/// Reads a call; `keeping` is where its response can be kept.
pub(crate) fn read<'a>(body: Raw<'a>, keeping: Option<&Keeping>) -> Result<Call<'a>> {
    let mut body = body.object()?;
    // As at OpenAI, a response is kept unless its call says otherwise.
    let is_kept = match keeping {
        Some(_) => body.read("store", Raw::flag)?.unwrap_or(true),
        None => false,
    };
    let mut call = Call {
        echo: echo::of(&body, keeping, is_kept),
        is_kept,
        model: body.need("model", Raw::text)?,
        is_streamed: body.read("stream", Raw::flag)?.unwrap_or(false),
        // Its streams always tell it.
        wants_usage: true,
        parallel_calls: body.read("parallel_tool_calls", Raw::flag)?,
        max_tokens: body.read("max_output_tokens", Raw::number)?,
        temperature: body.read("temperature", Raw::number)?,
        top_p: body.read("top_p", Raw::number)?,
        user: body.text("user")?,
        names: NAMES,
        ..Call::default()
    };
    if let Some(text) = body.text("instructions")? {
        // They stand before all items, and no number is their own.
        call.messages.push(Message {
            role: Role::System,
            nth: 0,
            parts: vec![Part::of(Said::Text(text))],
        });
    }
    let mut offered = Offered::default();
    body.read("tools", |tools| {
        read_tools::read(tools, &mut call, &mut offered)
    })?;
    body.need("input", |input| {
        read_items::read(input, &mut call, &mut offered)
    })?;
    let choice = body.take("tool_choice");
    read_tools::choose(choice, &offered, &mut call)?;
    body.read("reasoning", |value| reasoning(value, &mut call))?;
    body.read("text", |value| text(value, &mut call))?;
    body.read("include", include)?;
    for (name, value) in body.rest() {
        other(&mut call, &name, value)?;
    }
    let mut named = std::collections::HashSet::new();
    call.dropped.retain(|name| named.insert(*name));
    Ok(call)
}

/// A member that this dialect alone has.
fn other<'a>(call: &mut Call<'a>, name: &str, value: Raw<'a>) -> Result<()> {
    let Some((name, may_be_dropped)) = OTHERS.iter().find(|(known, _)| *known == name) else {
        return Err(unknown(name));
    };
    if *name == "conversation" {
        let says = "names what is kept of earlier calls, and a backend of another dialect keeps nothing; send the items again";
        return Err(Fault::new(says).within(name));
    }
    if *name == "previous_response_id" {
        let says = "names what is kept of earlier calls, which neither the gate has nor a backend of another dialect; send the items again, \
            have the gate keep responses (`responses.store`), or name `responses` among the dialects of a backend that speaks it";
        return Err(Fault::new(says).within(name));
    }
    if !asks_nothing(name, value) {
        call.others.push(Other {
            name,
            value,
            may_be_dropped: *may_be_dropped,
        });
    }
    Ok(())
}

/// The members of a member that are left, under its name.
fn others<'a>(call: &mut Call<'a>, within: &str, rest: Object<'a>) -> Result<()> {
    for (name, value) in rest.rest() {
        let known = format!("{within}.{name}");
        if !OTHERS.iter().any(|(other, _)| *other == known) {
            return Err(unknown(&name));
        }
        other(call, &known, value)?;
    }
    Ok(())
}

fn unknown(name: &str) -> Fault {
    let says = "is a member that this gate cannot tell a backend of another dialect";
    Fault::new(says).within(name)
}

fn reasoning<'a>(value: Raw<'a>, call: &mut Call<'a>) -> Result<()> {
    let mut reasoning = value.object()?;
    call.effort = reasoning.text("effort")?;
    // What the backend tells of its thoughts is told as it comes; some are asked to tell them.
    let summary = reasoning
        .take("summary")
        .or(reasoning.take("generate_summary"));
    call.shows_thinking = summary.is_some();
    others(call, "reasoning", reasoning)
}

fn text<'a>(value: Raw<'a>, call: &mut Call<'a>) -> Result<()> {
    let mut text = value.object()?;
    call.format = text.read("format", format)?.flatten();
    others(call, "text", text)
}

fn format(value: Raw<'_>) -> Result<Option<Format<'_>>> {
    let mut format = value.object()?;
    match &*format.need("type", Raw::text)? {
        "text" => Ok(None),
        "json_object" => Ok(Some(Format::Json)),
        "json_schema" => Ok(Some(Format::Schema {
            name: format.text("name")?,
            description: format.text("description")?,
            schema: format.need("schema", super::read_tools::an_object)?,
            is_strict: format.read("strict", Raw::flag)?,
        })),
        other => {
            let says = format!("{other:?} is a format that a backend of another dialect has not");
            Err(Fault::new(says).within("type"))
        }
    }
}

/// What shall be told beside: of built-in tools, which are none, or what is told anyway.
fn include(value: Raw<'_>) -> Result<()> {
    let told = [
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
        "file_search_call.results",
        "message.input_image.image_url",
        "reasoning.encrypted_content",
        "web_search_call.action.sources",
        "web_search_call.results",
    ];
    value.each(|_, item| {
        let item = item.text()?;
        match told.contains(&&*item) {
            true => Ok(()),
            false => {
                let says = format!("{item:?} is nothing that a backend of another dialect tells");
                Err(Fault::new(says))
            }
        }
    })?;
    Ok(())
}
