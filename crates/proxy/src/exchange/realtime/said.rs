//! What either side of a session says: which of it passes, what it asks for, and which answers it tells of.
//!
//! Invariant: nothing of a client's passes that is not known by its name; a model that it names is one that its rules lead here.
//! Not here: how messages come and go (`realtime`), the members of events (`wire::call`).

use std::borrow::Cow;

use policy::exchange::SaidSoFar;
use policy::realtime::{self, EVENTS};
use policy::refusal::Refusal;
use policy::snapshot::Snapshot;
use wire::call::{Cap, NoEvent, RealtimeAsked, RealtimeTold, media_bytes, stored_in};
use wire::usage::Reading;
use wire::websocket;

use super::answer::{Wanted, admit, elsewhere};
use super::{ANSWERS_MAX, Admitting, AskedFor, Create, Made, Over, Session};
use crate::client::Downstream;

/// What is known of a session by what was said on it.
pub(super) struct Said {
    /// Its model, as its client names it.
    pub(super) model: Option<Box<str>>,
    /// The same, as the server does.
    pub(super) told: Option<Box<str>>,
    transcription: Transcription,
    /// Bytes of sound since something was written down, in Base64.
    pub(super) sound: u64,
    /// What the server says of the length of each answer: what its client asks for it may refuse.
    pub(super) cap: Option<Cap>,
    pub(super) context: SaidSoFar,
    ids: u64,
}

impl Said {
    pub(super) fn new(model: Option<Box<str>>) -> Self {
        Self {
            model,
            told: None,
            transcription: Transcription::default(),
            sound: 0,
            cap: None,
            context: SaidSoFar::default(),
            ids: 0,
        }
    }

    /// The model of what is written down.
    pub(super) fn writes(&self) -> Option<Box<str>> {
        let of = &self.transcription;
        let model = of.current.as_ref().or(of.named.as_ref());
        model.or(self.model.as_ref()).cloned()
    }

    /// A name for an event of the gate's own.
    pub(super) fn next_id(&mut self) -> Box<str> {
        self.ids += 1;
        format!("event_tollgate_{}", self.ids).into()
    }
}

/// The model that writes down what is said.
#[derive(Default)]
struct Transcription {
    /// As its client named it last: it may be refused.
    named: Option<Box<str>>,
    /// The name by which the server told of it last.
    told: Option<Box<str>>,
    /// The one in use, by that.
    current: Option<Box<str>>,
}

impl Transcription {
    /// The server tells which one it uses, where it uses any; `is_known` says whether a model is served here by its name.
    fn told(&mut self, told: Option<Box<str>>, is_known: impl Fn(&str) -> bool) {
        if told.is_some() && told == self.told {
            return;
        }
        let named = self.named.clone();
        self.current = match (&told, named) {
            (Some(told), Some(named)) if is_named(told, &named) => Some(named),
            (Some(told), _) if is_known(told) => Some(told.clone()),
            // By a name that means something there alone.
            (Some(told), named) => named.or_else(|| Some(told.clone())),
            (None, _) => None,
        };
        self.told = told;
    }
}

/// Whether a server's name of a model is the client's, or that with its date.
fn is_named(told: &str, named: &str) -> bool {
    let rest = told.strip_prefix(named);
    rest.is_some_and(|rest| {
        rest.is_empty() || (rest.starts_with("-2") && !rest.contains(char::is_alphabetic))
    })
}

/// A client's event, and what stands in it.
pub(super) struct Heard {
    text: String,
    asked: Result<RealtimeAsked, NoEvent>,
    /// The first member that names what an account keeps, where others use it.
    stored: Option<&'static str>,
    /// Bytes of it that are sound or pictures.
    media: usize,
}

