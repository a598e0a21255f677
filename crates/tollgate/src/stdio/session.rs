//! One session with a command: its process, and who waits for what it says.
//!
//! A line of the process is a message. An answer goes to whoever asked; progress to the call whose token it names; what else the process
//! says goes to the client's standing stream, or where there is none to the call that came last.
//! Invariant: what is kept of a process that says much is bounded, but an answer finds room; one that says a line without end is ended.
//! A message to it is one line, whoever leaves.
//! Not here: requests of HTTP (`bridge`), which ids a client sees (`mcp`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::Duration;

use config::Program;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// Longest line of a process.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Messages that wait for one reader.
const WAITING_MAX: usize = 256;
/// Longest part of a line of its errors that is logged.
const ERROR_CHARS_MAX: usize = 500;
/// How long a process may take to end by itself once its input has ended.
const END_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a process may take to take a message.
const TAKE_WITHIN: Duration = Duration::from_secs(30);
/// Variables that every program has.
const INHERITED: [&str; 7] = [
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "LOGNAME",
];

/// A session.
pub(super) struct Session {
    /// For whom it is.
    pub(super) caller: Box<str>,
    input: tokio::sync::Mutex<Option<pipe::Sender>>,
    calls: RefCell<Calls>,
    standing: RefCell<Option<Sender<String>>>,
    /// When it was last used.
    pub(super) used: Cell<Instant>,
    /// The process has ended, or is to.
    over: tokio::sync::Notify,
    is_over: Cell<bool>,
    /// The gate ends it.
    is_ended: Cell<bool>,
    /// The last line of its errors.
    complaint: RefCell<String>,
}

/// Calls that are open.
#[derive(Default)]
struct Calls {
    /// By id, as written: the token of their progress, and who waits.
    open: HashMap<String, (Option<String>, Sender<String>)>,
    /// The id of the one that came last.
    last: Option<String>,
}

/// What is looked at of a message.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    pub(super) method: Option<String>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
}

/// Where a message names the token of its progress.
#[derive(Debug, Deserialize)]
struct Params<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Debug, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

impl Envelope<'_> {
    /// The token in its params: of progress that it tells, or that it asks for.
    fn token(&self) -> Option<String> {
        let params: Params<'_> = serde_json::from_str(self.params?.get()).ok()?;
        let token = params.token.or(params.meta.and_then(|meta| meta.token))?;
        Some(token.get().to_owned())
    }
}

