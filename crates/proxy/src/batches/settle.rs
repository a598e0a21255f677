//! Who charges batches: the provider is asked how each stands, and once one is over, what its result tells is entered and charged.
//!
//! One worker of the process does it, beside its calls: one question of a backend at a time, a piece of a result at a time.
//! Invariant: a batch's row has one name for ever, so that it is one row however often it is entered; limits and budgets are charged for a
//! row that is not on disk, once in a process, as they are at that moment. A batch counts as charged once its rows are on disk, and not before.
//! Not here: what it used (`sums`), what that costs (`policy::batches`), where rows and batches are kept (`ledger`).

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use policy::batch_store::{At, Away, BatchStore, Batches, Thing};
use policy::batches::{Late, Used, allowed, caller, charge_late, given_up};
use policy::caller::Caller;
use policy::clock::Mono;
use policy::id::{BackendId, EndpointId, WorkloadId};
use policy::record::Record;
use policy::route::Chosen;
use policy::snapshot::Snapshot;
use policy::usage_ledger::Entry;
use tokio::task::JoinSet;
use wire::batch::{Api, Object};

use super::sums::{self, ID, says};
use super::{made, send};
use crate::tools::Failed;
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
/// How long a batch of which that took longer is left alone: the others come first.
const LEFT_ALONE: Duration = Duration::from_mins(10);
/// Backends that are asked beside one another; each may have a line of 1 MiB in memory.
const SIDE_BY_SIDE: usize = 16;

/// Begins to charge batches, where some route allows them and nobody does it yet.
pub(crate) fn begin(worker: &Rc<Worker>) {
    let Some(store) = worker.view().snapshot().batches.clone() else {
        return;
    };
    if worker.charges_batches.get() || !store.claim() {
        return;
    }
    worker.charges_batches.set(true);
    let claim = Claim(Rc::new(Charging {
        worker: Rc::clone(worker),
        store,
        memory: RefCell::default(),
    }));
    tokio::task::spawn_local(async move { claim.run().await });
}

/// That it is this worker that does it.
struct Claim(Rc<Charging>);

impl Drop for Claim {
    fn drop(&mut self) {
        let Charging { worker, store, .. } = &*self.0;
        worker.charges_batches.set(false);
        store.release();
    }
}

/// Whose batches are charged, and what is remembered of them.
struct Charging {
    worker: Rc<Worker>,
    store: Arc<dyn BatchStore>,
    memory: RefCell<Memory>,
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
    /// What is to be looked at, by backend.
    wanted: BTreeMap<Arc<str>, Wanted>,
    /// Backends that are being asked.
    asked: HashSet<Arc<str>>,
    /// Those whose provider took too long, and until when they are left alone.
    late: HashMap<At, Mono>,
}

/// Of a backend's batches those that are to be asked about.
#[derive(Default)]
struct Wanted {
    is_all: bool,
    hurried: HashSet<At>,
}

impl Claim {
    async fn run(self) {
        let of = &self.0;
        // With the claim they end, too.
        let mut looks = JoinSet::new();
        loop {
            if of.worker.is_draining() {
                return;
            }
            let view = of.worker.view();
            let Some(every) = every(view.snapshot()) else {
                return;
            };
            of.wanted(every).await;
            while looks.try_join_next().is_some() {}
            while let Some((backend, wanted)) = of.next_look() {
                let of = Rc::clone(of);
                looks.spawn_local(async move {
                    let looked = of.look(&backend, &wanted).await;
                    let mut memory = of.memory.borrow_mut();
                    memory.asked.remove(&backend);
                    if looked.is_err() {
                        // What the disk does not say is asked again.
                        memory.want(backend, wanted);
                    }
                });
            }
            // What the disk does not take now is tried again.
            let _away = of.give_up(&view).await;
            drop(view);
            of.worker.timers.sleep(LOOK_EVERY).await;
        }
    }
}

impl Memory {
    fn want(&mut self, backend: Arc<str>, more: Wanted) {
        let wanted = self.wanted.entry(backend).or_default();
        wanted.is_all |= more.is_all;
        wanted.hurried.extend(more.hurried);
    }

    /// It is charged, or given up.
    fn forget(&mut self, at: &At) {
        self.entered.remove(at);
        self.told.remove(at);
        self.late.remove(at);
    }
}