impl Heard {
    /// Looks through an event, which takes as long as it is.
    pub(super) fn of(text: String, shares_account: bool) -> Self {
        let bytes = text.as_bytes();
        let asked = RealtimeAsked::read(bytes);
        let name = asked.as_ref().map_or("", |asked| &*asked.name);
        let is_of_sound = name.starts_with("input_audio_buffer");
        Self {
            stored: match shares_account && !is_of_sound {
                true => stored_in(bytes),
                false => None,
            },
            media: match name {
                "response.create" | "conversation.item.create" | "input_audio_buffer.append" => {
                    media_bytes(bytes)
                }
                _ => 0,
            },
            asked,
            text,
        }
    }
}

/// Why a client's event is refused.
fn no_event(why: NoEvent) -> Refusal {
    let says = match why {
        NoEvent::Unread => {
            "a message has to be an event: an object with one `type`, and no member twice that this gateway reads"
        }
        NoEvent::Model => "a member `model` is no name of a model",
        NoEvent::Cap => {
            "a cap of output is a whole number without a point or an exponent, or `inf`"
        }
    };
    Refusal::RealtimeEvent { says: says.into() }
}

impl<'s, D: Downstream> Session<'s, D> {
    /// A client's event.
    pub(super) fn client_said(&mut self, heard: &Heard) {
        let (asked, text) = match &heard.asked {
            Ok(asked) => (asked, heard.text.as_bytes()),
            Err(why) => return self.tell(&no_event(*why), None),
        };
        match self.passes(asked, heard.stored) {
            Err(refusal) => self.tell(&refusal, asked.id.as_deref()),
            Ok(model) if &*asked.name == "response.create" => {
                self.create(asked, heard, model.as_deref());
            }
            Ok(model) => {
                self.note(asked, heard);
                let event = match &model {
                    Some(model) => Cow::Owned(asked.edited(text, Some(model), None)),
                    None => Cow::Borrowed(text),
                };
                self.pass_up(&event);
            }
        }
    }

    /// Whether an event passes; gives the backend's own name of its model, where it has to be said.
    fn passes(
        &self,
        asked: &RealtimeAsked,
        stored: Option<&'static str>,
    ) -> Result<Option<String>, Refusal> {
        if !EVENTS.contains(&&*asked.name) {
            let says = format!("the event {:?} is not served here", asked.name);
            return Err(Refusal::RealtimeEvent { says: says.into() });
        }
        if let Some(member) = stored {
            return Err(Refusal::SharedAccount { member });
        }
        let view = self.worker.view();
        let s = view.snapshot();
        if let Some(model) = &asked.transcription {
            let name = self.name_here(s, model)?;
            if name.is_some() {
                let says = format!(
                    "the model {model:?} has another name where this session is, which transcriptions are not told by"
                );
                return Err(Refusal::RealtimeEvent { says: says.into() });
            }
        }
        let Some(model) = &asked.model else {
            return Ok(None);
        };
        let name = self.name_here(s, model)?;
        // A server keeps to the model of the address, whatever it is told.
        if self.said.model.as_ref() != Some(model) {
            let says = "a session, and each answer on it, keeps to the model of its address: open a session of its own for another one";
            return Err(Refusal::RealtimeEvent { says: says.into() });
        }
        Ok(name)
    }

    /// Whether others use the account that the session uses.
    pub(super) fn shares_account(&self) -> bool {
        let view = self.worker.view();
        let s = view.snapshot();
        let id = s.workload_named(self.opening.workload.as_bytes());
        let shares = |id| {
            s.workload(id)
                .is_none_or(|workload| workload.shares_account)
        };
        let (Some(id), true) = (id, id.is_none_or(shares)) else {
            return id.is_none();
        };
        let caller = self.active.exchange.record().caller.as_deref();
        let model = self.said.model.as_deref();
        let chosen = realtime::route(s, id, caller, model);
        chosen.map_or(true, |chosen| !chosen.route.is_exclusive)
    }

