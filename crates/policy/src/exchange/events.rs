//! What happens to an exchange, a method for each event: its host says what happened, and gets a verdict.
//!
//! Invariant: an event that its stage cannot have ends it as a fault of the gate's own; what it holds is settled at its end.
//! Not here: what follows from an event (`reading`, `attempting`, `response`, `answered`), the verdicts (`verdict`).

use bytes::Bytes;
use wire::call::CallHead;
use wire::filter::{Stop, Unfit};
use wire::head::{RequestHead, ResponseHead};

use super::ending::Ending;
use super::{Answer, Env, Exchange, Look, Lost, OUT_OF_ORDER, Stage, Unsaid, Verdict};
use crate::attempt::Failure;
use crate::caller::Peer;
use crate::record::Outcome;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;

impl Exchange {
    /// Its head was read: who asks, for what, and whether its body is welcome. `length` is what its body declares;
    /// `awaits_continue` says that the client sends it once it is asked to.
    #[inline(always)]
    pub fn read_head(
        &mut self,
        head: &RequestHead,
        peer: &Peer,
        length: Option<u64>,
        awaits_continue: bool,
        env: &mut Env<'_>,
    ) -> Verdict {
        let judged = self.head(head, peer, length, awaits_continue, env);
        self.or_refuse(judged)
    }

    /// The request cannot be read, or there is no room for it.
    #[cold]
    pub fn refuse_unread(&mut self, refusal: Refusal) -> Verdict {
        self.refuse(refusal)
    }

    /// The rest of the body is not here yet; to be told once.
    #[cold]
    pub fn await_body(&mut self, env: &mut Env<'_>) -> Verdict {
        let judged = self.look(env);
        self.or_refuse(judged)
    }

    /// So many bytes of the body came.
    #[inline]
    pub fn read_body(&mut self, bytes: usize, env: &mut Env<'_>) -> Verdict {
        let judged = self.body(bytes, env);
        self.or_refuse(judged)
    }

    /// The body is whole, in these pieces; `call` is what it says, where it is read. What the exchange needs of it is taken out.
    #[inline]
    pub fn end_body(
        &mut self,
        head: &RequestHead,
        call: Option<&mut CallHead>,
        body: &[Bytes],
        env: &mut Env<'_>,
    ) -> Verdict {
        let judged = self.body_end(head, call, body, env);
        self.or_refuse(judged)
    }

    /// What was asked is answered; head and peer are the request's.
    #[inline]
    pub fn answer(
        &mut self,
        answer: Answer,
        head: &RequestHead,
        peer: &Peer,
        env: &mut Env<'_>,
    ) -> Verdict {
        let judged = match answer {
            Answer::Entered => return self.entered(env),
            Answer::Identified(answer) => self.told_who(head, peer, answer, env),
            Answer::Authorized(answer) => self.told_whether(head, answer, env),
            Answer::Minted(credential) => self.of_a_call(|call| call.minted(credential, env)),
            Answer::Counted(tokens) => self.of_a_call(|call| call.counted(tokens)),
            Answer::Picked(picked) => self.of_a_call(|call| call.picked(picked, env)),
            Answer::LoggedIn(reply) if matches!(self.stage, Stage::LoggingIn) => {
                Ok(self.logged_in(reply, env.snapshot))
            }
            Answer::LoggedIn(_) => Err(OUT_OF_ORDER),
            Answer::Unanswered => Ok(self.unanswered(env)),
        };
        self.or_refuse(judged)
    }

    /// It is in the ledger, as durably as was asked.
    #[inline]
    pub fn entered(&mut self, env: &mut Env<'_>) -> Verdict {
        let judged = self.of_a_call(|call| call.entered(env));
        self.or_refuse(judged)
    }

    /// An attempt brought the head of a response.
    #[inline]
    pub fn response_head(&mut self, head: &ResponseHead, env: &mut Env<'_>) -> Verdict {
        let judged = self.of_a_call(|call| Ok(call.response_head(head, env)));
        self.or_refuse(judged)
    }

    /// Why the body of a response is to be looked at before its head is told of, if it is.
    #[inline]
    #[must_use]
    pub fn look_at(&self, head: &ResponseHead, s: &Snapshot) -> Option<Look> {
        match &self.stage {
            Stage::Active(active) => {
                active.look(head, self.record.operation, s, self.record.backend)
            }
            Stage::Idle
            | Stage::LoggingIn
            | Stage::Identifying(_)
            | Stage::Reading(_)
            | Stage::Asking(_) => None,
        }
    }

    /// An attempt was refused with this status, naming what asks for usage.
    #[cold]
    pub fn refused_usage(&mut self, status: u16, env: &mut Env<'_>) -> Verdict {
        let judged = self.of_a_call(|call| call.refused_usage(status, env));
        self.or_refuse(judged)
    }

