//! How hard a model shall think: by a level, and before Gemini 3 by a budget of tokens. A call may say one of them
//! (<https://ai.google.dev/gemini-api/docs/thinking>).
//!
//! Efforts are what Google's own endpoint for OpenAI's SDK makes of them (<https://ai.google.dev/gemini-api/docs/openai#thinking>).

use crate::call::Call;
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::{Object, Raw};

/// The most that all models with budgets take.
const BUDGET_MAX: u64 = 24_576;
/// The least that those take which cannot leave it.
const BUDGET_MIN: u64 = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thinking {
    Level(&'static str),
    Budget(u64),
}

/// Writes how hard it shall think, where the call says it.
pub(super) fn write(call: &mut Call<'_>, json: &mut Json) -> Result<()> {
    let thinking = of(call)?;
    if thinking.is_none() && !call.shows_thinking {
        return Ok(());
    }
    json.key("thinkingConfig").object(|json| {
        match thinking {
            None => {}
            Some(Thinking::Level(level)) => json.say("thinkingLevel", level),
            Some(Thinking::Budget(tokens)) => json.key("thinkingBudget").whole(tokens),
        }
        if call.shows_thinking {
            json.key("includeThoughts").flag(true);
        }
    });
    Ok(())
}

/// Reads what clients of Google's own endpoint for OpenAI's SDK say beyond its members, which is more exact than they are
/// (<https://ai.google.dev/gemini-api/docs/openai#thinking>).
pub(super) fn read_extra<'a>(extra: Raw<'a>, call: &mut Call<'a>) -> Result<()> {
    let mut extra = extra.object()?;
    extra.read("google", |google| {
        let mut google = google.object()?;
        google.read("thinking_config", |config| read_config(config, call))?;
        nothing_more(google)
    })?;
    nothing_more(extra)
}

fn read_config<'a>(config: Raw<'a>, call: &mut Call<'a>) -> Result<()> {
    let mut config = config.object()?;
    call.shows_thinking = config.read("include_thoughts", Raw::flag)?.unwrap_or(false);
    let level = config.text("thinking_level")?;
    let budget = config.take("thinking_budget");
    // It is the model's matter.
    let budget = budget.filter(|budget| budget.json() != "-1");
    let budget = budget.map(Raw::whole).transpose();
    let budget = budget.map_err(|fault| fault.within("thinking_budget"))?;
    if level.is_some() || budget.is_some() {
        call.effort = level;
        call.thinking_budget = budget;
    }
    nothing_more(config)
}

fn nothing_more(object: Object<'_>) -> Result<()> {
    match object.rest().next() {
        None => Ok(()),
        Some((name, _)) => {
            let says = "is a member that this gate cannot tell a backend of Google's";
            Err(Fault::new(says).within(&name))
        }
    }
}

fn of(call: &mut Call<'_>) -> Result<Option<Thinking>> {
    let model = super::bare(&call.model);
    let has_budget = model.starts_with("gemini-2");
    // The least level of all of them, which the small ones alone have.
    let least = if model.contains("flash") {
        "minimal"
    } else {
        "low"
    };
    let can_leave = has_budget && !model.contains("pro");
    let [low, medium, high] = match has_budget {
        true => [1_024, 8_192, BUDGET_MAX].map(Thinking::Budget),
        false => ["low", "medium", "high"].map(Thinking::Level),
    };
    let effort = call.effort.as_deref().map(str::to_ascii_lowercase);
    let thinking = match (effort.as_deref(), call.thinking_budget) {
        (None, None) => return Ok(None),
        (Some("none"), _) | (None, Some(0)) => {
            if can_leave {
                return Ok(Some(Thinking::Budget(0)));
            }
            // Most models think a little at the least.
            let name = match call.effort {
                Some(_) => call.names.effort,
                None => "thinking",
            };
            call.dropped.push(name);
            match has_budget {
                true => Thinking::Budget(BUDGET_MIN),
                false => Thinking::Level(least),
            }
        }
        (Some("minimal"), _) if !has_budget => Thinking::Level(least),
        (Some("minimal" | "low"), _) => low,
        (Some("medium"), _) => medium,
        (Some("high" | "xhigh" | "max"), _) => high,
        (Some(other), _) => {
            let says = format!("{other:?} is no effort that a backend of Google's knows");
            return Err(Fault::new(says).within(call.names.effort));
        }
        (None, Some(tokens)) if has_budget => {
            Thinking::Budget(tokens.clamp(BUDGET_MIN, BUDGET_MAX))
        }
        (None, Some(..4_096)) => low,
        (None, Some(..16_384)) => medium,
        (None, Some(_)) => high,
    };
    Ok(Some(thinking))
}
