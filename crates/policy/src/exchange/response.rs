//! What a response becomes: forwarded, refused, or read to its end for nobody.
//!
//! Invariant: an upstream's word that our credential is bad never becomes the client's 401; a response in a form
//! that is not the API's is never forwarded as if it were.
//! Not here: forwarding (the host), reading usage ([`wire::meter`]), what it is charged (`charged`).

use std::time::Duration;

use wire::encoding::Coding;
use wire::filter::{Content, Pipe};
use wire::head::{Known, ResponseHead};
use wire::meter::Form;

use super::answered::tokens_of;
use super::ending::Ending;
use super::verdict::{Relay, Verdict};
use super::{Active, Env, OUT_OF_ORDER, Phase, Running};
use crate::attempt::{Failure, Sent, asked};
use crate::clock::Mono;
use crate::credential::UpstreamAuth;
use crate::disconnect::{DisconnectOutcome, OF_UNSEEN_PROMPTS, OnDisconnect, ReadBounds};
use crate::id::BackendId;
use crate::operation::Operation;
use crate::plain::fields::names_websocket;
use crate::record::{Outcome, Record};
use crate::refusal::Refusal;
use crate::request_id;
use crate::snapshot::{AskUsage, Snapshot};

/// What a response is charged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Metering {
    /// Nothing: no response, or not one that costs tokens.
    #[default]
    Nothing,
    /// What is read of it.
    Read,
    /// The same, and its id by which later calls may name it.
    Named,
    /// The same, and the pieces or seconds that it is billed by.
    Measured,
    /// Its size: a good one in a form that cannot be read.
    Size,
    /// What it says that it costs, if it says so: an error.
    Error,
    /// What it told of its usage before it broke, if it did: none of it was forwarded.
    Retracted,
}

/// What is done about a response whose client has left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Disconnected {
    /// What became of it.
    pub(super) rest: DisconnectOutcome,
    pub(super) at: Mono,
    /// The bounds within which it is read to its end, where it is.
    bounds: Option<ReadBounds>,
    /// Events that were forwarded.
    pub(super) forwarded_events: Option<u64>,
    /// Bytes that were read since.
    pub(super) bytes: u64,
}

/// Why a body is looked at before its head is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A stream was asked for, and its head names none, as some providers leave its type out or call it something else: where
    /// its first bytes [begin one](wire::sse::begins_events), the head is to say so.
    FirstBytes,
    /// A call that asks for usage was refused: where the refusal [names](names_usage) that, it is to be told of instead of the head.
    Refusal,
    /// Google may have refused the gate's key, with the status of a bad request: where the refusal [says](names_credential) so, the head
    /// is to have the status of a bad credential.
    Credential,
}

/// Bytes of a refusal that are looked at.
pub const REFUSAL_BYTES: usize = 16 << 10;

/// Whether a refusal names what makes a stream report its usage.
#[must_use]
pub fn names_usage(refusal: &[u8]) -> bool {
    const NAMES: [&[u8]; 2] = [b"stream_options", b"include_usage"];
    let has = |name: &[u8]| refusal.windows(name.len()).any(|part| part == name);
    NAMES.into_iter().any(has)
}

/// Whether a refusal of Google's says that the key is bad: the reason among its details. In what it quotes of a call a quotation mark
/// stands behind a backslash.
#[must_use]
pub fn names_credential(refusal: &[u8]) -> bool {
    const MEMBER: &[u8] = b"\"reason\"";
    const REASON: &[u8] = b"\"API_KEY_INVALID\"";
    let says = |at: usize| {
        let named = refusal.get(at..)?.strip_prefix(MEMBER)?;
        let value = named.trim_ascii_start().strip_prefix(b":")?;
        value.trim_ascii_start().strip_prefix(REASON)
    };
    (0..refusal.len()).any(|at| says(at).is_some())
}

