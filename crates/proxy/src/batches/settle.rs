//! Who charges batches: the provider is asked how each stands, and once one is over, what its result tells is entered and charged.
//!
//! One worker of the process does it, beside its calls: one question of a backend at a time, a piece of a result at a time.
//! Invariant: a batch's row has one name for ever, so that it is one row however often it is entered; limits and budgets are charged for a
//! row that is not on disk, once in a process. A batch counts as charged once its rows are on disk, and not before.
//! Not here: what it costs (`policy::batching`), where rows and batches are kept (`ledger`).

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use policy::batches::{At, Away, BatchStore, Thing};
use policy::batching::{
    Late, Used, allowed, answered, caller, charge_late, given_up, pieces, price_of,
};
use policy::clock::Mono;
use policy::id::{BackendId, PriceId};
use policy::operation::Operation;
use policy::record::Record;
use policy::snapshot::Snapshot;
use policy::usage_ledger::Entry;
use wire::batch::{Api, Object, ResultLines, Told, told};
use wire::usage::Reading;

use super::{made, send};
use crate::deadline::Deadline;
use crate::tools::{Asker, Boxed, Failed, all, next};
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// How often is looked whether a provider was heard to say that a batch is over.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long rows may take to the disk before they are entered once more.
const DISK_WITHIN: Duration = Duration::from_secs(60);
/// How often is looked whether they are there.
const DISK_EVERY: Duration = Duration::from_millis(100);
/// Looks, before other batches go on.
const DISK_LOOKS: usize = 20;
/// How long a provider may take to say how a batch stands, and to give its result.
const TOLD_WITHIN: Duration = Duration::from_secs(30);
const RESULT_WITHIN: Duration = Duration::from_mins(5);
/// How long one that took longer is asked nothing: the batches of others come first.
const LEFT_ALONE: Duration = Duration::from_mins(10);
/// Backends whose batches are looked at beside one another; each may have a line of 16 MiB in memory.
const SIDE_BY_SIDE: usize = 4;
/// What the gate's own questions are called.
const ID: &str = "batches";

/// Begins to charge batches, where some route allows them and nobody does it yet.
pub(crate) fn begin(worker: &Rc<Worker>) {
    let Some(store) = worker.view().snapshot().batches.clone() else {
        return;
    };
    if worker.charges_batches.get() || !store.claim() {
        return;
    }
    worker.charges_batches.set(true);
    let claim = Claim {
        worker: Rc::clone(worker),
        store,
    };
    tokio::task::spawn_local(async move { claim.run().await });
}

/// That it is this worker that does it.
struct Claim {
    worker: Rc<Worker>,
    store: Arc<dyn BatchStore>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.worker.charges_batches.set(false);
        self.store.release();
    }
}

/// What is remembered between looks.
#[derive(Default)]
struct Memory {
    /// Whose rows are on their way to the disk, since when.
    entered: HashMap<At, Mono>,
    /// Of which it was told why they are not charged.
    told: HashSet<At>,
    /// When all are asked about again.
    all_at: Option<Mono>,
    /// Backends that took too long, and until when they are asked nothing.
    late: HashMap<Arc<str>, Mono>,
}

impl Claim {
    async fn run(self) {
        let memory: RefCell<Memory> = RefCell::default();
        loop {
            if self.worker.is_draining() {
                return;
            }
            let view = self.worker.view();
            let Some(every) = every(view.snapshot()) else {
                return;
            };
            let now = self.worker.now();
            let hurried: HashSet<At> = self.store.hurried().into_iter().collect();
            let is_all = memory.borrow().all_at.is_none_or(|at| now >= at);
            if is_all {
                memory.borrow_mut().all_at = Some(now.after(every));
            }
            if is_all || !hurried.is_empty() {
                let looked = self.look(&view, (is_all, &hurried), &memory).await;
                if looked.is_err() {
                    // What the disk does not say is asked again.
                    hurried.iter().for_each(|at| self.store.hurry(at));
                    if is_all {
                        memory.borrow_mut().all_at = None;
                    }
                }
            }
            // What the disk does not take now is tried again.
            let _away = self.give_up(&view, &memory).await;
            drop(view);
            self.worker.timers.sleep(LOOK_EVERY).await;
        }
    }

