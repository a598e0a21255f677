//! What the gate would make of a call of files and batches.
//!
//! Invariant: it goes by the stages that such a call goes by (`policy::front`), and its body is read as the gate reads it. Whose a file
//! or a batch is, nobody is asked.
//! Not here: how the answer reads (`said`).

use bytes::Bytes;
use policy::authorizer::{Asked as AskedOutside, Authorization};
use policy::batch_store::OF_CALLS;
use policy::batches::{self, Checked, Checker, affordable};
use policy::caller::Peer;
use policy::exchange::Env;
use policy::front::{Begun, Call, Ended, Http, Identification, Known};
use policy::record::Record;
use policy::refusal::{BatchRefusal, LocalReply, Refusal};
use wire::batch::{Api, Asked, Calls, Requests, asked};
use wire::call::{Boundary, Upload};
use wire::head::{Known as Name, RequestHead};

/// What is recorded of it, and why it is refused.
pub(super) async fn once(
    (head, peer): (&RequestHead, &Peer),
    unix_ms: u64,
    body: &[u8],
    env: &mut Env<'_>,
) -> (Record, Option<LocalReply>) {
    match judged((head, peer), unix_ms, body, env).await {
        Ok(record) => (record, None),
        Err(ended) => {
            let Ended {
                record, refusal, ..
            } = *ended;
            (record, refusal.map(|refusal| refusal.reply()))
        }
    }
}

async fn judged(
    (head, peer): (&RequestHead, &Peer),
    unix_ms: u64,
    body: &[u8],
    env: &mut Env<'_>,
) -> Result<Record, Box<Ended>> {
    let who = Http { head, peer };
    let begun = Begun::new(None, std::iter::empty(), &who, unix_ms, env);
    let (s, now) = (env.snapshot, env.now);
    let Some(Ok(named)) = asked(head.method, head.path()) else {
        return Err(Box::new(begun.refuse(Refusal::operation(head), now)));
    };
    let known = match begun.of(named.operation()).identify(&who, env) {
        Identification::Known(known) => known,
        Identification::Refused(ended) => return Err(ended),
        Identification::Asks(asking) => {
            let (verifier, credential) = asking.question();
            let answer = verifier.ask(credential.clone()).await;
            asking.answered(answer, &who, env)?
        }
    };
    let refuse = |known: Known, refusal| Box::new(known.refuse(refusal, now));
    let api = batches::api_of(&named, head);
    let Some(workload) = known.record().workload else {
        return Err(refuse(known, Refusal::CredentialMissing));
    };
    let chosen = match batches::chosen(s, workload, api, head) {
        Ok((chosen, ..)) => chosen,
        Err(refusal) => return Err(refuse(known, refusal)),
    };
    let caller = known.record().caller.clone();
    let checker = Checker {
        s,
        workload,
        caller: caller.as_ref(),
        chosen,
    };
    let checked = match read(&checker, (api, named.asked), head, body) {
        Ok(checked) => checked,
        Err(refusal) => return Err(refuse(known, refusal)),
    };
    let mut calls = vec![(named.operation().as_str(), None)];
    let models = checked.calls.iter();
    calls.extend(models.map(|(operation, model)| (operation.as_str(), Some(&**model))));
    let of = s.workload(workload);
    let outside = [
        of.and_then(|of| of.authorizer.as_ref()),
        of.and_then(|of| of.call_authorizer.as_ref()),
    ];
    for authorizer in outside.into_iter().flatten() {
        for (_, model) in &calls {
            let asked = authorizer.ask(&AskedOutside {
                id: &known.record().id,
                head,
                source: s.clients.address(peer.address, head),
                workload: of.map_or("", |of| &of.name),
                caller: caller.as_deref(),
                model: *model,
                route: Some(&*chosen.route.name),
                backends: Vec::new(),
            });
            match asked.await {
                Authorization::Allowed => {}
                Authorization::Denied(_) => return Err(refuse(known, Refusal::NotAuthorized)),
                Authorization::Unavailable(_) => {
                    return Err(refuse(known, Refusal::AuthorizerUnavailable));
                }
            }
        }
    }
    let call = |(operation, model): &(&'static str, Option<&'_ str>)| {
        let mut reason = None;
        let rules = s.authority.as_deref()?;
        let call = Call {
            method: head.method_text(),
            path: head.path(),
            operation,
            source: s.clients.address(peer.address, head),
            route: Some(chosen.route),
            model: *model,
        };
        policy::front::authorize(rules, &call, known.record(), s, &mut reason).err()
    };
    if let Some(refusal) = calls.iter().find_map(call) {
        return Err(refuse(known, refusal));
    }
    if let Err(refusal) = affordable(&checker, &checked.calls, unix_ms, env) {
        return Err(refuse(known, refusal));
    }
    let mut record = known.record().clone();
    record.route = Some(chosen.grant.route);
    record.backend = chosen.route.backends.first().copied();
    Ok(record)
}

/// What the body asks for, where it holds calls.
fn read(
    checker: &Checker<'_>,
    (api, asked): (Api, Asked),
    head: &RequestHead,
    body: &[u8],
) -> Result<Checked, Refusal> {
    let none = || Checked {
        calls: Box::default(),
        count: 0,
    };
    let unreadable = |says: String| BatchRefusal::Upload { says: says.into() };
    let bytes = Bytes::copy_from_slice(body);
    match (api, asked) {
        (Api::Anthropic, Asked::Create) => {
            let requests = Requests::of(&bytes);
            let requests = requests.map_err(|fault| unreadable(fault.to_string()))?;
            checker.all(requests, &bytes)
        }
        (Api::OpenAi, Asked::Upload) => {
            let kind = head.fields.only(Name::ContentType).ok().flatten();
            let boundary = kind.and_then(Boundary::of).ok_or(Refusal::FormType)?;
            let upload = Upload::read(&boundary, &bytes);
            let upload = upload.map_err(|fault| unreadable(fault.to_string()))?;
            if upload.purpose.as_deref() != Some(OF_CALLS) {
                return Ok(none());
            }
            let file = bytes.slice(upload.file);
            checker.all(Calls::of(&file), &file)
        }
        _ => Ok(none()),
    }
}