impl Active {
    pub(super) fn look(
        &self,
        head: &ResponseHead,
        operation: Option<Operation>,
        s: &Snapshot,
        backend: Option<BackendId>,
    ) -> Option<Look> {
        let is_google = |operation| {
            matches!(
                operation,
                Operation::GenerateContent
                    | Operation::CountContent
                    | Operation::EmbedContent
                    | Operation::GeminiModels
            )
        };
        let may_be_credential =
            head.status == 400 && self.asked.or(operation).is_some_and(is_google);
        if !self.stream && !may_be_credential
            || self.left.is_some()
            || head.fields.count(Known::ContentEncoding) > 0
        {
            return None;
        }
        match head.status {
            _ if may_be_credential => Some(Look::Credential),
            200..=299 if !matches!(Content::of(head), Content::Events | Content::Frames) => {
                Some(Look::FirstBytes)
            }
            400 | 422 if self.asks_usage => {
                let backend = backend.and_then(|id| s.backend(id))?;
                (backend.ask_usage == AskUsage::Auto).then_some(Look::Refusal)
            }
            _ => None,
        }
    }
}

/// What a response is, by its head.
pub(super) struct Read {
    /// What filters it.
    pipe: Pipe,
    /// Of which call it is an answer, as far as it is metered.
    operation: Option<Operation>,
    content: Content,
}

impl Read {
    /// Whether it is none of the API's answers, though it tells of no error.
    #[inline]
    pub(super) fn is_of_another_api(&self, head: &ResponseHead) -> bool {
        let of = |is: fn(Operation) -> bool| self.operation.is_some_and(is);
        match head.status {
            200..=299 => {
                // What was asked for is a WebSocket.
                of(Operation::answers_json) && self.is_unread() || of(is_socket)
            }
            400.. => false,
            101 => !of(is_plain) && !names_websocket(&head.fields),
            status => status >= 300 && !of(is_plain),
        }
    }

    /// Whether nobody can read it. Frames one API alone has.
    fn is_unread(&self) -> bool {
        match self.content {
            Content::Json | Content::Events => false,
            Content::Frames => self.operation != Some(Operation::Converse),
            Content::Other => true,
        }
    }
}

fn is_socket(operation: Operation) -> bool {
    operation == Operation::RealtimeSocket
}

fn is_plain(operation: Operation) -> bool {
    operation == Operation::Http
}

/// Whether a response of another form may be an answer all the same, to a call that ran: a page or a redirect is none.
pub(super) fn may_hold_an_answer(head: &ResponseHead) -> bool {
    let kind = head.fields.get(Known::ContentType).unwrap_or_default();
    let is_page = kind
        .get(..9)
        .is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/html"));
    let is_empty = head.fields.get(Known::ContentLength) == Some(b"0");
    is_good(head) && head.status != 204 && !is_page && !is_empty
}