    /// The backend's own name of a model, where that is another one.
    ///
    /// # Errors
    /// No rule of the caller's takes the model, or it leads elsewhere.
    fn name_here(&self, s: &Snapshot, model: &str) -> Result<Option<String>, Refusal> {
        let workload = s.workload_named(self.opening.workload.as_bytes());
        let workload = workload.ok_or_else(elsewhere)?;
        let caller = self.active.exchange.record().caller.as_deref();
        let chosen = realtime::route(s, workload, caller, Some(model))?;
        let endpoint = self.opening.place(s, chosen.route).ok_or_else(elsewhere)?;
        let backend = s.backend_of(endpoint).ok_or_else(elsewhere)?;
        let sent = chosen.route.model.as_deref().unwrap_or(model);
        let name = backend.model_name(sent);
        Ok((name != model).then(|| name.to_owned()))
    }

    /// An answer is asked for.
    fn create(&mut self, asked: &RealtimeAsked, heard: &Heard, model: Option<&str>) {
        if self.asked.len() + self.answers.len() + self.made.len() >= ANSWERS_MAX {
            let says = format!("{ANSWERS_MAX} answers are asked for and not over");
            let refusal = Refusal::RealtimeEvent { says: says.into() };
            return self.tell(&refusal, asked.id.as_deref());
        }
        let text = heard.text.as_bytes();
        self.add(text.len(), heard.media);
        let own = asked.id.is_none().then(|| self.said.next_id());
        let event = asked.edited(text, model, own.as_deref());
        let id = asked.id.clone().or(own).unwrap_or_default();
        let admitting = self.judge(self.wanted(asked.cap));
        self.admitting = Some(Create {
            admitting,
            event,
            id,
            named: asked.id.clone(),
            is_apart: asked.is_apart,
        });
    }

