//! All operations of a description as tools.
//!
//! Invariant: a name stands for one operation: two that would have the same name are both left out.
//! Not here: one operation (`operation`).

use std::collections::HashMap;
use std::sync::Arc;

use policy::mcp::{Described, HttpAnswer, HttpCall, NoCall};
use serde_json::Value;
use wire::head::Method;

use crate::answer;
use crate::document::{Description, Fault};
use crate::operation::{Operation, Placed};
use crate::reference::object;
use crate::schema::Schemas;

/// Most operations of one description.
pub const OPERATIONS_MAX: usize = 5_000;
/// Most bytes of all tools of one description.
const TOOLS_BYTES_MAX: usize = 8 << 20;

/// Methods whose operations are tools.
const METHODS: [(&str, Method); 5] = [
    ("get", Method::Get),
    ("post", Method::Post),
    ("put", Method::Put),
    ("patch", Method::Patch),
    ("delete", Method::Delete),
];
/// Methods whose operations are none.
const OTHERS: [&str; 4] = ["head", "options", "query", "trace"];

/// Which methods an API's tools may have; all where it says none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Methods(pub Vec<Method>);

/// An operation that is no tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Which.
    pub operation: String,
    /// Why.
    pub why: String,
}

/// The operations of an API.
#[derive(Debug)]
pub struct Api {
    tools: HashMap<String, Operation>,
    list: Arc<[u8]>,
}

impl Api {
    /// Those of a description, and those that are left out of it; `prefix` stands before each path.
    ///
    /// # Errors
    /// There are too many.
    pub fn of(
        description: &Description,
        methods: &Methods,
        prefix: &str,
    ) -> Result<(Self, Vec<Left>), Fault> {
        let root = &description.root;
        let schemas = Schemas::new(root, description.is_old);
        let mut left = Vec::new();
        let mut found = Vec::new();
        let paths = root.get("paths").and_then(Value::as_object);
        for (path, written) in paths.into_iter().flatten() {
            if path.starts_with("x-") {
                continue;
            }
            let path_item = match object(root, written) {
                Ok(path_item) => path_item,
                Err(why) => {
                    let operation = path.clone();
                    left.push(Left { operation, why });
                    continue;
                }
            };
            for other in OTHERS
                .iter()
                .filter(|other| path_item.contains_key(**other))
            {
                let operation = format!("{} {path}", other.to_ascii_uppercase());
                let why = "operations of its method are no tools".into();
                left.push(Left { operation, why });
            }
            let is_meant = |method: &Method| methods.0.is_empty() || methods.0.contains(method);
            for method in METHODS.into_iter().filter(|(_, method)| is_meant(method)) {
                let Some(Value::Object(operation)) = path_item.get(method.0) else {
                    continue;
                };
                found.push(Placed {
                    root,
                    path,
                    path_item,
                    method,
                    operation,
                });
                if found.len() > OPERATIONS_MAX {
                    let max = OPERATIONS_MAX;
                    return Err(Fault::Operations { max });
                }
            }
        }
        let (tools, list) = tools_of(&found, &schemas, prefix, &mut left);
        Ok((Self { tools, list }, left))
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}

fn tools_of(
    found: &[Placed<'_>],
    schemas: &Schemas<'_>,
    prefix: &str,
    left: &mut Vec<Left>,
) -> (HashMap<String, Operation>, Arc<[u8]>) {
    let mut named: HashMap<String, Vec<usize>> = HashMap::new();
    for (nth, placed) in found.iter().enumerate() {
        named.entry(placed.name()).or_default().push(nth);
    }
    let mut tools = HashMap::new();
    let mut list = br#"{"tools":["#.to_vec();
    for (nth, placed) in found.iter().enumerate() {
        let name = placed.name();
        let same = named.get(&name).map_or(&[][..], Vec::as_slice);
        let other = same.iter().find(|other| **other != nth);
        let other = other.and_then(|other| found.get(*other));
        let read = match other {
            Some(other) => Err(format!(
                "its name `{name}` is that of {}, too: give one of them another `operationId`",
                other.shown()
            )),
            None => Operation::read(placed, schemas, prefix),
        };
        let read = read.and_then(|operation| {
            let tool = operation.tool(&name, placed.operation, &placed.shown());
            let tool = tool.to_string();
            match list.len() + tool.len() > TOOLS_BYTES_MAX {
                true => Err(format!(
                    "the tools have more than {} MiB with it",
                    TOOLS_BYTES_MAX >> 20
                )),
                false => Ok((operation, tool)),
            }
        });
        match read {
            Ok((operation, tool)) => {
                if !tools.is_empty() {
                    list.push(b',');
                }
                list.extend_from_slice(tool.as_bytes());
                tools.insert(name, operation);
            }
            Err(why) => left.push(Left {
                operation: placed.shown(),
                why,
            }),
        }
    }
    list.extend_from_slice(b"]}");
    (tools, list.into())
}

impl Described for Api {
    fn list(&self) -> Option<Arc<[u8]>> {
        Some(Arc::clone(&self.list))
    }

    fn call(&self, tool: &str, arguments: Option<&[u8]>) -> Result<HttpCall, NoCall> {
        self.tools.get(tool).ok_or(NoCall::NoTool)?.call(arguments)
    }

    fn result(&self, answer: &HttpAnswer<'_>) -> Vec<u8> {
        answer::result(answer)
    }

    fn misused(&self, says: &str) -> Vec<u8> {
        answer::misused(says)
    }
}

#[cfg(test)]
mod tests;
