//! The shapes of a request, as the model of the service has them (`bedrock-runtime`, 2023-09-30, as AWS publishes it with its SDKs).
//!
//! Not here: shapes that no call of a client's becomes.

use serde_json::Value;

/// A structure: its members with their shapes, those that have to be there first, as many as `required` says; of a union there is one.
struct Shape {
    name: &'static str,
    is_union: bool,
    required: usize,
    members: &'static [(&'static str, &'static str)],
}

const fn structure(
    name: &'static str,
    required: usize,
    members: &'static [(&'static str, &'static str)],
) -> Shape {
    Shape {
        name,
        is_union: false,
        required,
        members,
    }
}

const fn union(name: &'static str, members: &'static [(&'static str, &'static str)]) -> Shape {
    Shape {
        name,
        is_union: true,
        required: 0,
        members,
    }
}

const SHAPES: &[Shape] = &[
    structure(
        "ConverseRequest",
        0,
        &[
            ("messages", "[Message"),
            ("system", "[SystemContentBlock"),
            ("inferenceConfig", "InferenceConfiguration"),
            ("toolConfig", "ToolConfiguration"),
            ("outputConfig", "OutputConfig"),
            ("additionalModelRequestFields", "document"),
            ("additionalModelResponseFieldPaths", "[text"),
        ],
    ),
    structure(
        "Message",
        2,
        &[("role", "user|assistant"), ("content", "[ContentBlock")],
    ),
    union(
        "ContentBlock",
        &[
            ("text", "text"),
            ("image", "ImageBlock"),
            ("document", "DocumentBlock"),
            ("audio", "AudioBlock"),
            ("toolUse", "ToolUseBlock"),
            ("toolResult", "ToolResultBlock"),
            ("cachePoint", "CachePointBlock"),
            ("reasoningContent", "ReasoningContentBlock"),
        ],
    ),
    structure(
        "ImageBlock",
        2,
        &[("format", "png|jpeg|gif|webp"), ("source", "Source")],
    ),
    structure(
        "DocumentBlock",
        2,
        &[
            ("name", "text"),
            ("source", "Source"),
            ("format", "pdf|csv|doc|docx|xls|xlsx|html|txt|md"),
        ],
    ),
    structure("AudioBlock", 2, &[("format", "text"), ("source", "Source")]),
    union("Source", &[("bytes", "blob"), ("s3Location", "S3Location")]),
    structure("S3Location", 1, &[("uri", "text")]),
    structure(
        "ToolUseBlock",
        3,
        &[
            ("toolUseId", "text"),
            ("name", "text"),
            ("input", "document"),
        ],
    ),
    structure(
        "ToolResultBlock",
        2,
        &[
            ("toolUseId", "text"),
            ("content", "[ToolResultContentBlock"),
            ("status", "success|error"),
        ],
    ),
    union(
        "ToolResultContentBlock",
        &[
            ("text", "text"),
            ("image", "ImageBlock"),
            ("document", "DocumentBlock"),
        ],
    ),
    structure(
        "CachePointBlock",
        1,
        &[("type", "default"), ("ttl", "5m|1h")],
    ),
    union(
        "ReasoningContentBlock",
        &[
            ("reasoningText", "ReasoningTextBlock"),
            ("redactedContent", "blob"),
        ],
    ),
    structure(
        "ReasoningTextBlock",
        1,
        &[("text", "text"), ("signature", "text")],
    ),
    union(
        "SystemContentBlock",
        &[("text", "text"), ("cachePoint", "CachePointBlock")],
    ),
    structure(
        "InferenceConfiguration",
        0,
        &[
            ("maxTokens", "number"),
            ("temperature", "number"),
            ("topP", "number"),
            ("stopSequences", "[text"),
        ],
    ),
    structure(
        "ToolConfiguration",
        1,
        &[("tools", "[Tool"), ("toolChoice", "ToolChoice")],
    ),
    union(
        "Tool",
        &[
            ("toolSpec", "ToolSpecification"),
            ("cachePoint", "CachePointBlock"),
        ],
    ),
    structure(
        "ToolSpecification",
        2,
        &[
            ("name", "text"),
            ("inputSchema", "ToolInputSchema"),
            ("description", "text"),
            ("strict", "flag"),
        ],
    ),
    union("ToolInputSchema", &[("json", "document")]),
    union(
        "ToolChoice",
        &[
            ("auto", "Nothing"),
            ("any", "Nothing"),
            ("tool", "SpecificToolChoice"),
        ],
    ),
    structure("Nothing", 0, &[]),
    structure("SpecificToolChoice", 1, &[("name", "text")]),
    structure(
        "OutputConfig",
        0,
        &[("textFormat", "OutputFormat"), ("effort", "text")],
    ),
    structure(
        "OutputFormat",
        2,
        &[
            ("type", "json_schema"),
            ("structure", "OutputFormatStructure"),
        ],
    ),
    union(
        "OutputFormatStructure",
        &[("jsonSchema", "JsonSchemaDefinition")],
    ),
    structure(
        "JsonSchemaDefinition",
        1,
        &[
            ("schema", "text"),
            ("name", "text"),
            ("description", "text"),
        ],
    ),
];

/// Panics where a value is not of this shape, with its place.
pub(super) fn check(shape: &str, value: &Value, place: &str) {
    if let Some(item) = shape.strip_prefix('[') {
        let items = value
            .as_array()
            .unwrap_or_else(|| panic!("{place} is no list: {value}"));
        for (nth, value) in items.iter().enumerate() {
            check(item, value, &format!("{place}[{nth}]"));
        }
        return;
    }
    let is_good = match shape {
        "text" => value.as_str().is_some_and(|text| !text.trim().is_empty()),
        "number" => value.is_number(),
        "flag" => value.is_boolean(),
        "document" => value.is_object(),
        "blob" => value.as_str().is_some_and(|text| !text.is_empty()),
        shape if SHAPES.iter().any(|known| known.name == shape) => {
            return check_members(shape, value, place);
        }
        words => value
            .as_str()
            .is_some_and(|word| words.split('|').any(|known| known == word)),
    };
    assert!(is_good, "{place} is no {shape}: {value}");
}

fn check_members(shape: &str, value: &Value, place: &str) {
    let shape = SHAPES
        .iter()
        .find(|known| known.name == shape)
        .expect("a shape");
    let members = value
        .as_object()
        .unwrap_or_else(|| panic!("{place} is no object: {value}"));
    for (name, value) in members {
        let known = shape.members.iter().find(|(known, _)| known == name);
        let (_, of) = known.unwrap_or_else(|| panic!("{place} has no {name}"));
        check(of, value, &format!("{place}.{name}"));
    }
    for (name, _) in &shape.members[..shape.required] {
        assert!(members.contains_key(*name), "{place} needs {name}: {value}");
    }
    assert!(
        !shape.is_union || members.len() == 1,
        "{place} is a union: {value}"
    );
}
