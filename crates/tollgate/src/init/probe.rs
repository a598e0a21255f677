//! Asks an address for its models, as any client of OpenAI's API would.
//!
//! Bounded: so long, so many bytes. Not here: TLS, so an `https` address is not asked.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde_json::Value;

const CONNECT_WITHIN: Duration = Duration::from_millis(300);
/// Of silence.
const READ_WITHIN: Duration = Duration::from_secs(1);
/// From the connection to the end of the answer, however it comes.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Of an answer: a list of a thousand models and more.
const ANSWER_BYTES: usize = 1 << 20;

/// What an engine said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) models: Vec<String>,
    /// 401 or 403.
    pub(super) asks_for_a_key: bool,
}

/// Why an address said no models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Silence {
    /// There is nobody to talk to.
    Unreachable(String),
    /// It was not asked.
    Encrypted,
    /// It takes a connection and gives no answer that could be read.
    Mute,
    /// It answers with another status than 200, 401 and 403.
    Status(String),
    /// It answers, and not with a list.
    NoList,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ROOT: &str = "is that the root of its API?";
        match self {
            Self::Unreachable(why) => write!(
                f,
                "cannot be reached: {why}; is the address right, and the engine up?"
            ),
            Self::Encrypted => f.write_str("is not asked for its models, as it speaks TLS"),
            Self::Mute => {
                f.write_str("takes connections and does not answer by HTTP; does it speak TLS?")
            }
            Self::Status(status) => write!(f, "answers {status} to GET models; {ROOT}"),
            Self::NoList => write!(f, "does not list its models as OpenAI's API does; {ROOT}"),
        }
    }
}

/// What an address says.
///
/// # Errors
/// Why it says no models.
pub(super) fn models(url: &str) -> Result<Answer, Silence> {
    models_within(url, ANSWER_WITHIN)
}

fn models_within(url: &str, within: Duration) -> Result<Answer, Silence> {
    let rest = url.strip_prefix("http://").ok_or(Silence::Encrypted)?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address = match authority.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => authority.to_owned(),
        _ => format!("{authority}:80"),
    };
    let unreachable = |error: io::Error| Silence::Unreachable(error.to_string());
    let mut addresses = address.to_socket_addrs().map_err(unreachable)?;
    let address = addresses
        .next()
        .ok_or_else(|| Silence::Unreachable("the name has no address".to_owned()))?;
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_WITHIN).map_err(unreachable)?;
    let until = Instant::now() + within;
    // 1.0: an answer without chunks, and the end of the connection after it.
    let ask = format!(
        "GET /{path}/models HTTP/1.0\r\nhost: {authority}\r\naccept: application/json\r\n\r\n"
    );
    let timeout = Some(READ_WITHIN.min(within));
    stream
        .set_write_timeout(timeout)
        .and_then(|()| stream.write_all(ask.as_bytes()))
        .map_err(|_| Silence::Mute)?;
    let answer = received(&mut stream, until);
    read(&String::from_utf8_lossy(&answer))
}

/// What comes until the connection ends, nothing comes, or it is `until`. Whoever keeps the connection is read so far.
fn received(stream: &mut TcpStream, until: Instant) -> Vec<u8> {
    let (mut answer, mut part) = (Vec::new(), [0; 8192]);
    while answer.len() < ANSWER_BYTES {
        let left = until.saturating_duration_since(Instant::now());
        // No time left is no timeout to set, which is an error.
        if stream
            .set_read_timeout(Some(left.min(READ_WITHIN)))
            .is_err()
        {
            break;
        }
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => answer.extend(part.iter().take(read)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    answer.truncate(ANSWER_BYTES);
    answer
}

fn read(answer: &str) -> Result<Answer, Silence> {
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(Silence::Mute)?;
    let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
    let is_number = |status: &&str| status.bytes().all(|byte| byte.is_ascii_digit());
    match status.filter(is_number).ok_or(Silence::Mute)? {
        "401" | "403" => Ok(Answer {
            asks_for_a_key: true,
            ..Answer::default()
        }),
        "200" => {
            let names = listed(body).ok_or(Silence::NoList)?;
            Ok(Answer {
                models: names,
                asks_for_a_key: false,
            })
        }
        other => Err(Silence::Status(other.to_owned())),
    }
}

/// The names in a list of models.
fn listed(body: &str) -> Option<Vec<String>> {
    let list: Value = serde_json::from_str(body).ok()?;
    let models = list.get("data")?.as_array()?.iter();
    Some(
        models
            .filter_map(|model| Some(model.get("id")?.as_str()?.to_owned()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use testing::pace;

    use super::{Answer, Silence, models_within, read};

    /// It comes byte by byte, none of them late, and never to its end.
    #[test]
    fn an_answer_that_drips_is_not_waited_for() {
        let within = Duration::from_millis(100);
        let engine = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", engine.local_addr().expect("an address"));
        let drips = thread::spawn(move || {
            let (mut stream, _) = engine.accept().expect("a call");
            let mut answer = "HTTP/1.0 200 OK\r\n\r\n{\"data\":[{\"id\":\"m\"}";
            // Until who asked is gone.
            while stream.write_all(answer.as_bytes()).is_ok() {
                pace(within / 5);
                answer = " ";
            }
        });
        let got = models_within(&url, within);
        // Nothing of it had come in time where the machine stood still.
        let is_given_up = matches!(got, Err(Silence::NoList | Silence::Mute));
        assert!(is_given_up, "{got:?}");
        drips.join().expect("it ends");
    }

    #[test]
    fn a_list_a_refusal_and_anything_else_are_told_apart() {
        let said =
            |status: &str, body: &str| read(&format!("HTTP/1.1 {status}\r\na: b\r\n\r\n{body}"));
        let list = r#"{"object":"list","data":[{"id":"a"},{"id":"b/c"},{"name":"d"}]}"#;
        let models = vec!["a".to_owned(), "b/c".to_owned()];
        let answer = Answer {
            models,
            asks_for_a_key: false,
        };
        assert_eq!(said("200 OK", list), Ok(answer));
        let refusal = said("401 Unauthorized", "").expect("an engine");
        assert!(refusal.asks_for_a_key && refusal.models.is_empty());
        let status = || Silence::Status("404".to_owned());
        for (status, body, why) in [
            ("404 Not Found", list, status()),
            ("200 OK", "<html>", Silence::NoList),
            ("200 OK", "{}", Silence::NoList),
            ("200 OK", r#"{"data":{}}"#, Silence::NoList),
            ("200", "", Silence::NoList),
            ("", "", Silence::Mute),
        ] {
            assert_eq!(said(status, body), Err(why), "{status} {body}");
        }
        assert_eq!(read("SSH-2.0-OpenSSH\r\n\r\n"), Err(Silence::Mute));
    }
}