    fn judge(&self, wanted: Wanted) -> Admitting<'s> {
        let opening = self.opening;
        Box::pin(admit(opening, wanted))
    }

    /// What an event that passes changes.
    fn note(&mut self, asked: &RealtimeAsked, heard: &Heard) {
        let bytes = heard.text.len();
        match &*asked.name {
            "session.update" | "transcription_session.update" => {
                if let Some(model) = &asked.transcription {
                    self.said.transcription.named = Some(model.clone());
                }
                self.add(bytes, 0);
            }
            "conversation.item.create" | "input_audio_buffer.append" => {
                self.add(bytes, heard.media);
            }
            _ => {}
        }
    }

    /// So much was said that the next answer reads, and so much of it is sound or pictures.
    fn add(&mut self, bytes: usize, media: usize) {
        let (text, media) = (bytes.saturating_sub(media) as u64, media as u64);
        let context = &mut self.said.context;
        context.text_bytes = context.text_bytes.saturating_add(text);
        context.audio_bytes = context.audio_bytes.saturating_add(media);
        self.said.sound = self.said.sound.saturating_add(media);
    }

    /// A server's event, which passes as it came.
    pub(super) fn service_said(&mut self, text: &[u8]) {
        match RealtimeTold::read(text) {
            Some(RealtimeTold::Begun { id }) => self.begun(id),
            Some(RealtimeTold::Piece { id, is_audio }) => {
                self.piece(&id, text.len(), is_audio);
            }
            Some(RealtimeTold::Ended { id, usage, is_good }) => self.ended(&id, usage, is_good),
            Some(RealtimeTold::Transcribing { item }) => self.transcribing(item, text.len()),
            Some(RealtimeTold::NotTranscribed { item }) => self.transcribed_item(&item),
            Some(RealtimeTold::Transcribed {
                item,
                usage,
                seconds,
            }) => {
                if let Some(item) = item {
                    self.transcribed_item(&item);
                }
                self.transcribed(usage, seconds, text.len());
            }
            Some(RealtimeTold::Session {
                model,
                transcription,
                cap,
            }) => {
                self.said.cap = cap.or(self.said.cap);
                self.said.told = model.or(self.said.told.take());
                self.transcription_told(transcription);
            }
            Some(RealtimeTold::Refused { event: Some(event) }) => {
                let mut asked = self.asked.iter();
                if let Some(at) = asked.position(|asked| asked.id == event)
                    && let Some(asked) = self.asked.remove(at)
                {
                    asked.answer.refused_upstream();
                }
            }
            Some(RealtimeTold::Refused { event: None } | RealtimeTold::Other) | None => {}
        }
        websocket::text(text, &mut self.to_client);
    }

    /// The server tells what writes down what is said.
    fn transcription_told(&mut self, told: Option<Box<str>>) {
        let mut of = std::mem::take(&mut self.said.transcription);
        let view = self.worker.view();
        of.told(told, |model| self.name_here(view.snapshot(), model).is_ok());
        self.said.transcription = of;
    }

    /// An answer begins: the first that was asked for, or one of the server's own.
    fn begun(&mut self, id: Box<str>) {
        match self.asked.pop_front() {
            Some(AskedFor { answer, .. }) => self.answers.push((id, answer)),
            None => self.make(id, self.made_by_itself(), None),
        }
    }

    fn made_by_itself(&self) -> Wanted {
        Wanted {
            is_made: true,
            ..self.wanted(None)
        }
    }

    fn make(&mut self, id: Box<str>, wanted: Wanted, over: Option<Over>) {
        let admitting = self.judge(wanted.clone());
        self.made.push(Made {
            id,
            wanted,
            admitting,
            pieces: Vec::new(),
            over,
        });
    }

    fn piece(&mut self, id: &str, bytes: usize, is_audio: bool) {
        let mut answers = self.answers.iter_mut();
        if let Some((_, answer)) = answers.find(|(of, _)| **of == *id) {
            return answer.take(bytes, is_audio);
        }
        let mut made = self.made.iter_mut();
        if let Some(made) = made.find(|made| *made.id == *id) {
            made.pieces.push((bytes, is_audio));
        }
    }

    fn ended(&mut self, id: &str, usage: Box<Reading>, is_good: bool) {
        let at = self.answers.iter().position(|(of, _)| **of == *id);
        if let Some(at) = at {
            let (_, answer) = self.answers.swap_remove(at);
            if !answer.is_apart {
                self.read_so_far(&usage);
            }
            return answer.end(&usage, is_good);
        }
        let mut made = self.made.iter_mut();
        match made.find(|made| *made.id == *id && made.over.is_none()) {
            Some(made) => {
                let so_far = usage.clone();
                made.over = Some(Over::Done(usage, is_good));
                self.read_so_far(&so_far);
            }
            // One whose beginning was not told.
            None => {
                let over = Some(Over::Done(usage, is_good));
                match self.asked.pop_front() {
                    Some(AskedFor { answer, .. }) => {
                        if let Some(Over::Done(usage, is_good)) = over {
                            answer.end(&usage, is_good);
                        }
                    }
                    None => self.make(id.into(), self.made_by_itself(), over),
                }
            }
        }
    }

    /// An answer of the conversation read and made so much, and the next one reads that again.
    fn read_so_far(&mut self, usage: &Reading) {
        if let Reading::Valid(usage) = usage {
            let told = |count: Option<u64>| count.unwrap_or(0);
            self.said.context = SaidSoFar {
                tokens: told(usage.prompt).saturating_add(told(usage.completion)),
                ..SaidSoFar::default()
            };
        }
    }

    /// What was said is written down, by a model of its own: one call of that.
    fn transcribed(&mut self, usage: Box<Reading>, seconds: Option<u64>, bytes: usize) {
        let over = match (seconds, &*usage) {
            (Some(seconds), _) => Over::Seconds(seconds),
            (None, _) => Over::Done(usage, true),
        };
        let context = SaidSoFar {
            audio_bytes: std::mem::take(&mut self.said.sound),
            ..SaidSoFar::default()
        };
        let wanted = Wanted {
            model: self.said.writes(),
            told: None,
            context,
            cap: None,
            is_over: true,
            is_made: true,
        };
        self.make("".into(), wanted, Some(over));
        if let Some(made) = self.made.last_mut() {
            made.pieces.push((bytes, false));
        }
    }
}
