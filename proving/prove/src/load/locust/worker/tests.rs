//! A worker against a scripted master on loopback. Not here: the real one (the end-to-end tests).

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream as Socket};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use testing::{Began, PATIENCE, eventually};

use super::super::stats::{Of, Seen};
use super::super::zmtp::{self, Decoder};
use super::*;
use crate::host::ports::Closed;

fn quick() -> Pace {
    Pace {
        heartbeat: Duration::from_millis(20),
        report: Duration::from_millis(40),
        ask_again: Duration::from_millis(200),
        give_up: PATIENCE,
        silence: PATIENCE,
        forgotten: PATIENCE,
    }
}

/// A master that does only what a test says.
struct Master {
    listener: TcpListener,
}

impl Master {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        Self { listener }
    }

    fn worker(&self, pace: Pace) -> Worker {
        let master = self.listener.local_addr().expect("an address").to_string();
        let options = Options {
            master,
            name: "w".into(),
            classes: vec!["Chat".into()],
            pace,
        };
        Worker::join(options).expect("a worker")
    }

    fn accept(&self) -> Peer {
        let (mut socket, _) = self.listener.accept().expect("a worker that connects");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let opening = zmtp::opening("ROUTER", b"");
        socket.write_all(&opening).expect("room");
        let mut peer = Peer {
            socket,
            decoder: Decoder::new("DEALER"),
            id: String::new(),
        };
        let PeerEvent::Ready { identity } = peer.next().expect("a handshake") else {
            panic!("a message before the handshake");
        };
        peer.id = String::from_utf8(identity).expect("text");
        peer
    }

    /// Connected, and known.
    fn joined(&self, worker: &Worker) -> Peer {
        let mut peer = self.accept();
        peer.until("client_ready");
        peer.say("ack", BTreeMap::from([("index", 7)]));
        assert_eq!(
            worker.next(PATIENCE),
            Some(Event::Joined { index: Some(7) })
        );
        peer
    }
}

/// One connection of a worker, at the master.
struct Peer {
    socket: Socket,
    decoder: Decoder,
    id: String,
}

impl Peer {
    fn next(&mut self) -> Option<PeerEvent> {
        let mut bytes = [0; 4096];
        loop {
            if let Some(heard) = self.decoder.next().expect("sound bytes") {
                return Some(heard);
            }
            match testing::read(&mut self.socket, &mut bytes) {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.decoder.push(&bytes[..read]),
            }
        }
    }

    fn hear(&mut self) -> Option<(String, Data)> {
        let PeerEvent::Message(bytes) = self.next()? else {
            panic!("two handshakes");
        };
        let (kind, data, id): (String, Data, String) =
            rmp_serde::from_slice(&bytes).expect("a message of ours");
        assert_eq!(id, self.id);
        Some((kind, data))
    }

    /// The next message of this kind; heartbeats before it are answered, and requests of reports are added up.
    fn until(&mut self, wanted: &str) -> (Data, u64) {
        let mut requests = 0;
        loop {
            let (kind, data) = self.hear().unwrap_or_else(|| panic!("no {wanted} came"));
            requests += data.requests();
            if kind == wanted {
                return (data, requests);
            }
            if kind == "heartbeat" {
                self.say("heartbeat", ());
            }
        }
    }

    /// Waits until these bytes have come, and leaves all of them unread.
    fn until_unread(&self, wanted: &[u8]) {
        let mut bytes = vec![0; 1 << 20];
        eventually("these bytes are there, unread", || {
            let unread = self.socket.peek(&mut bytes).expect("an open connection");
            bytes[..unread].windows(wanted.len()).any(|w| w == wanted)
        });
    }

    fn say(&mut self, kind: &str, data: impl Serialize) {
        let body = rmp_serde::to_vec_named(&(kind, data, &self.id)).expect("bytes");
        self.say_bytes(&body);
    }

    fn say_bytes(&mut self, body: &[u8]) {
        let mut frame = Vec::new();
        zmtp::put_message(body, &mut frame);
        // Cut anywhere, as the network does.
        let (first, rest) = frame.split_at(frame.len() / 3);
        self.socket.write_all(first).expect("room");
        self.socket.write_all(rest).expect("room");
    }

    fn spawn(&mut self, timestamp: f64, users: u32) {
        #[derive(Serialize)]
        struct Job {
            timestamp: f64,
            user_classes_count: BTreeMap<&'static str, u32>,
            host: Option<&'static str>,
            stop_timeout: f64,
            parsed_options: BTreeMap<&'static str, Vec<bool>>,
        }
        let job = Job {
            timestamp,
            user_classes_count: [("Chat", users)].into(),
            host: None,
            stop_timeout: 1.0,
            parsed_options: [("tags", vec![true])].into(),
        };
        self.say("spawn", job);
    }
}

/// What the tests look at in a message of whatever kind.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Data {
    Stats {
        stats_total: Total,
    },
    Users {
        user_classes_count: BTreeMap<String, u32>,
    },
    Other(IgnoredAny),
}

