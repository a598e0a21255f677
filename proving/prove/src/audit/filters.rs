//! `prove audit filters`: attempts to use tools, prompts and resources that a filter or a rule hides, made up by the hundred thousand.
//!
//! Each is a method, a form of a name, a version, a route and a session, one's own or another's. Behind the gate stands a witness that
//! takes a name in every spelling, and tells which uses came through to it.
//! Invariant: before anything is attempted each kind of use is seen to come through for whom it is shown, so that a gate which
//! refuses everything passes no audit.
//! Not here: what is attempted (`attempt`), what is seen behind the gate (`witness`).

mod attempt;
mod witness;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use experiment::random::Rng;
use load::client::ask;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::crowd::{Crowd, watch};
use super::gate::Gate;
use super::verdict::{Found, Verdict};
use super::{AuditError, Common};
use attempt::{Attempt, CALLERS, Sessions, TOKEN_IN};
use witness::{MARKER, Witness};

const ANSWER: Duration = Duration::from_secs(10);
/// A stream of changes that is open for so long stays open.
const OPEN: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(60);
/// Among so many attempts some come to a server with a token.
const TOKENS_AMONG: u64 = 10_000;
const ANSWER_BYTES_MAX: usize = 1 << 20;
const SECRET: &str = "5f0c1f4e6b7a88990011223344556677aabbccddeeff00112233445566778899";

/// Attempts to use what filters hide, and looks whether one comes through.
#[derive(Debug, Args)]
pub(super) struct Filters {
    /// Attempts.
    #[arg(long, default_value_t = 100_000)]
    attempts: u64,
    #[command(flatten)]
    common: Common,
}

/// What became of attempts.
#[derive(Default)]
struct Told {
    answers: BTreeMap<String, u64>,
    shown: Found,
    unanswered: Found,
}

