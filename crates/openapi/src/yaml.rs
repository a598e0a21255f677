//! YAML as JSON has it.
//!
//! Invariant: what is made is bounded in depth, values and bytes, whatever the text says: an alias counts each time that it is used, and what it names
//! twice.
//! Not here: what the values mean (`document`).

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value};

const DEPTH_MAX: usize = 100;
const VALUES_MAX: usize = 1_000_000;
const BYTES_MAX: usize = 32 << 20;

/// The one document of a text.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let mut made = Made::default();
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| format!("line {}: {}", error.marker().line(), error.info()))?;
        made.take(event).map_err(|says| at(span, says))?;
    }
    made.root.ok_or_else(|| "it is empty".to_owned())
}

fn at(span: Span, says: &str) -> String {
    format!("line {}: {says}", span.start.line().max(1))
}

#[derive(Default)]
struct Made {
    open: Vec<Open>,
    /// Anchored values, with how many values and bytes each is.
    anchors: HashMap<usize, (Value, Cost)>,
    root: Option<Value>,
    cost: Cost,
}

#[derive(Debug, Default, Clone, Copy)]
struct Cost {
    values: usize,
    bytes: usize,
}

/// A collection that has not ended.
struct Open {
    anchor: usize,
    before: Cost,
    inside: Inside,
}

enum Inside {
    List(Vec<Value>),
    Map(Map<String, Value>, Option<String>),
}

impl Made {
    fn take(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => Err("a second document begins here"),
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let (value, cost) = known.ok_or("an alias stands inside of what it names")?;
                self.costs(cost.values, cost.bytes)?;
                self.place(value)
            }
            Event::Scalar(text, style, anchor, _) => {
                self.costs(1, text.len())?;
                let value = match style {
                    ScalarStyle::Plain => plain(&text),
                    _ => Value::String(text.to_string()),
                };
                if anchor > 0 {
                    let (values, bytes) = (1, text.len());
                    self.costs(values, bytes)?;
                    self.anchors
                        .insert(anchor, (value.clone(), Cost { values, bytes }));
                }
                // A name is text, whatever it looks like: the status 200 of responses.
                if let Some(name) = self.name() {
                    *name = Some(text.to_string());
                    return Ok(());
                }
                self.place(value)
            }
            Event::SequenceStart(anchor, _) => self.begin(anchor, Inside::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.begin(anchor, Inside::Map(Map::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
        }
    }

    /// Where the name of a member belongs that comes now.
    fn name(&mut self) -> Option<&mut Option<String>> {
        match &mut self.open.last_mut()?.inside {
            Inside::Map(_, name) if name.is_none() => Some(name),
            Inside::Map(..) | Inside::List(_) => None,
        }
    }

    fn costs(&mut self, values: usize, bytes: usize) -> Result<(), &'static str> {
        self.cost.values = self.cost.values.saturating_add(values);
        self.cost.bytes = self.cost.bytes.saturating_add(bytes);
        if self.cost.values > VALUES_MAX || self.cost.bytes > BYTES_MAX {
            return Err("there are more than 1,000,000 values, or more than 32 MiB of them");
        }
        Ok(())
    }

    fn begin(&mut self, anchor: usize, inside: Inside) -> Result<(), &'static str> {
        if self.open.len() >= DEPTH_MAX {
            return Err("it is nested more than 100 deep");
        }
        let before = self.cost;
        self.costs(1, 0)?;
        self.open.push(Open {
            anchor,
            before,
            inside,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), &'static str> {
        let open = self.open.pop().ok_or("nothing is open here")?;
        let value = match open.inside {
            Inside::List(items) => Value::Array(items),
            Inside::Map(members, None) => Value::Object(members),
            Inside::Map(_, Some(_)) => return Err("a name has no value"),
        };
        if open.anchor > 0 {
            let cost = Cost {
                values: self.cost.values - open.before.values,
                bytes: self.cost.bytes - open.before.bytes,
            };
            // What is kept for its aliases is a copy.
            self.costs(cost.values, cost.bytes)?;
            self.anchors.insert(open.anchor, (value.clone(), cost));
        }
        self.place(value)
    }

    fn place(&mut self, value: Value) -> Result<(), &'static str> {
        match self.open.last_mut().map(|open| &mut open.inside) {
            None => self.root = Some(value),
            Some(Inside::List(items)) => items.push(value),
            Some(Inside::Map(_, None)) => return Err("the name of a member is no text"),
            Some(Inside::Map(members, name)) => {
                let name = name.take().unwrap_or_default();
                if members.insert(name, value).is_some() {
                    return Err("a member stands twice");
                }
            }
        }
        Ok(())
    }
}

/// A scalar without quotes, by the core schema.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let is_number = text
        .strip_prefix(['+', '-'])
        .unwrap_or(text)
        .starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if is_number {
        if let Ok(number) = text.parse::<i64>() {
            return Value::Number(number.into());
        }
        if let Ok(number) = text.parse::<u64>() {
            return Value::Number(number.into());
        }
        if let Some(number) = text.parse().ok().and_then(Number::from_f64) {
            return Value::Number(number);
        }
    }
    Value::String(text.to_owned())
}

#[cfg(test)]
mod tests {
    //! What YAML becomes.

    use serde_json::json;

    use super::read;

    #[test]
    fn it_is_what_json_would_be() {
        let text = "a: 1\nb: [x, 'true', true, null, 1.5, -3, v1.2.3]\nresponses:\n  200: {ok: yes}\nc: &c {d: e}\nf: *c\ng: |\n  two\n  lines\n";
        let expected = json!({
            "a": 1, "b": ["x", "true", true, null, 1.5, -3, "v1.2.3"], "responses": { "200": { "ok": "yes" } },
            "c": { "d": "e" }, "f": { "d": "e" }, "g": "two\nlines\n",
        });
        assert_eq!(read(text), Ok(expected));
    }

    #[test]
    fn what_grows_without_end_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for nth in 1..12 {
            let before = vec![format!("*a{}", nth - 1); 10].join(", ");
            text.push_str(&format!("a{nth}: &a{nth} [{before}]\n"));
        }
        assert!(read(&text).is_err_and(|says| says.contains("1,000,000 values")));
        let nested: String = (0..90).map(|nth| format!("&n{nth} [")).collect();
        let text = format!("a: {nested}{}{}", "x,".repeat(20_000), "]".repeat(90));
        assert!(read(&text).is_err_and(|says| says.contains("1,000,000 values")));
        assert!(read(&"[".repeat(200)).is_err());
        for text in [
            "a: 1\na: 2",
            "a: b: c",
            "? [a]\n: b",
            "---\na: 1\n---\nb: 2",
            "",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