    /// Enters what persons gave up: rows that say so, for which nothing is charged.
    async fn give_up(&self, view: &WorkerSnapshot, memory: &RefCell<Memory>) -> Result<(), Away> {
        for of in self.store.given_up().await? {
            let (thing, now) = (&of.thing, self.worker.now());
            let row = self.store.row(thing, "");
            if self.store.on_disk(vec![row]).await? == [true] {
                self.store.settled(thing.at()).await?;
                memory.borrow_mut().entered.remove(&thing.at());
                continue;
            }
            let entered = memory.borrow().entered.get(&thing.at()).copied();
            if entered.is_some_and(|at| now.since(at) <= DISK_WITHIN) {
                continue;
            }
            let s = view.snapshot();
            let record = given_up(&of, self.worker.clock.wall_ms(now), s);
            if entered.is_none() {
                tracing::warn!(
                    batch = &*thing.id,
                    backend = &*thing.backend,
                    workload = &*thing.owner.workload,
                    by = &*of.who,
                    why = &*of.why,
                    "a batch was given up: nothing is charged for it"
                );
                self.worker.sink(|sink| sink.exchange(s, &record));
            }
            self.settle(s, row, &record);
            memory.borrow_mut().entered.insert(thing.at(), now);
        }
        Ok(())
    }

    fn settle(&self, s: &Snapshot, row: [u8; 16], record: &Record) {
        let entry = Entry {
            id: row,
            reserved: 0,
            tally: None,
        };
        self.worker.ledger(|ledger| ledger.settle(entry, s, record));
    }

    /// Asks about all batches, or about those that are hurried; of those not about one that could not be counted when it was last asked.
    async fn look(
        &self,
        view: &WorkerSnapshot,
        (is_all, hurried): (bool, &HashSet<At>),
        memory: &RefCell<Memory>,
    ) -> Result<(), Away> {
        let mut behind = 0;
        loop {
            let page = self.store.unsettled(behind).await?;
            if page.is_empty() {
                if behind == 0 {
                    memory.borrow_mut().told.clear();
                }
                return Ok(());
            }
            let mut by_backend: BTreeMap<Arc<str>, Vec<Thing>> = BTreeMap::new();
            for thing in page {
                let at = thing.at();
                let is_told = memory.borrow().told.contains(&at);
                if is_all || hurried.contains(&at) && !is_told {
                    let of = by_backend.entry(Arc::clone(&thing.backend)).or_default();
                    of.push(thing);
                } else {
                    behind += 1;
                }
            }
            let mut lanes: Vec<Vec<Thing>> = Vec::new();
            for (nth, things) in by_backend.into_values().enumerate() {
                match lanes.get_mut(nth % SIDE_BY_SIDE) {
                    Some(lane) => lane.extend(things),
                    None => lanes.push(things),
                }
            }
            let in_lane = |things| -> Boxed<'_, _> { Box::pin(self.lane(view, things, memory)) };
            for left in all(lanes.into_iter().map(in_lane).collect()).await {
                behind += left?;
            }
            if self.worker.is_draining() {
                return Ok(());
            }
        }
    }

    /// Asks about these, one after the other: how many of them are not charged.
    async fn lane(
        &self,
        view: &WorkerSnapshot,
        things: Vec<Thing>,
        memory: &RefCell<Memory>,
    ) -> Result<usize, Away> {
        let mut left = 0;
        for thing in things {
            if self.worker.is_draining() {
                break;
            }
            if self.charged(view, &thing, memory).await? {
                let mut memory = memory.borrow_mut();
                memory.entered.remove(&thing.at());
                memory.told.remove(&thing.at());
            } else {
                left += 1;
            }
        }
        Ok(left)
    }

