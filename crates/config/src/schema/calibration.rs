//! How engines are asked what prompts count, and what they were started with.
//!
//! Not here: what they become (`lower`).

use serde_json::{Value as Json, json};

use crate::decode::{
    At, Decode, Defs, Findings, Place, Problem, ShortOrFull, Written, child, record,
};
use crate::node::{Node, Scalar, Shape, Value};
use crate::scalar::{Brief, ContentFormat, Count, Flag, Span, words};
use crate::target::Target;

/// The longest arguments of templates, as JSON.
const ARGUMENTS_BYTES_MAX: usize = 16 << 10;

/// `off`, or how.
pub(crate) type Calibration = ShortOrFull<Off, CalibrationAt>;

words! {
    /// The word alone.
    Off(()): "is neither off nor a mapping", "write off, or how: { every: 6h, timeout: 5s }" => {
        "off" => (),
    }
}

record! {
    /// How engines are asked what prompts count.
    CalibrationAt {
        /// How often, 1m or more; at the start and after a change beside that. Default 6h.
        optional every: At<Span>,
        /// How long one question may take, 1m at most. Default 5s.
        optional timeout: At<Brief>,
    }
}

/// Where a backend is asked what prompts count; `None`: nowhere.
pub(crate) struct Asked(pub(crate) Option<Target>);

impl Written for Asked {
    fn read(text: &str) -> Result<Self, Problem> {
        if text == "off" {
            return Ok(Self(None));
        }
        let read = Target::read(text).map(|target| Self(Some(target)));
        read.map_err(|problem| Problem {
            hint: "write off, or the API root of the engine that is asked, such as http://engine:8000/v1".into(),
            ..problem
        })
    }

    fn schema() -> Json {
        json!({ "anyOf": [{ "enum": ["off"] }, Target::schema()] })
    }
}

record! {
    /// What the model's engine was started with, which no call tells.
    EngineStart {
        /// What it gives chat templates unless a call says otherwise (vLLM's --default-chat-template-kwargs).
        optional default_chat_template_kwargs: Arguments,
        /// Calls whose tool_choice is none are rendered without their tools (vLLM's flag of this name). Default false.
        optional exclude_tools_when_tool_choice_none: At<Flag>,
        /// How the chat template is given content: auto, string or openai (vLLM's --chat-template-content-format). Default auto.
        optional content_format: At<ContentFormat>,
        /// The most tokens of a prompt and its answer (vLLM's --max-model-len).
        optional max_model_len: At<Count<100_000_000>>,
    }
}

/// Arguments of a template: a JSON object, its members in the order written.
pub(crate) struct Arguments(pub(crate) String);

impl Decode for Arguments {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        let place = Place::new(path, node.line);
        if !matches!(node.value, Value::Map(_)) {
            if !node.is_faulty() {
                let says = format!("is {}, not a mapping", node.what());
                findings.fault(&place, says, "write name: value");
            }
            return None;
        }
        let mut text = String::new();
        if !written(node, path, findings, &mut text) {
            return None;
        }
        if text.len() > ARGUMENTS_BYTES_MAX {
            let says = format!("is longer than {ARGUMENTS_BYTES_MAX} bytes as JSON");
            findings.fault(&place, says, "leave out what the template does not read");
            return None;
        }
        Some(Self(text))
    }

    fn schema(_: &mut Defs) -> Json {
        json!({ "type": "object" })
    }
}

/// Writes a value as JSON; false where it has none, which is reported.
fn written(node: &Node, path: &str, findings: &mut Findings, out: &mut String) -> bool {
    match &node.value {
        Value::Scalar(_) if node.is_faulty() => false,
        Value::Scalar(scalar) => match of_scalar(scalar) {
            Some(json) => {
                out.push_str(&json.to_string());
                true
            }
            None => {
                let place = Place::new(path, node.line);
                let hint = "write a decimal number, or text in quotes";
                findings.fault(&place, "is a number that JSON does not have", hint);
                false
            }
        },
        Value::List(items) => {
            out.push('[');
            let mut is_good = true;
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                is_good &= written(item, &format!("{path}[{index}]"), findings, out);
            }
            out.push(']');
            is_good
        }
        Value::Map(entries) => {
            out.push('{');
            let mut is_good = true;
            for (index, entry) in entries.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&Json::from(entry.key.as_str()).to_string());
                out.push(':');
                is_good &= written(&entry.node, &child(path, &entry.key), findings, out);
            }
            out.push('}');
            is_good
        }
    }
}

fn of_scalar(scalar: &Scalar) -> Option<Json> {
    Some(match scalar.shape() {
        Shape::Text => scalar.text.as_str().into(),
        Shape::Nothing => Json::Null,
        Shape::Boolean => Json::Bool(scalar.text.starts_with(['t', 'T'])),
        Shape::Number => serde_json::from_str(&scalar.text).ok()?,
    })
}
