//! Files and batches: a call of them, from its head to its record, and what charges a batch once it is over.
//!
//! Who calls, what is allowed, what is left and what is recorded is `policy::front`'s, in its order. What is sent is read whole first:
//! a file of calls goes upstream only once each of its calls was looked at.
//! Invariant: an id that goes upstream is the caller's own; what is made there is kept as the caller's before anybody is told its id.
//! Not here: whose what is (`policy::batch_store::BatchStore`), what a batch asks for (`wire::batch`).

mod answer;
mod lists;
mod made;
mod rule;
mod send;
mod settle;
mod sums;

use std::rc::Rc;

use bytes::Bytes;
use policy::attempt::Failure;
use policy::batch_store::{At, Away, Kind, Owner, Thing};
use policy::batches::{self, Checked, Checker, affordable};
use policy::front::Http;
use policy::operation::Operation;
use policy::refusal::{BatchRefusal, Refusal};
use wire::batch::{Api, Asked, Named, Object, asked};
use wire::head::RequestHead;

pub(crate) use self::settle::begin;
use crate::call::{Call, Stop, authorized_outside, identify, piece, while_there};
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// A call whose caller may make it.
struct Arrived<'a> {
    head: &'a RequestHead,
    named: Named<'a>,
    api: Api,
    owner: Owner,
    /// The backend that it goes to.
    backend: std::sync::Arc<str>,
}

impl Arrived<'_> {
    /// The file or batch that it names.
    fn at(&self) -> At {
        At {
            backend: std::sync::Arc::clone(&self.backend),
            kind: self.kind(),
            id: self.named.id.into(),
        }
    }

    fn kind(&self) -> Kind {
        match self.named.api {
            None => Kind::File,
            Some(_) => Kind::Batch,
        }
    }
}

/// Serves one request.
pub(crate) async fn serve<D: Downstream>(
    worker: &Rc<Worker>,
    view: Rc<WorkerSnapshot>,
    (head, length): (&RequestHead, Option<u64>),
    page: Option<Box<str>>,
    client: &mut D,
    deadline: &mut Deadline,
) {
    let peer = client.peer();
    let who = Http { head, peer: &peer };
    let Some(Ok(named)) = asked(head.method, head.path()) else {
        return client.abandon();
    };
    let mut call = Call::begin(worker, view, page, (head, named.operation()), &who);
    let served = serve_call(&mut call, (head, length), named, who, client, deadline).await;
    deadline.clear();
    match served {
        Ok(()) => call.completed(),
        Err(Stop::Refused) => {
            answer::refused(&mut call, head, client).await;
            call.completed();
        }
        // Its end is that of what is dropped.
        Err(Stop::Gone | Stop::Told) => client.abandon(),
    }
}

async fn serve_call<D: Downstream>(
    call: &mut Call,
    (head, length): (&RequestHead, Option<u64>),
    named: Named<'_>,
    who: Http<'_>,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<(), Stop> {
    identify(call, &who, client).await?;
    let api = batches::api_of(&named, head);
    call.choose(api, head)?;
    let view = Rc::clone(&call.view);
    let chosen = call.chosen(api, view.snapshot())?;
    authorized_outside(call, &who, Some(chosen), None, client).await?;
    let (owner, backend) = call.owner(api, &view)?;
    let arrived = Arrived {
        head,
        named,
        api,
        owner,
        backend,
    };
    match named.asked {
        Asked::Upload | Asked::Create => {
            // It counts, whatever becomes of it: to go through what is sent costs.
            call.count(chosen)?;
            let body = read(call, length, client, deadline).await?;
            made::serve(call, &arrived, body, &who, client).await
        }
        Asked::Files | Asked::Batches => {
            admitted(call, &arrived, &who, client).await?;
            lists::serve(call, &arrived, client).await
        }
        Asked::File
        | Asked::Content
        | Asked::RemoveFile
        | Asked::Batch
        | Asked::Cancel
        | Asked::Remove
        | Asked::Results => {
            let thing = found(call, &arrived).await?;
            admitted(call, &arrived, &who, client).await?;
            named_one(call, &arrived, thing, client).await
        }
    }
}

/// Rules and limits let a call pass that asks for no model.
async fn admitted<D: Downstream>(
    call: &mut Call,
    of: &Arrived<'_>,
    who: &Http<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let view = Rc::clone(&call.view);
    let chosen = call.chosen(of.api, view.snapshot())?;
    authorized_outside(call, who, Some(chosen), Some(None), client).await?;
    call.let_in(of.api, who, of.named.operation().as_str())
}

/// Rules, limits and budgets let a call pass whose batch asks for these models.
async fn admitted_for<D: Downstream>(
    call: &mut Call,
    of: &Arrived<'_>,
    calls: &[(Operation, Box<str>)],
    who: &Http<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let mut asked = vec![(of.named.operation().as_str(), None)];
    let mut models: Vec<Option<&str>> = vec![None];
    for (operation, model) in calls {
        asked.push((operation.as_str(), Some(&**model)));
        if !models.contains(&Some(model)) {
            models.push(Some(model));
        }
    }
    let view = Rc::clone(&call.view);
    let chosen = call.chosen(of.api, view.snapshot())?;
    for model in models {
        authorized_outside(call, who, Some(chosen), Some(model), client).await?;
    }
    call.judged(of.api, who, &asked)?;
    call.checked(of.api, |checker, unix_ms, env| {
        for (_, model) in calls {
            checker.named(model)?;
        }
        affordable(checker, calls, unix_ms, env)
    })?;
    call.let_in(of.api, who, of.named.operation().as_str())
}

