//! What a subject's callers prove themselves by: tokens of the issuer, and what the subject itself printed.
//!
//! Invariant: tokens are made once a race, so that a subject that starts anew knows those that it knew.
//! Not here: making tokens (`issuer`), sending them (`bench`).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use load::client::Request;
use load::source::Fixed;
use serde_json::Value;

use crate::issuer::{Issuer, Role};
use crate::subject::{Client, Launch};

/// Placeholder of the token in the client's headers.
const TOKEN: &str = "{token}";

/// The credentials of one subject's callers.
#[derive(Debug, Default)]
pub(super) struct Credentials {
    tokens: Vec<String>,
    /// The issuer's public keys, where there are tokens.
    jwks: Option<String>,
    /// Whose turn it is, over all measurements.
    turn: Arc<AtomicUsize>,
    /// What `prepare` printed, once it ran.
    prepared: Option<BTreeMap<String, String>>,
}

impl Credentials {
    /// Tokens as `client` asks for them.
    pub(super) fn new(client: &Client, issuer: &mut Issuer) -> Result<Self, String> {
        let Some(asked) = &client.tokens else {
            return Ok(Self::default());
        };
        if asked.count > 1 {
            eprintln!("making {} tokens ({:?})", asked.count, asked.kind);
        }
        Ok(Self {
            tokens: issuer.tokens(asked.kind, Role::Inference, asked.count)?,
            jwks: Some(issuer.jwks()),
            ..Self::default()
        })
    }

    /// Writes the key set and runs `prepare`, before a start; gives the client, filled in but for the token.
    pub(super) fn prepare(
        &mut self,
        program: &Path,
        dir: &Path,
        launch: &Launch,
    ) -> Result<Client, String> {
        if let Some(jwks) = &self.jwks {
            let write = fs::write(dir.join("jwks.json"), jwks);
            write.map_err(|error: io::Error| format!("jwks.json: {error}"))?;
        }
        if self.prepared.is_none() && !launch.prepare.is_empty() {
            self.prepared = Some(printed(program, dir, launch)?);
        }
        let mut client = launch.client.clone();
        for (name, value) in self.prepared.iter().flatten() {
            client = client.with(&format!("{{prepared.{name}}}"), value);
        }
        Ok(client)
    }

    /// `client` with the first token.
    pub(super) fn first(&self, client: &Client) -> Client {
        match self.tokens.first() {
            Some(token) => client.with(TOKEN, token),
            None => client.clone(),
        }
    }

    /// What `render` makes of `client` with each token, to be sent in turn.
    pub(super) fn requests(
        &self,
        client: &Client,
        render: impl Fn(&Client) -> Result<Request, String>,
    ) -> Result<Fixed, String> {
        let with = |token: &String| render(&client.with(TOKEN, token));
        let all: Result<Vec<Request>, String> = self.tokens.iter().map(with).collect();
        let mut all = all?;
        if all.is_empty() {
            all.push(render(client)?);
        }
        let body = all.first().map(|request| request.body.clone());
        let heads = all.into_iter().map(|request| request.head).collect();
        let turn = Arc::clone(&self.turn);
        let fixed = Fixed::in_turn(heads, body.unwrap_or_default().into(), turn);
        fixed.map_err(|error| error.to_string())
    }
}

/// The members of the JSON object that the program prints.
fn printed(
    program: &Path,
    dir: &Path,
    launch: &Launch,
) -> Result<BTreeMap<String, String>, String> {
    let output = Command::new(program)
        .args(&launch.prepare)
        .envs(&launch.env)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("could not be prepared: {error}"))?;
    if !output.status.success() {
        let says = String::from_utf8_lossy(&output.stderr);
        let last = says.lines().rfind(|line| !line.trim().is_empty());
        let last = last.unwrap_or("without a word").trim();
        return Err(format!("could not be prepared ({}): {last}", output.status));
    }
    let object: BTreeMap<String, Value> = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("what `prepare` printed is no JSON object: {error}"))?;
    let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
    Ok(object.into_iter().filter_map(text).collect())
}

#[cfg(test)]
mod tests {
    //! Who brings what.

    use super::Credentials;
    use crate::issuer::Issuer;
    use crate::subject::{Client, Launch};

    fn client(toml: &str) -> Client {
        toml::from_str(toml).expect("a client")
    }

    #[test]
    fn each_request_brings_the_next_token_and_a_check_the_first() {
        let mut issuer = Issuer::new().expect("keys");
        let client = client(
            "tokens = { kind = 'EdDSA', count = 3 }\nheaders = { authorization = 'Bearer {token}' }",
        );
        let credentials = Credentials::new(&client, &mut issuer).expect("tokens");
        let first = credentials.first(&client).headers["authorization"].clone();
        assert_eq!(first, format!("Bearer {}", credentials.tokens[0]));
        let seen = std::cell::RefCell::new(Vec::new());
        let render = |client: &Client| {
            seen.borrow_mut()
                .push(client.headers["authorization"].clone());
            Ok(crate::host::ready::get("/"))
        };
        let requests = credentials.requests(&client, render);
        assert!(requests.is_ok());
        let expected = credentials
            .tokens
            .iter()
            .map(|token| format!("Bearer {token}"));
        assert_eq!(*seen.borrow(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn what_a_program_prints_before_its_start_fills_the_headers_and_its_refusal_is_told() {
        let dir = tempfile::tempdir().expect("a directory");
        let client = client("headers = { authorization = 'Bearer {prepared.key}' }");
        let launch = |script: &str| Launch {
            args: Vec::new(),
            prepare: vec!["-c".into(), script.into()],
            env: std::collections::BTreeMap::new(),
            client: client.clone(),
        };
        let prepare = |script: &str| {
            let mut credentials = Credentials::default();
            credentials.prepare("/bin/sh".as_ref(), dir.path(), &launch(script))
        };
        let filled = prepare(r#"echo '{"id":"1","key":"tg-secret"}'"#).expect("a client");
        assert_eq!(filled.headers["authorization"], "Bearer tg-secret");
        let says = prepare("echo no file >&2; exit 3").expect_err("a refusal");
        assert!(
            says.contains("could not be prepared") && says.ends_with("no file"),
            "{says}"
        );
        let says = prepare("echo tg-secret").expect_err("no JSON");
        assert!(says.contains("no JSON object"), "{says}");
    }
}
