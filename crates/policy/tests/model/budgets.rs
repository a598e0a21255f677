//! Nested budgets under threads: the bound that is promised, and that no update is lost.
//!
//! What a period's calls come to ≤ amount + what single calls came to beyond their reservation.
//! At each admission, what is held ≤ amount + the overruns settled until then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use policy::budget::{Budget, Calendar, Every, Scope, Unit};
use policy::budget_reservation::{Asked, reserve};
use policy::id::{BudgetId, WorkloadId};
use policy::record::{Count, Tokens};
use policy::revision::Revision;

use crate::fixture::{ONE, RoutePlan, snapshot};
use crate::sim::rng::Rng;
use testing::seed;

const WORKLOADS: [&str; 4] = ["a", "b", "c", "d"];
/// Company, then the group of `a` and `b`, then each workload.
const AMOUNTS: [u64; 6] = [40_000, 15_000, 12_000, 9_000, 11_000, 20_000];
const THREADS: u64 = 8;
const CALLS: u64 = 4_000;

fn nested() -> Revision {
    let mut s = snapshot(&[RoutePlan {
        workloads: &WORKLOADS,
        backends: &[ONE],
        ..RoutePlan::default()
    }]);
    let named = |names: &[&str]| Scope::Workloads(names.iter().map(|n| Arc::from(*n)).collect());
    let mut scopes = vec![Scope::Everyone, named(&WORKLOADS[..2])];
    scopes.extend(WORKLOADS.iter().map(|name| named(&[*name])));
    let calendar = Calendar {
        every: Every::Month,
        east_min: 0,
    };
    let budgets = scopes
        .into_iter()
        .zip(AMOUNTS)
        .map(|(scope, amount)| Budget {
            name: format!("{scope:?}").into(),
            unit: Unit::Tokens,
            tools: Vec::new(),
            amount,
            calendar,
            scope,
            whose: policy::subject::Whose::Workload,
            models: Vec::new(),
        });
    s.budgets.list = budgets.collect();
    let ids = |of: &[u32]| of.iter().copied().map(BudgetId).collect();
    s.budgets.of = vec![ids(&[0, 1, 2]), ids(&[0, 1, 3]), ids(&[0, 4]), ids(&[0, 5])];
    Revision::first(s)
}

/// Of each budget: what its calls came to, and by how much beyond their reservations.
#[derive(Default)]
struct Truth([(AtomicU64, AtomicU64); 6]);

#[test]
fn nothing_is_admitted_above_a_budget_and_no_update_is_lost() {
    let seed = seed("budgets");
    let (s, truth) = (nested(), Truth::default());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (s, truth) = (&s, &truth);
            scope.spawn(move || hammer(s, truth, Rng::new(seed ^ thread)));
        }
    });
    for (at, budget) in s.snapshot.budgets.list.iter().enumerate() {
        let id = BudgetId(u32::try_from(at).expect("few"));
        let (came_to, overrun) = (truth.0[at].0.load(SeqCst), truth.0[at].1.load(SeqCst));
        assert_eq!(held(&s, id), came_to, "{}: an update was lost", budget.name);
        assert!(came_to <= AMOUNTS[at] + overrun, "{}", budget.name);
    }
    let company = truth.0[0].0.load(SeqCst);
    assert!(company > 30_000, "the run was to fill it, not {company}");
}

/// What a budget holds of its first period.
fn held(s: &Revision, id: BudgetId) -> u64 {
    let budget = s.snapshot.budgets.get(id).expect("a budget");
    let spent = s.levels.spent(id).expect("a budget");
    spent.level(budget.calendar.of(0)).held
}

fn hammer(s: &Revision, truth: &Truth, mut rng: Rng) {
    let mut open = Vec::new();
    for _ in 0..CALLS {
        let workload = u32::try_from(rng.between(0, 4)).expect("small");
        let (prompt, completion) = (rng.between(1, 41), rng.between(0, 61));
        let asked = Asked {
            workload: WorkloadId(workload),
            caller: None,
            model: Some("m"),
            backends: &[],
            prompt,
            completion,
            pieces: 0,
            fixed: None,
        };
        if let Ok(reservation) = reserve(&asked, 0, &s.snapshot, &s.levels) {
            open.push((reservation, workload, prompt + completion));
            for id in &s.snapshot.budgets.of[workload as usize] {
                let budget = &s.snapshot.budgets.list[id.index()];
                // Read in this order: an overrun is noted before it is settled.
                let held = held(s, *id);
                let overrun = truth.0[id.index()].1.load(SeqCst);
                assert!(held <= budget.amount + overrun, "{}: {held}", budget.name);
            }
        }
        while open.len() > 8 {
            let place = usize::try_from(rng.between(0, 9)).expect("small");
            end(s, truth, open.swap_remove(place), &mut rng);
        }
    }
    for call in open {
        end(s, truth, call, &mut rng);
    }
}

fn end(
    s: &Revision,
    truth: &Truth,
    call: (policy::budget_reservation::BudgetReservation, u32, u64),
    rng: &mut Rng,
) {
    let (reservation, workload, reserved) = call;
    if rng.between(0, 10) == 0 {
        reservation.release(&s.levels);
        return;
    }
    // Mostly less than was reserved, sometimes more.
    let actual = rng.between(0, reserved + reserved / 8 + 1);
    for id in &s.snapshot.budgets.of[workload as usize] {
        let (came_to, overrun) = &truth.0[id.index()];
        came_to.fetch_add(actual, SeqCst);
        overrun.fetch_add(actual.saturating_sub(reserved), SeqCst);
    }
    let tokens = Tokens {
        prompt: Count::Reported(actual),
        completion: Count::Reported(0),
        ..Tokens::default()
    };
    let _settled = reservation.settle(&tokens, None, &s.snapshot, &s.levels);
}
