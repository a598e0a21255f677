//! Google's own form of schemas, made into JSON Schema: types in capitals, `nullable`, bounds that are texts
//! (<https://ai.google.dev/api/caching#Schema>).
//!
//! They are made before the call is read, since what a call says lies in the body, and these lie nowhere.
//! Invariant: names, their order, and texts stay as they are; what this gate does not know is refused by its place.

use super::members::{Members, items, snake};
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::Raw;

/// The schemas of one call that are in Google's own form.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    /// Of each function that is declared, in their order.
    pub(super) functions: Vec<Option<Vec<u8>>>,
    /// Of the answer.
    pub(super) answer: Option<Vec<u8>>,
}

impl Schemas {
    /// Of a request of `generateContent`.
    pub(crate) fn of(body: Raw<'_>) -> Result<Self> {
        let mut made = Self::default();
        let mut body = Members::of(body)?;
        body.read("tools", |tools| {
            for (nth, tool) in items(tools)?.into_iter().enumerate() {
                made.tool(tool).map_err(|fault| fault.item(nth))?;
            }
            Ok(())
        })?;
        body.read("generationConfig", |config| {
            let schema = Members::of(config)?.read("responseSchema", |schema| {
                Schema::new(true).converted(schema)
            })?;
            made.answer = schema;
            Ok(())
        })?;
        Ok(made)
    }

    fn tool(&mut self, tool: Raw<'_>) -> Result<()> {
        Members::of(tool)?.read("functionDeclarations", |functions| {
            for (nth, function) in items(functions)?.into_iter().enumerate() {
                let schema = Members::of(function).and_then(|mut function| {
                    function.read("parameters", |schema| Schema::new(false).converted(schema))
                });
                self.functions
                    .push(schema.map_err(|fault| fault.item(nth))?);
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// How one is made.
#[derive(Clone, Copy)]
struct Schema {
    /// Its objects have no members but those that it names: the model makes no others, and some providers want that said.
    is_closed: bool,
    /// How many may stand within each other.
    levels: u8,
}

/// Words whose values are said as they are.
const PLAIN: [&str; 11] = [
    "title",
    "description",
    "format",
    "pattern",
    "enum",
    "required",
    "default",
    "minimum",
    "maximum",
    "additionalProperties",
    "const",
];
/// Words whose values are whole numbers, which may be written as texts.
const WHOLE: [&str; 6] = [
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
];
/// Words that say nothing of what is allowed.
const HINTS: [&str; 2] = ["example", "propertyOrdering"];

impl Schema {
    const fn new(is_closed: bool) -> Self {
        Self {
            is_closed,
            levels: 128,
        }
    }

    /// One within this one.
    fn inner(self) -> Result<Self> {
        match self.levels.checked_sub(1) {
            Some(levels) => Ok(Self { levels, ..self }),
            None => Err(Fault::new("is nested too deep")),
        }
    }

    fn converted(self, schema: Raw<'_>) -> Result<Vec<u8>> {
        let mut json = Json::with_capacity(schema.json().len());
        self.write(schema, &mut json)?;
        Ok(json.into_bytes())
    }

    fn write(self, schema: Raw<'_>, json: &mut Json) -> Result<()> {
        let mut members = Members::of(schema)?;
        let is_nullable = members.flag("nullable")?;
        let members: Vec<_> = members.into_object().rest().collect();
        let is = |name: &str, word: &str| name == word || name == snake(word);
        let has_properties = members.iter().any(|(name, _)| name == "properties");
        let says_more = members
            .iter()
            .any(|(name, _)| is(name, "additionalProperties"));
        json.try_object(|json| {
            for (name, value) in &members {
                let known = |words: &[&'static str]| {
                    words.iter().copied().find(|word| is(name, word))
                };
                if name == "type" {
                    kind(*value, is_nullable, json).map_err(|fault| fault.within(name))?;
                } else if let Some(word) = known(&PLAIN) {
                    json.key(word).raw(*value);
                } else if let Some(word) = known(&WHOLE) {
                    json.key(word).raw(whole(*value).map_err(|fault| fault.within(name))?);
                } else if name == "items" {
                    json.key("items");
                    self.inner()?.write(*value, json).map_err(|fault| fault.within(name))?;
                } else if known(&["anyOf"]).is_some() {
                    json.key("anyOf");
                    self.each(*value, is_nullable, json).map_err(|fault| fault.within(name))?;
                } else if name == "properties" {
                    json.key("properties");
                    self.properties(*value, json).map_err(|fault| fault.within(name))?;
                } else if known(&HINTS).is_none() {
                    let says = "is a word of schemas that this gate cannot tell a backend of another dialect; say it in a JSON schema";
                    return Err(Fault::new(says).within(name));
                }
            }
            if self.is_closed && has_properties && !says_more {
                json.key("additionalProperties").flag(false);
            }
            Ok(())
        })
    }

    fn each(self, list: Raw<'_>, is_nullable: bool, json: &mut Json) -> Result<()> {
        json.try_list(|json| {
            for (nth, schema) in list.list()?.into_iter().enumerate() {
                self.inner()?
                    .write(schema, json)
                    .map_err(|fault| fault.item(nth))?;
            }
            if is_nullable {
                json.object(|json| json.say("type", "null"));
            }
            Ok(())
        })
    }

    fn properties(self, value: Raw<'_>, json: &mut Json) -> Result<()> {
        json.try_object(|json| {
            for (name, schema) in value.object()?.all() {
                json.name(&name);
                self.inner()?
                    .write(schema, json)
                    .map_err(|fault| fault.within(&name))?;
            }
            Ok(())
        })
    }
}

/// The type, in small letters; one that may be nothing says that.
fn kind(value: Raw<'_>, is_nullable: bool, json: &mut Json) -> Result<()> {
    if !value.is_text() {
        json.key("type").raw(value);
        return Ok(());
    }
    let kind = value.text()?.to_ascii_lowercase();
    match &*kind {
        "type_unspecified" => {}
        "string" | "number" | "integer" | "boolean" | "array" | "object" | "null" => {
            json.key("type");
            match is_nullable && kind != "null" {
                false => json.text(&kind),
                true => json.list(|json| {
                    json.text(&kind);
                    json.text("null");
                }),
            }
        }
        other => return Err(Fault::new(format!("{other:?} is no type"))),
    }
    Ok(())
}

/// A whole number, also one that is a text.
fn whole(value: Raw<'_>) -> Result<Raw<'_>> {
    let digits = value.json().trim_matches('"');
    match !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(Raw::literal(digits)),
        false => Err(Fault::new("is no whole number")),
    }
}
