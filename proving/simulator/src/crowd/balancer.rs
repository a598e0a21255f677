//! Which of several engines a question goes to, as a gateway before them chooses.
//!
//! The gateway knows what it sent where and what was answered, and nothing of what the engines do. An affine balancer
//! also remembers which engine was last sent each block of each prompt, and sends a prompt to the engine that was last
//! sent its longest beginning, unless that is too far behind.
//! Invariant: each question goes to exactly one engine; the same questions and answers give the same choices. Of
//! blocks, so many are remembered at most ([`MOST_NAMES`]), those that were sent longest ago forgotten first.
//! Not here: engines in parallel behind one front end, of which vLLM chooses one (`virtual_time`).

use std::collections::HashMap;

/// Engines at most.
pub const MOST_REPLICAS: u32 = 64;

/// Names of blocks that are remembered at most.
const MOST_NAMES: usize = 1 << 21;

/// How an engine is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Balancer {
    /// One after another.
    RoundRobin,
    /// The one with the fewest questions out; of several, the one that was sent the fewest.
    #[default]
    LeastLoaded,
    /// The one that was last sent the longest beginning of the prompt; where none was, or that one has too many
    /// questions out, the least loaded.
    PrefixAware(Affinity),
}

/// How much more an engine that knows a prompt's beginning may have to do than the least loaded one: it is taken while
/// its questions out are within either bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affinity {
    /// So many questions more.
    pub most_more: u32,
    /// So many times as many questions; at least 1.
    pub most_times: f64,
}

impl Default for Affinity {
    /// Eight questions more, or one and a half times as many.
    fn default() -> Self {
        Self {
            most_more: 8,
            most_times: 1.5,
        }
    }
}

/// A balancer at work.
#[derive(Debug)]
pub struct Balancing {
    balancer: Balancer,
    engines: Vec<Engine>,
    next: usize,
    memory: Memory,
}

/// What the gateway knows of an engine.
#[derive(Clone, Copy, Debug, Default)]
struct Engine {
    in_flight: u32,
    sent: u64,
}

/// Which engine was last sent which block, in two generations.
#[derive(Debug)]
struct Memory {
    /// Names that a generation holds.
    most: usize,
    young: HashMap<u64, u8>,
    old: HashMap<u64, u8>,
}

impl Balancing {
    /// Before so many engines, 1 to [`MOST_REPLICAS`].
    #[must_use]
    pub fn new(balancer: Balancer, replicas: usize) -> Self {
        Self::remembering(balancer, replicas, MOST_NAMES)
    }

    fn remembering(balancer: Balancer, replicas: usize, names: usize) -> Self {
        let replicas = replicas.clamp(1, MOST_REPLICAS as usize);
        Self {
            balancer,
            engines: vec![Engine::default(); replicas],
            next: 0,
            memory: Memory {
                most: (names / 2).max(1),
                young: HashMap::new(),
                old: HashMap::new(),
            },
        }
    }

    /// The engine for a prompt of so many whole blocks; `name` gives the name of each, which stands for all before it
    /// too. It counts as sent.
    pub fn choose(&mut self, blocks: u32, name: impl Fn(u32) -> u64) -> usize {
        if self.engines.len() == 1 {
            return 0;
        }
        let chosen = match self.balancer {
            Balancer::RoundRobin => {
                let next = self.next;
                self.next = (next + 1) % self.engines.len();
                next
            }
            Balancer::LeastLoaded => self.least_loaded(),
            Balancer::PrefixAware(affinity) => {
                let knows = (0..blocks).rev().find_map(|i| self.memory.find(name(i)));
                let knows = knows.filter(|&engine| self.is_near(engine, affinity));
                let chosen = knows.unwrap_or_else(|| self.least_loaded());
                (0..blocks).for_each(|i| self.memory.keep(name(i), chosen));
                chosen
            }
        };
        if let Some(engine) = self.engines.get_mut(chosen) {
            engine.in_flight += 1;
            engine.sent += 1;
        }
        chosen
    }

    /// An engine has answered a question in full.
    pub fn answered(&mut self, replica: usize) {
        if let Some(engine) = self.engines.get_mut(replica) {
            engine.in_flight = engine.in_flight.saturating_sub(1);
        }
    }

    /// Questions that are out, by engine.
    pub fn in_flight(&self) -> impl Iterator<Item = u32> + '_ {
        self.engines.iter().map(|engine| engine.in_flight)
    }

    fn least_loaded(&self) -> usize {
        let engines = self.engines.iter().enumerate();
        let least = engines.min_by_key(|(_, engine)| (engine.in_flight, engine.sent));
        least.map_or(0, |(replica, _)| replica)
    }

    fn is_near(&self, replica: usize, affinity: Affinity) -> bool {
        let least = self.in_flight().min().unwrap_or(0);
        let has = self.engines.get(replica).map_or(0, |e| e.in_flight);
        has <= least.saturating_add(affinity.most_more)
            || f64::from(has) <= f64::from(least) * affinity.most_times
    }
}

impl Memory {
    fn find(&self, name: u64) -> Option<usize> {
        let found = self.young.get(&name).or_else(|| self.old.get(&name));
        found.map(|&engine| usize::from(engine))
    }

    fn keep(&mut self, name: u64, engine: usize) {
        if self.young.len() >= self.most && !self.young.contains_key(&name) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(name, engine as u8);
    }
}

#[cfg(test)]
mod tests;