impl Running<'_> {
    /// What came, by its head.
    #[inline]
    pub(super) fn read_as(&self, head: &ResponseHead, now: Mono) -> Read {
        let active = &*self.call;
        let pipe = match active.asked {
            Some(_) => Pipe::of(&active.answering, head, self.unix_ms(now) / 1_000),
            None => Pipe::default(),
        };
        // What is metered is what comes, in the dialect that was asked for, where that can be read.
        let (operation, content) = match pipe.shape() {
            Some(shape) if !pipe.meters_what_comes() => (self.record.operation, shape.content),
            _ => (active.asked.or(self.record.operation), Content::of(head)),
        };
        Read {
            pipe,
            operation,
            content,
        }
    }

    /// The response that is used.
    pub(super) fn answered(
        &mut self,
        head: &ResponseHead,
        read: Read,
        env: &mut Env<'_>,
    ) -> Verdict {
        self.record.upstream_id = request_id::of_upstream(&head.fields).map(Box::from);
        let unix_ms = self.unix_ms(env.now);
        let active = &mut *self.call;
        let has_left = active.left.is_some();
        let is_unread = read.is_unread();
        let Read {
            pipe,
            operation,
            content,
        } = read;
        let checked = match active.asked {
            // What is coded cannot be filtered.
            Some(_) if head.fields.count(Known::ContentEncoding) > 0 => {
                Err(Refusal::Upstream(Failure::BadResponse))
            }
            None if operation == Some(Operation::Http) => {
                check_plain(head, self.record, env.snapshot)
            }
            _ => check(head, is_unread, unix_ms),
        };
        if !has_left && let Err(refusal) = checked {
            if is_good(head) {
                // As if none had come.
                active.sent.set(active.sent_before.get());
            }
            return self.refuse(refusal);
        }
        let withhold = active.withhold_usage
            && active
                .asked
                .is_none_or(|asked| Some(asked) == self.record.operation)
            && content == Content::Events
            && is_good(head)
            && head.fields.count(Known::ContentEncoding) == 0;
        (active.metering, active.form) = metering(
            self.record,
            operation,
            head,
            content,
            withhold,
            env.snapshot,
        );
        active.phase = Phase::Answered;
        let is_stream = pipe.shape().map_or(content, |shape| shape.content) == Content::Events;
        self.record.streamed = is_stream;
        let form = active.form;
        if let Some(left) = &mut active.left {
            left.forwarded_events = matches!(
                form,
                Form::Events { .. } | Form::NamedEvents | Form::CodedEvents(_) | Form::Frames
            )
            .then_some(0);
            let within = left.bounds.map_or(Duration::ZERO, |bounds| bounds.time);
            return Verdict::ReadToEnd { form, within };
        }
        self.record.status = head.status;
        let backend = self.record.backend.and_then(|id| env.snapshot.backend(id));
        let route = self.record.route.and_then(|id| env.snapshot.route(id));
        let verdict = Verdict::Relay(Relay {
            form,
            is_stream,
            idle: backend.map_or(Duration::ZERO, |backend| backend.timeouts.idle),
            stall: env.snapshot.bounds.write_stall,
            pipe,
            hold_back_bytes: route.map_or(0, |route| route.hold_back_bytes),
        });
        if head.status == 101 {
            return tunnel(verdict);
        }
        verdict
    }

    /// The body of the response broke off. Where nothing of it has left, the client gets an error instead.
    #[cold]
    pub(super) fn response_broke(&mut self, is_retracted: bool, is_malformed: bool) -> Verdict {
        if self.call.left.is_some() {
            self.end(Ending::Left);
            return Verdict::Finish;
        }
        if !is_retracted {
            self.end(Ending::Cut);
            return Verdict::Cut;
        }
        let active = &mut *self.call;
        if (200..300).contains(&self.record.status) {
            // It could not be read: as if none had come.
            active.sent.set(active.sent_before.get());
        }
        active.metering = match active.metering {
            Metering::Read | Metering::Named | Metering::Measured => Metering::Retracted,
            Metering::Nothing | Metering::Size | Metering::Error | Metering::Retracted => {
                Metering::Nothing
            }
        };
        self.record.streamed = false;
        self.refuse(Refusal::Upstream(if is_malformed {
            Failure::Malformed
        } else {
            Failure::Reset
        }))
    }

    /// A filter refuses what comes. Where nothing of it has left, the client is told so; else it sees a response that is not
    /// whole.
    #[cold]
    pub(super) fn response_refused(&mut self, code: &'static str, is_retracted: bool) -> Verdict {
        if is_retracted {
            self.record.streamed = false;
            return self.refuse(Refusal::Filtered { code });
        }
        self.ending.get_or_insert((Outcome::Refused, code));
        Verdict::Cut
    }

    /// There is no room for what has to be kept of it.
    #[cold]
    pub(super) fn response_without_room(&mut self, is_retracted: bool) -> Verdict {
        self.response_dropped(Refusal::Overloaded, is_retracted)
    }

    /// Too much was made of other answers that nobody takes.
    #[cold]
    pub(super) fn response_untaken(&mut self, is_retracted: bool) -> Verdict {
        self.response_dropped(Refusal::AnswersUntaken, is_retracted)
    }

    fn response_dropped(&mut self, refusal: Refusal, is_retracted: bool) -> Verdict {
        if is_retracted {
            self.record.streamed = false;
            return self.refuse(refusal);
        }
        let code = refusal.reply().code;
        self.ending.get_or_insert((Outcome::Failed, code));
        Verdict::Cut
    }

    /// The client left.
    #[cold]
    pub(super) fn disconnected(
        &mut self,
        events: Option<u64>,
        reading_on: usize,
        env: &mut Env<'_>,
    ) -> Verdict {
        let active = &mut *self.call;
        let is_under_way = active.is_answered() || active.sent.get() != Sent::Nothing;
        let bounds = if is_under_way {
            active.leave(events, reading_on, self.record, env)
        } else {
            None
        };
        match bounds {
            Some(bounds) => Verdict::ReadToEnd {
                form: active.form,
                within: bounds.time,
            },
            None => {
                self.end(Ending::Left);
                Verdict::Abandon
            }
        }
    }

    /// So much more was read of a response without a client.
    pub(super) fn read_on(
        &mut self,
        bytes: u64,
        events: Option<u64>,
        is_over: bool,
        now: Mono,
    ) -> Result<Verdict, Refusal> {
        let Active { form, left, .. } = &mut *self.call;
        let left = left.as_deref_mut().ok_or(OUT_OF_ORDER)?;
        left.bytes += bytes;
        let since = events.map(|events| events.saturating_sub(left.forwarded_events.unwrap_or(0)));
        let tokens = since.unwrap_or(tokens_of(left.bytes));
        if let Some(bounds) = left.bounds
            && !is_over
            // A stream that never pauses must come to its time too.
            && tokens <= bounds.tokens
            && now < left.at.after(bounds.time)
        {
            return Ok(Verdict::ReadToEnd {
                form: *form,
                within: bounds.time,
            });
        }
        if is_over {
            left.rest = DisconnectOutcome::ReadToEnd;
        }
        self.end(Ending::Left);
        Ok(Verdict::Finish)
    }
}