    /// A filter of the attempt under way cannot say the call.
    #[cold]
    pub fn unfit(&mut self, unfit: Unfit, env: &mut Env<'_>) -> Verdict {
        if let Some(call) = self.running() {
            let prompt = call.call.unfit.take().and_then(|before| before.prompt);
            call.call.unfit = Some(Box::new(Unsaid {
                what: unfit.what.into(),
                is_of_account: unfit.is_of_account,
                prompt,
            }));
        }
        self.attempt_failed(Failure::Untranslatable.into(), env)
    }

    /// A filter stopped the response. `is_retracted`: nothing of it has left, and the client can be told otherwise.
    #[cold]
    pub fn response_stopped(&mut self, stop: Stop, is_retracted: bool) -> Verdict {
        match stop {
            Stop::Malformed => self.response_broke(is_retracted, true),
            Stop::NoRoom => {
                let judged = self.of_a_call(|call| Ok(call.response_without_room(is_retracted)));
                self.or_refuse(judged)
            }
            Stop::Untaken => {
                let judged = self.of_a_call(|call| Ok(call.response_untaken(is_retracted)));
                self.or_refuse(judged)
            }
            Stop::Refused(code) => {
                let judged = self.of_a_call(|call| Ok(call.response_refused(code, is_retracted)));
                self.or_refuse(judged)
            }
        }
    }

    /// An attempt brought none.
    #[cold]
    pub fn attempt_failed(&mut self, lost: Lost, env: &mut Env<'_>) -> Verdict {
        let judged = self.of_a_call(|call| Ok(call.attempt_failed(lost, env)));
        self.or_refuse(judged)
    }

    /// The body of the response broke off. `is_retracted`: nothing of it has left, and the client can be told otherwise;
    /// `is_malformed`: its framing is broken, else its connection ended.
    #[cold]
    pub fn response_broke(&mut self, is_retracted: bool, is_malformed: bool) -> Verdict {
        let judged = self.of_a_call(|call| Ok(call.response_broke(is_retracted, is_malformed)));
        self.or_refuse(judged)
    }

    /// So many bytes of the response were read after its client had left, and so many data events of a stream in all.
    pub fn read_on(
        &mut self,
        bytes: u64,
        events: Option<u64>,
        is_over: bool,
        env: &mut Env<'_>,
    ) -> Verdict {
        let judged = self.of_a_call(|call| call.read_on(bytes, events, is_over, env.now));
        self.or_refuse(judged)
    }

    /// What the last verdict has the host wait for did not come in time: who waits for whom says what that means.
    #[cold]
    pub fn stalled(&mut self, env: &mut Env<'_>) -> Verdict {
        match &self.stage {
            Stage::Reading(reading) if !reading.is_asking => self.refuse(Refusal::Slow),
            Stage::Active(active) if active.left.is_some() => {
                self.end(Ending::Left);
                Verdict::Abandon
            }
            Stage::Active(active) if active.is_answered() => {
                self.end(Ending::Cut);
                Verdict::Cut
            }
            Stage::Idle
            | Stage::LoggingIn
            | Stage::Identifying(_)
            | Stage::Reading(_)
            | Stage::Asking(_)
            | Stage::Active(_) => self.unanswered(env),
        }
    }

    /// The client left, or took nothing in time. `events`: data events of a stream so far; `reading_on`: answers that this
    /// worker reads to their end now, without clients.
    #[cold]
    pub fn disconnected(
        &mut self,
        events: Option<u64>,
        reading_on: usize,
        env: &mut Env<'_>,
    ) -> Verdict {
        if let Some(mut call) = self.running() {
            return call.disconnected(events, reading_on, env);
        }
        self.end(Ending::Left);
        Verdict::Abandon
    }

    /// The response, or the gate's own, has left whole. `told_error`: a stream told of an error, which no status can after
    /// its head.
    #[inline]
    pub fn sent_whole(&mut self, told_error: bool) -> Verdict {
        self.end(Ending::Whole { told_error });
        Verdict::Finish
    }

    /// The stream has left as it came, in order, and never told where its answer ends: it broke off for all who read it, as one does
    /// whose connection is cut.
    #[cold]
    pub fn sent_without_end(&mut self) -> Verdict {
        self.end(Ending::Cut);
        Verdict::Finish
    }

    /// The client left with all of the response: its end had been told, and the upstream's connection alone went on. `told_error` as in
    /// [`Self::sent_whole`].
    #[cold]
    pub fn left_at_end(&mut self, told_error: bool) -> Verdict {
        self.end(Ending::Whole { told_error });
        Verdict::Abandon
    }

    /// The host gives it up; with `has_stopped` since the gate stops: its drain is over.
    #[cold]
    pub fn give_up(&mut self, has_stopped: bool) {
        let is_left = matches!(&self.stage, Stage::Active(active) if active.left.is_some());
        // Whoever has left, and whoever was being refused, is not the gate's doing.
        let is_refused = !self.record.code.is_empty();
        if is_refused {
            self.ending = Some((Outcome::Aborted, self.record.code));
        }
        self.end(if has_stopped && !is_left {
            Ending::Stopped
        } else {
            Ending::Left
        });
    }
}
