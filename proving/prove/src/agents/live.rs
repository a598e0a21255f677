//! Live agents: each sends all it knows, reads the answer as it streams, runs what was called, and sends again.
//!
//! All are on one thread, whose CPU time is theirs alone; what they said and heard is recorded session by session.
//! Invariant: which session an agent takes follows from the seed, as in a replay; a session that failed is not recorded.
//! Not here: what there is to do (`script`), steering (`crowd`).

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use experiment::arrivals::{Process, Scope};
use experiment::workload::{Enter, Load, Part, Profile, Stay, User, Workload};
use load::run::thread_cpu;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::crowd::{Crowd, Row, Rows};
use super::history::History;
use super::line::Line;
use super::script::Script;

/// Who is to work on what.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) engine: SocketAddr,
    pub(super) model: String,
    pub(super) script: Script,
    /// Agents at most.
    pub(super) most: u32,
    /// Whether all together do each session once, and leave.
    pub(super) once: bool,
    /// Of the order of sessions.
    pub(super) seed: u64,
}

/// Agents at work.
pub(super) struct Live {
    wishes: watch::Sender<Wishes>,
    rows: Rows,
    start: Instant,
    thread: JoinHandle<io::Result<Seen>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Wishes {
    users: u32,
    is_over: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Sessions as lines of the `messages` reader.
    pub(super) recorded: Vec<String>,
    /// Of the agents' thread.
    pub(super) cpu: Duration,
    /// Of it, what went into writing requests.
    pub(super) writing: Duration,
    /// And into reading events.
    pub(super) reading: Duration,
    pub(super) events: u64,
    /// What the first call that failed said.
    pub(super) fault: Option<String>,
}

struct Shared {
    asked: Asked,
    rows: Rows,
    start: Instant,
    /// The start, in seconds since 1970.
    start_unix_s: f64,
    wishes: watch::Receiver<Wishes>,
    seen: RefCell<Seen>,
}

impl Live {
    /// Nobody is at work before somebody asks for it.
    pub(super) fn begin(asked: Asked) -> io::Result<Self> {
        let (wishes, heard) = watch::channel(Wishes::default());
        let (rows, start) = (Rows::default(), Instant::now());
        let given = (asked, rows.clone(), start);
        let thread = std::thread::Builder::new().name("agents".into());
        Ok(Self {
            wishes,
            rows,
            start,
            thread: thread.spawn(move || work(given, heard))?,
        })
    }

    /// Ends what is under way, where that is to be, and takes what was seen.
    pub(super) fn finish(self) -> io::Result<(Vec<Row>, Seen)> {
        self.wishes.send_modify(|wishes| wishes.is_over = true);
        let panicked = |_| io::Error::other("bug: the agents' thread panicked");
        let seen = self.thread.join().map_err(panicked)??;
        let rows = std::mem::take(&mut *self.rows.lock());
        Ok((rows, seen))
    }
}

impl Crowd for Live {
    fn start(&self) -> Instant {
        self.start
    }

    fn set_users(&self, users: u32) {
        self.wishes.send_if_modified(|wishes| {
            let is_new = wishes.users != users;
            wishes.users = users;
            is_new
        });
    }

    fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    fn rows(&self) -> &Rows {
        &self.rows
    }
}

/// Sessions in the order of a replay; their pauses are those of the tools.
fn workload(asked: &Asked) -> Workload {
    let load = Load::Closed {
        users: asked.most,
        think: Process::Recorded,
        enter: Enter::Thinking,
        stay: if asked.once { Stay::Once } else { Stay::Always },
    };
    Workload {
        seed: asked.seed,
        ramp: Duration::ZERO,
        profiles: vec![Profile {
            name: super::PROFILE.into(),
            load,
            scope: Scope::User,
        }],
    }
}

fn work(
    (asked, rows, start): (Asked, Rows, Instant),
    wishes: watch::Receiver<Wishes>,
) -> io::Result<Seen> {
    let runtime = crate::runtime::make_local()?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since_start = start.elapsed();
    let shared = Rc::new(Shared {
        rows,
        start,
        start_unix_s: since.map_or(0.0, |since| since.as_secs_f64()) - since_start.as_secs_f64(),
        wishes: wishes.clone(),
        seen: RefCell::default(),
        asked,
    });
    let before = thread_cpu();
    runtime.block_on(async {
        let mut agents = JoinSet::new();
        let workload = workload(&shared.asked);
        for user in workload.users(0, Part::WHOLE) {
            agents.spawn_local(agent(Rc::clone(&shared), user));
        }
        let all = async { while agents.join_next().await.is_some() {} };
        let mut wishes = wishes;
        tokio::select! {
            () = all => {}
            _ = wishes.wait_for(|wishes| wishes.is_over) => {}
        }
    });
    let cpu = thread_cpu().saturating_sub(before);
    drop(runtime);
    Ok(Seen {
        cpu,
        ..shared.seen.take()
    })
}

/// One agent, from when it is asked for to its last session.
async fn agent(shared: Rc<Shared>, mut user: User) {
    let mut wishes = shared.wishes.clone();
    let number = user.number();
    let is_wanted = |wishes: &Wishes| u64::from(wishes.users) > number;
    if wishes.wait_for(is_wanted).await.is_err() {
        return;
    }
    let mut from = shared.start.elapsed();
    let mut line = Line::to(shared.asked.engine);
    let mut history = None;
    while let Some(turn) = user.next(from, &shared.asked.script) {
        let script = &shared.asked.script;
        if turn.turn == 0 {
            history = Some(History::begin(script, turn.session));
        }
        // Its tools run until then.
        tokio::time::sleep_until((shared.start + turn.due.at).into()).await;
        let Some(known) = &mut history else { return };
        if turn.turn > 0 {
            known.observe(&script.found(turn.session, turn.turn));
        }
        let is_good = shared
            .step(&mut line, known, (turn.session, turn.turn))
            .await;
        if !is_good {
            user.abandon();
            history = None;
            // Who is refused does not overrun.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        from = shared.start.elapsed();
        if turn.last
            && let Some(known) = history.take()
        {
            shared.seen.borrow_mut().recorded.extend(known.recorded());
        }
    }
}

impl Shared {
    /// One step: the history is sent, and the answer heard; whether it was good.
    async fn step(&self, line: &mut Line, history: &mut History, at: (u64, u32)) -> bool {
        let (session, turn) = at;
        let began = Instant::now();
        let body = history.request(&self.asked.model);
        self.seen.borrow_mut().writing += began.elapsed();
        let sent = self.start.elapsed().as_secs_f64();
        let heard = line.ask(body).await;
        let since = |moment: Instant| moment.saturating_duration_since(self.start).as_secs_f64();
        let heard = match heard {
            Ok(heard) => heard,
            Err(says) => {
                let now = self.start.elapsed().as_secs_f64();
                self.rows.lock().push(Row {
                    session,
                    turn,
                    sent_s: sent,
                    first_s: now,
                    ended_s: now,
                    prompt: 0,
                    output: 0,
                    cached: 0,
                    is_good: false,
                });
                self.seen.borrow_mut().fault.get_or_insert(says);
                return false;
            }
        };
        let (sent_s, ended_s) = (since(heard.sent), since(heard.ended));
        history.sent(self.start_unix_s + sent_s);
        history.answered(&heard.answer, self.start_unix_s + ended_s);
        let mut seen = self.seen.borrow_mut();
        seen.reading += heard.reading;
        seen.events += heard.answer.events;
        self.rows.lock().push(Row {
            session,
            turn,
            sent_s,
            first_s: since(heard.first),
            ended_s,
            prompt: heard.answer.prompt,
            output: heard.answer.output,
            cached: heard.answer.cached.unwrap_or(0),
            is_good: true,
        });
        true
    }
}
