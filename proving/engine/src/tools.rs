//! Tools: which function a call forces or, left to itself, an answer calls, and arguments that satisfy its schema.
//!
//! Invariant: arguments are JSON that the function's schema accepts.
//! Not here: the bytes of a tool call.

use experiment::random::Rng;

use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::json::{Json, object};
use crate::render::Tool;
use crate::structured::Constraint;

/// A function call that the answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forced {
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// By its name, and not by `required`: vLLM then finishes with `stop`.
    pub(crate) named: bool,
}

/// A function as a prompt shows it. `deferred` is what its tool says of it in chat, beside it.
pub(crate) fn of_function(function: &Json, deferred: Option<&Json>) -> Tool {
    let member = |name: &str| function.get(name).filter(|value| **value != Json::Null);
    let deferred = deferred.filter(|value| **value != Json::Null);
    let all = ["name", "description", "parameters"];
    let mut shown: Vec<(&str, Json)> = all
        .map(|name| (name, member(name).cloned().unwrap_or_default()))
        .into();
    shown.extend(member("strict").map(|value| ("strict", value.clone())));
    let defers = member("defer_loading").or(deferred);
    shown.extend(defers.map(|value| ("defer_loading", value.clone())));
    let mut whole = vec![
        ("type", Json::from("function")),
        ("function", object(shown)),
    ];
    whole.extend(deferred.map(|value| ("defer_loading", value.clone())));
    let text = |name: &str| member(name).and_then(Json::as_str).unwrap_or_default();
    Tool {
        name: text("name").to_owned(),
        parameters: member("parameters").cloned(),
        whole: object(whole),
    }
}

/// Tools of the chat or the responses dialect, as a prompt shows them.
pub(crate) fn offered(tools: Option<&[Json]>) -> Result<Vec<Tool>, Refusal> {
    let mut offered = Vec::new();
    for tool in tools.unwrap_or_default() {
        let kind = tool.get("type").and_then(Json::as_str);
        match function(tool) {
            Some(inner) if kind.is_none_or(|k| k == "function") => {
                let deferred = tool.get("function").and(tool.get("defer_loading"));
                offered.push(of_function(inner, deferred));
            }
            _ if kind.is_none_or(|k| k == "function") => {
                return Err(fault("a tool needs a type, and a function tool a name").about("tools"));
            }
            // Built-in tools (web search and the like) are not simulated and show the model nothing.
            _ => {}
        }
    }
    Ok(offered)
}

/// How a server treats calls that leave it to the model whether a tool is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Auto {
    /// It does not refuse them.
    pub(crate) enabled: bool,
    /// Share of answers that call a tool.
    pub(crate) share: f64,
}

impl Auto {
    /// As configured; vLLM never refuses them for Harmony, whose calls need no parser of their own.
    pub(crate) fn of(config: &EngineConfig, harmony: bool) -> Self {
        Self {
            enabled: config.enable_auto_tool_choice || harmony,
            share: config.tool_calls,
        }
    }
}

/// The call that the answer is to be, if it is to be one. What `tool_choice` leaves open follows from the seed.
pub(crate) fn chosen(
    tools: &[Tool],
    choice: Option<&Json>,
    auto: Auto,
    seed: u64,
) -> Result<Option<Forced>, Refusal> {
    let mut rng = Rng::new(seed ^ 0x7001_ca11);
    match choice {
        None | Some(Json::Null) if tools.is_empty() => Ok(None),
        None | Some(Json::Null) => may_call(tools, auto, &mut rng),
        Some(Json::String(mode)) => match mode.as_str() {
            "none" => Ok(None),
            "auto" if tools.is_empty() => Ok(None),
            "auto" => may_call(tools, auto, &mut rng),
            "required" => tools
                .first()
                .ok_or_else(|| fault("tool_choice is required but no tool is given"))
                .and_then(|tool| call(tool, false, &mut rng))
                .map(Some),
            other => Err(fault(&format!(
                "Invalid value for `tool_choice`: {other}! Only named tools, \"none\", \"auto\" or \"required\" are \
                 supported."
            ))),
        },
        Some(choice) => {
            let name = function(choice)
                .and_then(name)
                .ok_or_else(|| fault("tool_choice must name a function"))?;
            let found = tools.iter().find(|tool| tool.name == name);
            found
                .ok_or_else(|| {
                    fault(
                        "The tool specified in `tool_choice` does not match any of the specified `tools`",
                    )
                })
                .and_then(|tool| call(tool, true, &mut rng))
                .map(Some)
        }
    }
}

/// A call of any of the tools, as often as configured. One whose schema is beyond us is not called: vLLM does not
/// hold the model to it here.
fn may_call(tools: &[Tool], auto: Auto, rng: &mut Rng) -> Result<Option<Forced>, Refusal> {
    if !auto.enabled {
        let why = "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set";
        return Err(fault(why));
    }
    if rng.unit() >= auto.share {
        return Ok(None);
    }
    let tool = tools.get(rng.below(tools.len() as u64) as usize);
    Ok(tool.and_then(|tool| call(tool, false, rng).ok()))
}

/// The function of a tool: nested in chat, flat in responses.
fn function(tool: &Json) -> Option<&Json> {
    let inner = tool.get("function").unwrap_or(tool);
    name(inner).map(|_| inner)
}

fn name(function: &Json) -> Option<&str> {
    function.get("name").and_then(Json::as_str)
}

fn call(tool: &Tool, named: bool, rng: &mut Rng) -> Result<Forced, Refusal> {
    let arguments = match tool.parameters.clone() {
        Some(Json::Object(mut schema)) => {
            if !schema.iter().any(|(name, _)| name == "type") {
                schema.push(("type".to_owned(), Json::String("object".to_owned())));
            }
            Constraint::json(&Json::Object(schema), "tools")?.text(rng.bits())?
        }
        _ => "{}".to_owned(),
    };
    Ok(Forced {
        name: tool.name.clone(),
        arguments,
        named,
    })
}

fn fault(why: &str) -> Refusal {
    Refusal::bad_request(why).about("tool_choice")
}

#[cfg(test)]
mod tests;
