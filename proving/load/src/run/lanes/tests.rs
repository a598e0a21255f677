//! Who takes what.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use experiment::arrivals::{Process, Scope};
use experiment::workload::{Arrival, Load, Part, Plain, Profile, Workload};
use tokio::task::{spawn_local, yield_now};

use super::{Lanes, MOST_WAITING};

fn arrivals(count: usize) -> Vec<Arrival> {
    let workload = Workload {
        seed: 1,
        ramp: Duration::ZERO,
        profiles: vec![Profile {
            name: "p".into(),
            load: Load::Open {
                arrivals: Process::Constant { mean_s: 0.001 },
                think: Process::Recorded,
            },
            scope: Scope::User,
        }],
    };
    let mut all = workload.arrivals(0, Part::WHOLE).expect("an open profile");
    std::iter::from_fn(|| all.next(&Plain::ONE))
        .take(count)
        .collect()
}

fn on_one_thread(work: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.build_local(Default::default()).expect("a runtime");
    runtime.block_on(work);
}

#[test]
fn a_lane_that_comes_late_takes_the_oldest_and_what_nobody_took_is_unsent() {
    on_one_thread(async {
        let lanes = Lanes::default();
        for arrival in arrivals(3) {
            assert!(lanes.push(arrival));
        }
        assert_eq!(lanes.next(0).await.map(|arrival| arrival.number), Some(0));
        assert_eq!(lanes.next(1).await.map(|arrival| arrival.number), Some(1));
        lanes.end();
        assert!(lanes.next(0).await.is_none());
        assert_eq!(lanes.unsent(), 1);
    });
}

#[test]
fn the_lane_that_was_idle_last_is_the_first_to_take() {
    on_one_thread(async {
        let lanes = Rc::new(Lanes::default());
        let taken = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = (0..3)
            .map(|lane| {
                let (lanes, taken) = (Rc::clone(&lanes), Rc::clone(&taken));
                spawn_local(async move {
                    while let Some(arrival) = lanes.next(lane).await {
                        taken.borrow_mut().push((lane, arrival.number));
                        yield_now().await;
                    }
                })
            })
            .collect();
        yield_now().await;
        for arrival in arrivals(2) {
            assert!(lanes.push(arrival));
            yield_now().await;
            yield_now().await;
        }
        assert_eq!(*taken.borrow(), [(2, 0), (2, 1)]);
        let both = arrivals(2);
        assert!(both.into_iter().all(|arrival| lanes.push(arrival)));
        yield_now().await;
        assert_eq!(taken.borrow()[2..], [(2, 0), (1, 1)]);
        lanes.end();
        for task in tasks {
            task.await.expect("no panic");
        }
    });
}

#[test]
fn those_for_whom_there_is_no_room_are_counted() {
    let lanes = Lanes::default();
    let one = arrivals(1).remove(0);
    let found = (0..MOST_WAITING + 7).filter(|_| lanes.push(one.clone()));
    assert_eq!(found.count(), MOST_WAITING);
    assert_eq!(lanes.waiting.borrow().len(), MOST_WAITING);
    assert_eq!(lanes.unsent(), MOST_WAITING as u64 + 7);
}