impl Charging {
    /// Notes what is to be looked at: batches that were heard to be over, and all of them once in so long.
    async fn wanted(&self, every: Duration) {
        for at in self.store.hurried() {
            let backend = Arc::clone(&at.backend);
            let wanted = Wanted {
                is_all: false,
                hurried: HashSet::from([at]),
            };
            self.memory.borrow_mut().want(backend, wanted);
        }
        let now = self.worker.now();
        let all_at = self.memory.borrow().all_at;
        if all_at.is_some_and(|at| now < at) {
            return;
        }
        // Where the disk does not say it now, it is asked a second later.
        let Ok(backends) = self.store.unsettled_backends().await else {
            return;
        };
        let mut memory = self.memory.borrow_mut();
        memory.all_at = Some(now.after(every));
        for backend in backends {
            let wanted = Wanted {
                is_all: true,
                ..Wanted::default()
            };
            memory.want(backend, wanted);
        }
    }

    /// A backend that is to be asked now: none that is asked already, and so many at most beside one another.
    fn next_look(&self) -> Option<(Arc<str>, Wanted)> {
        let mut memory = self.memory.borrow_mut();
        if memory.asked.len() >= SIDE_BY_SIDE {
            return None;
        }
        let free = |backend: &&Arc<str>| !memory.asked.contains(*backend);
        let backend = memory.wanted.keys().find(free).cloned()?;
        let wanted = memory.wanted.remove(&backend)?;
        memory.asked.insert(Arc::clone(&backend));
        Some((backend, wanted))
    }