#[derive(Debug, Deserialize)]
struct Total {
    num_requests: u64,
}

impl Data {
    fn requests(&self) -> u64 {
        match self {
            Self::Stats { stats_total, .. } => stats_total.num_requests,
            Self::Users { .. } | Self::Other(_) => 0,
        }
    }
}

fn requests(count: u64) -> LocustStats {
    let mut tally = LocustStats::new(SystemTime::now());
    for _ in 0..count {
        let of = Of {
            method: "GET",
            name: "/",
        };
        let seen = Seen {
            at: SystemTime::now(),
            time: Some(Duration::from_millis(1)),
            bytes: 1,
            error: None,
        };
        tally.request(of, &seen);
    }
    tally
}

fn users(count: u32) -> Users {
    [("Chat".to_owned(), count)].into()
}

fn spawned(worker: &Worker, count: u32) {
    let event = worker.next(PATIENCE);
    let Some(Event::Spawn { users: wanted, .. }) = event else {
        panic!("no job: {event:?}");
    };
    assert_eq!(wanted, users(count));
    worker.users_are(wanted);
}

#[test]
fn a_run_from_joining_to_quitting() {
    let master = Master::new();
    let worker = master.worker(quick());
    let mut peer = master.joined(&worker);
    assert!(
        peer.id.starts_with("w_") && peer.id.len() == 34,
        "{}",
        peer.id
    );
    peer.spawn(5.0, 3);
    spawned(&worker, 3);
    peer.until("spawning");
    let (data, _) = peer.until("spawning_complete");
    assert!(matches!(data, Data::Users { user_classes_count } if user_classes_count == users(3)));
    // Stale: the worker goes on as before, and the next event is of the newer one.
    peer.spawn(5.0, 99);
    peer.spawn(6.0, 4);
    spawned(&worker, 4);
    worker.add(&mut requests(10));
    peer.say("stop", ());
    assert_eq!(
        worker.next(PATIENCE),
        Some(Event::Stop {
            within: Duration::from_secs(1)
        })
    );
    worker.add(&mut requests(7));
    worker.stopped();
    let (_, counted) = peer.until("client_stopped");
    assert_eq!(counted, 17, "all of it, and before the word");
    peer.until("client_ready");
    peer.say("ack", ());
    peer.spawn(7.0, 1);
    spawned(&worker, 1);
    worker.add(&mut requests(2));
    peer.say("quit", ());
    assert_eq!(worker.next(PATIENCE), Some(Event::Quit));
    let leaving = thread::spawn(move || worker.leave());
    let (_, counted) = peer.until("quit");
    assert_eq!(counted, 2);
    drop(peer);
    let delivered = leaving.join().expect("no panic");
    assert_eq!(delivered.confirmed, 19, "{delivered:?}");
    assert_eq!((delivered.doubtful, delivered.dropped), (0, 0));
}

#[test]
fn a_report_that_was_read_before_the_master_closed_is_not_sent_again() {
    let master = Master::new();
    let worker = master.worker(quick());
    let mut peer = master.joined(&worker);
    peer.spawn(1.0, 1);
    spawned(&worker, 1);
    worker.add(&mut requests(5));
    let mut counted = 0;
    while counted == 0 {
        counted += peer.until("stats").1;
    }
    // Everything that came is read, nothing answered; closing is then in order.
    peer.socket.shutdown(Shutdown::Write).expect("open");
    while let Some((_, data)) = peer.hear() {
        counted += data.requests();
    }
    drop(peer);
    let mut peer = master.accept();
    worker.add(&mut requests(3));
    while counted < 8 {
        counted += peer.until("heartbeat").1;
        peer.say("heartbeat", ());
    }
    peer.say("quit", ());
    assert_eq!(worker.next(PATIENCE), Some(Event::Quit));
    let leaving = thread::spawn(move || worker.leave());
    counted += peer.until("quit").1;
    drop(peer);
    let delivered = leaving.join().expect("no panic");
    assert_eq!(counted, 8, "{delivered:?}");
    assert_eq!(delivered.taken_for_read, 5, "{delivered:?}");
    assert_eq!(delivered.confirmed, 3, "{delivered:?}");
}

#[test]
fn a_report_that_was_not_read_before_the_connection_broke_is_sent_again() {
    let master = Master::new();
    let worker = master.worker(quick());
    let mut peer = master.joined(&worker);
    peer.spawn(1.0, 1);
    spawned(&worker, 1);
    peer.until("spawning_complete");
    worker.add(&mut requests(5));
    // Let the report arrive, and end with it unread: that resets the connection.
    peer.until_unread(b"num_requests\x05");
    drop(peer);
    let mut peer = master.accept();
    let (_, counted) = peer.until("stats");
    assert_eq!(counted, 5);
    worker.add(&mut requests(1));
    let leaving = thread::spawn(move || worker.leave());
    let (_, counted) = peer.until("quit");
    drop(peer);
    let delivered = leaving.join().expect("no panic");
    assert_eq!(counted, 1);
    assert_eq!(
        (delivered.confirmed, delivered.doubtful),
        (6, 5),
        "{delivered:?}"
    );
}

