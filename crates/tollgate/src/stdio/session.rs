//! One session with a command: its process, and who waits for what it says.
//!
//! A line of the process is a message. An answer goes to whoever asked; progress to the call whose token it names; what else the process
//! says goes to the client's standing stream, or where there is none to the call that came last.
//! Invariant: what is kept of a process that says much is bounded, but an answer finds room; one that says a longer line than may be is ended.
//! A message to it is one line, whoever leaves once it has begun; whoever leaves before leaves nothing.
//! Not here: requests of HTTP (`bridge`), how many sessions there are (`sessions`), how a process starts and ends (`process`), which ids a
//! client sees (`mcp`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::Program;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::OwnedMutexGuard;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::process::{END_WITHIN, Ended, Process};
use super::sessions::Waiting;
use super::share::{Held, Share};

/// Longest line of a process.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Messages that wait for one reader.
const WAITING_MAX: usize = 256;
/// Longest part of a line of its errors that is logged.
const ERROR_CHARS_MAX: usize = 500;
/// The same in bytes, as it is read.
const ERROR_BYTES_MAX: usize = 4 * ERROR_CHARS_MAX;
/// How long a process may take to take a message.
const TAKE_WITHIN: Duration = Duration::from_secs(30);
/// Most bytes of messages to one process that it has not taken yet.
const WAITING_BYTES_MAX: usize = 16 << 20;
/// Most bytes that one process has said and nobody has taken yet, but for answers.
const UNREAD_BYTES_MAX: usize = 16 << 20;

/// A message to a process: a line, and what is held for it.
pub(super) struct Message {
    line: String,
    held: Option<Waiting>,
}

impl Message {
    /// None where it is no text.
    pub(super) fn new(mut bytes: Vec<u8>, held: Option<Waiting>) -> Option<Self> {
        // In JSON no line ends within a text.
        for byte in &mut bytes {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        bytes.push(b'\n');
        let line = String::from_utf8(bytes).ok()?;
        Some(Self { line, held })
    }

    /// What it says.
    pub(super) fn read(&self) -> Option<Envelope<'_>> {
        serde_json::from_str(&self.line).ok()
    }
}

/// What a process said, and what is held for it until it is taken.
pub(super) struct Line {
    pub(super) text: String,
    _held: Option<(Held, Held)>,
}

/// Why a process is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Its client has left, or no configuration has it.
    Left,
    /// It takes no message.
    Deaf,
    /// It says a longer line than may be.
    Endless,
    /// It says nothing more.
    Itself,
}

/// A session.
pub(super) struct Session {
    /// For whom it is.
    pub(super) caller: Rc<str>,
    input: Arc<tokio::sync::Mutex<Option<pipe::Sender>>>,
    calls: RefCell<Calls>,
    standing: RefCell<Option<Sender<Line>>>,
    /// Bytes that its process has not taken yet.
    pub(super) waiting: Rc<Share>,
    /// Bytes that its clients have not taken yet; and those of all commands.
    unread: (Rc<Share>, Rc<Share>),
    /// When it was last used.
    pub(super) used: Cell<Instant>,
    /// The process has ended, or is to.
    over: tokio::sync::Notify,
    /// Why, which is said once.
    cause: Cell<Option<Cause>>,
    /// The last line of its errors.
    complaint: RefCell<String>,
}

/// Calls that are open.
#[derive(Default)]
struct Calls {
    /// By id, as written: the token of their progress, and who waits.
    open: HashMap<String, (Option<String>, Sender<Line>)>,
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
    /// Starts the process, which has that place until it has ended.
    pub(super) fn begin(
        server: &str,
        program: &Program,
        caller: Rc<str>,
        (place, unread): (Option<Held>, Rc<Share>),
    ) -> std::io::Result<Rc<Self>> {
        let (process, pipes) = Process::start(program, place)?;
        let session = Rc::new(Self::new(caller, Some(pipes.input), unread));
        let complains = logged(Rc::clone(&session), server.to_owned(), pipes.errors);
        let complains = tokio::task::spawn_local(complains);
        tokio::task::spawn_local(run(
            Rc::clone(&session),
            server.to_owned(),
            (process, complains),
            pipes.output,
        ));
        Ok(session)
    }

