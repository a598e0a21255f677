//! What one request costs the client: a closed loop from one thread, to be pinned to a core and held against other tools.
//!
//! `one_core URL CONNECTIONS SECONDS BODY [stream] [http2=N]`: `BODY` is a file; `stream` reads the usage of each answer.
//! Not here: a scenario, a subject, statistics over repetitions (`prove`).

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use load::client::{Protocol, Target};
use load::observer::Measure;
use load::run::{Plan, Shape, start};
use load::source::{Fixed, Head};

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, seconds, body, options @ ..] = given.as_slice() else {
        return Err("one_core URL CONNECTIONS SECONDS BODY [stream] [http2=N]".into());
    };
    let target = Target::parse(url)?;
    let address = target.addresses().first().copied().ok_or("no address")?;
    let users = connections.parse()?;
    let think = Duration::ZERO;
    let head = Head::post("/v1/chat/completions")?
        .with("content-type", "application/json")?
        .with("authorization", "Bearer sk-client")?;
    let source = Fixed::one(head.clone(), std::fs::read(body)?.into());
    let (measure, patience) = (seconds.parse()?, Duration::from_secs(10));
    let measure = Duration::from_secs(measure);
    let shape = Shape::Closed { users, think };
    let what = (head, Arc::new(source) as _);
    let mut plan = Plan::plain(address, what, shape, Duration::ZERO, measure, patience);
    plan.reach.targets = vec![target];
    plan.warm_up = Duration::from_millis(100);
    plan.usage = options.iter().any(|option| option == "stream");
    let http2 = options
        .iter()
        .find_map(|option| option.strip_prefix("http2="));
    if let Some(connections) = http2 {
        let connections = connections.parse()?;
        plan.reach.protocol = Protocol::Http2 { connections };
    }
    let outcome = start(plan)?.finish()?;
    let seen = outcome.total();
    let (cpu, count) = (outcome.client_cpu.as_secs_f64() * 1e6, seen.answered.max(1));
    println!(
        "{:.0} requests/s, {:.2} µs of CPU each; {:.0} events/s, {:.3} µs each; {} failed; {:?}",
        seen.answered as f64 / outcome.measured.as_secs_f64(),
        cpu / count as f64,
        seen.events as f64 / outcome.measured.as_secs_f64(),
        cpu / seen.events.max(1) as f64,
        seen.failed(),
        seen.quantiles(Measure::Latency),
    );
    Ok(())
}
