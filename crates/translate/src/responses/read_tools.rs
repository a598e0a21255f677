//! Reads tools and the choice among them.
//!
//! A backend of another dialect knows functions alone. A tool that takes a text becomes a function with one argument, `input`; one of
//! a namespace bears that in its name, which is cut where it is too long; the answer names both as the client does. A search for tools
//! that the client makes is a function, too, and what it finds is told with the other tools from then on.
//! Tools of the provider's own are offered, not asked for: where an agent offers them beside its own, they are dropped. Where they are
//! all that there is, or are chosen by name, an answer without them would not be one.
//! Invariant: a name becomes the same whatever stands beside it.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::call::{Alias, AliasKind, Call, Tool, ToolChoice};
use crate::fault::{Fault, Result};
use crate::raw::{Object, Raw};

/// Providers take no longer name of a function.
const NAME_BYTES: usize = 64;
/// No name of a namespace is longer: it is said again with each of its tools.
const SPACE_BYTES: usize = 256;
/// A tool that takes a text, as a function.
const FREEFORM: &str = r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}"#;

/// The name of a search for tools.
pub(super) const SEARCH: &str = "tool_search";
/// The namespace of what has none.
const DEFAULT_SPACE: &str = "functions";

/// The provider's own tools that an agent works without, and the name of what is dropped.
const SPARED: [(&str, &str); 6] = [
    ("image_generation", "tools.image_generation"),
    // Its own search: tools that it would find are told from the beginning.
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
        None | Some(DEFAULT_SPACE) => name,
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
    let is_described = each(value, &mut |nth, kind, space, mut tool| {
        if kind == SEARCH
            && tool
                .look("execution")
                .is_some_and(|who| who.json() == "\"client\"")
        {
            return add(search(&mut tool)?, AliasKind::Search, None, call, offered);
        }
        if let Some((_, dropped)) = SPARED.iter().find(|(known, _)| *known == kind) {
            call.dropped.push(dropped);
            offered.spared.get_or_insert_with(|| hosted(kind).item(nth));
            return Ok(());
        }
        let (tool, kind) = one(kind, &mut tool)?;
        add(tool, kind, space, call, offered)
    })?;
    name_description(is_described, call);
    Ok(())
}

fn name_description(is_described: bool, call: &mut Call<'_>) {
    if is_described {
        call.dropped.push("tools.namespace.description");
    }
}

/// Reads what a search found into the call, and gives the names: what was found before is there already.
pub(super) fn found<'a>(
    value: Raw<'a>,
    call: &mut Call<'a>,
    offered: &mut Offered,
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let is_described = each(value, &mut |_, kind, space, mut tool| {
        let (tool, kind) = one(kind, &mut tool)?;
        let name = name_of(space, tool.name.clone()).into_owned();
        if !offered.names.contains(&name) {
            add(tool, kind, space, call, offered)?;
        }
        names.push(name);
        Ok(())
    })?;
    name_description(is_described, call);
    Ok(names)
}

/// Is told a tool: its number, its type, its namespace and its other members.
type Tell<'t, 'a> = dyn FnMut(usize, &str, Option<&str>, Object<'a>) -> Result<()> + 't;

/// Tells each tool of a list, those of a namespace with that. Gives whether a namespace is described, for which there is no place.
fn each<'a>(value: Raw<'a>, tell: &mut Tell<'_, 'a>) -> Result<bool> {
    let mut is_described = false;
    value.each(|nth, tool| {
        let mut tool = tool.object()?;
        let kind = tool.need("type", Raw::text)?;
        if kind != "namespace" {
            return tell(nth, &kind, None, tool);
        }
        let space = tool.need("name", |name| {
            let name = name.text()?;
            match name.len() <= SPACE_BYTES {
                true => Ok(name),
                false => Err(Fault::new(format!("is longer than {SPACE_BYTES} bytes"))),
            }
        })?;
        is_described |= tool
            .text("description")?
            .is_some_and(|text| !text.is_empty());
        tool.need("tools", |tools| {
            tools.each(|nth, tool| {
                let mut tool = tool.object()?;
                let kind = tool.need("type", Raw::text)?;
                tell(nth, &kind, Some(&space), tool)
            })
        })?;
        Ok(())
    })?;
    Ok(is_described)
}

/// Adds a tool, under the name by which the backend knows it.
fn add<'a>(
    mut tool: Tool<'a>,
    kind: AliasKind,
    space: Option<&str>,
    call: &mut Call<'a>,
    offered: &mut Offered,
) -> Result<()> {
    let said = tool.name.clone();
    tool.name = name_of(space, said.clone());
    if !offered.names.insert(tool.name.clone().into_owned()) {
        let says = format!(
            "a backend of another dialect would know two tools as {:?}",
            tool.name
        );
        return Err(Fault::new(says).within("name"));
    }
    if kind != AliasKind::Function || tool.name != said {
        call.aliases.push(Alias {
            called: tool.name.clone().into_owned(),
            namespace: space
                .filter(|space| *space != DEFAULT_SPACE)
                .map(str::to_owned),
            name: said.into_owned(),
            kind,
        });
    }
    call.tools.push(tool);
    Ok(())
}

/// A tool of the client's.
fn one<'a>(kind: &str, tool: &mut Object<'a>) -> Result<(Tool<'a>, AliasKind)> {
    match kind {
        "function" => Ok((function(tool)?, AliasKind::Function)),
        "custom" => Ok((freeform(tool)?, AliasKind::Freeform)),
        kind => Err(hosted(kind)),
    }
}

fn function<'a>(tool: &mut Object<'a>) -> Result<Tool<'a>> {
    Ok(Tool {
        name: tool.need("name", Raw::text)?,
        description: tool.text("description")?,
        schema: tool.read("parameters", an_object)?,
        is_strict: tool.read("strict", Raw::flag)?.unwrap_or(false),
        cache: None,
    })
}

fn freeform<'a>(tool: &mut Object<'a>) -> Result<Tool<'a>> {
    let mut description = tool.text("description")?;
    if let Some(grammar) = tool.read("format", grammar)?.flatten() {
        let text = description.unwrap_or_default();
        let text = format!("{text}\n\n{grammar}");
        description = Some(text.trim_start().to_owned().into());
    }
    Ok(Tool {
        name: tool.need("name", Raw::text)?,
        description,
        schema: Some(Raw::literal(FREEFORM)),
        is_strict: false,
        cache: None,
    })
}

fn search<'a>(tool: &mut Object<'a>) -> Result<Tool<'a>> {
    Ok(Tool {
        name: SEARCH.into(),
        description: tool.text("description")?,
        schema: tool.read("parameters", an_object)?,
        is_strict: false,
        cache: None,
    })
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
