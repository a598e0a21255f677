//! Calls that a route lists: a method and the template of a path. And flags.
//!
//! Not here: which calls may be listed (`lower::unread`), what a template takes (`policy::unread`).

use policy::unread::Template;
use policy::wire::head::Method;
use serde_json::{Value, json};

use crate::decode::{Problem, Takes, Written};

/// A method and the template of a path.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: Template,
}

impl Written for Call {
    fn read(text: &str) -> Result<Self, Problem> {
        const EXAMPLE: &str = "write a method and a path, such as GET /v1/files/{id}";
        let Some((method, path)) = text.split_once(' ') else {
            return Err(Problem::new("is not a method and a path", EXAMPLE));
        };
        let method = match Method::of(method.as_bytes()) {
            Method::Head => {
                let hint = "write GET: it stands for both";
                return Err(Problem::new("names HEAD, which goes with GET", hint));
            }
            Method::Options | Method::Other => {
                let is = "does not begin with GET, POST, PUT, PATCH or DELETE";
                return Err(Problem::new(is, EXAMPLE));
            }
            method => method,
        };
        let path = Template::read(path).map_err(|fault| {
            let hint = "write plain words, and {id} for one id, such as /v1/files/{id}/content";
            Problem::new(format!("holds a path that {fault}"), hint)
        })?;
        Ok(Self { method, path })
    }

    fn schema() -> Value {
        let pattern = "^(GET|POST|PUT|PATCH|DELETE) /v1(/([a-z0-9_-]{1,64}|\\{id\\})){1,8}$";
        json!({ "type": "string", "pattern": pattern })
    }
}

/// True or false.
#[derive(Clone, Copy)]
pub(crate) struct Flag(pub(crate) bool);

impl Written for Flag {
    const TAKES: Takes = Takes::Flag;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "true" | "True" | "TRUE" => Ok(Self(true)),
            "false" | "False" | "FALSE" => Ok(Self(false)),
            _ => Err(Problem::new("is not a flag", "write true or false")),
        }
    }

    fn schema() -> Value {
        json!({ "enum": [true, false] })
    }
}