    /// Enters what persons gave up: rows that say so, for which nothing is charged.
    async fn give_up(&self, view: &WorkerSnapshot) -> Result<(), Away> {
        let memory = &self.memory;
        for of in self.store.given_up().await? {
            let (thing, now) = (&of.thing, self.worker.now());
            let row = self.store.row(thing, "");
            if self.store.on_disk(vec![row]).await? == [true] {
                self.store.settled(thing.at()).await?;
                memory.borrow_mut().forget(&thing.at());
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

    /// Asks a backend about all of its batches, or about those that are hurried, one after the other; of those not about one that could not
    /// be counted when it was last asked.
    async fn look(&self, backend: &Arc<str>, wanted: &Wanted) -> Result<(), Away> {
        let mut behind = 0;
        loop {
            let page = self.store.unsettled(Arc::clone(backend), behind).await?;
            if page.is_empty() {
                if behind == 0 {
                    let told = &mut self.memory.borrow_mut().told;
                    told.retain(|at| at.backend != *backend);
                }
                return Ok(());
            }
            for thing in page {
                if self.worker.is_draining() {
                    return Ok(());
                }
                let at = thing.at();
                let is_told = self.memory.borrow().told.contains(&at);
                let is_wanted = wanted.is_all || wanted.hurried.contains(&at) && !is_told;
                if is_wanted && self.charged(&thing).await? {
                    self.memory.borrow_mut().forget(&at);
                } else {
                    behind += 1;
                }
            }
        }
    }

    /// Whether a batch is charged now; where it should be and cannot, the log says why, once.
    async fn charged(&self, thing: &Thing) -> Result<bool, Away> {
        let memory = &self.memory;
        let now = self.worker.now();
        let left_alone = memory.borrow().late.get(&thing.at()).copied();
        if left_alone.is_some_and(|until| now < until) {
            return Ok(false);
        }
        let why = match self.charge(thing).await {
            Ok(is_settled) => return Ok(is_settled),
            Err(NotCharged::Away) => return Err(Away),
            Err(NotCharged::For(why)) => why,
            Err(NotCharged::Late(why)) => {
                let until = self.worker.now().after(LEFT_ALONE);
                memory.borrow_mut().late.insert(thing.at(), until);
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

    async fn charge(&self, thing: &Thing) -> Result<bool, NotCharged> {
        // The newest: a look at a backend may take hours.
        let view = self.worker.view();
        let terms = self.terms(view.snapshot(), thing)?;
        let why = "its provider takes longer than 30 seconds to say how it stands";
        let object = self.within(TOLD_WITHIN, why, self.object(&view, terms.backend, thing));
        let object = object.await?;
        if !object.is_over {
            return Ok(false);
        }
        let why = "its provider takes longer than 5 minutes to give its result";
        let unix_ms = self.worker.clock.wall_ms(self.worker.now());
        let model: Arc<str> = "".into();
        let late = terms.late(thing, &model, unix_ms);
        let used = sums::used(&self.worker, &view, terms.backend, thing, &object, late);
        let used = async { used.await.map_err(NotCharged::For) };
        let used = self.within(RESULT_WITHIN, why, used).await?;
        let rows: Vec<[u8; 16]> = used
            .keys()
            .map(|model| self.store.row(thing, model))
            .collect();
        let mut on_disk = self.store.on_disk(rows.clone()).await?;
        if on_disk.contains(&false) {
            // It may have been given up meanwhile.
            if !self.store.is_due(thing.at()).await? {
                return Ok(false);
            }
            let missing = used.iter().zip(&rows).zip(&on_disk);
            let missing = missing.filter_map(|(of, is_there)| (!is_there).then_some(of));
            if !self.enter(&view, thing, missing)? {
                return Ok(false);
            }
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

    /// By which rule a batch is charged, and to whom.
    fn terms<'s>(&self, s: &'s Snapshot, thing: &Thing) -> Result<Terms<'s>, &'static str> {
        let workload = s.workload_named(thing.owner.workload.as_bytes());
        let workload = workload.ok_or("no route is for its workload any more")?;
        let rule = allowed(s, workload, |of, backend| {
            of.api == thing.api && backend.name == thing.backend
        });
        let (chosen, batches, backend) =
            rule.ok_or("no route leads its workload to its backend any more")?;
        let endpoint = *backend.endpoints.first().ok_or("its backend is closed")?;
        let backend = s.endpoint(endpoint).map(|endpoint| endpoint.backend);
        let unkept = self.store.remembered_user(&thing.at());
        Ok(Terms {
            workload,
            chosen,
            batches,
            endpoint,
            backend: backend.ok_or("its backend is closed")?,
            hides_user: unkept.is_some(),
            caller: caller(&thing.maker, &thing.owner, unkept, s),
        })
    }

    /// Enters the rows of what a batch used that are not on disk, unless they are on their way, and charges them by the configuration of
    /// this moment, unless they were. False where prices are others than those by which they were summed.
    fn enter<'u>(
        &self,
        summed: &Rc<WorkerSnapshot>,
        thing: &'u Thing,
        missing: impl Iterator<Item = ((&'u Arc<str>, &'u Used), &'u [u8; 16])>,
    ) -> Result<bool, NotCharged> {
        let now = self.worker.now();
        let entered = self.memory.borrow().entered.get(&thing.at()).copied();
        if entered.is_some_and(|at| now.since(at) <= DISK_WITHIN) {
            return Ok(true);
        }
        let view = self.worker.view();
        let s = view.snapshot();
        let terms = self.terms(s, thing)?;
        let unix_ms = self.worker.clock.wall_ms(now);
        let of_now = missing.map(|((model, used), row)| {
            let late = terms.late(thing, model, unix_ms);
            let used = match Rc::ptr_eq(&view, summed) {
                true => used.clone(),
                false => used.carried(summed.snapshot(), &late, &view.revision)?,
            };
            Some((late, used, *row))
        });
        let Some(of_now) = of_now.collect::<Option<Vec<_>>>() else {
            self.store.hurry(&thing.at());
            return Ok(false);
        };
        let is_charged = entered.is_some();
        for (late, used, row) in of_now {
            let record = view.env(now, |env| charge_late(&late, &used, is_charged, env));
            if !is_charged {
                self.worker.sink(|sink| sink.exchange(s, &record));
            }
            self.settle(s, row, &record);
        }
        self.memory.borrow_mut().entered.insert(thing.at(), now);
        Ok(true)
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
}

/// By which rule of a configuration a batch is charged, and to whom.
struct Terms<'s> {
    workload: WorkloadId,
    chosen: Chosen<'s>,
    batches: &'s Batches,
    endpoint: EndpointId,
    backend: BackendId,
    caller: Option<Arc<Caller>>,
    hides_user: bool,
}

impl Terms<'_> {
    fn late<'l>(&'l self, thing: &'l Thing, model: &'l Arc<str>, unix_ms: u64) -> Late<'l> {
        Late {
            id: &thing.id,
            workload: self.workload,
            caller: self.caller.as_ref(),
            hides_user: self.hides_user,
            chosen: self.chosen,
            batches: self.batches,
            endpoint: self.endpoint,
            model,
            unix_ms,
        }
    }
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
        Self::For(says(&failed))
    }
}
