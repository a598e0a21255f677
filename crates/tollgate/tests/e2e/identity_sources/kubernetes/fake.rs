//! A fake API server: it knows some tokens and some rights, and can be made ill.
//!
//! Invariant: who does not bring the gate's own token is answered 401, as a real one does.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::answer::json as answer;
use crate::harness::{Seen, Step, Upstream};

/// What it does with a review.
#[derive(Clone, Copy)]
pub(super) enum Does {
    Answers,
    Says(u16),
    /// Answers after so long.
    Waits(Duration),
    Garbage,
    Huge,
    Closes,
}

pub(super) struct State {
    /// The gate's own token.
    pub(super) own: &'static str,
    pub(super) does: Does,
    /// Users and audiences by token.
    tokens: HashMap<String, (Value, String)>,
    /// `user verb what`.
    rights: HashSet<String>,
}

pub(super) struct Api {
    pub(super) server: Upstream,
    state: Arc<Mutex<State>>,
}

impl Api {
    /// It knows the token `web`, for the audience `gate`, of `system:serviceaccount:chat:web`.
    pub(super) fn start() -> Self {
        let state = Arc::new(Mutex::new(State {
            own: "own-1",
            does: Does::Answers,
            tokens: HashMap::new(),
            rights: HashSet::new(),
        }));
        let of = Arc::clone(&state);
        let server = Upstream::start(move |_, seen| of.lock().expect("a lock").steps(seen));
        let api = Self { server, state };
        api.knows("web", "system:serviceaccount:chat:web", "gate");
        api
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a lock")
    }

    pub(super) fn knows(&self, token: &str, username: &str, audience: &str) {
        let user = json!({
            "username": username, "uid": "u-1", "groups": ["system:serviceaccounts", "team-a"],
            "extra": { "authentication.kubernetes.io/pod-name": ["web-0"] },
        });
        let known = (user, audience.to_owned());
        self.state().tokens.insert(token.to_owned(), known);
    }

    pub(super) fn forgets(&self, token: &str) {
        self.state().tokens.remove(token);
    }

    /// `user verb what`: what is a path, or resource, group, namespace, subresource and name with slashes between them.
    pub(super) fn allows(&self, right: &str) {
        self.state().rights.insert(right.to_owned());
    }

    /// Reviews so far: of tokens, and of access.
    pub(super) fn asked(&self) -> (usize, usize) {
        let seen = self.server.seen();
        let of = |what: &str| seen.iter().filter(|seen| seen.head.contains(what)).count();
        (of("/tokenreviews "), of("/subjectaccessreviews "))
    }

    /// The fields that say where it is and who the gate is to it; the token is in the file `own`.
    pub(super) fn fields(&self) -> String {
        format!(
            "server: http://{}, token: {{ file: own }}",
            self.server.address
        )
    }

    /// A source of identities that asks it, with these further fields.
    pub(super) fn source(&self, more: &str) -> String {
        let fields = self.fields();
        format!("[ {{ token_review: {{ {fields}, audiences: gate, {more} }} }} ]")
    }
}

impl State {
    fn steps(&self, seen: &Seen) -> Vec<Step> {
        let good = || vec![Step::Send(answer(201, &self.reviewed(seen).to_string()))];
        if seen.header("authorization") != [format!("Bearer {}", self.own)] {
            let status = json!({ "kind": "Status", "status": "Failure", "code": 401 });
            return vec![Step::Send(answer(401, &status.to_string()))];
        }
        match self.does {
            Does::Answers => good(),
            Does::Says(status) => vec![Step::Send(answer(status, "{}"))],
            Does::Waits(time) => [vec![Step::Sleep(time)], good()].concat(),
            Does::Garbage => vec![Step::Send(answer(201, "{\"status\": 7}"))],
            Does::Huge => {
                let long = format!("{{\"status\":{{\"x\":\"{}\"}}}}", "x".repeat(1 << 20));
                vec![Step::Send(answer(201, &long))]
            }
            Does::Closes => vec![Step::Close],
        }
    }

    fn reviewed(&self, seen: &Seen) -> Value {
        let review: Value = serde_json::from_slice(&seen.body).expect("JSON");
        let spec = &review["spec"];
        let status = match review["kind"].as_str() {
            Some("TokenReview") => self.token(spec),
            Some("SubjectAccessReview") => {
                let right = right(spec);
                let is_allowed = self.rights.contains(&right);
                let reason = if is_allowed { "" } else { "no rule of RBAC" };
                json!({ "allowed": is_allowed, "reason": reason })
            }
            kind => panic!("a review of kind {kind:?}"),
        };
        json!({ "kind": review["kind"], "apiVersion": review["apiVersion"], "spec": spec, "status": status })
    }

    fn token(&self, spec: &Value) -> Value {
        let token = spec["token"].as_str().expect("a token");
        let wanted = spec["audiences"].as_array();
        let is_for = |audience: &String| wanted.is_none_or(|all| all.contains(&json!(audience)));
        match self.tokens.get(token) {
            Some((user, audience)) if is_for(audience) => {
                json!({ "authenticated": true, "user": user, "audiences": [audience] })
            }
            // A wrong audience is told so, too: without `authenticated`.
            _ => json!({ "user": {}, "error": "[invalid bearer token, unknown]" }),
        }
    }
}

fn right(spec: &Value) -> String {
    let user = spec["user"].as_str().expect("a user");
    let path = &spec["nonResourceAttributes"];
    let of = |member: &str| {
        spec["resourceAttributes"][member]
            .as_str()
            .unwrap_or_default()
    };
    match path["path"].as_str() {
        Some(path_text) => format!(
            "{user} {} {path_text}",
            path["verb"].as_str().expect("a verb")
        ),
        None => format!(
            "{user} {} {}/{}/{}/{}/{}",
            of("verb"),
            of("resource"),
            of("group"),
            of("namespace"),
            of("subresource"),
            of("name")
        ),
    }
}
