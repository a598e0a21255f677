//! Reads tools and the choice among them.
//!
//! A backend of another dialect knows functions alone. A tool that takes a text becomes a function with one argument, `input`; one of
//! a namespace bears that in its name, which is cut where it is too long; the answer names both as the client does.
//! Tools of the provider's own are offered, not asked for: where an agent offers them beside its own, they are dropped. Where they are
//! all that there is, or are chosen by name, an answer without them would not be one.
//! Invariant: a name becomes the same whatever stands beside it.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::call::{Alias, Call, Tool, ToolChoice};
use crate::fault::{Fault, Result};
use crate::raw::{Object, Raw};

/// Providers take no longer name of a function.
const NAME_BYTES: usize = 64;
/// A tool that takes a text, as a function.
const FREEFORM: &str = r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}"#;

/// The provider's own tools that an agent works without, and the name of what is dropped.
const SPARED: [(&str, &str); 6] = [
    ("image_generation", "tools.image_generation"),
    // Tools that a search would find are told from the beginning.
    ("tool_search", "tools.tool_search"),
    ("web_search", "tools.web_search"),
    ("web_search_2025_08_26", "tools.web_search"),
    ("web_search_preview", "tools.web_search"),
    ("web_search_preview_2025_03_11", "tools.web_search"),
];

/// What a call offers, beside what its neutral form says.
#[derive(Default)]
pub(super) struct Offered {
    names: HashSet<String>,
    /// What is wrong with the first tool of the provider's own, where it is all that is offered.
    spared: Option<Fault>,
}

/// The name by which a backend knows a tool.
pub(super) fn name_of<'a>(namespace: Option<&str>, name: Cow<'a, str>) -> Cow<'a, str> {
    let name = match namespace {
        None => name,
        Some(space) if space.ends_with("__") => format!("{space}{name}").into(),
        Some(space) => format!("{space}__{name}").into(),
    };
    if name.len() <= NAME_BYTES {
        return name;
    }
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut end = NAME_BYTES - 17;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let begins = name.get(..end).unwrap_or_default();
    format!("{begins}_{hash:016x}").into()
}

/// Reads a list of tools into the call.
pub(super) fn read<'a>(value: Raw<'a>, call: &mut Call<'a>, offered: &mut Offered) -> Result<()> {
    value.each(|nth, tool| {
        let mut tool = tool.object()?;
        let kind = tool.need("type", Raw::text)?;
        if let Some((_, dropped)) = SPARED.iter().find(|(known, _)| *known == kind) {
            call.dropped.push(dropped);
            offered
                .spared
                .get_or_insert_with(|| hosted(&kind).item(nth));
            return Ok(());
        }
        if kind != "namespace" {
            return one(&kind, None, tool, call, offered);
        }
        let space = tool.need("name", Raw::text)?;
        if tool
            .text("description")?
            .is_some_and(|text| !text.is_empty())
        {
            call.dropped.push("tools.namespace.description");
        }
        tool.need("tools", |tools| {
            tools.each(|_, tool| {
                let mut tool = tool.object()?;
                let kind = tool.need("type", Raw::text)?;
                one(&kind, Some(&space), tool, call, offered)
            })
        })?;
        Ok(())
    })?;
    Ok(())
}

fn one<'a>(
    kind: &str,
    space: Option<&str>,
    mut tool: Object<'a>,
    call: &mut Call<'a>,
    offered: &mut Offered,
) -> Result<()> {
    let is_freeform = match kind {
        "function" => false,
        "custom" => true,
        kind => return Err(hosted(kind)),
    };
    let said = tool.need("name", Raw::text)?;
    let name = name_of(space, said.clone());
    if !offered.names.insert(name.clone().into_owned()) {
        let says = format!("a backend of another dialect would know two tools as {name:?}");
        return Err(Fault::new(says).within("name"));
    }
    if is_freeform || name != said {
        call.aliases.push(Alias {
            called: name.clone().into_owned(),
            namespace: space.map(str::to_owned),
            name: said.into_owned(),
            is_freeform,
        });
    }
    let mut description = tool.text("description")?;
    let schema = match is_freeform {
        true => {
            let grammar = tool.read("format", grammar)?.flatten();
            if let Some(grammar) = grammar {
                let text = description.unwrap_or_default();
                description = Some(
                    format!("{text}\n\n{grammar}")
                        .trim_start()
                        .to_owned()
                        .into(),
                );
            }
            Some(Raw::literal(FREEFORM))
        }
        false => tool.read("parameters", an_object)?,
    };
    call.tools.push(Tool {
        name,
        description,
        schema,
        is_strict: tool.read("strict", Raw::flag)?.unwrap_or(false),
        cache: None,
    });
    Ok(())
}