impl Active {
    /// What the route does when its client leaves: the bounds within which the response is read to its end.
    fn leave(
        &mut self,
        events: Option<u64>,
        reading_on: usize,
        record: &Record,
        env: &mut Env<'_>,
    ) -> Option<ReadBounds> {
        if let Some(left) = &self.left {
            return left.bounds;
        }
        let route = record.route.and_then(|id| env.snapshot.route(id));
        let has_room = reading_on < env.snapshot.bounds.reads_to_end;
        let said = match route.map_or(OnDisconnect::Unsaid, |route| route.abandon) {
            OnDisconnect::Unsaid if self.is_prompt_unseen => {
                OnDisconnect::ReadToEnd(OF_UNSEEN_PROMPTS)
            }
            said => said,
        };
        let (rest, bounds) = match said {
            OnDisconnect::Unsaid | OnDisconnect::Cancel => (DisconnectOutcome::Cancelled, None),
            OnDisconnect::ReadToEnd(bounds) if has_room => {
                (DisconnectOutcome::CutShort, Some(bounds))
            }
            OnDisconnect::ReadToEnd(_) => (DisconnectOutcome::NoRoom, None),
        };
        self.left = Some(Box::new(Disconnected {
            rest,
            at: env.now,
            bounds,
            forwarded_events: events,
            bytes: 0,
        }));
        bounds
    }
}

/// Refuses what must not be passed on.
fn check(head: &ResponseHead, is_unread: bool, unix_ms: u64) -> Result<(), Refusal> {
    match head.status {
        401 | 403 => Err(Refusal::UpstreamCredential),
        400.. if is_unread => Err(unreadable(head, unix_ms)),
        _ => Ok(()),
    }
}

/// What was to be forwarded is a tunnel.
#[cold]
fn tunnel(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Relay(relay) => Verdict::Tunnel(relay),
        other => other,
    }
}

/// The same of plain HTTP, whose answers are its service's own but for one: that our credential is bad.
#[cold]
fn check_plain(head: &ResponseHead, record: &Record, s: &Snapshot) -> Result<(), Refusal> {
    // That it was asked for, its host has seen to.
    if head.status == 101 && !names_websocket(&head.fields) {
        return Err(Refusal::Upstream(Failure::BadResponse));
    }
    let endpoint = record.endpoint.and_then(|id| s.endpoint(id));
    let is_ours = endpoint.is_some_and(|endpoint| endpoint.auth != UpstreamAuth::None);
    if head.status == 401 && is_ours {
        return Err(Refusal::UpstreamCredential);
    }
    Ok(())
}

