//! What is made: a file that is sent, a batch that is begun.
//!
//! Invariant: once it was sent it is kept as the caller's, also where the caller has left meanwhile.
//! Not here: what may be asked for (`policy::batches::Checker`).

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use policy::attempt::Failure;
use policy::batch_store::{At, Away, BatchStore, Kind, NotKept, OF_CALLS, PURPOSES, Thing};
use policy::batches;
use policy::front::Http;
use policy::id::BackendId;
use policy::operation::Operation;
use policy::refusal::{BatchRefusal, Refusal};
use wire::batch::{Api, Asked, Object, creation};
use wire::call::{Boundary, Upload};
use wire::head::Known;

use super::send::{self, ToProvider};
use super::{Arrived, admitted_for, answer, kept, looked_at};
use crate::call::{Call, Stop, while_there};
use crate::client::Downstream;
use crate::tools::Failed;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// How often a disk that is away is tried again, and how many times: it holds up nobody but who waits for this batch.
const KEPT_EVERY: Duration = Duration::from_secs(1);
const KEPT_TRIES: u32 = 60;

/// What its calls ask for, each once.
type Calls = Box<[(Operation, Box<str>)]>;

pub(super) async fn serve<D: Downstream>(
    call: &mut Call,
    of: &Arrived<'_>,
    body: Vec<u8>,
    who: &Http<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let mut codings = of.head.fields.of(Known::ContentEncoding);
    if codings.any(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
        return Err(call.refuse(Refusal::ContentEncoding));
    }
    let body = Bytes::from(body);
    let (kind, calls) = match of.named.asked {
        Asked::Upload => uploaded(call, of, &body, client).await?,
        _ => begun(call, of, &body, client).await?,
    };
    let store = call.store()?;
    match store.has_room(of.owner.workload.clone()).await {
        Ok(true) => {}
        Ok(false) => return Err(call.refuse(BatchRefusal::TooManyKept)),
        Err(Away) => return Err(call.refuse(BatchRefusal::Unavailable)),
    }
    admitted_for(call, of, &calls, who, client).await?;
    let (status, told) = made(call, of, (kind, body), calls, client).await?;
    answer::told(call, status, &told, client).await
}

/// Reads a file that is sent: its type, and what it asks for.
async fn uploaded<D: Downstream>(
    call: &mut Call,
    of: &Arrived<'_>,
    body: &Bytes,
    client: &mut D,
) -> Result<(Box<[u8]>, Calls), Stop> {
    let kind = send::kind_of(of.head);
    let boundary = kind.as_deref().and_then(Boundary::of);
    let (Some(kind), Some(boundary)) = (kind, boundary) else {
        return Err(call.refuse(Refusal::FormType));
    };
    let refused = |says: String| BatchRefusal::Upload { says: says.into() };
    let upload = match Upload::read(&boundary, body) {
        Ok(upload) => upload,
        Err(fault) => return Err(call.refuse(refused(fault.to_string()))),
    };
    let purpose = match (of.api, upload.purpose.as_deref()) {
        // Its files hold no calls.
        (Api::Anthropic, None) => return Ok((kind, Calls::default())),
        (Api::OpenAi, Some(purpose)) => purpose,
        (Api::OpenAi, None) => {
            return Err(call.refuse(refused("the form has no part `purpose`".to_owned())));
        }
        (Api::Anthropic, Some(_)) => {
            let says = "the form has a part `purpose`, which this API does not";
            return Err(call.refuse(refused(says.to_owned())));
        }
    };
    if !PURPOSES.contains(&purpose) {
        let says = format!("`purpose` must be one of {}", PURPOSES.join(", "));
        return Err(call.refuse(refused(says)));
    }
    if purpose != OF_CALLS {
        return Ok((kind, Calls::default()));
    }
    let checked = looked_at(call, of, body, Some(upload.file), client).await?;
    Ok((kind, checked.calls))
}