    fn new(caller: Rc<str>, input: Option<pipe::Sender>, unread: Rc<Share>) -> Self {
        let own = |bytes| Share::new(bytes, bytes);
        Self {
            caller,
            input: Arc::new(tokio::sync::Mutex::new(input)),
            calls: RefCell::default(),
            standing: RefCell::default(),
            waiting: own(WAITING_BYTES_MAX),
            unread: (own(UNREAD_BYTES_MAX), unread),
            used: Cell::new(Instant::now()),
            over: tokio::sync::Notify::new(),
            cause: Cell::new(None),
            complaint: RefCell::default(),
        }
    }

    /// Whether it has ended, or is to.
    pub(super) fn is_ending(&self) -> bool {
        self.cause.get().is_some()
    }

    /// Nobody uses it any more.
    pub(super) fn end(&self) {
        self.end_for(Cause::Left);
    }

    fn end_for(&self, cause: Cause) {
        // Who hears that nothing comes ends it, too.
        self.cause.set(self.cause.get().or(Some(cause)));
        self.over.notify_one();
    }

    /// The last line of its errors.
    pub(super) fn complaint(&self) -> String {
        self.complaint.borrow().clone()
    }

    /// Whether somebody waits for something.
    pub(super) fn is_busy(&self) -> bool {
        let is_heard = |to: &Sender<Line>| !to.is_closed();
        let standing = self.standing.borrow();
        // A call that is cancelled is never answered: who left it waits for nothing.
        let calls = self.calls.borrow();
        standing.as_ref().is_some_and(is_heard) || calls.open.values().any(|(_, to)| is_heard(to))
    }

    /// A call and what is said of it; none where another one with its id is open.
    pub(super) fn call(&self, envelope: &Envelope<'_>) -> Option<Receiver<Line>> {
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
    pub(super) fn listen(&self) -> Option<Receiver<Line>> {
        let mut standing = self.standing.borrow_mut();
        if standing.as_ref().is_some_and(|to| !to.is_closed()) {
            return None;
        }
        let (to, from) = channel(WAITING_MAX);
        *standing = Some(to);
        Some(from)
    }

    /// Sends a message; false where the process takes none. One that has begun is sent whole, also where its client leaves meanwhile:
    /// the next one begins a line. Of one that waits nothing is left then.
    pub(super) async fn send(self: &Rc<Self>, message: Message) -> bool {
        self.used.set(Instant::now());
        let input = Arc::clone(&self.input).lock_owned().await;
        let session = Rc::clone(self);
        let sending = tokio::task::spawn_local(async move { session.write(input, message).await });
        sending.await.unwrap_or(false)
    }

    async fn write(
        &self,
        mut input: OwnedMutexGuard<Option<pipe::Sender>>,
        message: Message,
    ) -> bool {
        let Some(to) = input.as_mut() else {
            return false;
        };
        let taking = async {
            to.write_all(message.line.as_bytes()).await?;
            to.flush().await
        };
        let is_taken = matches!(timeout(TAKE_WITHIN, taking).await, Ok(Ok(())));
        drop(message.held);
        if !is_taken {
            // Half of a message may be in it.
            *input = None;
            self.end_for(Cause::Deaf);
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
                let _left = to.try_send(Line::of(line, None));
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
        if let Some(to) = to.filter(|to| to.capacity() > 1)
            && let Some(held) = self.unread(line.len())
        {
            let _left = to.try_send(Line::of(line, Some(held)));
        }
    }

    /// Whoever waits for an answer may wait for the line that was too long.
    fn tell_too_long(&self) {
        for (id, (_, to)) in &self.calls.borrow().open {
            let says = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"the server said a line of more than {LINE_BYTES_MAX} bytes, and was ended"}}}}"#
            );
            let _left = to.try_send(Line::of(says, None));
        }
    }

    /// Room for what nobody has taken yet; none where there is too much of it.
    fn unread(&self, bytes: usize) -> Option<(Held, Held)> {
        let own = self.unread.0.take(&self.caller, bytes).ok()?;
        let of_all = self.unread.1.take(&self.caller, bytes).ok()?;
        Some((own, of_all))
    }
}