/// An error in a form that is not the API's. What it says of waiting is passed on.
#[cold]
fn unreadable(head: &ResponseHead, unix_ms: u64) -> Refusal {
    match asked(head, unix_ms) {
        Some(wait) => Refusal::UpstreamBusy {
            status: head.status,
            wait,
        },
        None => Refusal::Upstream(Failure::Status(head.status)),
    }
}

/// What a response is charged by, and how it is read. `operation` is what its upstream was asked for.
fn metering(
    record: &Record,
    operation: Option<Operation>,
    head: &ResponseHead,
    content: Content,
    withhold: bool,
    s: &Snapshot,
) -> (Metering, Form) {
    if is_charged_as_written(record, s) {
        // A tunnel that begins is what was asked for.
        let metering = if is_good(head) || head.status == 101 {
            Metering::Size
        } else {
            Metering::Nothing
        };
        return (metering, Form::Unread);
    }
    if !operation.is_some_and(Operation::reports_usage) {
        return (Metering::Nothing, Form::Unread);
    }
    let is_plain = head.fields.count(Known::ContentEncoding) == 0;
    if !is_good(head) {
        return if is_plain && content == Content::Json {
            (Metering::Error, Form::Json)
        } else {
            (Metering::Nothing, Form::Unread)
        };
    }
    let coding = || {
        let coding = head.fields.only(Known::ContentEncoding).ok().flatten();
        coding.and_then(Coding::of)
    };
    let form = match content {
        Content::Json if is_plain => Some(Form::Json),
        Content::Events if is_plain => Some(Form::Events { withhold }),
        Content::Json => coding().map(Form::CodedJson),
        Content::Events => coding().map(Form::CodedEvents),
        Content::Frames if is_plain => Some(Form::Frames),
        Content::Frames | Content::Other => None,
    };
    match form {
        Some(form) if is_special(operation) => special(operation, form),
        Some(form) => (Metering::Read, form),
        None => (Metering::Size, Form::Unread),
    }
}

/// Whether more than its usage is read of an answer.
fn is_special(operation: Option<Operation>) -> bool {
    matches!(
        operation,
        Some(
            Operation::Responses
                | Operation::Images
                | Operation::ImageEdits
                | Operation::Transcriptions
        )
    )
}

/// How an answer is read that later calls may name, or that is billed by the piece; in a coding neither is looked for.
#[cold]
fn special(operation: Option<Operation>, form: Form) -> (Metering, Form) {
    match (operation, form) {
        (Some(Operation::Responses), Form::Json) => (Metering::Named, Form::NamedJson),
        (Some(Operation::Responses), Form::Events { withhold: false }) => {
            (Metering::Named, Form::NamedEvents)
        }
        (Some(Operation::Responses), form) => (Metering::Read, form),
        (_, Form::Json) => (Metering::Measured, Form::MeasuredJson),
        (_, form) => (Metering::Measured, form),
    }
}

/// Whether its status says that the call was done.
fn is_good(head: &ResponseHead) -> bool {
    (200..300).contains(&head.status)
}

/// Whether its route says what a call is charged, whatever its response says.
pub(super) fn is_charged_as_written(record: &Record, s: &Snapshot) -> bool {
    let Some(nth) = record.listed else {
        return false;
    };
    let route = record.route.and_then(|id| s.route(id));
    let listed = route.and_then(|route| route.unread.get(usize::from(nth)));
    listed.is_some_and(|listed| listed.tokens.is_some() || listed.price.is_some())
}

#[cfg(test)]
mod tests {
    use super::names_credential;

    #[test]
    fn a_bad_key_is_told_by_the_reason_of_a_refusal_and_by_no_words_of_a_call() {
        let google = br#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason": "API_KEY_INVALID","domain":"googleapis.com"}]}}"#;
        assert!(names_credential(google));
        for other in [
            &br#"{"error":{"code":400,"message":"Unknown name \"reason\": \"API_KEY_INVALID\""}}"#
                [..],
            br#"{"error":{"details":[{"reason":"API_KEY_INVALID_X"}]}}"#,
            br#"{"error":{"message":"API_KEY_INVALID"}}"#,
            br#"{"reason""#,
            b"",
        ] {
            assert!(!names_credential(other));
        }
    }
}