impl Session {
    /// Starts the process.
    pub(super) fn begin(
        server: &str,
        program: &Program,
        caller: Box<str>,
    ) -> std::io::Result<Rc<Self>> {
        let mut command = Command::new(&program.command);
        command
            .args(&program.args)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A signal that ends the gate is not for it: it ends with its input.
            .process_group(0);
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for (name, value) in &program.environment {
            command.env(name, String::from_utf8_lossy(value.expose()).as_ref());
        }
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn()?;
        let said = |of: Option<OwnedFd>| of.map(pipe::Receiver::from_owned_fd).transpose();
        let input = child.stdin.take().map(OwnedFd::from);
        let input = input.map(pipe::Sender::from_owned_fd).transpose()?;
        let output = said(child.stdout.take().map(OwnedFd::from))?;
        let errors = said(child.stderr.take().map(OwnedFd::from))?;
        let session = Rc::new(Self {
            caller,
            input: tokio::sync::Mutex::new(input),
            calls: RefCell::default(),
            standing: RefCell::default(),
            used: Cell::new(Instant::now()),
            over: tokio::sync::Notify::new(),
            is_over: Cell::new(false),
            is_ended: Cell::new(false),
            complaint: RefCell::default(),
        });
        let complains = errors.map(|errors| {
            let complaint = logged(Rc::clone(&session), server.to_owned(), errors);
            tokio::task::spawn_local(complaint)
        });
        if let Some(output) = output {
            tokio::task::spawn_local(run(
                Rc::clone(&session),
                server.to_owned(),
                (child, complains),
                output,
            ));
        }
        Ok(session)
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Nobody uses it any more.
    pub(super) fn end(&self) {
        self.is_ended.set(true);
        self.over.notify_one();
    }

    /// Whether somebody waits for something.
    pub(super) fn is_busy(&self) -> bool {
        let is_heard = |to: &Sender<String>| !to.is_closed();
        let standing = self.standing.borrow();
        // A call that is cancelled is never answered: who left it waits for nothing.
        let calls = self.calls.borrow();
        standing.as_ref().is_some_and(is_heard) || calls.open.values().any(|(_, to)| is_heard(to))
    }

    /// A call and what is said of it; none where another one with its id is open.
    pub(super) fn call(&self, envelope: &Envelope<'_>) -> Option<Receiver<String>> {
        let id = envelope.id?.get().to_owned();
        let mut calls = self.calls.borrow_mut();
        calls.open.retain(|_, (_, to)| !to.is_closed());
        if calls.open.contains_key(&id) {
            return None;
        }
        let (to, from) = channel(WAITING_MAX);
        calls.open.insert(id.clone(), (envelope.token(), to));
        calls.last = Some(id);
        Some(from)
    }

    /// What the process says outside calls, from now on; none where somebody listens already.
    pub(super) fn listen(&self) -> Option<Receiver<String>> {
        let mut standing = self.standing.borrow_mut();
        if standing.as_ref().is_some_and(|to| !to.is_closed()) {
            return None;
        }
        let (to, from) = channel(WAITING_MAX);
        *standing = Some(to);
        Some(from)
    }

    /// Sends a message; false where the process takes none. One that has begun is sent whole, also where its client leaves meanwhile:
    /// the next one begins a line.
    pub(super) async fn send(self: &Rc<Self>, message: &str) -> bool {
        self.used.set(Instant::now());
        // In JSON no line ends within a text.
        let mut line = message.replace(['\n', '\r'], " ");
        line.push('\n');
        let session = Rc::clone(self);
        let sending = tokio::task::spawn_local(async move { session.write(line).await });
        sending.await.unwrap_or(false)
    }

    async fn write(&self, line: String) -> bool {
        let mut input = self.input.lock().await;
        let Some(to) = input.as_mut() else {
            return false;
        };
        let taking = async {
            to.write_all(line.as_bytes()).await?;
            to.flush().await
        };
        let is_taken = matches!(timeout(TAKE_WITHIN, taking).await, Ok(Ok(())));
        if !is_taken {
            // Half of a message may be in it.
            *input = None;
            self.end();
        }
        is_taken
    }

    /// The process said this.
    fn said(&self, line: String) {
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(&line) else {
            return;
        };
        let id = envelope.id.map(|id| id.get().to_owned());
        let mut calls = self.calls.borrow_mut();
        if envelope.method.is_none() {
            if let Some((_, to)) = id.and_then(|id| calls.open.remove(&id)) {
                let _left = to.try_send(line);
            }
            return;
        }
        let is_progress = envelope.method.as_deref() == Some("notifications/progress");
        let token = envelope.token().filter(|_| is_progress);
        let by_token = token.and_then(|token| {
            let mut open = calls.open.values();
            open.find_map(|(of, to)| (of.as_deref() == Some(&*token)).then(|| to.clone()))
        });
        let standing = || self.standing.borrow().clone().filter(|to| !to.is_closed());
        let last = || {
            let last = calls.last.as_ref().and_then(|id| calls.open.get(id));
            last.or_else(|| calls.open.values().next())
                .map(|(_, to)| to.clone())
        };
        // Whoever does not read loses what it does not read, but for its answer, for which a place is kept.
        let to = by_token.or_else(standing).or_else(last);
        if let Some(to) = to.filter(|to| to.capacity() > 1) {
            let _left = to.try_send(line);
        }
    }
}

/// Hears what a process says, to its end.
async fn run(
    session: Rc<Session>,
    server: String,
    (mut child, complains): (Child, Option<JoinHandle<()>>),
    output: impl AsyncRead + Unpin,
) {
    let mut reader = BufReader::new(output);
    loop {
        let line = tokio::select! {
            line = line(&mut reader) => line,
            () = session.over.notified() => None,
        };
        match line {
            Some(line) => session.said(line),
            None => break,
        }
    }
    session.is_over.set(true);
    // Who hears below that nothing comes ends it, too.
    let is_ended = session.is_ended.get();
    // Whoever waits for it hears that nothing comes.
    *session.calls.borrow_mut() = Calls::default();
    *session.standing.borrow_mut() = None;
    if let Ok(mut input) = session.input.try_lock() {
        *input = None;
    }
    // Not awaited as tokio has it: with that every worker would look for ended processes at each turn. It is looked at and left as it is, so
    // that its number is nobody else's until its group is ended.
    let group = Pid::from_raw(child.id().cast_signed());
    let began = Instant::now();
    while !group.is_none_or(has_ended) && began.elapsed() < END_WITHIN {
        sleep(LOOK_EVERY).await;
    }
    // What it started ends with it, also where it ended by itself.
    if let Some(group) = group {
        let _gone = kill_process_group(group, Signal::KILL);
        // It may have left its group.
        let _gone = kill_process(group, Signal::KILL);
    }
    let status = ended(&mut child).await;
    // What it said last may not be read yet; who left its group may hold the other end.
    if let Some(complains) = complains {
        let _late = timeout(END_WITHIN, complains).await;
    }
    let status = status.map_or_else(String::new, |status| status.to_string());
    if is_ended {
        tracing::debug!(server, status, "a server of tools has ended");
    } else {
        let says = session.complaint.take();
        tracing::warn!(
            server,
            status,
            says,
            "the process of a server of tools ended by itself"
        );
    }
}

/// How a process that was killed ended. One that does not die (its disk is gone) is waited for, and holds up nobody else's.
async fn ended(child: &mut Child) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(None) => sleep(LOOK_EVERY).await,
            Ok(Some(status)) => return Some(status),
            Err(_) => return None,
        }
    }
}