impl Line {
    const fn of(text: String, held: Option<(Held, Held)>) -> Self {
        Self { text, _held: held }
    }
}

/// Hears what a process says, to its end.
async fn run(
    session: Rc<Session>,
    server: String,
    (process, complains): (Process, JoinHandle<()>),
    output: impl AsyncRead + Unpin,
) {
    let mut reader = BufReader::new(output);
    loop {
        tokio::select! {
            said = line(&mut reader) => match said {
                Ok(said) => session.said(said),
                Err(cause) => {
                    session.end_for(cause);
                    break;
                }
            },
            () = session.over.notified() => break,
        }
    }
    if session.cause.get() == Some(Cause::Endless) {
        session.tell_too_long();
    }
    // Whoever waits for it hears that nothing comes.
    *session.calls.borrow_mut() = Calls::default();
    *session.standing.borrow_mut() = None;
    if let Ok(mut input) = session.input.try_lock() {
        *input = None;
    }
    let ended = process.end(server.clone()).await;
    // What it said last may not be read yet; who left its group may hold the other end.
    let _late = timeout(END_WITHIN, complains).await;
    told(&session, &server, &ended);
}

/// Tells of the end of a process, and of what it said last where nobody wanted that.
fn told(session: &Session, server: &str, ended: &Ended) {
    let status = ended.status.map(|status| status.to_string());
    let status = status.unwrap_or_default();
    let says = session.complaint();
    match session.cause.get() {
        Some(Cause::Left) => tracing::debug!(server, status, "a server of tools has ended"),
        Some(Cause::Endless) => tracing::warn!(
            server,
            status,
            says,
            LINE_BYTES_MAX,
            "a server of tools said a longer line than may be, and its process was ended"
        ),
        Some(Cause::Deaf) if !ended.is_by_itself => tracing::warn!(
            server,
            status,
            says,
            "a server of tools took no message, and its process was ended"
        ),
        Some(Cause::Deaf | Cause::Itself) | None => tracing::warn!(
            server,
            status,
            says,
            "the process of a server of tools ended by itself"
        ),
    }
}