#[test]
fn a_master_that_went_away_is_lost_after_the_time_that_was_set() {
    let master = Master::new();
    let silence = Duration::from_millis(300);
    let worker = master.worker(Pace { silence, ..quick() });
    let began = Began::now();
    // It says nothing after the first word: nothing here is to come before the time is over.
    drop((master.joined(&worker), master));
    let event = worker.next(PATIENCE);
    let Some(Event::Lost { why }) = event else {
        panic!("not lost: {event:?}");
    };
    began.took_at_least(silence);
    assert!(why.contains("no word from the master for 300ms"), "{why}");
    worker.add(&mut requests(4));
    let delivered = worker.leave();
    assert_eq!(delivered.confirmed, 0);
}

#[test]
fn a_master_that_was_started_anew_is_joined_anew_under_another_id() {
    let master = Master::new();
    let worker = master.worker(Pace {
        forgotten: Duration::from_millis(300),
        ..quick()
    });
    let mut peer = master.joined(&worker);
    peer.spawn(1_000_000.0, 1);
    spawned(&worker, 1);
    let old = peer.id.clone();
    drop(peer);
    // It reads and answers no heartbeat of a worker that it does not know.
    let mut stranger = master.accept();
    assert_eq!(stranger.id, old);
    let reading = thread::spawn(move || while stranger.hear().is_some() {});
    let stop = worker.next(PATIENCE);
    assert!(matches!(stop, Some(Event::Stop { .. })), "{stop:?}");
    worker.stopped();
    let mut peer = master.joined(&worker);
    assert_eq!(peer.id, format!("{old}-2"));
    peer.spawn(1.0, 2);
    spawned(&worker, 2);
    reading.join().expect("no panic");
}

#[test]
fn no_bytes_of_a_master_end_a_worker() {
    let master = Master::new();
    let worker = master.worker(quick());
    // What is no ZeroMQ at all, told and tried again.
    let (mut socket, _) = master.listener.accept().expect("a worker");
    socket
        .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        .expect("room");
    let event = worker.next(PATIENCE);
    assert!(
        matches!(&event, Some(Event::Warning(says)) if says.contains("does not speak ZeroMQ 3")),
        "{event:?}"
    );
    drop(socket);
    let mut peer = master.joined(&worker);
    for body in [
        &b""[..],
        b"\x93",
        b"\xff\xff\xff\xff",
        b"\x93\xa5spawn\xc0\xc0",
    ] {
        peer.say_bytes(body);
        let event = worker.next(PATIENCE);
        assert!(
            matches!(&event, Some(Event::Warning(says)) if says.contains("cannot be read")),
            "{event:?}"
        );
        peer.until("exception");
    }
    // A frame that is announced too long ends the connection, and the next one is as good.
    peer.socket
        .write_all(b"\x02\x00\x00\x00\x01\x00\x00\x00\x00")
        .expect("room");
    let event = worker.next(PATIENCE);
    assert!(
        matches!(&event, Some(Event::Warning(says)) if says.contains("4294967296 bytes")),
        "{event:?}"
    );
    let mut peer = master.accept();
    peer.until("heartbeat");
    peer.say("heartbeat", ());
    peer.spawn(1.0, 1);
    spawned(&worker, 1);
}

#[test]
fn a_worker_that_nobody_could_join_says_what_is_wrong() {
    let with = |master: &str, name: &str, classes: &[&str]| {
        let options = Options {
            master: master.into(),
            name: name.into(),
            classes: classes.iter().map(|class| (*class).to_owned()).collect(),
            pace: quick(),
        };
        Worker::join(options).err().map(|error| error.to_string())
    };
    let says = |error: Option<String>, what: &str| {
        assert!(
            error.as_ref().is_some_and(|error| error.contains(what)),
            "{error:?}"
        );
    };
    says(
        with("nowhere", "w", &["Chat"]),
        "\"nowhere\" is no HOST:PORT",
    );
    says(with("h:70000", "w", &["Chat"]), "no HOST:PORT");
    says(with("h:1", "", &["Chat"]), "1 to 128 bytes");
    says(with("h:1", "w", &[]), "1 to 256 classes");
    // Nobody is there: given up after the time that was set.
    let nobody = Closed::new();
    let options = Options {
        master: nobody.address.to_string(),
        name: "w".into(),
        classes: vec!["Chat".into()],
        pace: Pace {
            give_up: Duration::from_millis(300),
            ..quick()
        },
    };
    let worker = Worker::join(options).expect("a worker");
    let event = worker.next(PATIENCE);
    assert!(
        matches!(&event, Some(Event::Lost { why }) if why.contains("no answer")),
        "{event:?}"
    );
}