/// Holds the audit; whether nothing that is hidden was used or shown.
pub(super) fn filters(options: &Filters) -> Result<bool, AuditError> {
    let common = &options.common;
    let (program, home, seed) = (common.program()?, common.home()?, common.seed());
    let witness = Witness::start()?;
    let mut gate = Gate::new(program, home.path(), false, &config(witness.address))?;
    gate.start()?;
    let began = Instant::now();
    let runtime = crate::runtime::make()?;
    let sessions = runtime.block_on(Sessions::begin(gate.data()));
    let sessions = Arc::new(sessions.map_err(AuditError::Gate)?);
    let passed = runtime.block_on(controls(gate.data(), &sessions));
    let shown = witness.take();
    let done = Arc::new(AtomicU64::new(0));
    let next = Arc::new(AtomicU64::new(0));
    let (most, address) = (options.attempts, gate.data());
    let (theirs, counted, taken) = (Arc::clone(&sessions), Arc::clone(&done), Arc::clone(&next));
    let crowd = Crowd::start(common.users, move || {
        let all = Rc::new((theirs, counted, taken));
        move |_| {
            let all = Rc::clone(&all);
            async move {
                let (sessions, done, next) = &*all;
                let mut told = Told::default();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= most {
                        return vec![told];
                    }
                    let mut rng = Rng::stream(seed, &[number]);
                    let attempt = Attempt::draw(&mut rng, sessions);
                    told.hear(number, &attempt, send(address, &attempt).await);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    })?;
    watch(
        PATIENCE,
        "attempts",
        || done.load(Ordering::Relaxed),
        |now| now >= most,
    )?;
    let all = crowd.join()?;
    let came = witness.take();
    // The gate serves as before.
    let still = runtime.block_on(controls(gate.data(), &sessions));
    gate.stop()?;

    let mut verdict = Verdict::new("filters", seed, common.times);
    verdict.tell("seconds", began.elapsed().as_secs_f64().round());
    verdict.hold(
        "uses that came through for whom they are shown",
        passed.0,
        passed.1.count == 0,
    );
    verdict.none("uses of what is shown that did not come through", &passed.1);
    verdict.hold(
        "of these, what is hidden from others",
        shown.hidden.count,
        shown.hidden.count > 0,
    );
    verdict.none(
        "uses of what is shown that did not come through afterwards",
        &still.1,
    );
    let attempts = done.load(Ordering::Relaxed);
    verdict.hold("attempts", attempts, attempts == options.attempts);
    let mut sum = Told::default();
    for one in &all {
        sum.shown.absorb(&one.shown);
        sum.unanswered.absorb(&one.unanswered);
        for (answer, count) in &one.answers {
            *sum.answers.entry(answer.clone()).or_default() += count;
        }
    }
    for (answer, count) in &sum.answers {
        verdict.tell(&format!("answered {answer}"), *count);
    }
    verdict.tell("messages that came to a server", came.messages);
    verdict.none("uses of what is hidden that came through", &came.hidden);
    verdict.hold(
        "messages with the token that their caller brought",
        came.tokens,
        came.tokens > 0 || options.attempts < TOKENS_AMONG,
    );
    verdict.none("credentials that had no business there", &came.strange);
    verdict.none(
        "credentials that had no business there before",
        &shown.strange,
    );
    verdict.none("answers that show what is hidden", &sum.shown);
    verdict.none("attempts without an answer", &sum.unanswered);
    Ok(verdict.print(common.json))
}

impl Told {
    fn hear(&mut self, number: u64, attempt: &Attempt, answer: Option<(u16, Vec<u8>)>) {
        let Some((status, body)) = answer else {
            self.unanswered
                .add(|| format!("{number}: {}", attempt.says));
            return;
        };
        let text = String::from_utf8_lossy(&body);
        let kind = if text.contains("\"error\"") {
            "with an error"
        } else {
            "without"
        };
        let answer = match status {
            0 => "a stream that stays open".to_owned(),
            status => format!("{status} {kind}"),
        };
        *self.answers.entry(answer).or_default() += 1;
        let is_shown = text.contains(MARKER) || attempt.is_list && text.contains("secret");
        if is_shown {
            self.shown
                .add(|| format!("{number}: {}: {text}", attempt.says));
        }
    }
}

/// How many uses of what is shown came through, and which did not.
async fn controls(gate: SocketAddr, sessions: &Sessions) -> (u64, Found) {
    let (mut passed, mut failed) = (0, Found::default());
    for attempt in attempt::controls(sessions) {
        let answer = send(gate, &attempt).await;
        let text =
            answer.map(|(status, body)| (status, String::from_utf8_lossy(&body).into_owned()));
        match text {
            Some((200, text)) if text.contains("\"result\"") => passed += 1,
            told => failed.add(|| format!("{}: {told:?}", attempt.says)),
        }
    }
    (passed, failed)
}

/// Status and body of the answer; `None` where there is none in time. Of a stream that stays open it is known that it did.
async fn send(gate: SocketAddr, attempt: &Attempt) -> Option<(u16, Vec<u8>)> {
    let asked = async {
        let stream = TcpStream::connect(gate).await.ok()?;
        let (fetched, _) = ask(stream, &attempt.bytes, ANSWER_BYTES_MAX).await.ok()?;
        Some((fetched.status, fetched.body))
    };
    let patience = if attempt.listens { OPEN } else { ANSWER };
    match timeout(patience, asked).await {
        Err(_) if attempt.listens => Some((0, Vec::new())),
        answer => answer.ok().flatten(),
    }
}

/// Three ways to hide: by the server, by the route, by a rule; a route from which nothing is hidden; and two that hide by the route, whose callers
/// find tools by words, or bring a token.
fn config(witness: SocketAddr) -> String {
    let [shown, few, ruled, searched, owner] = CALLERS;
    let hides = "servers: [both, old]\n      tools: { allow: [both__open, old__open] }\n\
         \x20     prompts: { allow: [both__open, old__open] }\n\
         \x20     resources: { allow: [\"both+file:///open\", \"both+memo://{topic}\", \"old+file:///open\"] }\n";
    format!(
        "backends: {{ none: {{ url: \"http://{witness}/v1\" }} }}\n\
         routes: [ {{ workload: models, backend: none }} ]\n\
         mcp:\n  secret: {{ inline: {SECRET} }}\n  servers:\n\
         \x20   all: {{ url: \"http://{witness}/all/mcp\" }}\n\
         \x20   old:\n      url: \"http://{witness}/old/mcp\"\n      tools: {{ deny: secret }}\n      prompts: {{ deny: secret }}\n\
         \x20     resources: {{ deny: [\"file:///etc/*\", \"db://{{table}}\"] }}\n\
         \x20   both: {{ url: \"http://{witness}/both/mcp\" }}\n\
         \x20   new: {{ url: \"http://{witness}/new/mcp\" }}\n\
         \x20 routes:\n\
         \x20   - {{ workload: {shown}, servers: [all, old] }}\n\
         \x20   - workload: {few}\n      {hides}\
         \x20   - workload: {searched}\n      list_tools: search\n      {hides}\
         \x20   - workload: {owner}\n      own_tokens: {{ both: {TOKEN_IN} }}\n      {hides}\
         \x20   - {{ workload: {ruled}, servers: new }}\n\
         authority:\n  rules:\n  - name: hidden\n    deny: >-\n\
         \x20     workload == '{ruled}' && (path.endsWith('__secret') || path.contains('/etc/') || path.contains('db:'))\n\
         \x20 - {{ name: rest, allow: \"true\" }}\n"
    )
}