/// The file or batch that is named, if it is the caller's.
async fn found(call: &mut Call, of: &Arrived<'_>) -> Result<Thing, Stop> {
    kept(call, of, of.at()).await
}

async fn kept(call: &mut Call, of: &Arrived<'_>, at: At) -> Result<Thing, Stop> {
    let what = at.kind.as_str();
    let store = call.store()?;
    match store.find(of.owner.clone(), at).await {
        Ok(Some(thing)) => Ok(thing),
        Ok(None) => Err(call.refuse(BatchRefusal::NotKept { what })),
        Err(Away) => Err(call.refuse(BatchRefusal::Unavailable)),
    }
}

/// What is asked of a file or a batch that is the caller's.
async fn named_one<D: Downstream>(
    call: &mut Call,
    of: &Arrived<'_>,
    thing: Thing,
    client: &mut D,
) -> Result<(), Stop> {
    let store = call.store()?;
    let is_removal = matches!(of.named.asked, Asked::Remove | Asked::RemoveFile);
    if is_removal {
        let holds = match of.named.asked {
            Asked::Remove => Ok(thing.is_unsettled.then(|| of.at())),
            _ => store.holds(of.owner.clone(), of.at()).await,
        };
        match holds {
            Ok(None) => {}
            Ok(Some(batch)) => {
                store.hurry(&batch);
                return Err(call.refuse(BatchRefusal::Uncounted));
            }
            Err(Away) => return Err(call.refuse(BatchRefusal::Unavailable)),
        }
    }
    let began = send::sent(call, &send::ToProvider::of(of, None), client).await?;
    if matches!(of.named.asked, Asked::Content | Asked::Results) {
        return answer::streamed(call, began, client).await;
    }
    let (status, body) = send::whole(call, began, client).await?;
    let is_good = (200..300).contains(&status);
    // Its provider may have let it go by itself: here it goes, too.
    let is_gone = is_removal && status == 404;
    if !is_good && !is_gone {
        return answer::told(call, status, &body, client).await;
    }
    if is_removal {
        if store.remove(of.at()).await.is_err() {
            return Err(call.fail(BatchRefusal::Unavailable));
        }
        return answer::told(call, status, &body, client).await;
    }
    let object = Object::read(of.api, &body).filter(|object| *object.id == *of.named.id);
    let Some(object) = object else {
        return Err(call.fail(Refusal::Upstream(Failure::BadResponse)));
    };
    let body = made::as_told(of.api, &object, body);
    if thing.kind == Kind::Batch && object.is_over && thing.is_unsettled {
        store.hurry(&thing.at());
    }
    let told = made::keep_told(&*store, &thing, &object, body.clone()).await;
    if told.is_err() {
        return Err(call.fail(BatchRefusal::Unavailable));
    }
    answer::told(call, status, &body, client).await
}

/// Looks at what a batch asks for, beside the worker: that may be long.
async fn looked_at<D: Downstream>(
    call: &mut Call,
    of: &Arrived<'_>,
    body: &Bytes,
    file: Option<std::ops::Range<usize>>,
    client: &mut D,
) -> Result<Checked, Stop> {
    let (worker, view) = (Rc::clone(&call.worker), Rc::clone(&call.view));
    let revision = std::sync::Arc::clone(&view.revision);
    let caller = call.record().and_then(|record| record.caller.clone());
    let workload = call.record().and_then(|record| record.workload);
    let (api, body) = (of.api, body.clone());
    let look = move || {
        let s = &revision.snapshot;
        let out_of_order = || Refusal::Bug("a batch of nobody");
        let workload = workload.ok_or_else(out_of_order)?;
        let (chosen, ..) =
            batches::allowed(s, workload, |of, _| of.api == api).ok_or_else(out_of_order)?;
        let checker = Checker {
            s,
            workload,
            caller: caller.as_ref(),
            chosen,
        };
        match file {
            Some(file) => {
                let file = body.slice(file);
                checker.all(wire::batch::Calls::of(&file), &file)
            }
            None => {
                let requests = wire::batch::Requests::of(&body);
                let requests = requests.map_err(|fault| BatchRefusal::Upload {
                    says: fault.to_string().into(),
                })?;
                checker.all(requests, &body)
            }
        }
    };
    match while_there(worker.looks.run(look), &worker, client).await? {
        Some(Ok(checked)) => Ok(checked),
        Some(Err(refusal)) => Err(call.refuse(refusal)),
        None => Err(call.refuse(Refusal::Bug("a batch was not gone through"))),
    }
}

/// Its body, whole.
async fn read<D: Downstream>(
    call: &mut Call,
    length: Option<u64>,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<Vec<u8>, Stop> {
    let bounds = call.view.snapshot().bounds;
    let limit = bounds.body_bytes;
    if length.is_some_and(|length| length > limit) {
        return Err(call.refuse(Refusal::BodyTooLarge { limit }));
    }
    let until = call.worker.now().after(bounds.body_time);
    let mut body = Vec::new();
    while let Some(piece) = piece(call, client, deadline).await? {
        let refusal = if call.facts.bytes_in > limit {
            Some(Refusal::BodyTooLarge { limit })
        } else if !call.keep(piece.len()) {
            Some(Refusal::Overloaded)
        } else {
            (call.worker.now() > until).then_some(Refusal::Slow)
        };
        if let Some(refusal) = refusal {
            return Err(call.refuse(refusal));
        }
        body.extend_from_slice(&piece);
    }
    deadline.clear();
    Ok(body)
}
