//! The thread that asks others, and what of it outlives a reload: issuers' keys, providers where
//! people log in, and what makes credentials.
//!
//! Invariant: what is counted of questions outlives a reload, so that no count falls.
//! Not here: who is asked and what for (`identity`, `authority`, `credential`), asking (`callout`), how it is shown
//! (`metrics::identity`).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use callout::{Handle, OpenId, QuestionCounts, Questions, Service, Url};
use config::{LoginClient, MadeCredential};
use counting::PromptDesk;
use identity::jwt::IssuerKeys;
use policy::caller::Later;
use policy::credential::Minter;
use policy::prompt_counter::{AskedPrompt, PromptCounter};
use policy::secret::Secret;
use tokio::sync::oneshot;

use ledger::Batches;
use policy::batch_store::{BatchStore, Nobody};

use crate::descriptions::Descriptions;
use crate::pickers::Pickers;
use crate::responses::Responses;
use crate::stdio::Bridges;
use crate::watched::Watched;

/// Who has a configuration completed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment<'s> {
    /// Nothing is asked of anybody, and what is wrong is a fault.
    Check,
    /// A gate that starts: what is wrong is a fault.
    Start(&'s Services),
    /// A gate that runs takes another configuration: what is wrong is a fault.
    Reload(&'s Services),
    /// A gate that runs takes the keys that its configuration names as they are now: what is wrong closes the source, and
    /// is logged.
    Keys(&'s Services),
}

impl<'s> Moment<'s> {
    /// The thread that asks others, where anybody may be asked.
    pub(crate) fn services(self) -> Option<&'s Services> {
        match self {
            Self::Check => None,
            Self::Start(services) | Self::Reload(services) | Self::Keys(services) => Some(services),
        }
    }
}

/// The thread, and what it keeps.
#[derive(Debug, Default)]
pub(crate) struct Services {
    service: OnceLock<Service>,
    issuers: Mutex<HashMap<String, Arc<dyn FetchedKeys>>>,
    /// What makes credentials for upstreams.
    pub(crate) makers: Makers,
    /// Servers of tools that are commands.
    pub(crate) bridges: Bridges,
    /// Servers of tools whose descriptions are fetched.
    pub(crate) descriptions: Descriptions,
    /// Engines that are asked what they have to do.
    pub(crate) watched: Watched,
    /// Whoever picks an address of a backend.
    pub(crate) pickers: Pickers,
    /// Where people log in: of each listener, by what is written.
    providers: Mutex<HashMap<&'static str, (LoginClient, OpenId)>>,
    /// What seals sessions where nothing is configured for that.
    session_key: OnceLock<Secret>,
    /// Who counts prompts for callers that ask.
    pub(crate) prompts: Arc<Prompts>,
    /// Responses that are kept for callers.
    pub(crate) responses: Arc<Responses>,
    asked: Mutex<Counted>,
    /// Who knows whose files and batches are, once some route allows them.
    batches: OnceLock<Arc<Batches>>,
    /// It is a gate that runs: what is beside its ledger is opened.
    runs: bool,
}

/// Everybody who is or was asked. Invariant: of who is asked no more [`ASKED_MAX`] are told apart at most, whose sums go on as those of
/// `other`; who is asked is told apart, however many they are.
#[derive(Debug, Default)]
struct Counted {
    of: BTreeMap<Asked, Arc<Questions>>,
    others: BTreeMap<&'static str, QuestionCounts>,
}

/// How many of those who may be asked no more are told apart: addresses of Pods come and go.
const ASKED_MAX: usize = 64;
/// What the others are called.
const OTHER: &str = "other";

impl Counted {
    fn of(&mut self, who: Asked) -> Arc<Questions> {
        let found = Arc::clone(self.of.entry(who).or_default());
        let is_past = |questions: &Arc<Questions>| Arc::strong_count(questions) == 1;
        let past = self.of.values().filter(|of| is_past(of)).count();
        if past > ASKED_MAX {
            let others = &mut self.others;
            self.of.retain(|(service, _), questions| {
                let stays = !is_past(questions);
                if !stays {
                    let (sum, more) = (others.entry(service).or_default(), questions.counts());
                    sum.answered += more.answered;
                    sum.kept += more.kept;
                    sum.failed += more.failed;
                }
                stays
            });
        }
        found
    }

    fn all(&self) -> Vec<(Asked, QuestionCounts)> {
        let of = self.of.iter().map(|(who, of)| (who.clone(), of.counts()));
        let others = self.others.iter();
        let others = others.map(|(service, sum)| ((*service, OTHER.to_owned()), *sum));
        of.chain(others).collect()
    }
}

/// Counts prompts for callers that ask, while there is who counts.
#[derive(Debug, Default)]
pub(crate) struct Prompts(Mutex<Option<PromptDesk>>);

impl Prompts {
    /// From now on it is asked there; nowhere any more with `None`.
    pub(crate) fn ask_at(&self, desk: Option<PromptDesk>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = desk;
    }
}

impl PromptCounter for Prompts {
    fn count(&self, prompt: AskedPrompt) -> Later<Option<u64>> {
        let (tell, told) = oneshot::channel();
        let desk = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(desk) = &*desk {
            let tell = move |tokens| {
                // Nobody listens any more when the client has left.
                let _gone = tell.send(tokens);
            };
            desk.ask(prompt, Box::new(tell));
        }
        Box::pin(async move { told.await.ok().flatten() })
    }
}

/// Who is asked: what for, and which host.
pub(crate) type Asked = (&'static str, String);

/// Keys of an issuer that are fetched.
pub(crate) trait FetchedKeys: IssuerKeys {
    /// How they stand.
    fn state(&self) -> IssuerState;
}

/// How the keys of an issuer stand.
#[derive(Debug, Clone)]
pub(crate) struct IssuerState {
    /// As its tokens name it.
    pub(crate) issuer: String,
    /// Keys that are of use.
    pub(crate) keys: usize,
    /// Since they were last fetched well; none where they never were.
    pub(crate) age: Option<Duration>,
    /// They may be used.
    pub(crate) are_available: bool,
    /// The last fetch that ended did so well, or none has ended yet.
    pub(crate) is_last_good: bool,
    pub(crate) fetches: u64,
    pub(crate) failures: u64,
}

/// Makes a credential, and says how it stands.
pub(crate) trait Maker: Minter {
    /// How what is held ready stands; none where nothing is.
    fn state(&self) -> Option<MadeState> {
        None
    }
}

/// How a credential stands that is held ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MadeState {
    /// How long it still lives; none where there is none.
    pub(crate) left: Option<Duration>,
    /// The last fetch that ended did so well, or none has ended yet.
    pub(crate) is_last_good: bool,
}

impl From<callout::TokenState> for MadeState {
    fn from(state: callout::TokenState) -> Self {
        Self {
            left: state.left,
            is_last_good: state.last_fault.is_none(),
        }
    }
}

impl Services {
    /// Those of a gate that runs.
    pub(crate) fn of_gate() -> Self {
        Self {
            runs: true,
            ..Self::default()
        }
    }

    /// Who knows whose files and batches are, beside this ledger.
    pub(crate) fn batches(&self, ledger: &Path) -> Result<Arc<dyn BatchStore>, String> {
        if !self.runs {
            return Ok(Arc::new(Nobody));
        }
        if let Some(open) = self.batches.get() {
            return Ok(Arc::clone(open) as _);
        }
        let opened = Batches::open(ledger).map_err(|fault| format!("batches: {fault}"))?;
        if opened.is_lost() {
            tracing::warn!(
                ledger = %ledger.display(),
                see = "docs/batches.md#what-holds",
                "there was no .batches file beside the ledger, which has calls of files and batches: it was lost, their ids are nobody's now, and batches \
                 that were not counted stay so; put it back from a backup"
            );
        }
        for half in opened.half_made() {
            tracing::error!(
                workload = &*half.owner.workload,
                backend = &*half.backend,
                kind = half.kind.as_str(),
                begun_unix_ms = half.created_unix_ms,
                see = "docs/batches.md#what-holds",
                "the gate ended while a file or a batch was being made at a provider: it may be there, and is nobody's here"
            );
        }
        Ok(Arc::clone(self.batches.get_or_init(|| Arc::new(opened))) as _)
    }

    /// The way to the thread, which begins when it is first needed.
    pub(crate) fn handle(&self) -> Result<Handle, String> {
        if let Some(service) = self.service.get() {
            return Ok(service.handle().clone());
        }
        let service = Service::start().map_err(|error| format!("cannot start: {error}"))?;
        Ok(self.service.get_or_init(|| service).handle().clone())
    }

    /// The issuer's keys that go by this name, begun where there are none.
    pub(crate) fn issuer(
        &self,
        name: &str,
        begin: impl FnOnce(&Handle) -> Result<Arc<dyn FetchedKeys>, String>,
    ) -> Result<Arc<dyn IssuerKeys>, String> {
        let mut issuers = locked(&self.issuers);
        if let Some(known) = issuers.get(name) {
            return Ok(Arc::clone(known) as _);
        }
        let begun = begin(&self.handle()?)?;
        issuers.insert(name.to_owned(), Arc::clone(&begun));
        Ok(begun)
    }

    /// The provider of a listener's logins; another one where anything else is written of it.
    pub(crate) fn provider(
        &self,
        listener: &'static str,
        written: &LoginClient,
        begin: impl FnOnce(&Handle, &LoginClient) -> Result<OpenId, String>,
    ) -> Result<OpenId, String> {
        let mut providers = self
            .providers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match providers.get(listener) {
            Some((of, known)) if of == written => Ok(known.clone()),
            _ => {
                let begun = begin(&self.handle()?, written)?;
                providers.insert(listener, (written.clone(), begun.clone()));
                Ok(begun)
            }
        }
    }

    /// What seals sessions where nothing is configured for that: drawn once.
    pub(crate) fn session_key(&self, draw: impl FnOnce() -> Secret) -> Secret {
        self.session_key.get_or_init(draw).clone()
    }

    /// How the keys of all issuers stand that are fetched.
    pub(crate) fn issuers(&self) -> Vec<IssuerState> {
        locked(&self.issuers)
            .values()
            .map(|of| of.state())
            .collect()
    }

    /// Where questions to a service are counted.
    pub(crate) fn questions(&self, service: &'static str, url: &Url) -> Arc<Questions> {
        locked(&self.asked).of((service, url.authority()))
    }

    /// Everybody who is or was asked, with what became of the questions.
    pub(crate) fn asked(&self) -> Vec<(Asked, QuestionCounts)> {
        locked(&self.asked).all()
    }

    /// Forgets issuers of other names.
    pub(crate) fn keep_only_issuers(&self, names: &[String]) {
        let mut issuers = locked(&self.issuers);
        issuers.retain(|name, _| names.contains(name));
    }
}

/// What a credential is made of, and what makes it.
pub(crate) type Made = (MadeCredential, Arc<dyn Maker>);

/// What makes the credentials of the configuration in force.
#[derive(Debug, Default)]
pub(crate) struct Makers(Mutex<Arc<[Made]>>);

impl Makers {
    pub(crate) fn kept(&self, made: &MadeCredential) -> Option<Arc<dyn Maker>> {
        let makers = locked(&self.0);
        let found = makers.iter().find(|(of, _)| of == made);
        found.map(|(_, maker)| Arc::clone(maker))
    }

    pub(crate) fn replace(&self, makers: Arc<[Made]>) {
        *locked(&self.0) = makers;
    }

    /// What is held ready, by account.
    pub(crate) fn states(&self) -> Vec<(String, MadeState)> {
        let makers = locked(&self.0);
        let states = makers.iter();
        let states =
            states.filter_map(|(_, maker)| Some((maker.account().to_owned(), maker.state()?)));
        states.collect()
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds since the Unix epoch.
pub(crate) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_no_more_is_not_told_apart_for_ever_and_no_sum_falls() {
        let mut counted = Counted::default();
        let service = "engine_metrics";
        let kept = counted.of((service, "10.0.0.1:80".to_owned()));
        kept.note(true);
        for n in 0..1000 {
            let pod = counted.of((service, format!("10.1.{}.{}:80", n / 250, n % 250)));
            pod.note(n % 2 == 0);
        }
        let all = counted.all();
        assert!(all.len() <= ASKED_MAX + 3, "{}", all.len());
        let sum = |of: fn(&QuestionCounts) -> u64| all.iter().map(|(_, n)| of(n)).sum::<u64>();
        assert_eq!((sum(|n| n.answered), sum(|n| n.failed)), (501, 500));
        let own = all.iter().find(|((_, host), _)| host == "10.0.0.1:80");
        assert_eq!(own.map(|(_, n)| n.answered), Some(1));
    }
}
