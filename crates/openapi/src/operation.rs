//! One operation: what its tool is called and takes, and the request that a call of it makes.
//!
//! Invariant: each argument goes to the place of its parameter, and an argument that no parameter has goes nowhere.
//! Not here: which operations a description has (`api`).

use std::collections::HashSet;

use policy::mcp::{HttpCall, NoCall};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use wire::head::{Method, percent_decoded};

use crate::arguments::{Members, Written};
use crate::body::{self, Body};
use crate::encode::{encoded, in_cookie, in_header, in_path, in_query};
use crate::parameter::{self, Parameter, Place};
use crate::schema::Schemas;

/// Most parameters of one operation.
const PARAMETERS_MAX: usize = 100;
/// Longest path and query of a request.
const TARGET_BYTES_MAX: usize = 16 << 10;
/// Most bytes of one header's value.
const HEADER_BYTES_MAX: usize = 4 << 10;
/// Most of what a tool says of itself.
const DESCRIPTION_CHARS_MAX: usize = 4_000;

/// An operation.
#[derive(Debug)]
pub(crate) struct Operation {
    method: Method,
    /// Its path: texts, and parameters by their places.
    path: Vec<Piece>,
    parameters: Vec<Parameter>,
    body: Option<Body>,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Parameter(usize),
}

/// Where an operation stands in its description.
pub(crate) struct Placed<'d> {
    pub(crate) root: &'d Map<String, Value>,
    pub(crate) path: &'d str,
    pub(crate) path_item: &'d Map<String, Value>,
    pub(crate) method: (&'static str, Method),
    pub(crate) operation: &'d Map<String, Value>,
}

impl Placed<'_> {
    /// The name of its tool: its own, else its method and path; of the characters that every client takes.
    pub(crate) fn name(&self) -> String {
        let own = self.operation.get("operationId").and_then(Value::as_str);
        let own = own.filter(|own| !own.is_empty());
        let written = match own {
            Some(own) => own.to_owned(),
            None => format!("{}{}", self.method.0, self.path.replace(['{', '}'], "")),
        };
        let plain = |c: char| match c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            true => c,
            false => '_',
        };
        written.trim_end_matches('/').chars().map(plain).collect()
    }

    /// It for people.
    pub(crate) fn shown(&self) -> String {
        let path: String = self.path.chars().take(200).collect();
        format!("{} {path}", self.method.0.to_ascii_uppercase())
    }
}