/// The next line; where there is none, why.
async fn line(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Result<String, Cause> {
    let mut line = Vec::new();
    loop {
        let some = reader.fill_buf().await.map_err(|_| Cause::Itself)?;
        if some.is_empty() {
            return Err(Cause::Itself);
        }
        let end = some.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(some.len(), |end| end + 1);
        line.extend_from_slice(some.get(..taken).unwrap_or(some));
        reader.consume(taken);
        if line.len() > LINE_BYTES_MAX {
            return Err(Cause::Endless);
        }
        if end.is_some() {
            return Ok(String::from_utf8_lossy(&line).trim().to_owned());
        }
    }
}

/// Logs what a process says to people.
async fn logged(session: Rc<Session>, server: String, errors: impl AsyncRead + Unpin) {
    let mut reader = BufReader::new(errors);
    while let Some(line) = error(&mut reader).await {
        let shown: String = line.chars().take(ERROR_CHARS_MAX).collect();
        tracing::debug!(server, says = shown, "a server of tools says");
        if !shown.is_empty() {
            session.complaint.replace(shown);
        }
    }
}

/// The next line of its errors, of a long one how it begins; the last one may have no end.
async fn error(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    loop {
        let some = reader.fill_buf().await.ok()?;
        let end = some.iter().position(|byte| *byte == b'\n');
        let (is_last, taken) = (some.is_empty(), end.map_or(some.len(), |end| end + 1));
        let kept = taken.min(ERROR_BYTES_MAX.saturating_sub(line.len()));
        line.extend_from_slice(some.get(..kept).unwrap_or(some));
        reader.consume(taken);
        if end.is_some() || is_last && !line.is_empty() {
            return Some(String::from_utf8_lossy(&line).trim().to_owned());
        }
        if is_last {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::task::LocalSet;

    use super::*;
    use crate::stdio::share::Full;

    fn session(input: Option<pipe::Sender>) -> Rc<Session> {
        let unread = Share::new(usize::MAX, usize::MAX);
        Rc::new(Session::new("".into(), input, unread))
    }

    fn message(text: &str) -> Message {
        Message::new(text.into(), None).expect("a text")
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
            (last, heard) = (line.text, heard + 1);
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
                let mut sending = std::pin::pin!(session.send(message(&long)));
                // The pipe is full, and its client does not wait for that.
                let waits = poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx).is_pending()));
                assert!(waits.await);
            }
            let mut reader = BufReader::new(from);
            let second = Rc::clone(&session);
            let second =
                tokio::task::spawn_local(async move { second.send(message("{\"id\":2}")).await });
            let first = line(&mut reader).await.expect("a line");
            assert!(first == long, "{}", first.len());
            let next = line(&mut reader).await;
            assert_eq!(next.as_deref(), Ok("{\"id\":2}"));
            assert!(second.await.expect("it was sent") && !session.is_ending());
        };
        LocalSet::new().run_until(sends).await;
    }

    #[derive(Clone, Default)]
    struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("the log").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_process_that_is_gone_at_its_first_message_is_told_of_with_what_it_said_last() {
        let (to, from) = pipe::pipe().expect("a pipe");
        drop(from);
        let session = session(Some(to));
        session.complaint.replace("no such module foo".to_owned());
        let sends = session.send(message("{\"id\":1}"));
        assert!(!LocalSet::new().run_until(sends).await);
        // As its bridge does upon that.
        session.end();
        let (log, ended) = (Log::default(), |is_by_itself| Ended {
            status: None,
            is_by_itself,
        });
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            told(&session, "dies", &ended(true));
            told(&session, "dies", &ended(false));
        });
        let text = String::from_utf8(log.0.lock().expect("the log").clone()).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        for (line, says) in lines.iter().zip(["ended by itself", "took no message"]) {
            let has = |part| line.contains(part);
            assert!(
                has("WARN") && has("no such module foo") && has(says),
                "{text}"
            );
        }
        assert_eq!(lines.len(), 2, "{text}");
    }

    #[tokio::test]
    async fn of_a_long_line_of_errors_the_beginning_is_kept_and_the_last_needs_no_end() {
        let text = format!("{}\n\nno API token", "é".repeat(1 << 20));
        let mut reader = text.as_bytes();
        let first = error(&mut reader).await.expect("a line");
        assert!(
            first.starts_with("éé") && first.len() <= ERROR_BYTES_MAX,
            "{}",
            first.len()
        );
        assert_eq!(error(&mut reader).await.as_deref(), Some(""));
        assert_eq!(error(&mut reader).await.as_deref(), Some("no API token"));
        assert_eq!(error(&mut reader).await, None);
    }

    #[tokio::test]
    async fn what_nobody_reads_is_bounded_in_bytes_and_its_answer_is_heard() {
        let session = session(None);
        let asks = message(r#"{"id":1,"method":"tools/call"}"#);
        let mut said = session
            .call(&asks.read().expect("a message"))
            .expect("its id is free");
        let long = "x".repeat(1 << 20);
        for _ in 0..100 {
            session.said(format!(
                r#"{{"method":"notifications/message","params":"{long}"}}"#
            ));
        }
        let most = session.unread.0.taken(Full::Whole, "");
        assert!(most > 14 << 20 && most <= UNREAD_BYTES_MAX, "{most}");
        session.said(r#"{"id":1,"result":{}}"#.to_owned());
        let (mut heard, mut last) = (0, String::new());
        while let Some(line) = said.recv().await {
            (heard, last) = (heard + 1, line.text.clone());
        }
        assert_eq!((heard, &*last), (16, r#"{"id":1,"result":{}}"#));
        let left = session.unread.0.taken(Full::Whole, "");
        assert_eq!(left, 0);
    }
}