    /// Whether a batch is charged now; where it should be and cannot, the log says why, once.
    async fn charged(
        &self,
        view: &WorkerSnapshot,
        thing: &Thing,
        memory: &RefCell<Memory>,
    ) -> Result<bool, Away> {
        let now = self.worker.now();
        let left_alone = memory.borrow().late.get(&thing.backend).copied();
        if left_alone.is_some_and(|until| now < until) {
            return Ok(false);
        }
        let why = match self.charge(view, thing, memory).await {
            Ok(is_settled) => return Ok(is_settled),
            Err(NotCharged::Away) => return Err(Away),
            Err(NotCharged::For(why)) => why,
            Err(NotCharged::Late(why)) => {
                let until = self.worker.now().after(LEFT_ALONE);
                memory
                    .borrow_mut()
                    .late
                    .insert(thing.backend.clone(), until);
                why.to_owned()
            }
        };
        if memory.borrow_mut().told.insert(thing.at()) {
            tracing::warn!(
                batch = &*thing.id,
                backend = &*thing.backend,
                workload = &*thing.owner.workload,
                why,
                see = "docs/troubleshooting.md#a-batch-is-not-counted",
                "a batch cannot be counted now"
            );
        }
        Ok(false)
    }

    async fn charge(
        &self,
        view: &WorkerSnapshot,
        thing: &Thing,
        memory: &RefCell<Memory>,
    ) -> Result<bool, NotCharged> {
        let s = view.snapshot();
        let workload = s.workload_named(thing.owner.workload.as_bytes());
        let workload = workload.ok_or("no route is for its workload any more")?;
        let rule = allowed(s, workload, |of, backend| {
            of.api == thing.api && backend.name == thing.backend
        });
        let (chosen, batches, backend) =
            rule.ok_or("no route leads its workload to its backend any more")?;
        let endpoint = *backend.endpoints.first().ok_or("its backend is closed")?;
        let id = s.endpoint(endpoint).map(|endpoint| endpoint.backend);
        let id = id.ok_or("its backend is closed")?;
        let why = "its provider takes longer than 30 seconds to say how it stands";
        let object = self.within(TOLD_WITHIN, why, self.object(view, id, thing));
        let object = object.await?;
        if !object.is_over {
            return Ok(false);
        }
        let unkept = self.store.remembered_user(&thing.at());
        let hides_user = unkept.is_some();
        let caller = caller(&thing.maker, &thing.owner, unkept, s);
        let model: Arc<str> = "".into();
        let late = Late {
            id: &thing.id,
            workload,
            caller: caller.as_ref(),
            hides_user,
            chosen,
            batches,
            endpoint,
            model: &model,
            unix_ms: self.worker.clock.wall_ms(self.worker.now()),
        };
        let why = "its provider takes longer than 5 minutes to give its result";
        let used = self.used(view, id, thing, &object, late);
        let used = self.within(RESULT_WITHIN, why, used).await?;
        let rows: Vec<[u8; 16]> = used
            .keys()
            .map(|model| self.store.row(thing, model))
            .collect();
        let mut on_disk = self.store.on_disk(rows.clone()).await?;
        let now = self.worker.now();
        let entered = memory.borrow().entered.get(&thing.at()).copied();
        let is_to_be_entered = match entered {
            None => true,
            Some(at) => now.since(at) > DISK_WITHIN,
        };
        if is_to_be_entered && on_disk.contains(&false) {
            let missing = used.iter().zip(&rows).zip(&on_disk).filter(|(_, is)| !**is);
            for (((model, used), row), _) in missing {
                let of = Late { model, ..late };
                self.enter(view, &of, used, *row, entered.is_some());
            }
            memory.borrow_mut().entered.insert(thing.at(), now);
        }
        for _ in 0..DISK_LOOKS {
            if !on_disk.contains(&false) {
                self.store.settled(thing.at()).await?;
                return Ok(true);
            }
            self.worker.timers.sleep(DISK_EVERY).await;
            on_disk = self.store.on_disk(rows.clone()).await?;
        }
        Ok(false)
    }

    /// What was asked for, within so long.
    async fn within<T>(
        &self,
        limit: Duration,
        why: &'static str,
        asked: impl Future<Output = Result<T, NotCharged>>,
    ) -> Result<T, NotCharged> {
        let told = self.worker.timers.timeout(limit, asked).await;
        told.unwrap_or(Err(NotCharged::Late(why)))
    }

    /// Enters the row of what a batch used of one model, and charges it, unless it was.
    fn enter(
        &self,
        view: &WorkerSnapshot,
        of: &Late<'_>,
        used: &Used,
        row: [u8; 16],
        is_charged: bool,
    ) {
        let s = view.snapshot();
        let now = self.worker.now();
        let record = view.env(now, |env| charge_late(of, used, is_charged, env));
        if !is_charged {
            self.worker.sink(|sink| sink.exchange(s, &record));
        }
        self.settle(s, row, &record);
    }