impl Operation {
    /// Reads one; `prefix` stands before its path.
    ///
    /// # Errors
    /// Why it can be no tool.
    pub(crate) fn read<'d>(
        written: &Placed<'d>,
        schemas: &Schemas<'d>,
        prefix: &str,
    ) -> Result<Self, String> {
        let (root, operation) = (written.root, written.operation);
        if operation.contains_key("callbacks") {
            return Err("it calls back, and nobody is there to be called".into());
        }
        if operation.contains_key("servers") || written.path_item.contains_key("servers") {
            return Err("it has `servers` of its own, and calls go to those of the whole".into());
        }
        let mut parameters = parameter::of(root, schemas, written.path_item, operation)?;
        if parameters.len() > PARAMETERS_MAX {
            return Err(format!("it has more than {PARAMETERS_MAX} parameters"));
        }
        let body = body::of(root, schemas, operation)?;
        if body.is_some() && matches!(written.method.1, Method::Get | Method::Head) {
            return Err("it is a GET with a body, which servers read in several ways".into());
        }
        apart(&mut parameters, body.is_some())?;
        let path = pieces(written.path, prefix, &parameters)?;
        let is_in_path = |nth: &usize| {
            let mut path = path.iter();
            path.any(|piece| matches!(piece, Piece::Parameter(of) if of == nth))
        };
        let mut of_path = parameters.iter().enumerate();
        if let Some((_, lost)) =
            of_path.find(|(nth, of)| of.place == Place::Path && !is_in_path(nth))
        {
            return Err(format!("its parameter {} is not in its path", lost.name));
        }
        Ok(Self {
            method: written.method.1,
            path,
            parameters,
            body,
        })
    }

    /// Its tool, as lists have it.
    pub(crate) fn tool(&self, name: &str, operation: &Map<String, Value>, shown: &str) -> Value {
        let text = |name: &str| {
            let text = operation.get(name).and_then(Value::as_str).map(str::trim);
            text.filter(|text| !text.is_empty())
        };
        let says = match (text("summary"), text("description")) {
            (Some(summary), Some(says)) if summary != says => format!("{summary}\n\n{says}"),
            (Some(says), _) | (None, Some(says)) => says.to_owned(),
            (None, None) => shown.to_owned(),
        };
        let mut says: String = says.chars().take(DESCRIPTION_CHARS_MAX).collect();
        if operation.get("deprecated") == Some(&Value::Bool(true)) {
            says.insert_str(0, "Deprecated. ");
        }
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let parameters = self.parameters.iter();
        let parameters = parameters.map(|of| (of.argument.as_str(), &of.schema, of.is_required));
        let body = self.body.iter();
        let body = body.map(|of| (body::ARGUMENT, &of.schema, of.is_required));
        for (name, schema, is_required) in parameters.chain(body) {
            properties.insert(name.to_owned(), schema.clone());
            if is_required {
                required.push(name);
            }
        }
        let mut schema =
            json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if let (false, Value::Object(members)) = (required.is_empty(), &mut schema) {
            members.insert("required".into(), required.into());
        }
        let annotations = match self.method {
            Method::Get | Method::Head => json!({ "readOnlyHint": true }),
            Method::Put => json!({ "readOnlyHint": false, "idempotentHint": true }),
            Method::Delete => {
                json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true })
            }
            _ => json!({ "readOnlyHint": false }),
        };
        let mut tool = json!({ "name": name, "description": says, "inputSchema": schema, "annotations": annotations });
        if let (Some(title), Value::Object(members)) = (text("summary"), &mut tool) {
            let title: String = title.chars().take(200).collect();
            members.insert("title".into(), title.into());
        }
        tool
    }

    /// The request of a call.
    ///
    /// # Errors
    /// [`NoCall`], which says what is wrong with the arguments.
    pub(crate) fn call(&self, arguments: Option<&[u8]>) -> Result<HttpCall, NoCall> {
        let text = arguments.unwrap_or(b"{}");
        let read = std::str::from_utf8(text).map_err(|error| error.to_string());
        let read = read.and_then(|text| {
            serde_json::from_str::<Members<'_>>(text).map_err(|error| error.to_string())
        });
        let Members(arguments) = read
            .map_err(|says| NoCall::Arguments(format!("the arguments cannot be read: {says}")))?;
        self.request(&arguments).map_err(NoCall::Arguments)
    }

    fn request(&self, arguments: &[(String, &RawValue)]) -> Result<HttpCall, String> {
        for (name, _) in arguments {
            self.has(name)?;
        }
        let find = |name: &str| {
            let mut arguments = arguments.iter();
            let found = arguments.find(|(of, _)| of == name);
            found
                .map(|(_, value)| *value)
                .filter(|value| value.get() != "null")
        };
        let (mut of_path, mut query) = (Vec::new(), Vec::new());
        let (mut headers, mut cookies) = (Vec::new(), Vec::new());
        for parameter in &self.parameters {
            let name = &parameter.argument;
            let Some(value) = find(name) else {
                if parameter.is_required {
                    return Err(format!("the argument `{name}` is missing"));
                }
                of_path.push(String::new());
                continue;
            };
            let wrong = |says: String| format!("the argument `{name}` {says}");
            let written = parameter.written(value).map_err(wrong)?;
            let (name, manner) = (&parameter.name, parameter.manner);
            let mut in_path_now = String::new();
            match parameter.place {
                Place::Path => in_path_now = in_path(name, &written, manner).map_err(wrong)?,
                Place::Query => {
                    let pairs = in_query(name, &written, manner).map_err(wrong)?;
                    self.is_its_own(parameter, &pairs).map_err(wrong)?;
                    query.extend(pairs);
                }
                Place::Header => {
                    let value = in_header(&written, manner.explode).map_err(wrong)?;
                    if value.len() > HEADER_BYTES_MAX {
                        return Err(wrong(format!("has more than {HEADER_BYTES_MAX} bytes")));
                    }
                    headers.push((name.clone(), value));
                }
                Place::Cookie => {
                    let pairs = in_cookie(name, &written, manner.explode).map_err(wrong)?;
                    self.is_its_own(parameter, &pairs).map_err(wrong)?;
                    cookies.extend(pairs);
                }
            }
            of_path.push(in_path_now);
        }
        let body = match (&self.body, find(body::ARGUMENT)) {
            (None, _) => None,
            (Some(of), None) if of.is_required => {
                return Err("the argument `body` is missing".into());
            }
            (Some(_), None) => None,
            (Some(of), Some(value)) => {
                let wrong = |says: String| format!("the argument `body` {says}");
                Some(of.write(value).map_err(wrong)?)
            }
        };
        let joined = |pairs: Vec<(String, String)>, between: &str| {
            let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
            pairs.join(between)
        };
        if !cookies.is_empty() {
            let cookies = joined(cookies, "; ");
            if cookies.len() > HEADER_BYTES_MAX {
                return Err(format!(
                    "its cookies have more than {HEADER_BYTES_MAX} bytes"
                ));
            }
            headers.push(("cookie".into(), cookies));
        }
        let path = self.path(&of_path)?;
        let query = match query.is_empty() {
            true => String::new(),
            false => format!("?{}", joined(query, "&")),
        };
        if path.len() + query.len() > TARGET_BYTES_MAX {
            return Err(format!(
                "path and query have more than {TARGET_BYTES_MAX} bytes"
            ));
        }
        Ok(HttpCall {
            method: self.method,
            path,
            query,
            headers,
            body,
        })
    }

    /// Whether there is such an argument.
    fn has(&self, name: &str) -> Result<(), String> {
        let is_known = self.parameters.iter().any(|of| of.argument == name);
        if is_known || name == body::ARGUMENT && self.body.is_some() {
            return Ok(());
        }
        let shown: String = name.chars().take(64).collect();
        let mut known: Vec<&str> = self.parameters.iter().map(|of| &*of.argument).collect();
        known.extend(self.body.as_ref().map(|_| body::ARGUMENT));
        Err(match known.is_empty() {
            true => format!("there is no argument `{shown}`, and the tool takes none"),
            false => format!(
                "there is no argument `{shown}`; there are {}",
                known.join(", ")
            ),
        })
    }

    /// The members of an object that is spread out must not stand for another parameter.
    fn is_its_own(&self, of: &Parameter, pairs: &[(String, String)]) -> Result<(), String> {
        let own = encoded(&of.name);
        let others = self.parameters.iter();
        let others = others.filter(|other| other.place == of.place && other.name != of.name);
        let others: HashSet<String> = others.map(|other| other.name.to_lowercase()).collect();
        let taken = pairs.iter().find(|(name, _)| {
            // Names are without case to some servers, and to some one with brackets or a dot is a part of what stands before.
            let decoded = percent_decoded(name);
            let read = String::from_utf8_lossy(&decoded).to_lowercase();
            let base = read.split(['[', '.']).next().unwrap_or_default();
            *name != own
                && (others.contains(&read)
                    || base != of.name.to_lowercase() && others.contains(base))
        });
        match taken {
            Some((name, _)) => Err(format!(
                "has the member `{name}`, which is another parameter"
            )),
            None => Ok(()),
        }
    }

    fn path(&self, of_path: &[String]) -> Result<String, String> {
        let mut path = String::new();
        for piece in &self.path {
            match piece {
                Piece::Text(text) => path.push_str(text),
                Piece::Parameter(nth) => {
                    path.push_str(of_path.get(*nth).map_or("", String::as_str));
                }
            }
        }
        if path.split('/').any(|part| matches!(part, "." | "..")) {
            return Err("an argument leads elsewhere in the path".into());
        }
        Ok(path)
    }
}