/// Whether a process of ours has ended; it stays to be waited for.
fn has_ended(pid: Pid) -> bool {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), how), Ok(None))
}

/// The next line; none where there is none, or it is too long.
async fn line(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    loop {
        let some = reader.fill_buf().await.ok()?;
        if some.is_empty() {
            return None;
        }
        let end = some.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(some.len(), |end| end + 1);
        line.extend_from_slice(some.get(..taken)?);
        reader.consume(taken);
        if line.len() > LINE_BYTES_MAX {
            return None;
        }
        if end.is_some() {
            return Some(String::from_utf8_lossy(&line).trim().to_owned());
        }
    }
}

/// Logs what a process says to people.
async fn logged(session: Rc<Session>, server: String, errors: impl AsyncRead + Unpin) {
    let mut reader = BufReader::new(errors);
    while let Some(line) = line(&mut reader).await {
        let shown: String = line.chars().take(ERROR_CHARS_MAX).collect();
        tracing::debug!(server, says = shown, "a server of tools says");
        if !shown.is_empty() {
            session.complaint.replace(shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::task::LocalSet;

    use super::*;

    fn session(input: Option<pipe::Sender>) -> Rc<Session> {
        Rc::new(Session {
            caller: "".into(),
            input: tokio::sync::Mutex::new(input),
            calls: RefCell::default(),
            standing: RefCell::default(),
            used: Cell::new(Instant::now()),
            over: tokio::sync::Notify::new(),
            is_over: Cell::new(false),
            is_ended: Cell::new(false),
            complaint: RefCell::default(),
        })
    }

    #[tokio::test]
    async fn an_answer_is_heard_behind_any_number_of_notifications() {
        let session = session(None);
        let asks = r#"{"id":1,"method":"tools/call","params":{"_meta":{"progressToken":"t"}}}"#;
        let asks: Envelope<'_> = serde_json::from_str(asks).expect("a message");
        let mut said = session.call(&asks).expect("its id is free");
        for _ in 0..1000 {
            let progress = r#"{"method":"notifications/progress","params":{"progressToken":"t"}}"#;
            session.said(progress.to_owned());
        }
        session.said(r#"{"id":1,"result":{}}"#.to_owned());
        let mut last = String::new();
        let mut heard = 0;
        while let Some(line) = said.recv().await {
            (last, heard) = (line, heard + 1);
        }
        assert_eq!((&*last, heard), (r#"{"id":1,"result":{}}"#, WAITING_MAX));
    }

    #[tokio::test]
    async fn a_message_whose_client_leaves_is_written_whole() {
        let (to, from) = pipe::pipe().expect("a pipe");
        let session = session(Some(to));
        let sends = async {
            let long = format!("{{\"id\":1,\"long\":\"{}\"}}", "x".repeat(1 << 20));
            {
                let mut sending = std::pin::pin!(session.send(&long));
                // The pipe is full, and its client does not wait for that.
                let waits = poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx).is_pending()));
                assert!(waits.await);
            }
            let mut reader = BufReader::new(from);
            let second = Rc::clone(&session);
            let second = tokio::task::spawn_local(async move { second.send("{\"id\":2}").await });
            let first = line(&mut reader).await.expect("a line");
            assert!(first == long, "{}", first.len());
            assert_eq!(line(&mut reader).await.as_deref(), Some("{\"id\":2}"));
            assert!(second.await.expect("it was sent") && !session.is_over());
        };
        LocalSet::new().run_until(sends).await;
    }
}