    /// What its provider says of a batch.
    async fn object(
        &self,
        view: &WorkerSnapshot,
        backend: BackendId,
        thing: &Thing,
    ) -> Result<Object, NotCharged> {
        let path = match thing.api {
            Api::OpenAi => format!("/batches/{}", thing.id),
            Api::Anthropic => format!("/messages/batches/{}", thing.id),
        };
        let request = send::ToProvider::own(thing.api, path);
        let began = send::asked(&self.worker, view, ID, backend, &request).await?;
        let (status, told) = send::read(&self.worker, view, ID, began).await?;
        if status != 200 {
            return Err(format!(
                "its provider answers with status {status} where it is asked for it"
            )
            .into());
        }
        let object = Object::read(thing.api, &told).filter(|object| object.id == thing.id);
        let object = object.ok_or("its provider's answer is no batch of this id")?;
        let told = made::as_told(thing.api, &object, told);
        made::keep_told(&*self.store, thing, &object, told).await?;
        Ok(object)
    }

    /// What the calls of a batch that is over used, by model.
    async fn used(
        &self,
        view: &WorkerSnapshot,
        backend: BackendId,
        thing: &Thing,
        object: &Object,
        late: Late<'_>,
    ) -> Result<BTreeMap<Arc<str>, Used>, NotCharged> {
        let s = view.snapshot();
        let mut sums = Sums {
            late,
            view,
            of: thing,
            prices: HashMap::new(),
            used: BTreeMap::new(),
            counts_pieces: thing.calls.iter().any(|(of, _)| *of == Operation::Images),
            lines: 0,
            unread: 0,
        };
        let path = match (thing.api, &object.output_file) {
            (Api::OpenAi, Some(file)) => Some(format!("/files/{file}/content")),
            (Api::OpenAi, None) => None,
            (Api::Anthropic, _) => object
                .has_results()
                .then(|| format!("/messages/batches/{}/results", thing.id)),
        };
        if let Some(model) = only_model(thing)
            && let Reading::Valid(usage) = object.usage
            && (path.is_none() || usage.prompt.or(usage.completion).is_some_and(|sum| sum > 0))
            && sums.is_by_token(&model, s)
        {
            sums.add(&model, &object.usage, None);
            return Ok(sums.used);
        }
        let Some(path) = path else {
            return match object.lacks_result() {
                true => {
                    Err("its provider says that calls were answered, and names no result".into())
                }
                false => Ok(sums.used),
            };
        };
        let request = send::ToProvider::own(thing.api, path);
        let mut began = send::asked(&self.worker, view, ID, backend, &request).await?;
        let status = began.response.head.as_ref().map_or(0, |head| head.status);
        if status != 200 {
            return Err(format!(
                "its provider answers with status {status} where it is asked for its result"
            )
            .into());
        }
        let asker = Asker {
            worker: &self.worker,
            view,
            id: ID,
            caller: None,
            own: &[],
        };
        let mut deadline = Deadline::new(&self.worker.clock.wheel);
        let mut lines = ResultLines::default();
        let mut is_over = false;
        while !is_over {
            deadline.set(began.timeouts.idle);
            let mut long = Vec::new();
            let take = |data: &[u8]| lines.push(data, |line| long.extend(sums.short(line)));
            let read = next(asker, &mut began.response.body, &mut deadline, take).await;
            is_over = read.map_err(Failed::Upstream)?;
            if is_over {
                lines.finish(|line| long.extend(sums.short(line)));
            }
            for line in long {
                self.long(&mut sums, line).await?;
            }
            // Calls go on meanwhile.
            tokio::task::yield_now().await;
        }
        match (lines.skipped, sums.unread) {
            (0, 0) => match object.answered {
                Some(answered) if sums.lines < answered => {
                    let lines = sums.lines;
                    Err(format!("its result tells of {lines} calls, and its provider of {answered} that were answered").into())
                }
                _ => Ok(sums.used),
            },
            (0, lines) => Err(format!("{lines} lines of its result cannot be read").into()),
            (lines, _) => Err(format!("{lines} lines of its result are longer than 16 MiB").into()),
        }
    }

