//! A small gateway for the white paper's suite that is right, or wrong in one way that has a name.
//!
//! Invariant: calls are answered one after the other, and limits go by the number of a call: no clock decides.
//! Not here: what each wrong has to be caught by (`broken`).

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What it does wrong. What it does to callers with a key, it does where a call brings `x-api-key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    Nothing,
    AdmitsThree,
    AdmitsEarly,
    NeverAdmitsAgain,
    AdmitsThirdAgain,
    /// The first that is refused goes upstream all the same.
    SendsRefusedUpstream,
    RefusesWithoutRetryAfter,
    RefusesWithoutReason,
    CountsRefusedTwice,
    /// A call of the exhausted workload goes to the frontier.
    FallsOver,
    AdmitsUnknown,
    RejectsWithoutReason,
    AdmitsAnonymous,
    ComparesBeginnings,
    Forgets(&'static str),
    /// Those of calls for the upstream of this number.
    ChangesBodies(usize),
    /// Leaves this header of a client's, which may be a credential.
    Keeps(&'static str),
    /// Takes away headers with credentials only where they are in small letters.
    ComparesLetters,
    /// Says its own key in a header of this name as well.
    RepeatsOwnKey(&'static str),
    /// Sends calls for the frontier on-prem as well.
    Mirrors,
    /// The client's credential, to callers with a key.
    SendsBase64,
    SendsHexadecimal,
    SendsPercentEncoded,
    SendsWithoutHttp,
    SendsUnfinishedHead,
    /// The upstream's key, to callers with a key.
    EchoesKey,
    HintsKey,
    ExtendsChunksByKey,
    EndsBehindWithKey,
    /// The upstream's key where the upstream fails.
    ExplainsByKey,
    HoldsBack,
    DropsDone,
    CountsTokensTwice,
    ChangesUsage,
    EndsCleanly,
    SaysDone,
    AsksAgain,
    /// What the upstream says of its failure is an answer.
    AnswersFailure,
    AnswersForDown,
    SendsElsewhereWhenDown,
    /// Calls nobody whom it did not reach once.
    StaysAway,
}

/// Numbers of the suite's upstreams.
pub(super) const ON_PREM: usize = 0;
pub(super) const FRONTIER: usize = 1;
/// What each demands.
pub(super) const KEYS: [&str; 2] = ["on-prem-api-key", "gemini-api-key"];

const LIMITED: &str = "swe-rebench-ide";
/// The calls of that workload that are admitted: two of the first six, none then, and two of those after the minute.
const ADMITTED: [usize; 4] = [0, 1, 8, 9];
const CREDENTIALS: [&str; 6] = [
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "proxy-authorization",
];

struct Gateway {
    wrong: Wrong,
    upstreams: [SocketAddr; 2],
    /// Calls of the limited workload.
    asked: usize,
    refused: u64,
    tokens: u64,
    is_away: bool,
    /// Connections whose heads are never finished.
    unfinished: Vec<TcpStream>,
}

/// Starts one before these upstreams, which ends with the process; its metrics are at `/metrics`.
pub(super) fn start(upstreams: [SocketAddr; 2], wrong: Wrong) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let mut gateway = Gateway {
        wrong,
        upstreams,
        asked: 0,
        refused: 0,
        tokens: 0,
        is_away: false,
        unfinished: Vec::new(),
    };
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // An error is a client that is gone.
            let _ = gateway.serve(&client);
        }
    });
    address
}

impl Gateway {
    fn serve(&mut self, client: &TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut from = BufReader::new(client);
        let head = Head::read(&mut from)?;
        let body = head.body(&mut from)?;
        if head.first.starts_with("GET /metrics ") {
            let (refused, tokens) = (self.refused, self.tokens);
            let page = format!("refused_total {refused}\ntokens_total {tokens}\n");
            return whole(client, 200, "text/plain", page.as_bytes());
        }
        let Some(at) = self.route(head.value("x-workload-app")) else {
            let is_mute = self.wrong == Wrong::RejectsWithoutReason;
            return refuse(client, 404, if is_mute { "" } else { "no such workload" });
        };
        let at = match self.refusal(&head) {
            Some(_) if self.wrong == Wrong::FallsOver && self.asked == 7 => FRONTIER,
            Some(number) => {
                if self.wrong == Wrong::SendsRefusedUpstream && number == 2 {
                    drop(self.ask(&head, &body, at));
                }
                return self.refuse_by_limit(client);
            }
            None => at,
        };
        self.forward(&head, &body, (client, at))
    }

    fn route(&self, workload: Option<&str>) -> Option<usize> {
        match workload {
            None => (self.wrong == Wrong::AdmitsAnonymous).then_some(ON_PREM),
            Some("unknown-guest") => (self.wrong == Wrong::AdmitsUnknown).then_some(ON_PREM),
            Some(name) if self.wrong == Wrong::Forgets(name_of(name)) => None,
            Some("toolbench-agent") => Some(FRONTIER),
            Some(name) if !name_of(name).is_empty() => Some(ON_PREM),
            Some(name) => {
                let is_like = name.starts_with("terminal-bench-ci");
                (is_like && self.wrong == Wrong::ComparesBeginnings).then_some(ON_PREM)
            }
        }
    }

    /// The number of a call of the limited workload, where it is refused.
    fn refusal(&mut self, head: &Head) -> Option<usize> {
        if head.value("x-workload-app") != Some(LIMITED) {
            return None;
        }
        let number = self.asked;
        self.asked += 1;
        let is_admitted = match self.wrong {
            Wrong::AdmitsThree if number == 2 => true,
            Wrong::AdmitsEarly if number == 7 => true,
            Wrong::AdmitsThirdAgain if number == 10 => true,
            Wrong::NeverAdmitsAgain if number > 7 => false,
            _ => ADMITTED.contains(&number),
        };
        (!is_admitted).then_some(number)
    }

    fn refuse_by_limit(&mut self, client: &TcpStream) -> io::Result<()> {
        self.refused += if self.wrong == Wrong::CountsRefusedTwice {
            2
        } else {
            1
        };
        match self.wrong {
            Wrong::RefusesWithoutRetryAfter => refuse(client, 429, "too many"),
            Wrong::RefusesWithoutReason => whole(client, 429, "text/plain\r\nretry-after: 1", b""),
            _ => whole(
                client,
                429,
                "application/json\r\nretry-after: 1",
                &error("too many"),
            ),
        }
    }

    /// Asks an upstream; gives the head of its answer, and where the rest of it comes from.
    fn ask(
        &mut self,
        head: &Head,
        body: &[u8],
        at: usize,
    ) -> io::Result<(Head, BufReader<TcpStream>)> {
        let mut upstream = TcpStream::connect(self.upstreams[at])?;
        let credential = head.value("x-api-key").unwrap_or_default();
        let mut path = head.path().to_owned();
        let mut lines = format!("authorization: Bearer {}\r\n", KEYS[at]);
        for (name, value) in head.headers.iter().filter(|(name, _)| self.passes(name)) {
            let _ = write!(lines, "{name}: {value}\r\n");
        }
        match self.wrong {
            Wrong::RepeatsOwnKey(name) => {
                let _ = write!(lines, "{name}: {}\r\n", KEYS[at]);
            }
            _ if credential.is_empty() => {}
            Wrong::SendsBase64 => {
                let bearer = STANDARD.encode(format!("Bearer {credential}"));
                let _ = write!(lines, "x-caller: {bearer}\r\n");
            }
            Wrong::SendsHexadecimal => {
                let digits: String = credential
                    .bytes()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                let _ = write!(lines, "x-caller: {digits}\r\n");
            }
            Wrong::SendsPercentEncoded => {
                let _ = write!(path, "?caller={}", credential.replace('-', "%2D"));
            }
            Wrong::SendsWithoutHttp => {
                TcpStream::connect(self.upstreams[at])?
                    .write_all(format!("SSH-2.0-{credential}\r\n").as_bytes())?;
            }
            Wrong::SendsUnfinishedHead => {
                let mut held = TcpStream::connect(self.upstreams[at])?;
                held.write_all(format!("POST / HTTP/1.1\r\nx-caller: {credential}").as_bytes())?;
                self.unfinished.push(held);
            }
            _ => {}
        }
        let length = body.len();
        let first = format!("POST {path} HTTP/1.1\r\nhost: upstream\r\nconnection: close\r\n");
        upstream.write_all(format!("{first}content-length: {length}\r\n{lines}\r\n").as_bytes())?;
        upstream.write_all(body)?;
        let mut from = BufReader::new(upstream);
        Ok((Head::read(&mut from)?, from))
    }

    /// Whether a client's header goes upstream.
    fn passes(&self, name: &str) -> bool {
        let small = name.to_ascii_lowercase();
        match &*small {
            "host" | "content-length" => false,
            _ if self.wrong == Wrong::ComparesLetters => !CREDENTIALS.contains(&name),
            small => {
                !CREDENTIALS.contains(&small)
                    || matches!(self.wrong, Wrong::Keeps(kept) if kept == small)
            }
        }
    }

    fn forward(
        &mut self,
        head: &Head,
        body: &[u8],
        (client, at): (&TcpStream, usize),
    ) -> io::Result<()> {
        let mut body = body.to_vec();
        if self.wrong == Wrong::ChangesBodies(at) {
            body.push(b' ');
        }
        if self.wrong == Wrong::Mirrors && at == FRONTIER {
            drop(self.ask(head, &body, ON_PREM)?);
        }
        let asked = match self.is_away && at == FRONTIER {
            true => Err(io::ErrorKind::ConnectionRefused.into()),
            false => self.ask(head, &body, at),
        };
        let Ok((answer, from)) = asked else {
            return self.tell_down((head, &body), client);
        };
        if answer.value("transfer-encoding").is_some() {
            self.stream(from, client, |gateway| drop(gateway.ask(head, &body, at)))
        } else {
            self.piece(&answer, from, (client, head.value("x-api-key").is_some()))
        }
    }

    fn tell_down(&mut self, (head, body): (&Head, &[u8]), client: &TcpStream) -> io::Result<()> {
        self.is_away = self.wrong == Wrong::StaysAway;
        match self.wrong {
            Wrong::AnswersForDown => whole(client, 200, "application/json", &error("nobody there")),
            Wrong::SendsElsewhereWhenDown => self.forward(head, body, (client, ON_PREM)),
            _ => refuse(client, 503, "the upstream is not there"),
        }
    }

    /// Passes on an answer in one piece.
    fn piece(
        &mut self,
        answer: &Head,
        mut from: impl BufRead,
        (mut client, has_key): (&TcpStream, bool),
    ) -> io::Result<()> {
        let body = answer.body(&mut from)?;
        self.count(&body);
        let key = KEYS[FRONTIER];
        let status = match self.wrong {
            Wrong::AnswersFailure => 200,
            _ => answer.status(),
        };
        match self.wrong {
            Wrong::ExplainsByKey if status >= 500 => {
                return refuse(client, status, &format!("asked with Bearer {key}: failed"));
            }
            Wrong::EchoesKey if has_key => {
                return whole(
                    client,
                    status,
                    &format!("application/json\r\nx-debug: {key}"),
                    &body,
                );
            }
            Wrong::HintsKey if has_key => {
                let hint = format!("HTTP/1.1 103 Early Hints\r\nlink: {key}\r\n\r\n");
                client.write_all(hint.as_bytes())?;
            }
            Wrong::ExtendsChunksByKey if has_key => {
                let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                let begins = format!("{head}{:x};key={key}\r\n", body.len());
                return client.write_all(&[begins.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat());
            }
            _ => {}
        }
        let mut message = message(status, "application/json", &body);
        if self.wrong == Wrong::EndsBehindWithKey && has_key {
            // In one write: who is heard to the end does not wait for more.
            message.extend_from_slice(key.as_bytes());
        }
        client.write_all(&message)
    }

    /// Passes on a stream, event by event.
    fn stream(
        &mut self,
        mut from: impl BufRead,
        mut client: &TcpStream,
        ask_again: impl Fn(&mut Self),
    ) -> io::Result<()> {
        const HEAD: &[u8] =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        client.write_all(HEAD)?;
        let mut held = Vec::new();
        loop {
            match chunk(&mut from) {
                Ok(end) if end.is_empty() => break,
                Ok(event) => {
                    self.count(&event);
                    held.extend(self.changed(event));
                    if self.wrong != Wrong::HoldsBack {
                        send(client, &std::mem::take(&mut held))?;
                    }
                }
                Err(_) => match self.wrong {
                    Wrong::EndsCleanly => break,
                    Wrong::SaysDone => {
                        held.extend_from_slice(b"data: [DONE]\n\n");
                        break;
                    }
                    Wrong::AsksAgain => {
                        ask_again(self);
                        return Ok(());
                    }
                    _ => return Ok(()),
                },
            }
        }
        send(client, &held)?;
        client.write_all(b"0\r\n\r\n")
    }

    fn changed(&self, event: Vec<u8>) -> Vec<u8> {
        match self.wrong {
            Wrong::DropsDone if event.starts_with(b"data: [DONE]") => Vec::new(),
            Wrong::ChangesUsage => {
                let text = String::from_utf8_lossy(&event);
                text.replace("\"completion_tokens\": ", "\"completion_tokens\": 1")
                    .into_bytes()
            }
            _ => event,
        }
    }

    fn count(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let total = text.split_once("\"total_tokens\": ").map(|(_, rest)| rest);
        let digits = total.and_then(|rest| rest.split('}').next());
        let total: u64 = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
        self.tokens += if self.wrong == Wrong::CountsTokensTwice {
            2 * total
        } else {
            total
        };
    }
}

/// A workload that the suite knows, or nothing.
fn name_of(name: &str) -> &'static str {
    let known = [
        LIMITED,
        "toolbench-agent",
        "terminal-bench-ci",
        "api-orchestration",
        "terminal",
        "ui-navigation",
        "coding",
    ];
    known
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or_default()
}

/// A first line and headers.
struct Head {
    first: String,
    headers: Vec<(String, String)>,
}

impl Head {
    fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if from.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if line == "\r\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let mut lines = lines.into_iter();
        let first = lines.next().unwrap_or_default();
        let pairs = lines.filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_owned(), value.to_owned()))
        });
        Ok(Self {
            first,
            headers: pairs.collect(),
        })
    }

    fn value(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        let (_, value) = all.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    /// The second word of the first line: of a call its path, of an answer its status.
    fn path(&self) -> &str {
        self.first.split(' ').nth(1).unwrap_or_default()
    }

    fn status(&self) -> u16 {
        self.path().parse().unwrap_or(502)
    }

    fn body(&self, from: &mut impl Read) -> io::Result<Vec<u8>> {
        let length = self
            .value("content-length")
            .and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        from.read_exact(&mut body)?;
        Ok(body)
    }
}

/// The next chunk, which is empty at the end; an error where the connection is cut.
fn chunk(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut length = String::new();
    from.read_line(&mut length)?;
    let length = usize::from_str_radix(length.trim(), 16).map_err(io::Error::other)?;
    let mut data = vec![0; length + 2];
    from.read_exact(&mut data)?;
    data.truncate(length);
    Ok(data)
}

fn send(mut client: &TcpStream, data: &[u8]) -> io::Result<()> {
    if data.is_empty() {
        return Ok(());
    }
    let begins = format!("{:x}\r\n", data.len());
    client.write_all(&[begins.as_bytes(), data, b"\r\n"].concat())
}

fn refuse(client: &TcpStream, status: u16, says: &str) -> io::Result<()> {
    match says {
        "" => whole(client, status, "text/plain", b""),
        says => whole(client, status, "application/json", &error(says)),
    }
}

fn error(says: &str) -> Vec<u8> {
    format!(r#"{{"error": {{"message": "{says}"}}}}"#).into_bytes()
}

fn whole(mut client: &TcpStream, status: u16, kind: &str, body: &[u8]) -> io::Result<()> {
    client.write_all(&message(status, kind, body))
}

/// An answer in one piece; `kind` may bring further lines.
fn message(status: u16, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} So\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}