impl Parameter {
    fn written(&self, value: &RawValue) -> Result<Written, String> {
        match self.is_json {
            true => Ok(Written::Text(value.get().to_owned())),
            false => Written::of(value),
        }
    }
}

/// Gives arguments of one name names that tell them apart.
fn apart(parameters: &mut [Parameter], has_body: bool) -> Result<(), String> {
    let names: Vec<String> = parameters.iter().map(|of| of.name.clone()).collect();
    for of in parameters.iter_mut() {
        let same = names
            .iter()
            .filter(|name| name.eq_ignore_ascii_case(&of.name));
        if same.count() > 1 || has_body && of.name == body::ARGUMENT {
            of.argument = format!("{}_{}", of.place.name(), of.name);
        }
    }
    let mut seen = HashSet::new();
    match parameters.iter().find(|of| !seen.insert(&of.argument)) {
        Some(twice) => Err(format!("two parameters of it are `{}`", twice.argument)),
        None => Ok(()),
    }
}

/// A path apart.
fn pieces(path: &str, prefix: &str, parameters: &[Parameter]) -> Result<Vec<Piece>, String> {
    let is_fine = |b: u8| b.is_ascii_graphic() && !b"?#\\{}\"<>^`|".contains(&b);
    if !path.starts_with('/') || path.split('/').any(|part| matches!(part, "." | "..")) {
        return Err("its path does not begin with a slash, or leads elsewhere".into());
    }
    let mut pieces = vec![Piece::Text(prefix.to_owned())];
    let mut rest = path;
    loop {
        let (text, after) = match rest.split_once('{') {
            Some((text, after)) => (text, Some(after)),
            None => (rest, None),
        };
        if !text.bytes().all(is_fine) {
            return Err("its path has a character that no path has".into());
        }
        pieces.push(Piece::Text(text.to_owned()));
        let Some(after) = after else {
            return Ok(pieces);
        };
        let Some((name, after)) = after.split_once('}') else {
            return Err("its path opens a `{` and does not close it".into());
        };
        let mut of_path = parameters.iter();
        let nth = of_path.position(|of| of.place == Place::Path && of.name == name);
        let Some(nth) = nth else {
            return Err(format!(
                "its path has {{{name}}}, and no parameter of it is that"
            ));
        };
        pieces.push(Piece::Parameter(nth));
        rest = after;
    }
}