    /// Has a long line read beside the worker, on which calls go on.
    async fn long(&self, sums: &mut Sums<'_>, line: Vec<u8>) -> Result<(), NotCharged> {
        let (api, counts_pieces) = (sums.of.api, sums.counts_pieces);
        let read = move || told(api, counts_pieces, &line);
        let told = self.worker.looks.run(read).await;
        sums.told(told.ok_or("a line of its result was not gone through")?);
        Ok(())
    }
}

/// Longer lines are read beside the worker.
const LONG_BYTES: usize = 64 << 10;

/// Sums of what is told.
struct Sums<'a> {
    late: Late<'a>,
    view: &'a WorkerSnapshot,
    of: &'a Thing,
    prices: HashMap<Arc<str>, Option<PriceId>>,
    used: BTreeMap<Arc<str>, Used>,
    /// Some of its calls are billed by the images that came.
    counts_pieces: bool,
    /// Lines that say what became of a call.
    lines: u64,
    /// Lines that are none.
    unread: u64,
}

impl Sums<'_> {
    /// Reads a line; one that takes long is given back.
    fn short(&mut self, line: Cow<'_, [u8]>) -> Option<Vec<u8>> {
        if line.len() > LONG_BYTES {
            return Some(line.into_owned());
        }
        self.told(told(self.of.api, self.counts_pieces, &line));
        None
    }

    fn told(&mut self, told: Told) {
        match told {
            Told::Served(served) => {
                let (view, calls) = (self.view, &self.of.calls);
                let answered = answered(calls, &served, |model| self.price(model), view.snapshot());
                let (operation, model) = answered.unwrap_or((Operation::Chat, "unknown".into()));
                let pieces = pieces(operation, &served);
                self.add(&model, &served.usage, pieces);
            }
            Told::Unserved => {}
            Told::Unreadable => {
                self.unread += 1;
                return;
            }
        }
        self.lines += 1;
    }

    fn add(&mut self, model: &Arc<str>, told: &Reading, pieces: Option<u32>) {
        let price = self.price(model);
        let used = self.used.entry(Arc::clone(model)).or_default();
        used.add(told, pieces, price, self.view.snapshot());
    }

    fn price(&mut self, model: &Arc<str>) -> Option<PriceId> {
        if let Some(price) = self.prices.get(model) {
            return *price;
        }
        let of = Late { model, ..self.late };
        let revision = &self.view.revision;
        let price = price_of(&of, &revision.snapshot, &revision.levels);
        self.prices.insert(Arc::clone(model), price);
        price
    }

    /// Whether a sum costs what its calls do.
    fn is_by_token(&mut self, model: &Arc<str>, s: &Snapshot) -> bool {
        let price = self.price(model).and_then(|id| s.prices.get(id));
        price.is_none_or(|price| price.tiers.is_empty() && price.request.0 == 0)
    }
}

/// The only model that a batch asks for, where it is one.
fn only_model(thing: &Thing) -> Option<Arc<str>> {
    let mut models = thing.calls.iter().map(|(_, model)| &**model);
    let first = models.next()?;
    models.all(|model| model == first).then(|| first.into())
}

/// How often all batches are asked about.
fn every(s: &Snapshot) -> Option<Duration> {
    s.batches.as_ref()?;
    let of = s.routes.iter().filter_map(|route| route.batches.as_ref());
    of.map(|batches| batches.every).min()
}

/// Why a batch is not charged.
enum NotCharged {
    /// The disk does not say.
    Away,
    /// Its provider took too long; in words.
    Late(&'static str),
    /// In words.
    For(String),
}

impl From<Away> for NotCharged {
    fn from(_: Away) -> Self {
        Self::Away
    }
}

impl From<&str> for NotCharged {
    fn from(why: &str) -> Self {
        Self::For(why.to_owned())
    }
}

impl From<String> for NotCharged {
    fn from(why: String) -> Self {
        Self::For(why)
    }
}

impl From<Failed> for NotCharged {
    fn from(failed: Failed) -> Self {
        let reason = failed.reason().map(String::from);
        Self::For(reason.unwrap_or_else(|| failed.refusal().to_string()))
    }
}