/// What the form of a text is, in words: nobody else holds a model to it.
fn grammar(value: Raw<'_>) -> Result<Option<String>> {
    let mut format = value.object()?;
    if format.need("type", Raw::text)? != "grammar" {
        return Ok(None);
    }
    let syntax = format.need("syntax", Raw::text)?;
    let definition = format.need("definition", Raw::text)?;
    Ok(Some(format!(
        "The input is a text of this grammar ({syntax}):\n{definition}"
    )))
}

pub(super) fn an_object(value: Raw<'_>) -> Result<Raw<'_>> {
    match value.is_object() {
        true => Ok(value),
        false => Err(Fault::new("is no object")),
    }
}

/// That a tool is one of the provider's own.
fn hosted(kind: &str) -> Fault {
    let says = format!(
        "{kind:?} is a tool of the provider's own, which a backend of another dialect has not"
    );
    Fault::new(says).within("type")
}

/// Reads the choice among what is offered.
pub(super) fn choose<'a>(
    choice: Option<Raw<'a>>,
    offered: &Offered,
    call: &mut Call<'a>,
) -> Result<()> {
    let choice = choice.map(|value| self::choice(value, call)).transpose();
    let choice = choice.map_err(|fault| fault.within("tool_choice"))?;
    if !call.tools.is_empty() {
        call.tool_choice = choice;
        return Ok(());
    }
    // Where there are no tools, backends refuse a choice that says nothing.
    let is_idle = matches!(choice, None | Some(ToolChoice::None | ToolChoice::Auto));
    match &offered.spared {
        Some(fault) if choice != Some(ToolChoice::None) => Err(fault.clone().within("tools")),
        _ if is_idle => Ok(()),
        _ => Err(Fault::new("asks for a tool, and there is none").within("tool_choice")),
    }
}

fn choice<'a>(value: Raw<'a>, call: &mut Call<'a>) -> Result<ToolChoice<'a>> {
    if value.is_text() {
        return word(value.text()?);
    }
    let mut choice = value.object()?;
    let kind = choice.need("type", Raw::text)?;
    match &*kind {
        "function" | "custom" => Ok(ToolChoice::Named(named(&mut choice)?)),
        "allowed_tools" => {
            let mode = choice.need("mode", |mode| word(mode.text()?))?;
            let allowed = choice.need("tools", |tools| {
                tools.each(|_, tool| {
                    let mut tool = tool.object()?;
                    let kind = tool.need("type", Raw::text)?;
                    match &*kind {
                        "function" | "custom" => named(&mut tool).map(Some),
                        _ => Ok(None),
                    }
                })
            })?;
            let allowed: HashSet<Cow<'_, str>> = allowed.into_iter().flatten().collect();
            call.tools.retain(|tool| allowed.contains(&tool.name));
            Ok(mode)
        }
        other => {
            let says = format!("{other:?} is a choice that a backend of another dialect has not");
            Err(Fault::new(says).within("type"))
        }
    }
}

fn word(word: Cow<'_, str>) -> Result<ToolChoice<'static>> {
    match &*word {
        "none" => Ok(ToolChoice::None),
        "auto" => Ok(ToolChoice::Auto),
        "required" => Ok(ToolChoice::Any),
        other => Err(Fault::new(format!("{other:?} is no choice of tools"))),
    }
}

/// The tool that a choice names.
fn named<'a>(choice: &mut Object<'a>) -> Result<Cow<'a, str>> {
    let space = choice.text("namespace")?;
    Ok(name_of(space.as_deref(), choice.need("name", Raw::text)?))
}