/// Reads a batch that is to begin: the type of its body, and what it asks for.
async fn begun<D: Downstream>(
    call: &mut Call,
    of: &Arrived<'_>,
    body: &Bytes,
    client: &mut D,
) -> Result<(Box<[u8]>, Calls), Stop> {
    let kind = send::kind_of(of.head).filter(|kind| policy::exchange::is_json(kind));
    let Some(kind) = kind else {
        return Err(call.refuse(Refusal::ContentType));
    };
    let calls = match of.api {
        Api::Anthropic => looked_at(call, of, body, None, client).await?.calls,
        Api::OpenAi => {
            let asked = match creation(body) {
                Ok(asked) => asked,
                Err(fault) => {
                    let says = fault.to_string().into();
                    return Err(call.refuse(BatchRefusal::Upload { says }));
                }
            };
            let at = At {
                backend: of.backend.clone(),
                kind: Kind::File,
                id: asked.file,
            };
            let file = kept(call, of, at).await?;
            if file.calls.is_empty() {
                let says = "the file of `input_file_id` is none of calls: it was not sent with the purpose `batch`";
                return Err(call.refuse(BatchRefusal::Upload { says: says.into() }));
            }
            let others = |(of, _): &(Operation, _)| asked.operation.is_some_and(|said| said != *of);
            if file.calls.iter().any(others) {
                let says = "the member `endpoint` is not the `url` of all calls of the file";
                return Err(call.refuse(BatchRefusal::Upload { says: says.into() }));
            }
            file.calls
        }
    };
    let view = Rc::clone(&call.view);
    let most = call
        .rule(of.api, view.snapshot())
        .map_or(0, |(_, of, _)| of.unsettled);
    let store = call.store()?;
    match store.unsettled_of(of.owner.workload.clone()).await {
        Ok(count) if count < u64::from(most) => Ok((kind, calls)),
        Ok(_) => Err(call.refuse(BatchRefusal::TooMany { most })),
        Err(Away) => Err(call.refuse(BatchRefusal::Unavailable)),
    }
}

/// What came of making it: why it is not the caller's, though it may be there.
enum Unmade {
    Failed(Failed),
    NotKept(NotKept),
    /// It is no file and no batch that was told.
    Unreadable,
}

impl Unmade {
    /// Says in the log what may be at the provider and is nobody's here.
    fn log(&self, id: &str, backend: &str) {
        let see = "docs/batches.md#what-holds";
        match self {
            Self::Failed(_) => {}
            Self::Unreadable => tracing::error!(
                id,
                backend,
                see,
                "a provider answered with success and told no file and no batch that can be read: what it made is nobody's here"
            ),
            Self::NotKept(why) => tracing::error!(
                id,
                backend,
                ?why,
                see,
                "a file or a batch was made at a provider, and is not kept as its caller's: nobody can reach it here"
            ),
        }
    }
}

/// Has it made, and keeps it as the caller's.
async fn made<D: Downstream>(
    call: &mut Call,
    of: &Arrived<'_>,
    body: (Box<[u8]>, Bytes),
    calls: Calls,
    client: &mut D,
) -> Result<(u16, Bytes), Stop> {
    let (worker, view) = (Rc::clone(&call.worker), Rc::clone(&call.view));
    let store = call.store()?;
    let request = ToProvider::of(of, Some(body));
    let Some(record) = call.record() else {
        return Err(call.refuse(Refusal::Bug("a call to no backend")));
    };
    let (api, kind) = (of.api, of.kind());
    let thing = Thing {
        backend: of.backend.clone(),
        api,
        kind,
        id: "".into(),
        owner: of.owner.clone(),
        maker: batches::maker(record),
        created_unix_ms: record.started_unix_ms,
        calls,
        object: Bytes::new(),
        is_unsettled: kind == Kind::Batch,
    };
    // It counts, and the disk takes more, before there is anything that could be nobody's.
    let Ok(begun) = store.begin(thing.clone()).await else {
        return Err(call.refuse(BatchRefusal::Unavailable));
    };
    let user = batches::unkept_user(record);
    // From here on it may have gone out.
    let backend = send::goes_to(call, of.api)?;
    let id = call.id.clone();
    let (with, in_view) = (Rc::clone(&worker), Rc::clone(&view));
    let held = (call.hand_over(), Making::begin(&worker));
    // Of its own: a client that leaves does not leave behind what is nobody's.
    let making = tokio::task::spawn_local(async move {
        // Also where its client has left meanwhile.
        let _held = held;
        let at = thing.backend.clone();
        let made = asked_for(&with, &in_view, (&id, backend), &request, thing).await;
        let made = match made {
            Ok((told, thing)) => {
                if let Some(user) = user.filter(|_| thing.kind == Kind::Batch) {
                    store.remember_user(thing.at(), user);
                }
                let pause = async || with.timers.sleep(KEPT_EVERY).await;
                let kept = kept_for_sure(&*store, &begun, thing, pause).await;
                kept.map(|()| told)
            }
            Err(unmade) => {
                // Where the disk does not take that, it counts until the gate begins anew.
                let _away = store.remove(begun).await;
                unmade
            }
        };
        if let Err(unmade) = &made {
            unmade.log(&id, &at);
        }
        made
    });
    let began_at = worker.now();
    let made = while_there(making, &worker, client).await?;
    call.facts.upstream = Some(worker.now().since(began_at));
    match made {
        Ok(Ok(made)) => Ok(made),
        Ok(Err(Unmade::Failed(failed))) => Err(call.failed(&failed)),
        Ok(Err(Unmade::Unreadable | Unmade::NotKept(NotKept::Taken))) => {
            Err(call.fail(Refusal::Upstream(Failure::BadResponse)))
        }
        Ok(Err(Unmade::NotKept(NotKept::Away))) => Err(call.fail(BatchRefusal::MadeNotKept)),
        Err(_cut) => Err(call.fail(Refusal::Bug("what makes files and batches ended"))),
    }
}

