//! Tasks (the extension `io.modelcontextprotocol/tasks` of versions without sessions): calls of tools that are answered later, and asked
//! about by an id until then.
//!
//! Invariant: what a client is shown for the id of a task is sealed with the server and the tool that it is of: whoever brings it is asked
//! anew whether he may use that tool there.
//! Not here: sealing (`session`), ids in answers (`bridge`).

use std::borrow::Cow;
use std::ops::Range;

use wire::json::Kind;

use crate::envelope::{Fault, members, text_of};

/// The extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The longest id of a task that a server may give: it is sent in a header.
const ID_BYTES_MAX: usize = 1024;

/// A task at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The server.
    pub server: String,
    /// Its tool that was called, by the server's own name.
    pub tool: String,
    /// What the server calls the task.
    pub id: String,
}

impl Task {
    /// As it is sealed; none where its id is too long.
    #[must_use]
    pub fn write(server: &str, tool: &str, id: &str) -> Option<String> {
        if id.len() > ID_BYTES_MAX {
            return None;
        }
        serde_json::to_string(&(server, tool, id)).ok()
    }

    /// As it was sealed.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (server, tool, id) = serde_json::from_str(text).ok()?;
        Some(Self { server, tool, id })
    }
}

/// Whether a method asks about a task.
#[must_use]
pub fn is_of(method: &str) -> bool {
    matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel")
}

/// The task that such a request names, and where.
///
/// # Errors
/// [`Fault`] where it names none, or does so in two ways.
pub fn named<'a>(
    message: &'a [u8],
    params: Option<&Range<usize>>,
) -> Result<(Cow<'a, str>, Range<usize>), Fault> {
    let params = params.ok_or(Fault::NotRpc("`params` is missing"))?;
    let text = message.get(params.clone()).unwrap_or_default();
    let [id] = members(text, ["taskId"], params.start)?;
    let id = id.ok_or(Fault::NotRpc("`params.taskId` is missing"))?;
    let text = text_of(&id).ok_or(Fault::NotRpc("`params.taskId` must be a string"))?;
    Ok((text, id.2))
}

/// Whether an object of capabilities, of a client or a server, has the extension.
#[must_use]
pub fn is_in(capabilities: &[u8]) -> bool {
    let object = |text, name| match members(text, [name], 0) {
        Ok([Some((Kind::Object, text, _))]) => Some(text),
        _ => None,
    };
    object(capabilities, "extensions").is_some_and(|of| object(of, EXTENSION).is_some())
}

#[cfg(test)]
mod tests {
    //! What is sealed is what is read, and who says that it knows tasks.

    use super::{Task, is_in, named};
    use crate::envelope::Message;

    #[test]
    fn a_task_is_read_as_it_was_written_whatever_its_names_are() {
        for (server, tool, id) in [("a", "b", "c"), ("one", "x\"y,[]\\", "1\n2"), ("", "", "")] {
            let text = Task::write(server, tool, id).expect("it fits");
            let task = Task::read(&text).expect("a task");
            assert_eq!((&*task.server, &*task.tool, &*task.id), (server, tool, id));
        }
        assert_eq!(Task::write("a", "b", &"x".repeat(1025)), None);
        for none in ["", "[]", "[1,2,3]", r#"["a","b"]"#, r#"["a","b","c","d"]"#] {
            assert_eq!(Task::read(none), None, "{none}");
        }
    }

    #[test]
    fn the_extension_is_in_capabilities_where_it_is_an_object() {
        assert!(is_in(
            br#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#
        ));
        for none in [
            "{}",
            r#"{"tasks":{}}"#,
            r#"{"extensions":{"io.modelcontextprotocol/ui":{}}}"#,
            r#"{"extensions":{"io.modelcontextprotocol/tasks":true}}"#,
        ] {
            assert!(!is_in(none.as_bytes()), "{none}");
        }
    }

    #[test]
    fn a_request_names_its_task_once() {
        let of = |params: &str| {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{params}}}"#);
            let message = Message::read(text.as_bytes()).expect("a message");
            let found = named(text.as_bytes(), message.params.as_ref());
            found.map(|(id, at)| (id.into_owned(), text[at].to_owned()))
        };
        assert_eq!(of(r#"{"taskId":"a"}"#), Ok(("a".into(), "\"a\"".into())));
        for none in [
            "{}",
            r#"{"taskId":1}"#,
            r#"{"taskId":"a","taskId":"b"}"#,
            r#"{"taskid":"a"}"#,
        ] {
            assert!(of(none).is_err(), "{none}");
        }
    }
}
