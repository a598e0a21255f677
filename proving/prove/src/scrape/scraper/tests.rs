//! A target that does everything wrong in turn, beside one that does nothing wrong.
//!
//! Either may be late on a machine that stands still, which is told like any other silence: what is asserted holds with
//! such events in between.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use testing::PATIENCE;

use super::{Heard, Scraper, Target};
use crate::host::ports;
use crate::moment::some_moment;

const PERIOD: Duration = Duration::from_millis(200);
const PAGE: &str = "# TYPE up gauge\nup{of=\"it\"} 1\nthis line is none\n";

/// What a server that does not behave does with the next request.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Metrics,
    Html,
    Redirect,
    Hang,
    HangUp,
}

/// A server whose ways can be changed, and that can go and come back on the same port.
struct Moody {
    address: SocketAddr,
    mode: Arc<Mutex<Mode>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Moody {
    fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        let mode = Arc::new(Mutex::new(Mode::Metrics));
        let over = Arc::new(AtomicBool::new(false));
        let (theirs, is_over) = (Arc::clone(&mode), Arc::clone(&over));
        let thread = thread::spawn(move || {
            let mut hung = Vec::new();
            for stream in listener.incoming().flatten() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                hung.extend(answer(stream, *theirs.lock().expect("no panic")));
            }
        });
        Self {
            address,
            mode,
            over,
            thread: Some(thread),
        }
    }

    /// On a port that connections of others are not given meanwhile.
    fn new() -> Self {
        Self::at(ports::loopback(ports::free().expect("a port")))
    }

    fn becomes(&self, mode: Mode) {
        *self.mode.lock().expect("no panic") = mode;
    }

    fn die(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }

    fn target(&self, name: &str) -> Target {
        Target::parse(name, &format!("http://{}/metrics", self.address)).expect("a target")
    }
}

/// One answer; a connection that is to hang is given back.
fn answer(mut stream: TcpStream, mode: Mode) -> Option<TcpStream> {
    let _asked = stream.read(&mut [0; 4096]);
    let (status, kind, body) = match mode {
        Mode::Hang => return Some(stream),
        Mode::HangUp => return None,
        Mode::Metrics => ("200 OK", "text/plain", PAGE),
        Mode::Html => ("200 OK", "text/html", "<html><body>Sign in</body></html>"),
        Mode::Redirect => ("302 Found\r\nlocation: /", "text/plain", PAGE),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _gone = stream.write_all((head + body).as_bytes());
    None
}

/// What was heard so far.
struct Ear {
    from: Receiver<Heard>,
    events: Vec<Heard>,
    samples: usize,
}

impl Ear {
    /// Hears until it is so.
    fn until(&mut self, is_so: impl Fn(&Heard) -> bool) -> Heard {
        loop {
            let heard = self.from.recv_timeout(PATIENCE).expect("it is heard");
            match &heard {
                Heard::Sample(_) => self.samples += 1,
                event => self.events.push(event.clone()),
            }
            if is_so(&heard) {
                return heard;
            }
        }
    }

    fn until_silent(&mut self, of: &str, says: &str) {
        self.until(|heard| match heard {
            Heard::Silent { target, fault, .. } => target == of && fault.to_string().contains(says),
            _ => false,
        });
    }

    /// Hears the other until so many ticks have passed, in which something could be told again.
    fn ticks(&mut self, of: &str, count: usize) {
        for _ in 0..count {
            self.until(|heard| matches!(heard, Heard::Sample(sample) if sample.target == of));
        }
    }
}

#[test]
fn a_target_that_does_everything_wrong_is_told_once_for_each_way_and_once_when_it_is_back() {
    let (mut moody, well) = (Moody::new(), Moody::new());
    let targets = vec![moody.target("moody"), well.target("well")];
    let (scraper, from) = Scraper::start(targets, None, some_moment(), PERIOD).expect("a thread");
    let mut ear = Ear {
        from,
        events: Vec::new(),
        samples: 0,
    };
    let unread =
        ear.until(|heard| matches!(heard, Heard::Unread { target, .. } if target == "moody"));
    let is_third = matches!(
        unread,
        Heard::Unread {
            lines: 1,
            first: (3, _),
            ..
        }
    );
    assert!(is_third, "{unread:?}");
    for (mode, says) in [
        (Mode::Html, "HTML, not metrics"),
        (Mode::Redirect, "status 302"),
        (Mode::Hang, "no whole answer within 200ms"),
        (Mode::HangUp, "broke off"),
    ] {
        moody.becomes(mode);
        ear.until_silent("moody", says);
        ear.ticks("well", 2);
    }
    moody.die();
    ear.until_silent("moody", "unreachable: ");
    ear.ticks("well", 4);
    let _again = Moody::at(moody.address);
    let back = ear.until(|heard| matches!(heard, Heard::Back { target, .. } if target == "moody"));
    let Heard::Back { after, .. } = back else {
        unreachable!("it is one")
    };
    assert!(after >= 2 * PERIOD, "{after:?}");
    let lost = scraper.finish();
    assert_eq!(lost.samples, 0);
    assert!(ear.samples >= 12, "the other was heard all the time");
    for of in ["moody", "well"] {
        told_once(&ear.events, of);
    }
}

/// Nothing is told of a target that was told of it just before, and its unread line no more than once.
fn told_once(events: &[Heard], of: &str) {
    let (mut last, mut unread) = (None, 0);
    for event in events {
        let says = match event {
            Heard::Silent { target, fault, .. } if target == of => Some(fault.to_string()),
            Heard::Back { target, .. } if target == of => None,
            Heard::Unread { target, .. } => {
                unread += usize::from(target == of);
                continue;
            }
            _ => continue,
        };
        // One that is back was silent, and one that is silent again is so in another way.
        assert_ne!(says, last, "{of}: {events:#?}");
        last = says;
    }
    assert_eq!(unread, 1, "{of}: {events:#?}");
}