/// That something is being made: a drain waits for it as for a call.
struct Making(Rc<Worker>);

impl Making {
    fn begin(worker: &Rc<Worker>) -> Self {
        worker.exchange_began();
        Self(Rc::clone(worker))
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.0.exchange_ended();
    }
}

/// What its provider answered, for the client; and what was made.
type Made = ((u16, Bytes), Thing);

/// Has it made. Where the provider makes nothing, its answer is an error that is no fault.
async fn asked_for(
    worker: &Rc<Worker>,
    view: &WorkerSnapshot,
    (id, backend): (&str, BackendId),
    request: &ToProvider,
    mut thing: Thing,
) -> Result<Made, Result<(u16, Bytes), Unmade>> {
    let began = send::asked(worker, view, id, backend, request).await;
    let began = began.map_err(|failed| Err(Unmade::Failed(failed)))?;
    let read = send::read(worker, view, id, began).await;
    let (status, told) = read.map_err(|failed| Err(Unmade::Failed(failed)))?;
    if !(200..300).contains(&status) {
        return Err(Ok((status, told)));
    }
    let object = Object::read(thing.api, &told).ok_or(Err(Unmade::Unreadable))?;
    let told = as_told(thing.api, &object, told);
    thing.id = object.id;
    thing.object = told.clone();
    Ok(((status, told), thing))
}

/// Keeps what was made, where the disk is away for a while, too: it runs, and would be nobody's. `pause` lies between two tries.
async fn kept_for_sure(
    store: &dyn BatchStore,
    begun: &At,
    thing: Thing,
    pause: impl AsyncFn(),
) -> Result<(), Unmade> {
    for nth in 0..KEPT_TRIES {
        match store.made(begun.clone(), thing.clone()).await {
            Err(NotKept::Away) => {
                if nth == 0 {
                    let (id, backend) = (&*thing.id, &*thing.backend);
                    tracing::warn!(
                        id,
                        backend,
                        "a file or a batch was made at a provider, and is not kept yet: the disk takes nothing; it is tried for a minute"
                    );
                }
                pause().await;
            }
            kept => return kept.map_err(Unmade::NotKept),
        }
    }
    Err(Unmade::NotKept(NotKept::Away))
}

/// What a client is told of it: where a result is, it is here.
pub(super) fn as_told(api: Api, object: &Object, told: Bytes) -> Bytes {
    match api {
        Api::OpenAi => told,
        Api::Anthropic => {
            let path = format!("/v1/messages/batches/{}/results", object.id);
            object.with_results_at(&told, &path).into()
        }
    }
}

/// Keeps what a provider says now of a file or a batch: and the files of a batch's result as its owner's.
pub(super) async fn keep_told(
    store: &dyn BatchStore,
    thing: &Thing,
    object: &Object,
    told: Bytes,
) -> Result<(), Away> {
    if thing.kind == Kind::Batch {
        let before = Object::read(thing.api, &thing.object);
        let known = before.iter().flat_map(Object::files);
        // Once: one that was removed since does not come back.
        let known: Vec<&str> = known.collect();
        for file in object.files().filter(|file| !known.contains(file)) {
            let named = format!(r#"{{"id":"{file}","object":"file","purpose":"batch_output"}}"#);
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
            if !file.bytes().all(is_plain) {
                continue;
            }
            let result = Thing {
                kind: Kind::File,
                id: file.into(),
                calls: Calls::default(),
                object: named.into(),
                is_unsettled: false,
                ..thing.clone()
            };
            if store.keep(result).await == Err(NotKept::Away) {
                return Err(Away);
            }
        }
    }
    if *thing.object == *told {
        return Ok(());
    }
    store.told(thing.at(), told).await
}

#[cfg(test)]
mod tests;
