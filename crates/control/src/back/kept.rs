//! What of a document stays one: the setting that objects cannot say, and what could be written instead.
//!
//! Not here: what is made of the others (`made`).

use config::{Fault, Node, Value};

/// A setting for which what it is of stays in a document of ours.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) path: String,
    line: usize,
    says: String,
    hint: String,
}

impl Kept {
    pub(super) fn of(path: &str, node: &Node, says: &str, hint: &str) -> Self {
        Self {
            path: path.to_owned(),
            line: node.line,
            says: says.to_owned(),
            hint: hint.to_owned(),
        }
    }

    /// One that is no plain text: a variable of the environment, or nothing.
    pub(super) fn variable(path: &str, node: &Node) -> Self {
        let says = "is no plain text, and objects have no variables";
        Self::of(path, node, says, "write the value")
    }

    /// As it is told.
    pub(super) fn fault(&self) -> Fault {
        Fault {
            file: None,
            path: self.path.clone(),
            line: Some(self.line),
            says: self.says.clone(),
            hint: self.hint.clone(),
        }
    }

    /// As it is told of the route that stays for it.
    pub(super) fn fault_of(&self, route: &str) -> Fault {
        let says = format!("{}, so {route} stays in the document", self.says);
        Fault {
            says,
            ..self.fault()
        }
    }
}

/// Notes the first member that is none of these.
pub(super) fn only(at: &str, node: &Node, names: &[&str]) -> Result<(), Kept> {
    let Value::Map(entries) = &node.value else {
        return Err(Kept::of(at, node, "is no mapping", "write its members"));
    };
    match entries
        .iter()
        .find(|entry| !names.contains(&entry.key.as_str()))
    {
        None => Ok(()),
        Some(entry) => {
            let says = "is a setting that no object has";
            let hint = format!(
                "leave it out, if it may go: objects have {}",
                names.join(", ")
            );
            Err(Kept {
                line: entry.line,
                ..Kept::of(&format!("{at}.{}", entry.key), &entry.node, says, &hint)
            })
        }
    }
}
